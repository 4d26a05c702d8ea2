"""All layers together: every decision against a second writing of the rules, and what a fold must hold under them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscope.engine.decision import Decision
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Event
from loopscope.engine.nearest import worst
from loopscope.engine.policy import Policy
from loopscope.engine.snapshot import Snapshot
from loopscope.engine.trail import normalised_error
from loopscope.session import timeline
from loopscope.session.timeline import Origin
from tests.engine.layered import policies, streams
from tests.engine.reference_layers import LayerReference
from tests.session.support import session_of


def decide(detector: LoopDetector, stream: list[Event]) -> list[Decision]:
    return [decision for event in stream for decision in detector.observe(event)]


@given(policies(), streams())
@settings(max_examples=300)
def test_decisions_equal_the_second_writing(policy: Policy, stream: list[Event]) -> None:
    """For random policies over all layers and random runs, every decision is the one that the description gives."""
    reference = LayerReference(policy, normalised_error)
    expected = [decision for event in stream for decision in reference.observe(event)]
    assert decide(LoopDetector(policy), stream) == expected


@given(policies(), streams(), st.integers(0, 200))
@settings(max_examples=150)
def test_a_snapshot_goes_on_as_if_nothing_had_been(policy: Policy, stream: list[Event], cut: int) -> None:
    """Folding on from a snapshot, through JSON, gives the decisions and the state of folding in one go."""
    whole = LoopDetector(policy)
    decisions = decide(whole, stream)
    first = LoopDetector(policy)
    begun = decide(first, stream[:cut])
    saved = msgspec.json.decode(msgspec.json.encode(first.snapshot()), type=Snapshot)
    second = LoopDetector(policy)
    second.restore(saved)
    assert begun + decide(second, stream[cut:]) == decisions
    assert plain(second.snapshot()) == plain(whole.snapshot())


def plain(snapshot: Snapshot) -> object:
    """A snapshot as JSON holds it; without the ids of open calls, which a timeline joins in its own way."""
    data = msgspec.json.decode(msgspec.json.encode(snapshot))
    for scope in data["scopes"]:
        if scope["trail"] is not None:
            scope["trail"]["open"] = []
    return data


@given(policies(), streams(), st.lists(st.integers(1, 60), max_size=8))
@settings(max_examples=60)
def test_seek_gives_the_state_of_the_fold(policy: Policy, stream: list[Event], targets: list[int]) -> None:
    """In whatever order batches are looked at, the state is that of a detector that came there in one go."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timeline, "SNAPSHOT_EVERY", 7)
        session = session_of(stream, Origin(policy))
    for target in targets:
        if target <= len(session):
            detector = LoopDetector(policy)
            for event in stream:
                detector.observe(event)
                if detector.batches == target:
                    break
            assert plain(session._detector(target).snapshot()) == plain(detector.snapshot())


@given(policies(), streams())
@settings(max_examples=80)
def test_a_session_keeps_the_decisions_at_batches_and_at_results(policy: Policy, stream: list[Event]) -> None:
    """The timeline's decisions are the detector's; of several at the results of one batch the worst is kept."""
    decisions = decide(LoopDetector(policy), stream)
    session = session_of(stream, Origin(policy))
    at_batch = [decision for decision in decisions if decision.at == "batch"]
    at_result: dict[int, list[Decision]] = {}
    for decision in decisions:
        if decision.at == "result":
            at_result.setdefault(decision.batch, []).append(decision)
    assert session.timeline.decisions == at_batch
    assert session.timeline.at_result.keys() == at_result.keys()
    for number, found in at_result.items():
        assert session.timeline.at_result[number].action == worst(*found).action
        assert session.row(number).decision.action == worst(at_batch[number - 1], *found).action
    assert list(session.timeline.refold(LoopDetector(policy))) == at_batch
