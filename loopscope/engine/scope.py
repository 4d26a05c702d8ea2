"""The state of one scope, and the registry that keeps the most recently used ones.

A scope is one agent loop. Everything that is counted lives in its state and dies with it, so that memory is bounded
by the windows times `max_tracked_threads` however long the process runs.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Literal

from msgspec import Struct

from loopscope.engine.events import Batch, ScopeKey, Usage
from loopscope.engine.policy import Policy
from loopscope.engine.rules import Facts, Finding, ResultStep, Rule, RuleState, Step, Window
from loopscope.engine.texts import warning_text
from loopscope.engine.trail import Trail

__all__ = ["Registry", "ScopeState", "Spent", "WarningRecord"]

PENDING_KEPT = 4
"""Warnings that wait for a scope's next model call, as in DeerFlow: the newest four."""
SETTLED_KEPT = 16
"""Warnings of a scope that are remembered after their delivery, to count how often they were ignored."""


class WarningRecord(Struct):
    """A warning from its decision to what the model made of it."""

    text: str
    layer: str
    subject: str
    """The hash or the tool that it is about."""
    batch: int
    """The batch that was warned."""
    count: int | float
    threshold: int | float
    state: Literal["queued", "delivered", "dropped"] = "queued"
    before: int | None = None
    """The first batch after the delivery."""
    assumed: bool = False
    """The recording does not tell of the delivery; it is assumed just before the scope's next batch."""
    ignored: int = 0
    """Batches with this hash or tool since the delivery."""


class Spent(Struct):
    """What a scope has used up so far. Kept as few numbers as will do: a decision pays for each of them."""

    batches: int = 0
    """AI messages with calls."""
    callless: int = 0
    """AI messages without."""
    further_calls: int = 0
    """Calls beyond the first one of each batch."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    started: float | None = None
    """Time of its first AI message, Unix seconds."""
    latest: float | None = None

    @property
    def model_calls(self) -> int:
        """AI messages."""
        return self.batches + self.callless

    @property
    def tool_calls(self) -> int:
        """Tool calls that were asked for."""
        return self.batches + self.further_calls

    @property
    def seconds(self) -> float:
        """Event time between its first and its latest AI message."""
        return 0.0 if self.started is None or self.latest is None else max(0.0, self.latest - self.started)

    def charge(self, batch: Batch) -> None:
        """Account what there is to one AI message with calls beside itself."""
        if len(batch.calls) > 1:
            self.further_calls += len(batch.calls) - 1
        if batch.usage is not None:
            self._charge_usage(batch.usage)
        if batch.ts is not None:
            self.latest = batch.ts

    def charge_callless(self, batch: Batch) -> None:
        """Account one AI message without calls."""
        self.callless += 1
        if batch.usage is not None:
            self._charge_usage(batch.usage)
        if batch.ts is not None:
            self.latest = batch.ts

    def _charge_usage(self, usage: Usage) -> None:
        self.input_tokens += usage.input_tokens or 0
        self.output_tokens += usage.output_tokens or 0
        self.cost_usd += usage.cost_usd or 0.0


class ScopeState:
    """Histories, marks, warnings and spending of one scope."""

    __slots__ = (
        "brief", "hashes", "key", "result_steps", "rules", "spent", "states", "steps", "trail", "warnings", "woken",
    )  # fmt: skip

    def __init__(self, key: ScopeKey, rules: tuple[Rule, ...], spent: Spent) -> None:
        self.key = key
        self.warnings: list[WarningRecord] = []
        self.spent = spent
        self.trail: Trail | None = None
        """What its batches brought; None until a policy asks for it."""
        self.rules = rules
        self.set_states({})

    def set_states(self, known: dict[str, RuleState]) -> None:
        """Give every layer its state: the known one, or that of a scope that has seen nothing."""
        self.states: dict[str, RuleState] = {
            rule.layer: known[rule.layer] if rule.layer in known else rule.new_state() for rule in self.rules
        }
        asked = [(rule, self.states[rule.layer]) for rule in self.rules]
        self.steps: list[tuple[Step, RuleState]] = [(rule.account, state) for rule, state in asked]
        """All layers, most severe first."""
        self.brief: list[tuple[Step, RuleState]] = [
            (rule.account, state) for rule, state in asked if rule.woken_by is None
        ]
        """Those that are asked about a batch that nothing else wakes a layer for."""
        self.result_steps: list[tuple[ResultStep, RuleState]] = [
            (at_results, state) for rule, state in asked if (at_results := getattr(rule, "account_results", None))
        ]
        self.woken = True
        """A stop that was found at results may wait for the next batch."""
        self.hashes: Window = self.states["identical_call_set"]
        """The window of batch hashes."""

    @property
    def tools(self) -> Window:
        """The window of tool names."""
        window: Window = self.states["tool_frequency"]
        return window

    def align(self, rules: tuple[Rule, ...], policy: Policy) -> None:
        """Go on under another policy: histories and marks stay, windows are cut at the next append.

        What its batches brought is forgotten where the policy does not look at it: later it would have a hole.
        """
        self.rules = rules
        self.set_states(self.states)
        if not policy.looks_at_results:
            self.trail = None
        if not policy.result_aware:
            self.tools.places.clear()

    def follow(self, keep: int) -> Trail:
        """What this scope's batches brought, so many of them remembered."""
        trail = self.trail = self.trail or Trail(keep)
        trail.keep = keep
        return trail

    def warn(self, finding: Finding, batch: int, digest: str, names: tuple[str, ...]) -> None:
        """This warning is emitted: its layer marks what it is about, and its text waits for the model's next turn."""
        rule = next(rule for rule in self.rules if rule.layer == finding.layer)
        rule.mark(self.states[finding.layer], finding)
        subject = finding.counter or finding.tool or digest
        text = warning_text(finding, names)
        self._queue(WarningRecord(text, finding.layer, subject, batch, finding.count, finding.threshold))

    @property
    def pending(self) -> tuple[str, ...]:
        """Texts that wait for the next model call, oldest first."""
        return tuple(record.text for record in self.warnings if record.state == "queued")

    def _queue(self, record: WarningRecord) -> None:
        """Deduplicated by its text, the newest four kept."""
        waiting = [kept for kept in self.warnings if kept.state == "queued"]
        if any(kept.text == record.text for kept in waiting):
            return
        if len(waiting) == PENDING_KEPT:
            waiting[0].state = "dropped"
        self.warnings.append(record)
        settled = [index for index, kept in enumerate(self.warnings) if kept.state != "queued"]
        for index in reversed(settled[:-SETTLED_KEPT]):
            del self.warnings[index]

    def settle(self, text: str, state: str) -> None:
        """Follow what became of a text: queued in its own words, delivered or dropped, or put back to the front.

        A run tells its text when it queues it: another version of loopscope has other words for the same warning.
        """
        if state == "queued":
            waiting = [record for record in self.warnings if record.state == "queued"]
            if waiting and all(record.text != text for record in waiting):
                waiting[-1].text = text
            return
        wanted = "delivered" if state == "requeued" else "queued"
        for record in self.warnings:
            if record.text == text and record.state == wanted and (wanted == "queued" or record.before is None):
                record.state = "queued" if state == "requeued" else "dropped" if state == "dropped" else "delivered"
                return

    def note(self, facts: Facts, *, assume_delivery: bool) -> None:
        """A batch came: what waits is taken for delivered where that is assumed; what was delivered may be ignored."""
        for record in self.warnings:
            if record.state == "queued" and assume_delivery:
                record.state, record.assumed = "delivered", True
            if record.state == "delivered":
                if record.before is None:
                    record.before = facts.n
                if record.subject == facts.hash or record.subject in facts.names:
                    record.ignored += 1


class Registry:
    """The scopes, least recently used first."""

    __slots__ = ("callless", "scopes")

    def __init__(self) -> None:
        self.scopes: OrderedDict[ScopeKey, ScopeState] = OrderedDict()
        self.callless: OrderedDict[ScopeKey, Spent] = OrderedDict()

    def touch(self, key: ScopeKey, ts: float | None, limit: int, rules: tuple[Rule, ...]) -> ScopeState:
        """The state of a scope, now the most recently used; whole scopes beyond `limit` are evicted."""
        scope = self.scopes.get(key)
        if scope is None:
            spent = self.callless.pop(key, None) or Spent(started=ts)
            scope = self.scopes[key] = ScopeState(key, rules, spent)
        else:
            self.scopes.move_to_end(key)
        while len(self.scopes) > limit:
            self.scopes.popitem(last=False)
        return scope

    def charge_callless(self, key: ScopeKey, batch: Batch, limit: int) -> None:
        """Charge an AI message without calls: it touches no scope, so it must not evict one either."""
        scope = self.scopes.get(key)
        if scope is not None:
            scope.spent.charge_callless(batch)
            return
        spent = self.callless.setdefault(key, Spent(started=batch.ts))
        self.callless.move_to_end(key)
        spent.charge_callless(batch)
        while len(self.callless) > limit:
            self.callless.popitem(last=False)

    def spent(self, key: ScopeKey) -> Spent:
        """What a scope has spent, also one that has made no call yet."""
        scope = self.scopes.get(key)
        return scope.spent if scope is not None else self.callless.get(key, Spent())

    def forget(self, thread_id: str | None = None) -> None:
        """Drop every scope, or every scope of one thread."""
        for kept in (self.scopes, self.callless):
            for key in [key for key in kept if thread_id is None or key.thread_id == thread_id]:
                del kept[key]

    def drop(self, key: ScopeKey) -> None:
        """Drop one scope."""
        self.scopes.pop(key, None)
        self.callless.pop(key, None)
