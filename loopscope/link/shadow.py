"""The state of all engines of the process as one, kept by folding the events that viewers get.

Apart from the engines themselves, whose lock it must not hold while it writes a state down. A viewer that starts from
such a state and folds the events after it has what the engines have, since live and replayed state are equal.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import msgspec

from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import DecisionMade, Event, RunEnd, RunStart, ScopeKey
from loopscope.engine.policy import DEFAULT, Policy
from loopscope.engine.snapshot import Snapshot
from loopscope.recording.gate import Steerable

__all__ = ["Shadow", "merged"]

_SEVERITY = {"pass": 0, "warn": 1, "hard_stop": 2}
_RUNS = 500
"""Runs that go on, as far as is remembered."""
_GRAPHS = 20


class Shadow:
    """The state so far, the worst that happened, and the runs that go on."""

    def __init__(self, state: Snapshot) -> None:
        self._detector = LoopDetector(None)
        self._detector.restore(state)
        self.worst = "pass"
        self.graphs: tuple[str, ...] = ()
        """Names of agents that have begun."""
        self._running: dict[ScopeKey, RunStart] = {}

    def observe(self, event: Event) -> None:
        """Account one event. One that cannot be folded, because its policy is none, changes nothing."""
        with contextlib.suppress(Exception):
            self._detector.observe(event)
        if isinstance(event, DecisionMade):
            self.worst = max(self.worst, event.action, key=_SEVERITY.__getitem__)
        elif isinstance(event, RunStart):
            self._begin(event)
        elif isinstance(event, RunEnd):
            self._running.pop(event.scope, None)

    def replace(self, state: Snapshot) -> None:
        """Take over another state, since events were lost."""
        self._detector.restore(state)

    def assume_delivery(self, *, assume: bool) -> bool:
        """Take deliveries as the first engine does, where there were none before it. Whether that changes anything."""
        if self._detector.batches or self._detector.assume_delivery == assume:
            return False
        self._detector.assume_delivery = assume
        return True

    def snapshot(self) -> Snapshot:
        """The state now."""
        return self._detector.snapshot()

    @property
    def batches(self) -> int:
        """Batches with calls so far."""
        return self._detector.batches

    @property
    def scopes(self) -> set[ScopeKey]:
        """Every scope that is known: counted, or running."""
        return {*self._detector.scopes, *self._running}

    @property
    def running(self) -> tuple[RunStart, ...]:
        """How the newest runs began that go on, oldest first."""
        return tuple(self._running.values())

    def _begin(self, event: RunStart) -> None:
        self._running.pop(event.scope, None)
        self._running[event.scope] = event
        if len(self._running) > _RUNS:
            del self._running[next(iter(self._running))]
        if event.agent and event.agent not in self.graphs:
            self.graphs = (*self.graphs, event.agent)[-_GRAPHS:]


def merged(engines: Sequence[Steerable], base: Policy | None) -> Snapshot:
    """The states of all engines as one, under one base policy. Wants the lock of the bus held."""
    base = base or DEFAULT
    states = [engine.detector.snapshot() for engine in engines]
    if len(engines) == 1 and engines[0].policy == base:
        return states[0]
    empty = LoopDetector(base).snapshot()
    own = [
        (*scope, engine.detector.policy_of(scope).to_dict())
        for engine in engines
        for scope in engine.detector.scopes
        if engine.detector.policy_of(scope) != base
    ]
    parts = {
        name: tuple(part for state in states for part in getattr(state, name))
        for name in Snapshot.__struct_fields__
        if isinstance(getattr(empty, name), tuple)
    }
    return msgspec.structs.replace(
        empty,
        **parts | {"scope_policies": tuple(own)},
        batches=sum(state.batches for state in states),
        assume_delivery=all(state.assume_delivery for state in states),
    )
