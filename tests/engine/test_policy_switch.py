"""A policy that changes in the midst of a batch: its results are still out when other layers come into force."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, Call, Event, PolicySet, Result, Witness
from loopscope.engine.policy import Policy
from tests.engine.layered import policies, streams


def switch(policy: Policy, seq: int = 50) -> PolicySet:
    return PolicySet(seq=seq, ts=None, thread_id=None, run_id=None, policy=policy.to_dict())


def batch(seq: int) -> Batch:
    return Batch(seq=seq, ts=None, thread_id="t", run_id="r", calls=(Call(f"c{seq}", "bash", {"command": "make"}),))


def failure(seq: int) -> Result:
    return Result(
        seq=seq + 1, ts=None, thread_id="t", run_id="r", call_id=f"c{seq}", status="error", content="no", size=2
    )


WATCHING = Policy.parse({"stagnation": {"witness": "results", "warn": 9}})


def test_a_layer_that_came_into_force_decides_at_the_results_that_come_after() -> None:
    """The limit holds from the next decision on, which may be that of a batch asked for before."""
    detector = LoopDetector()
    strict = WATCHING.with_(error_streak={"warn": None, "hard_limit": 1})
    for event in (switch(WATCHING), batch(1), switch(strict)):
        detector.observe(event)
    decision = detector.observe(failure(1))[0]
    assert (decision.action, decision.layer, decision.at) == ("hard_stop", "error_streak", "result")
    assert detector.observe(batch(3))[0].layer == "error_streak"


def test_a_layer_that_went_out_of_force_does_not_decide() -> None:
    """Nor does its stop, found before, fall on the next batch."""
    detector = LoopDetector()
    strict = Policy.parse({"error_streak": {"hard_limit": 1}})
    for event in (switch(strict), batch(1)):
        detector.observe(event)
    assert detector.observe(failure(1))[0].action == "hard_stop"
    detector.observe(switch(WATCHING))
    assert detector.observe(batch(3))[0].action == "pass"
    assert detector.observe(failure(3)) == ()


def test_a_witness_of_a_layer_that_came_into_force() -> None:
    """The program's value is taken by the layer that looks at it now."""
    detector = LoopDetector()
    asks = Policy.parse({"stagnation": {"witness": "score", "mode": "increases", "warn": 1}})
    for event in (switch(WATCHING), batch(1), switch(asks), failure(1)):
        detector.observe(event)
    told = [Witness(seq=60, ts=None, thread_id="t", run_id="r", values={"score": 1})]
    assert [detector.observe(event) for event in told] == [()]
    for event in (batch(61), failure(61)):
        detector.observe(event)
    decision = detector.observe(Witness(seq=63, ts=None, thread_id="t", run_id="r", values={"score": 1}))[0]
    assert (decision.action, decision.layer, decision.count) == ("warn", "stagnation", 1)


def test_a_state_keeps_what_its_policy_counted_until_the_scope_goes_on() -> None:
    """A layer that was out of force while the scope stood still goes on counting, from a snapshot as without one."""
    counting = Policy.parse({"cycle": {"max_period": 2, "hash": {"warn": 2}}})
    other = Batch(seq=9, ts=None, thread_id="t", run_id="r", calls=(Call("c9", "read_file", {"path": "a"}),))
    detector = LoopDetector(counting, follow_policy=True)
    for event in (batch(1), other, batch(3), switch(Policy())):
        detector.observe(event)
    again = LoopDetector()
    again.restore(detector.snapshot())
    assert again.snapshot() == detector.snapshot()
    for each in (detector, again):
        each.observe(switch(counting))
        decision = each.observe(other)[0]
        assert (decision.action, decision.layer, decision.count) == ("warn", "cycle", 2)


@given(streams(), st.lists(policies(), min_size=2, max_size=3), st.data())
def test_any_policy_at_any_place(stream: list[Event], known: list[Policy], data: st.DataObject) -> None:
    """Every event is decided, and from a snapshot at any place the rest is decided alike."""
    places = sorted(data.draw(st.lists(st.integers(0, len(stream)), min_size=1, max_size=3)))
    for place, policy in zip(reversed(places), known, strict=False):
        stream.insert(place, switch(policy))
    cut = data.draw(st.integers(0, len(stream)))
    whole, first, second = LoopDetector(), LoopDetector(), LoopDetector()
    decided = [whole.observe(event) for event in stream]
    before = [first.observe(event) for event in stream[:cut]]
    second.restore(first.snapshot())
    assert before + [second.observe(event) for event in stream[cut:]] == decided
    assert second.snapshot() == whole.snapshot()
