from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import pytest

from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import DecisionMade, Event
from loopscope.engine.policy import Policy
from loopscope.recording.bus import bus
from loopscope.recording.gate import gatehouse

E = TypeVar("E")


@pytest.fixture(autouse=True)
def _no_engine_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first engine of each test is the one whose policy observers take for everybody's."""
    monkeypatch.setattr(gatehouse, "base", None)


@pytest.fixture
def events() -> Iterator[list[Event]]:
    """Every event that is published while the test runs."""
    seen: list[Event] = []
    unsubscribe = bus.subscribe(seen.append)
    yield seen
    unsubscribe()


@pytest.fixture
def of() -> Callable[[Sequence[Event], type[E]], list[E]]:
    """The events of one kind."""
    return lambda events, kind: [event for event in events if isinstance(event, kind)]


@pytest.fixture
def replayed() -> Callable[[Sequence[Event], Policy], list[tuple[object, ...]]]:
    """What the engine says of recorded events, in the terms of `decision` events."""

    def replay(events: Sequence[Event], policy: Policy) -> list[tuple[object, ...]]:
        detector = LoopDetector(policy, assume_delivery=False, follow_policy=True)
        return [fields(decision) for event in events for decision in detector.observe(event)]

    def fields(d: object) -> tuple[object, ...]:
        names = ("seq", "thread_id", "run_id", "hash", "hash_count", "action", "layer", "tool", "count", "threshold")
        return tuple(getattr(d, name) for name in names)

    return replay


@pytest.fixture
def decided() -> Callable[[Sequence[Event]], list[tuple[object, ...]]]:
    """The live decisions among the events, in the same terms."""
    names = ("batch_seq", "thread_id", "run_id", "hash", "hash_count", "action", "layer", "tool", "count", "threshold")
    return lambda events: [tuple(getattr(e, n) for n in names) for e in events if isinstance(e, DecisionMade)]
