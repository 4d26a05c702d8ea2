"""Budgets' accounts: what each scope and those below it have spent, so that handing a task on never resets a budget."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from math import floor, inf
from typing import Any

from loopscope.engine.events import Batch, ScopeKey
from loopscope.engine.sections import COUNTERS, Budget

__all__ = ["Account", "Accounts", "Least"]

MINUTE = 60.0
_SUMS = ("iterations", "model_calls", "tool_calls", "input_tokens", "output_tokens", "total_tokens", "cost_usd")
"""The counters that are added up."""
DEEPEST = 64
"""Ancestors that are charged: more than any real hand-off, and an end for parents that form a ring."""
KEPT = 2 * DEEPEST
"""Accounts, and parents, that are kept however few scopes are remembered: no line of hand-offs outgrows them."""


_WHOLE = frozenset(COUNTERS) - {"cost_usd", "wall_clock_s"}
_NEVER = 2**62
"""More than any whole counter reaches: what does is looked at once too often."""


class Account:
    """The counters of one scope, its sub-agents' spending included.

    Kept as few numbers as will do, since every message pays for each of them.
    """

    __slots__ = (
        "callless", "cost_usd", "further_calls", "input_tokens", "iterations", "output_tokens", "recent", "started",
        "warned",
    )  # fmt: skip

    def __init__(self, started: float | None) -> None:
        self.iterations = 0
        """AI messages with calls."""
        self.callless = 0
        """AI messages without."""
        self.further_calls = 0
        """Calls beyond the first one of each batch."""
        self.input_tokens = self.output_tokens = 0
        self.cost_usd: float = 0
        self.recent: deque[float] = deque()
        """Times of the model calls of the last minute, Unix seconds."""
        self.started = started
        """Time of the scope's own first event."""
        self.warned: set[str] = set()

    @property
    def model_calls(self) -> int:
        """AI messages."""
        return self.iterations + self.callless

    @property
    def tool_calls(self) -> int:
        """Tool calls that were asked for."""
        return self.iterations + self.further_calls

    @property
    def total_tokens(self) -> int:
        """Tokens in both directions."""
        return self.input_tokens + self.output_tokens

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
        counters = data["counters"]
        account.iterations = iterations = counters["iterations"]
        account.callless = counters["model_calls"] - iterations
        account.further_calls = counters["tool_calls"] - iterations
        account.input_tokens, account.output_tokens = counters["input_tokens"], counters["output_tokens"]
        account.cost_usd = counters["cost_usd"]
        account.recent.extend(data["recent"])
        account.warned.update(data["warned"])
        return account


class Least:
    """For each counter the value below which its budget has nothing to say: never reached where it has no budget.

    Of counters that are whole numbers it is one too: those are compared in a fraction of the time.
    """

    iterations: int
    model_calls: int
    tool_calls: int
    input_tokens: int
    output_tokens: int
    total_tokens: int
    cost_usd: float
    wall_clock_s: float
    requests_per_minute: int
    __slots__ = COUNTERS

    def __init__(self, budgets: Mapping[str, Budget]) -> None:
        for counter in COUNTERS:
            budget, whole = budgets.get(counter), counter in _WHOLE
            least: float = _NEVER if whole else inf
            if budget is not None:
                least = min(budget.warn * budget.limit, budget.limit)
            setattr(self, counter, floor(least) if whole else least)

    def left(self, account: Account) -> int:
        """How many more calls, or messages without one, reach no counter that messages or calls are counted by."""
        return min(
            self.iterations - account.iterations,
            self.model_calls - account.model_calls,
            self.tool_calls - account.tool_calls,
            self.requests_per_minute - len(account.recent),
        )


class Accounts:
    """The accounts of all scopes, and who is whose parent."""

    __slots__ = ("_charged", "_left", "line", "parents", "scopes")

    def __init__(self) -> None:
        self.scopes: OrderedDict[ScopeKey, Account] = OrderedDict()
        self.parents: OrderedDict[ScopeKey, ScopeKey] = OrderedDict()
        # Mostly the same scope as before is charged, whose line of accounts is then the newest already.
        self._charged: ScopeKey | None = None
        self.line: list[Account] = []
        """The accounts that were charged last, nearest first."""
        # So many more calls reach no budget that counts them, as long as the line and the budgets are the same.
        self._left = 0

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

    def charge(  # noqa: C901 - the hot path in one piece, as the detector's
        self, batch: Batch, limit: int, least: Least
    ) -> bool:
        """Charge an AI message to its scope and to every ancestor.

        Args:
            batch: the message.
            limit: how many scopes are remembered.
            least: of the budgets in force.

        Returns:
            Whether one of the budgets may have something to say.
        """
        if self._charged != (batch.thread_id, batch.run_id):
            self._line_up(batch, limit)
        calls, usage, now = len(batch.calls), batch.usage, batch.ts
        self._left = left = self._left - (calls or 1)
        cost: float
        if usage is None:
            tokens_in = tokens_out = 0
            cost = 0
        else:
            tokens_in, tokens_out, cost = usage.input_tokens or 0, usage.output_tokens or 0, usage.cost_usd or 0
        reached = False
        for account in self.line:
            if calls:
                account.iterations += 1
                if calls > 1:
                    account.further_calls += calls - 1
            else:
                account.callless += 1
            account.input_tokens = all_in = account.input_tokens + tokens_in
            account.output_tokens = all_out = account.output_tokens + tokens_out
            account.cost_usd = all_cost = account.cost_usd + cost
            if now is not None:
                recent = account.recent
                recent.append(now)
                while recent[0] <= now - MINUTE:
                    recent.popleft()
                if now - account.started >= least.wall_clock_s:  # type: ignore[operator]  # a message's time began it
                    reached = True
            if (
                all_in >= least.input_tokens
                or all_out >= least.output_tokens
                or all_in + all_out >= least.total_tokens
                or all_cost >= least.cost_usd
            ):
                reached = True
        if reached or left > 0:
            return reached
        self._left = min(map(least.left, self.line))
        return self._left <= 0

    def _line_up(self, batch: Batch, limit: int) -> None:
        """Begin with the accounts of a scope and its ancestors."""
        self.line = [self.begin(each, batch.ts, limit) for each in self.lineage(batch.scope)]
        # Once their clocks run, there is nothing more to begin.
        self._charged, self._left = batch.scope if batch.ts is not None else None, 0

    def look_again(self) -> None:
        """The budgets may have changed."""
        self._charged = None

    def drop(self, key: ScopeKey) -> None:
        """Close the account of one scope."""
        self.scopes.pop(key, None)
        self._charged = None

    def forget(self, thread_id: str | None = None) -> None:
        """Close all accounts, or those of one thread; who is whose parent stays known."""
        for key in [key for key in self.scopes if thread_id is None or key.thread_id == thread_id]:
            self.drop(key)
