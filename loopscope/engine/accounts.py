"""Budgets' accounts: what each scope and those below it have spent, so that handing a task on never resets a budget."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from typing import Any

from loopscope.engine.events import Batch, ScopeKey, Usage

__all__ = ["Account", "Accounts"]

MINUTE = 60.0
_SUMS = ("iterations", "model_calls", "tool_calls", "input_tokens", "output_tokens", "total_tokens", "cost_usd")
"""The counters that are added up."""
DEEPEST = 64
"""Ancestors that are charged: more than any real hand-off, and an end for parents that form a ring."""
KEPT = 2 * DEEPEST
"""Accounts, and parents, that are kept however few scopes are remembered: no line of hand-offs outgrows them."""


class Account:
    """The counters of one scope, its sub-agents' spending included."""

    __slots__ = (*_SUMS, "recent", "started", "warned")

    def __init__(self, started: float | None) -> None:
        self.iterations = self.model_calls = self.tool_calls = 0
        self.input_tokens = self.output_tokens = self.total_tokens = 0
        self.cost_usd: float = 0
        self.recent: deque[float] = deque()
        """Times of the model calls of the last minute, Unix seconds."""
        self.started = started
        """Time of the scope's own first event."""
        self.warned: set[str] = set()

    def charge(self, usage: Usage) -> None:
        """Add what one AI message cost."""
        tokens_in, tokens_out = usage.input_tokens or 0, usage.output_tokens or 0
        self.input_tokens += tokens_in
        self.output_tokens += tokens_out
        self.total_tokens += tokens_in + tokens_out
        self.cost_usd += usage.cost_usd or 0

    def seconds(self, now: float | None) -> float:
        """Event time since the scope's first event."""
        started = self.started
        return now - started if now is not None and started is not None and now > started else 0.0

    def value(self, counter: str, now: float | None) -> float:
        """What a counter stands at; `now` is the time of the batch that is decided."""
        if counter == "wall_clock_s":
            return self.seconds(now)
        if counter == "requests_per_minute":
            return len(self.recent)
        found: float = getattr(self, counter)
        return found

    def dump(self) -> dict[str, Any]:
        """The account as plain data."""
        return {
            "counters": {counter: getattr(self, counter) for counter in _SUMS},
            "recent": list(self.recent),
            "started": self.started,
            "warned": sorted(self.warned),
        }

    @classmethod
    def load(cls, data: dict[str, Any]) -> Account:
        """The account that `dump` gave."""
        account = cls(data["started"])
        for counter, value in data["counters"].items():
            setattr(account, counter, value)
        account.recent.extend(data["recent"])
        account.warned.update(data["warned"])
        return account


class Accounts:
    """The accounts of all scopes, and who is whose parent."""

    __slots__ = ("_charged", "_line", "parents", "scopes")

    def __init__(self) -> None:
        self.scopes: OrderedDict[ScopeKey, Account] = OrderedDict()
        self.parents: OrderedDict[ScopeKey, ScopeKey] = OrderedDict()
        # Mostly the same scope as before is charged, whose line of accounts is then the newest already.
        self._charged: ScopeKey | None = None
        self._line: list[Account] = []

    def adopt(self, child: ScopeKey, parent: ScopeKey, limit: int) -> None:
        """Remember a parent; twice as many as scopes are remembered, those whose child was charged last."""
        self._charged = None
        self.parents[child] = parent
        self.parents.move_to_end(child)
        while len(self.parents) > max(2 * limit, KEPT):
            self.parents.popitem(last=False)

    def lineage(self, key: ScopeKey) -> Iterator[ScopeKey]:
        """The scope and its ancestors, nearest first."""
        seen: set[ScopeKey] = set()
        current: ScopeKey | None = key
        while current is not None and current not in seen and len(seen) < DEEPEST:
            yield current
            seen.add(current)
            current = self.parents.get(current)

    def begin(self, key: ScopeKey, ts: float | None, limit: int) -> Account:
        """The account of a scope, whose clock starts at its first event that has a time."""
        scopes = self.scopes
        self._charged = None
        account = scopes.get(key)
        if account is None:
            account = scopes[key] = Account(ts)
        elif account.started is None:
            account.started = ts
        scopes.move_to_end(key)
        if key in self.parents:
            self.parents.move_to_end(key)
        if len(scopes) > KEPT:
            while len(scopes) > max(2 * limit, KEPT):
                scopes.popitem(last=False)
        return account

    def charge(self, batch: Batch, limit: int) -> Sequence[Account]:
        """Charge an AI message to its scope and to every ancestor; their accounts, nearest first."""
        accounts = self._line
        if self._charged != (batch.thread_id, batch.run_id) or len(self.scopes) > KEPT:
            accounts = self._line = [self.begin(each, batch.ts, limit) for each in self.lineage(batch.scope)]
            # Their clocks run, so that there is nothing more to begin.
            self._charged = batch.scope if batch.ts is not None else None
        calls, usage, now = len(batch.calls), batch.usage, batch.ts
        for account in accounts:
            account.model_calls += 1
            if calls:
                account.iterations += 1
                account.tool_calls += calls
            if usage is not None:
                account.charge(usage)
            if now is not None:
                recent = account.recent
                recent.append(now)
                while recent[0] <= now - MINUTE:
                    recent.popleft()
        return accounts

    def drop(self, key: ScopeKey) -> None:
        """Close the account of one scope."""
        self.scopes.pop(key, None)
        self._charged = None

    def forget(self, thread_id: str | None = None) -> None:
        """Close all accounts, or those of one thread; who is whose parent stays known."""
        for key in [key for key in self.scopes if thread_id is None or key.thread_id == thread_id]:
            self.drop(key)
