"""How far a scope is from being warned and stopped: asked of the engine, never computed beside it.

A detector that holds this one scope is fed the same batch with the same results (one more call of a tool, one more lap,
one more failure) until it fires. So windows, marks and every layer count here as they do in production. Budgets are
left out: what a further batch would cost, nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count, cycle, islice, repeat
from typing import Any, NamedTuple

from msgspec.structs import replace

from loopscope.engine.decision import Decision
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, Call, ScopeKey, Witness
from loopscope.engine.joins import Place
from loopscope.engine.scope import ScopeState, Spent, WarningRecord
from loopscope.engine.sections import BUILT_IN_WITNESSES
from loopscope.engine.snapshot import SNAPSHOT_VERSION, ScopeSnapshot, Snapshot
from loopscope.engine.trail import Brought, Outcome
from loopscope.session.session import ScopeView, Session

__all__ = ["FURTHEST", "Distance", "Fire", "Probe"]

FURTHEST = 1000
"""Batches that are tried before the answer is "further than that"; a try costs a few microseconds."""


class Fire(NamedTuple):
    """A verdict that will come, and after how many more batches."""

    more: int
    decision: Decision


class Distance(NamedTuple):
    """What comes next if a batch goes on repeating, or a tool being called."""

    warn: Fire | None
    """None where no warning comes before the stop: one was given already, or limits are never reached."""
    stop: Fire | None
    """None where no stop comes."""
    further: bool = False
    """There may be one after `FURTHEST` batches; where False, there is none at all."""


class Next(NamedTuple):
    """A batch that is tried, and what its calls bring."""

    digest: str
    names: tuple[str, ...]
    outcomes: Sequence[Outcome | None] = ()


class Probe:
    """A scope as it stands at the cursor once the results of that batch are in, to be tried on again and again.

    Args:
        session: whose cursor is on the batch of the view.
        view: the state of the cursor's scope.
        scope: the same, known to be there.
    """

    def __init__(self, session: Session, view: ScopeView, scope: ScopeState) -> None:
        self._policy = replace(view.policy, budget={})
        timeline, shift = session.timeline, session.timeline.shift(view.n)
        detector = LoopDetector(self._policy, follow_policy=False)
        detector.restore(_alone(view.n + shift, scope, self._policy.to_dict()))
        for row in timeline.results_of[view.n]:
            place, outcome, seq = timeline.arrival(row)
            detector.fold_result(scope.key, place._replace(batch=place.batch + shift), outcome, seq)
        for event in timeline.between[view.n]:
            if isinstance(event, Witness) and event.scope == scope.key:
                detector.observe(event)
        self.after = detector.scopes[scope.key]
        """The scope once the results of the batch at the cursor are in."""
        self.warnings = _shifted(self.after.warnings, shift)
        """Those that were queued when they came in."""
        self._saved = detector.snapshot()

    def of_batch(self, digest: str, names: tuple[str, ...]) -> Distance:
        """The distance if this batch comes again and again, each time with the results that it had."""
        known = next((brought.outcomes for brought in self._brought() if brought.hash == digest), [])
        return self._run(repeat(Next(digest, names, known)))

    def of_tool(self, tool: str) -> Distance:
        """The distance if this tool is called again and again, each time with arguments that are new."""
        return self._run(Next(f"further call {n}", (tool,), [self._latest(tool)]) for n in count())

    def of_circle(self, block: Sequence[tuple[str, tuple[str, ...]]]) -> Distance:
        """The distance if the run goes on in this circle of batches, each with the results that it had.

        Args:
            block: hash and tool names of each batch, oldest first; an empty hash stands for arguments that are new.
        """
        return self._run(self._round(block))

    def of_failures(self, names: tuple[str, ...]) -> Distance:
        """The distance if batches of these tools go on failing, each time in another way."""
        return self._run(Next(f"failure {n}", names, [_failure(name, n) for name in names]) for n in count())

    def of_standstill(self) -> Distance:
        """The distance if the policy's witness shows no progress any more."""
        witness = self._policy.stagnation.witness
        if witness not in BUILT_IN_WITNESSES:
            value = self.after.states["stagnation"].value
            return self._run((Next(f"further call {n}", ("",)) for n in count()), {witness: value})
        failed = witness == "last_error"
        known = next((brought for brought in self._brought() if not failed or _failures(brought)), None)
        if known is None:
            return Distance(None, None, further=True)
        return self._run(Next(f"further call {n}", known.names, known.outcomes) for n in count())

    def _round(self, block: Sequence[tuple[str, tuple[str, ...]]]) -> Iterator[Next]:
        by_hash = {brought.hash: brought.outcomes for brought in reversed(list(self._brought()))}
        known = [by_hash.get(digest) or [self._latest(name) for name in names] for digest, names in block]
        steps = list(zip(block, known, strict=True))
        return (
            Next(digest or f"further call {n}", names, brings)
            for n, ((digest, names), brings) in enumerate(cycle(steps))
        )

    def _brought(self) -> Iterator[Brought]:
        """The batches whose results are all in, newest first."""
        trail = self.after.trail
        return (brought for brought in reversed(trail.batches.values()) if brought.complete) if trail else iter(())

    def _latest(self, tool: str) -> Outcome | None:
        """The newest result of a tool."""
        trail = self.after.trail
        seen = reversed(trail.batches.values()) if trail is not None else ()
        return next(
            (outcome for brought in seen for outcome in brought.outcomes if outcome and outcome.tool == tool), None
        )

    def _tries(self) -> int:
        """After as many batches as the windows hold nothing changes any more."""
        policy = self._policy
        cycle = (policy.cycle.max_period or 0) * max(policy.cycle.hash.largest, policy.cycle.names.largest)
        streaks = policy.error_streak.largest + policy.stagnation.limits.largest
        return min(FURTHEST, policy.window_size + policy.frequency_window + cycle + streaks + 1)

    def _run(self, steps: Iterable[Next], witness: dict[str, Any] | None = None) -> Distance:
        detector = LoopDetector(self._policy, follow_policy=False)
        detector.restore(self._saved)
        warn: Fire | None = None
        tries = self._tries()
        for more, step in enumerate(islice(steps, tries), 1):
            for decision in _decisions(detector, self.after.key, step, witness):
                if decision.action == "hard_stop":
                    return Distance(warn, Fire(more, decision))
                if decision.action == "warn" and warn is None:
                    warn = Fire(more, decision)
        return Distance(warn, None, further=tries == FURTHEST)


def _decisions(detector: LoopDetector, key: ScopeKey, step: Next, witness: dict[str, Any] | None) -> Iterator[Decision]:
    """What the engine says of a batch, of its results, and of the value that the program tells then."""
    yield detector.fold(_batch(key, step.names), step.digest, step.names)
    outcomes = step.outcomes or ([_NEWS] if witness else ())
    for call, outcome in enumerate(outcomes):
        if outcome is not None:
            yield from detector.fold_result(key, Place(detector.batches, call), outcome, 0)
    if witness is not None:
        yield from detector.observe(Witness(seq=0, ts=None, thread_id=key.thread_id, run_id=key.run_id, values=witness))


_NEWS = Outcome("", "news", failed=False, error="")
"""What a tool brings where only the program's own witness counts."""


def _failure(tool: str, number: int) -> Outcome:
    return Outcome(tool, f"failure {number}", failed=True, error=f"failure {number}")


def _failures(brought: Brought) -> bool:
    return any(outcome is not None and outcome.failed for outcome in brought.outcomes)


def _shifted(records: Sequence[WarningRecord], shift: int) -> tuple[WarningRecord, ...]:
    """With the numbers that batches have in the timeline."""
    return tuple(replace(record, batch=record.batch - shift) for record in records)


def _batch(key: ScopeKey, names: tuple[str, ...]) -> Batch:
    calls = tuple(Call(None, name, None) for name in names)
    return Batch(seq=0, ts=None, thread_id=key.thread_id, run_id=key.run_id, calls=calls)


def _alone(batches: int, scope: ScopeState, policy: dict[str, object]) -> Snapshot:
    """The one scope as a detector of its own."""
    layers = {rule.layer: rule.dump(scope.states[rule.layer]) for rule in scope.rules}
    trail = scope.trail.dump() if scope.trail is not None else None
    saved = ScopeSnapshot(scope.key.thread_id, scope.key.run_id, layers, (), Spent(), trail)
    return Snapshot(
        version=SNAPSHOT_VERSION,
        batches=batches,
        assume_delivery=False,
        policy=policy,
        scope_policies=(),
        scopes=(saved,),
        callless=(),
    )
