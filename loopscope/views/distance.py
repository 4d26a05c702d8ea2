"""How far a scope is from being warned and stopped: asked of the engine, never computed beside it.

A detector that holds this one scope is fed the same batch (or one more call of a tool) until it fires. So windows,
marks and any layer count here as they do in production.
"""

from __future__ import annotations

from typing import NamedTuple

from loopscope.engine.decision import Decision
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, Call
from loopscope.engine.policy import Policy
from loopscope.engine.scope import ScopeState, Spent
from loopscope.engine.snapshot import SNAPSHOT_VERSION, ScopeSnapshot, Snapshot

__all__ = ["FURTHEST", "Distance", "Fire", "of_batch", "of_tool"]

FURTHEST = 1000
"""Batches that are tried before the answer is "further than that"; a try costs a microsecond or two."""


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


def of_batch(policy: Policy, scope: ScopeState, digest: str, names: tuple[str, ...]) -> Distance:
    """The distance if this batch comes again and again.

    Args:
        policy: that is in force for the scope.
        scope: its state at the cursor.
        digest: hash of the batch.
        names: its tool names in model order.
    """
    return _run(policy, scope, [digest] * _tries(policy), names)


def of_tool(policy: Policy, scope: ScopeState, tool: str) -> Distance:
    """The distance if this tool is called again and again, each time with arguments that are new."""
    return _run(policy, scope, [f"further call {n}" for n in range(_tries(policy))], (tool,))


def _tries(policy: Policy) -> int:
    """After as many batches as the windows hold nothing changes any more."""
    return min(FURTHEST, policy.window_size + policy.frequency_window + 1)


def _run(policy: Policy, scope: ScopeState, digests: list[str], names: tuple[str, ...]) -> Distance:
    detector = LoopDetector(policy, follow_policy=False)
    detector.restore(_alone(policy, scope))
    key = scope.key
    batch = Batch(
        seq=0,
        ts=None,
        thread_id=key.thread_id,
        run_id=key.run_id,
        calls=tuple(Call(None, name, None) for name in names),
    )
    warn: Fire | None = None
    for more, digest in enumerate(digests, 1):
        decision = detector.fold(batch, digest, names)
        if decision.action == "hard_stop":
            return Distance(warn, Fire(more, decision))
        if decision.action == "warn" and warn is None:
            warn = Fire(more, decision)
    return Distance(warn, None, further=len(digests) == FURTHEST)


def _alone(policy: Policy, scope: ScopeState) -> Snapshot:
    layers = {rule.layer: rule.dump(scope.states[rule.layer]) for rule in scope.rules}
    saved = ScopeSnapshot(scope.key.thread_id, scope.key.run_id, layers, (), Spent())
    return Snapshot(SNAPSHOT_VERSION, 0, False, policy.to_dict(), (), (saved,), ())
