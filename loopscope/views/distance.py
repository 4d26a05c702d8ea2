"""How far a scope is from being warned and stopped: asked of the engine, never computed beside it.

A detector that holds this one scope is fed the same batch with the same results (or one more call of a tool) until it
fires. So windows, marks and every layer count here as they do in production. Budgets are left out: what a further batch
would cost, nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from loopscope.engine.decision import Decision
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, Call, ScopeKey
from loopscope.engine.joins import Place
from loopscope.engine.scope import ScopeState, Spent
from loopscope.engine.snapshot import SNAPSHOT_VERSION, ScopeSnapshot, Snapshot
from loopscope.engine.trail import Outcome
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


class Probe:
    """A scope as it stands at the cursor, to be tried on again and again.

    Args:
        session: whose cursor is on the batch of the view.
        view: the state of the cursor's scope.
        scope: the same, known to be there.
    """

    def __init__(self, session: Session, view: ScopeView, scope: ScopeState) -> None:
        self._policy = replace(view.policy, budget={})
        self._scope = scope
        self._saved = _alone(view, scope, self._policy.to_dict())
        timeline = session.timeline
        self._arrivals = [timeline.arrival(row) for row in timeline.results_of.get(view.n, ())]

    def of_batch(self, digest: str, names: tuple[str, ...]) -> Distance:
        """The distance if this batch comes again and again, each time with the results that it had."""
        trail = self._scope.trail
        seen = reversed(trail.batches.values()) if trail is not None else ()
        known = next((brought.outcomes for brought in seen if brought.hash == digest and brought.complete), [])
        return self._run([digest] * self._tries(), names, known)

    def of_tool(self, tool: str) -> Distance:
        """The distance if this tool is called again and again, each time with arguments that are new."""
        trail = self._scope.trail
        seen = reversed(trail.batches.values()) if trail is not None else ()
        known = [outcome for brought in seen for outcome in brought.outcomes if outcome and outcome.tool == tool][:1]
        return self._run([f"further call {n}" for n in range(self._tries())], (tool,), known)

    def _tries(self) -> int:
        """After as many batches as the windows hold nothing changes any more."""
        policy = self._policy
        cycle = (policy.cycle.max_period or 0) * max(policy.cycle.hash.largest, policy.cycle.names.largest)
        streaks = policy.error_streak.largest + policy.stagnation.limits.largest
        return min(FURTHEST, policy.window_size + policy.frequency_window + cycle + streaks + 1)

    def _run(self, digests: list[str], names: tuple[str, ...], outcomes: Iterable[Outcome | None]) -> Distance:
        detector = LoopDetector(self._policy, follow_policy=False)
        detector.restore(self._saved)
        key = self._scope.key
        for place, outcome, seq in self._arrivals:
            detector.fold_result(key, place, outcome, seq)
        known = [(call, outcome) for call, outcome in enumerate(outcomes) if outcome is not None]
        batch = _batch(key, names)
        warn: Fire | None = None
        for more, digest in enumerate(digests, 1):
            decisions = [detector.fold(batch, digest, names)]
            for call, outcome in known:
                decisions.extend(detector.fold_result(key, Place(detector.batches, call), outcome, 0))
            for decision in decisions:
                if decision.action == "hard_stop":
                    return Distance(warn, Fire(more, decision))
                if decision.action == "warn" and warn is None:
                    warn = Fire(more, decision)
        return Distance(warn, None, further=len(digests) == FURTHEST)


def _batch(key: ScopeKey, names: tuple[str, ...]) -> Batch:
    calls = tuple(Call(None, name, None) for name in names)
    return Batch(seq=0, ts=None, thread_id=key.thread_id, run_id=key.run_id, calls=calls)


def _alone(view: ScopeView, scope: ScopeState, policy: dict[str, object]) -> Snapshot:
    """The one scope as a detector of its own."""
    layers = {rule.layer: rule.dump(scope.states[rule.layer]) for rule in scope.rules}
    trail = scope.trail.dump() if scope.trail is not None else None
    saved = ScopeSnapshot(scope.key.thread_id, scope.key.run_id, layers, (), Spent(), trail)
    return Snapshot(
        version=SNAPSHOT_VERSION,
        batches=view.n,
        assume_delivery=False,
        policy=policy,
        scope_policies=(),
        scopes=(saved,),
        callless=(),
    )
