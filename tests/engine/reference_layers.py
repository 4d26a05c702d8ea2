"""All layers written a second time, slowly and straight from their description: what the engine must equal.

Every batch of a scope is kept with its results, and each rule counts over that list anew. Only events, the policy and
the identity of calls are shared with the engine. Where the description leaves a choice, `READING` says which is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

from loopscope.engine.decision import Decision
from loopscope.engine.events import Batch, Control, Event, Result, RunStart, ScopeKey, Witness
from loopscope.engine.identity import batch_hash, call_key
from loopscope.engine.policy import Policy
from loopscope.engine.sections import Pair
from tests.engine.reference_state import COUNTERS, Account, Brought, Finding, Past, Scope, laps

READING = {
    "late results": "streaks go over batches in the order in which their results came to be all in",
    "new": "a result is compared with those that came before it, whichever batch they belong to",
    "last_error": "the previous failure is the newest batch before with one, whatever came between",
    "witness event": "an iteration's value is the last one told before its results are all in, else the first one"
    " after; what is told beyond that, or of an iteration whose results are not in, is passed over",
    "error_streak tool": "named if every call of the newest batch is of one tool",
    "cycle laps": "the newest half of the laps, rounded up, less the newest lap, are those that must be stale",
    "equal laps": "the shortest period of those with most laps counts",
    "first occurrence": "every batch before it lies between it and a previous one that there is not",
    "stop that is none": "warns with the warning's threshold, and with the hard limit where there is no warning",
    "budgets": "in the order of the counters; of one counter the scope's own before its parent's",
    "two stops at results": "the severest that waits makes the next batch's stop, of one layer the newest",
    "values that cannot be compared": "show progress if they differ",
    "no time": "an event without a time spends no time, and no rate",
    "eviction": "an account outlives its scope, lest a budget begins anew",
}


class LayerReference:
    """Decides events; every rule as it is written down."""

    def __init__(self, policy: Policy, normal: Callable[[str], str]) -> None:
        self.policy = policy
        self.normal = normal
        self.scopes: dict[ScopeKey, Scope] = {}
        self.accounts: dict[ScopeKey, Account] = {}
        self.parents: dict[ScopeKey, ScopeKey] = {}
        self.batches = 0
        self.bill: list[Account] = []

    def observe(self, event: Event) -> list[Decision]:
        if isinstance(event, RunStart):
            if event.parent_thread_id is not None or event.parent_run_id is not None:
                self.parents[event.scope] = ScopeKey(event.parent_thread_id, event.parent_run_id)
            self.charged(event.scope, event.ts)
        elif isinstance(event, Batch):
            self.charge(event)
            return [self.decide(event)] if event.calls else []
        elif isinstance(event, Result):
            return self.result(event)
        elif isinstance(event, Witness):
            return self.witness(event)
        elif isinstance(event, Control) and event.action == "reset":
            everything = event.thread_id is None and event.run_id is None
            for key in [key for key in self.scopes if everything or key == event.scope]:
                del self.scopes[key]
            for key in [key for key in self.accounts if everything or key == event.scope]:
                del self.accounts[key]
        return []

    # Scopes, ancestors and what is spent.

    def line(self, key: ScopeKey) -> list[ScopeKey]:
        """The scope and its ancestors, nearest first."""
        found = [key]
        while found[-1] in self.parents and self.parents[found[-1]] not in found:
            found.append(self.parents[found[-1]])
        return found

    def charged(self, key: ScopeKey, ts: float | None) -> list[Account]:
        """The accounts that an event is charged to, nearest first."""
        found = []
        for each in self.line(key):
            account = self.accounts.setdefault(each, Account())
            account.first = ts if account.first is None else account.first
            found.append(account)
        return found

    def charge(self, batch: Batch) -> None:
        usage = batch.usage
        tokens = (0, 0) if usage is None else (usage.input_tokens or 0, usage.output_tokens or 0)
        self.bill = self.charged(batch.scope, batch.ts)
        for account in self.bill:
            if batch.ts is not None:
                account.calls.append(batch.ts)
            account.spent["iterations"] += bool(batch.calls)
            account.spent["model_calls"] += 1
            account.spent["tool_calls"] += len(batch.calls)
            account.spent["input_tokens"] += tokens[0]
            account.spent["output_tokens"] += tokens[1]
            account.spent["total_tokens"] += sum(tokens)
            account.spent["cost_usd"] += 0 if usage is None else usage.cost_usd or 0

    def touch(self, key: ScopeKey) -> Scope:
        ancestors = self.line(key)[1:] if self.policy.budget else []
        self.recent(ancestors)
        scope = self.scopes.pop(key, None) or Scope()
        self.scopes[key] = scope
        while len(self.scopes) > self.policy.max_tracked_threads:
            del self.scopes[next(iter(self.scopes))]
        self.recent(ancestors)
        return scope

    def recent(self, ancestors: list[ScopeKey]) -> None:
        """Ancestors are used as recently as their child, and stay when it goes."""
        for each in ancestors:
            if each in self.scopes:
                self.scopes[each] = self.scopes.pop(each)

    # A batch.

    def decide(self, batch: Batch) -> Decision:
        self.batches += 1
        scope, policy = self.touch(batch.scope), self.policy
        calls = batch.calls
        past = Past(
            self.batches,
            batch_hash(calls, policy),
            0,
            [call.name or "" for call in calls],
            [call.id for call in calls],
            [f"{call.name or ''}:{call_key(call, policy)}" for call in calls],
            [None] * len(calls),
        )
        scope.past.append(past)
        findings = [
            *self.identical(scope, past),
            *self.cycle(scope, past),
            *self.repeats(scope, past),
            *self.budgets(batch.ts),
            *reversed(scope.carried),
        ]
        scope.carried, scope.told, scope.waits = [], [], False
        return self.emit(batch.scope, batch.seq, past, findings, "batch")

    def emit(self, key: ScopeKey, seq: int, past: Past, findings: list[Finding], at: Any) -> Decision:
        head = {
            "batch": past.number,
            "seq": seq,
            "thread_id": key.thread_id,
            "run_id": key.run_id,
            "hash": past.hash,
            "hash_count": past.count,
            "at": at,
        }
        if not findings:
            return Decision(**head, action="pass")
        worst = min(findings, key=lambda finding: finding.rank)
        if not worst.stops:
            worst.mark()
        if worst.counter is not None:
            head["counter"] = worst.counter
        return Decision(
            **head,
            action="hard_stop" if worst.stops else "warn",
            layer=worst.layer,
            tool=worst.tool,
            count=worst.count,
            threshold=worst.threshold,
        )

    # What batches brought.

    def stale(self, scope: Scope, past: Past) -> bool:
        if not past.complete or past.new:
            return False
        if any(result.failed for result in past.brought):
            return True
        position = scope.past.index(past)
        before = [i for i in range(position) if scope.past[i].hash == past.hash]
        return not any(other.new for other in scope.past[before[-1] + 1 if before else 0 : position])

    # Section 3.

    def identical(self, scope: Scope, past: Past) -> Iterable[Finding]:
        policy = self.policy
        scope.hashes = [*scope.hashes, past][-policy.window_size :]
        alive = {("hash", each.hash) for each in scope.hashes}
        scope.marks = {mark for mark in scope.marks if mark[0] != "hash" or mark in alive}
        same = [each for each in scope.hashes if each.hash == past.hash]
        past.count = count = len(same)
        counted = count
        if policy.result_aware:
            counted = sum(self.stale(scope, each) for each in same) + 1
        if counted >= policy.hard_limit:
            yield Finding(True, "identical_call_set", None, count, policy.hard_limit)
            return
        mark = ("hash", past.hash)
        candidate = count >= policy.warn_threshold and mark not in scope.marks
        if candidate:
            yield Finding(
                False,
                "identical_call_set",
                None,
                count,
                policy.warn_threshold,
                mark=partial(scope.marks.add, mark),
            )
        yield from self.frequency(scope, past, candidate)

    def frequency(self, scope: Scope, past: Past, candidate: bool) -> Iterable[Finding]:
        policy, first = self.policy, None
        for position, name in enumerate(past.names):
            if not name:
                continue
            everything = [*scope.tools, (name, past, position)]
            scope.tools = everything[-policy.frequency_window :]
            for gone, _, _ in everything[: -policy.frequency_window]:
                self.rearm(scope, gone)
            n, (warn, hard) = self.often(scope, name), self.limits(name)
            if (self.idle_calls(scope, name) + 1 if policy.result_aware else n) >= hard:
                yield Finding(True, "tool_frequency", name, n, hard)
                return
            self.rearm(scope, name)
            if n >= warn and ("tool", name) not in scope.marks:
                first = first or (name, n, warn)
        if first is not None and not candidate:
            tool, n, warn = first

            def mark() -> None:
                if self.often(scope, tool) >= warn:
                    scope.marks.add(("tool", tool))

            yield Finding(False, "tool_frequency", tool, n, warn, mark=mark)

    def rearm(self, scope: Scope, name: str) -> None:
        """A tool below its warning loses its mark."""
        if self.often(scope, name) < self.policy.frequency_limits(name).warn:
            scope.marks.discard(("tool", name))

    def idle_calls(self, scope: Scope, name: str) -> int:
        """Calls of a tool in its window whose result was not new."""
        results = [each.results[i] for tool, each, i in scope.tools if tool == name]
        return sum(result is not None and not result.new for result in results)

    def often(self, scope: Scope, name: str) -> int:
        return sum(tool == name for tool, _, _ in scope.tools)

    def limits(self, name: str) -> tuple[int, int]:
        limits = self.policy.frequency_limits(name)
        return limits.warn, limits.hard_limit

    # Section 9, at a batch.

    def cycle(self, scope: Scope, past: Past) -> Iterable[Finding]:
        limits = self.policy.cycle
        pairs = {"hash": limits.hash, "names": limits.names}
        largest = max([x for pair in pairs.values() for x in (pair.warn, pair.hard_limit) if x is not None], default=0)
        if limits.max_period is None or not largest:
            return
        scope.laps = [*scope.laps, past][-limits.max_period * largest :]
        for reading, pair in pairs.items():
            members: list[Any] = [each.hash if reading == "hash" else tuple(sorted(each.names)) for each in scope.laps]
            found = [(laps(members, period), -period) for period in range(2, limits.max_period + 1)]
            n, period = max(found)
            period = -period
            mark = ("cycle", reading)
            floor = pair.warn if pair.warn is not None else pair.hard_limit
            if floor is None:
                continue
            if n < floor:
                scope.marks.discard(mark)
            idle = not self.policy.result_aware or self.idle(scope, n, period)
            if pair.hard_limit is not None and n >= pair.hard_limit and idle:
                yield Finding(True, "cycle", None, n, pair.hard_limit)
            elif n >= floor and mark not in scope.marks:
                yield Finding(False, "cycle", None, n, floor, mark=partial(scope.marks.add, mark))

    def idle(self, scope: Scope, n: int, period: int) -> bool:
        """Whether the newest half of the laps brought nothing new, the newest lap left out."""
        half = -(-n // 2) - 1
        looked = scope.laps[: len(scope.laps) - period][-half * period :] if half else []
        return bool(looked) and all(self.stale(scope, each) for each in looked)

    def repeats(self, scope: Scope, past: Past) -> Iterable[Finding]:
        warn = self.policy.repeat_in_batch.warn
        if warn is None:
            return
        for key in dict.fromkeys(past.keys):
            n, mark = past.keys.count(key), ("repeat", key)
            if n >= warn and mark not in scope.marks:
                name = past.names[past.keys.index(key)]
                yield Finding(False, "repeat_in_batch", name, n, warn, mark=partial(scope.marks.add, mark))
                return

    def budgets(self, now: float | None) -> Iterable[Finding]:
        for counter in COUNTERS:
            for account in self.bill:
                budget, value = self.policy.budget.get(counter), account.value(counter, now)
                if budget is not None and value >= budget.limit:
                    yield Finding(True, "budget", None, value, budget.limit, counter)
                warn = 0 if budget is None else budget.warn * budget.limit
                if budget is not None and value >= warn and counter not in account.warned:

                    def mark(account: Account = account, counter: str = counter) -> None:
                        account.warned.add(counter)

                    yield Finding(False, "budget", None, value, warn, counter, mark=mark)

    # Section 9, at results and witnesses.

    def result(self, event: Result) -> list[Decision]:
        scope = self.scopes.get(event.scope)
        if scope is None:
            return []
        for past in reversed(scope.past):
            places = [i for i, each in enumerate(past.ids) if each == event.call_id and past.results[i] is None]
            if places:
                break
        else:
            return []
        tool = past.names[places[0]]
        past.results[places[0]] = Brought(
            tool,
            event.digest,
            event.status == "error",
            self.normal(event.content),
            (tool, event.digest) not in list(dict.fromkeys(reversed(scope.seen)))[:1000],
        )
        scope.seen.append((tool, event.digest))
        if not past.complete:
            return []
        scope.settled.append(past)
        findings = [*self.error_streak(scope), *self.stagnation(scope)]
        return self.at_result(scope, event, past, findings)

    def at_result(self, scope: Scope, event: Any, past: Past, findings: list[Finding]) -> list[Decision]:
        if not findings:
            return []
        scope.carried += [finding for finding in findings if finding.stops]
        return [self.emit(event.scope, event.seq, past, findings, "result")]

    def error_streak(self, scope: Scope) -> Iterable[Finding]:
        limits = self.policy.error_streak
        streak = 0
        for past in reversed(scope.settled):
            if not past.all_failed:
                break
            streak += 1
        tools = {result.tool for result in scope.settled[-1].brought}
        tool = tools.pop() if len(tools) == 1 else None
        yield from self.streak(scope, Finding(True, "error_streak", tool, streak, 0), limits)

    def streak(self, scope: Scope, found: Finding, limits: Pair) -> Iterable[Finding]:
        """What a streak of this layer, tool and length comes to."""
        n, mark = found.count, (found.layer,)
        if n == 0:
            scope.marks.discard(mark)
        elif limits.hard_limit is not None and n >= limits.hard_limit:
            yield replace(found, threshold=limits.hard_limit)
        elif limits.warn is not None and n >= limits.warn and mark not in scope.marks:
            yield replace(found, stops=False, threshold=limits.warn, mark=partial(scope.marks.add, mark))

    def stagnation(self, scope: Scope) -> Iterable[Finding]:
        witness = self.policy.stagnation.witness
        if witness == "results":
            values = [[(result.tool, result.digest) for result in past.brought] for past in scope.settled]
            progress = [now != before for before, now in pairwise(values)]
        elif witness == "last_error":
            progress = []
            before: list[tuple[str, str]] = []
            for past in scope.settled:
                failed = [(result.tool, result.text) for result in past.brought if result.failed]
                progress.append(not failed or failed != before)
                before = failed or before
        else:
            scope.waits = not scope.told
            yield from self.judge(scope)
            return
        yield from self.stagnant(scope, progress)

    def stagnant(self, scope: Scope, progress: list[bool]) -> Iterable[Finding]:
        limits = self.policy.stagnation.limits
        n = 0
        for moved in progress:
            n = 0 if moved else n + 1
        yield from self.streak(scope, Finding(True, "stagnation", None, n, 0), limits)

    def witness(self, event: Witness) -> list[Decision]:
        scope, name = self.scopes.get(event.scope), self.policy.stagnation.witness
        if scope is None or name not in event.values or name in ("results", "last_error"):
            return []
        scope.told = [event.values[name]]
        if not scope.waits or not scope.past[-1].complete:
            return []
        scope.waits = False
        return self.at_result(scope, event, scope.past[-1], [*self.judge(scope)])

    def judge(self, scope: Scope) -> Iterable[Finding]:
        """The iteration has its value, if one was told."""
        if not scope.told:
            return
        scope.values.append(scope.told.pop())
        last, progress = scope.values[0], []
        for now in scope.values[1:]:
            progress.append(self.moved(last, now))
            if progress[-1] or self.policy.stagnation.mode != "improves":
                last = now
        yield from self.stagnant(scope, progress)

    def moved(self, before: Any, now: Any) -> bool:
        try:
            match self.policy.stagnation.mode:
                case "increases" | "improves":
                    return bool(now > before)
                case "decreases":
                    return bool(now < before)
                case "shrinks":
                    return set(now) < set(before)
                case _:
                    return bool(now != before)
        except TypeError:
            return bool(now != before)
