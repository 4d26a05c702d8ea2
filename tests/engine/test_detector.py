"""The detector: its order of decision against a second writing of it, and what a fold must hold."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, Call, Control, Event, Header, PolicySet, Result, ScopeKey, Warned
from loopscope.engine.policy import Limits, Policy
from loopscope.engine.sections import Pair
from loopscope.engine.snapshot import Snapshot
from loopscope.errors import PolicyError
from tests.engine.reference import Reference
from tests.engine.support import batch

TOOLS = ["grep", "bash", "read", ""]


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Small limits, so that all of them are reached."""

    def pair(most: int) -> tuple[int, int]:
        warn = draw(st.integers(1, most))
        return warn, draw(st.integers(warn, most + 4))

    (warn, hard), (often, too_often) = pair(5), pair(8)
    overrides = {tool: Limits(*pair(8)) for tool in draw(st.sets(st.sampled_from(TOOLS[:3]), max_size=2))}
    return Policy(
        warn_threshold=warn,
        hard_limit=hard,
        window_size=draw(st.integers(1, 12)),
        max_tracked_threads=draw(st.integers(1, 4)),
        tool_freq_warn=often,
        tool_freq_hard_limit=too_often,
        tool_freq_overrides=overrides,
    )


CALLS = st.lists(st.tuples(st.sampled_from(TOOLS), st.sampled_from("ab")), max_size=4)
SCOPES = st.tuples(st.sampled_from(["t1", "t2", None]), st.sampled_from(["r1", None]))
RUNS = st.lists(st.tuples(SCOPES, CALLS), max_size=60)


def events(run: list[tuple[tuple[str | None, str | None], list[tuple[str, str]]]]) -> list[Batch]:
    return [
        batch(seq, *[(name, {"query": q}) for name, q in calls], scope=scope)
        for seq, (scope, calls) in enumerate(run, 1)
    ]


def decide(detector: LoopDetector, stream: list[Any]) -> list[Any]:
    return [decision for event in stream for decision in detector.observe(event)]


@given(policies(), RUNS)
@settings(max_examples=300)
def test_decisions_equal_the_reference(policy: Policy, run: Any) -> None:
    """For random policies and runs every decision is the one that the description, written again, gives."""
    reference = Reference(policy)
    stream = events(run)
    expected = [
        reference.decide(e.scope, LoopDetector(policy).identify(e).hash, [c.name or "" for c in e.calls])
        for e in stream
        if e.calls
    ]
    got = [(d.action, d.layer, d.tool, d.count, d.threshold) for d in decide(LoopDetector(policy), stream)]
    assert got == expected


@given(policies(), RUNS, st.integers(0, 60))
@settings(max_examples=150)
def test_a_snapshot_goes_on_as_if_nothing_had_been(policy: Policy, run: Any, cut: int) -> None:
    """Folding on from a snapshot, through JSON, gives the decisions and the state of folding in one go."""
    stream = events(run)
    whole = LoopDetector(policy)
    decisions = decide(whole, stream)
    first = LoopDetector(policy)
    begun = decide(first, stream[:cut])
    saved = msgspec.json.decode(msgspec.json.encode(first.snapshot()), type=Snapshot)
    second = LoopDetector(policy)
    second.restore(saved)
    assert begun + decide(second, stream[cut:]) == decisions
    assert second.snapshot() == whole.snapshot()


@given(policies(), RUNS)
@settings(max_examples=100)
def test_a_scope_decides_alike_alone_and_among_others(policy: Policy, run: Any) -> None:
    """While none is evicted, no scope changes another's decisions."""
    roomy = policy.with_(max_tracked_threads=100)
    stream = events(run)
    together = decide(LoopDetector(roomy), stream)
    for key in {event.scope for event in stream}:
        alone = decide(LoopDetector(roomy), [event for event in stream if event.scope == key])
        mine = [d for d in together if d.scope == key]
        assert [(d.action, d.count, d.hash_count) for d in alone] == [(d.action, d.count, d.hash_count) for d in mine]


def same(seq: int, scope: tuple[str | None, str | None] = ("t", "r")) -> Batch:
    return batch(seq, ("bash", {"command": "ls"}), scope=scope)


def test_severity_comes_first() -> None:
    """A warning of an earlier call never hides a hard stop of a later one, and the stop accounts no call after it."""
    detector = LoopDetector(Policy(tool_freq_warn=2, tool_freq_hard_limit=3))
    calls = [("read", {"path": str(i)}) for i in range(3)] + [("other", {"path": "z"})]
    (decision,) = detector.observe(batch(1, *calls))
    assert (decision.action, decision.tool, decision.count) == ("hard_stop", "read", 3)
    scope = detector.scope(ScopeKey("t", "r"))
    assert scope is not None
    assert "other" not in scope.tools.counts


def test_batches_without_calls_decide_nothing_and_evict_nothing() -> None:
    """An AI message without calls is only charged for, also before a scope has made any call."""
    detector = LoopDetector(Policy(max_tracked_threads=1))
    detector.observe(same(1))
    assert detector.observe(batch(2, scope=("other", None))) == ()
    assert list(detector.scopes) == [ScopeKey("t", "r")]
    assert detector.spent(ScopeKey("other", None)).model_calls == 1
    detector.observe(batch(3, scope=("third", None)))
    assert detector.spent(ScopeKey("other", None)).model_calls == 0
    detector.observe(same(4, ("third", None)))
    spent = detector.spent(ScopeKey("third", None))
    assert (spent.model_calls, spent.batches, spent.tool_calls, spent.input_tokens) == (2, 1, 1, 20)
    assert spent.seconds == 1.0
    detector.observe(batch(6, scope=("third", None)))
    assert (spent.model_calls, spent.seconds, spent.cost_usd) == (3, 3.0, 1.5)


def test_charges_without_times_or_usage() -> None:
    """What a recording does not tell is not made up."""
    detector = LoopDetector()
    detector.observe(Batch(seq=1, ts=None, thread_id="t", run_id=None, calls=(Call("a", "x", {}), Call("b", "y", {}))))
    detector.observe(Batch(seq=2, ts=None, thread_id="t", run_id=None, calls=()))
    spent = detector.spent(ScopeKey("t", None))
    assert (spent.tool_calls, spent.model_calls, spent.seconds, spent.input_tokens) == (2, 2, 0.0, 0)


def test_a_stop_clears_nothing() -> None:
    """The next identical batch stops again."""
    actions = [d.action for d in decide(LoopDetector(), [same(n) for n in range(1, 8)])]
    assert actions == ["pass", "pass", "warn", "pass", "hard_stop", "hard_stop", "hard_stop"]


def test_memory_is_bounded_by_the_windows() -> None:
    """Many batches over many scopes leave only the newest scopes, each with full windows at most."""
    policy = Policy(max_tracked_threads=10, window_size=5, tool_freq_warn=5, tool_freq_hard_limit=7)
    detector = LoopDetector(policy)
    for n in range(20_000):
        detector.observe(batch(n, ("tool", {"query": str(n)}), scope=(str(n % 50), str(n % 3))))
    assert len(detector.scopes) == 10
    for scope in detector.scopes.values():
        assert len(scope.hashes.items) <= 5
        assert len(scope.tools.items) <= 7
        assert len(scope.warnings) <= 20


def queued(detector: LoopDetector) -> list[tuple[str, bool, int | None, int]]:
    scope = detector.scope(ScopeKey("t", "r"))
    assert scope is not None
    return [(w.state, w.assumed, w.before, w.ignored) for w in scope.warnings]


def test_delivery_is_assumed_where_the_recording_does_not_tell() -> None:
    """A warning waits until the scope's next batch, which counts as ignoring it if it is the same."""
    detector = LoopDetector()
    decide(detector, [same(1), same(2), same(3)])
    assert queued(detector) == [("queued", False, None, 0)]
    assert detector.pending(ScopeKey("t", "r"))[0].startswith("[LOOP DETECTED]")
    decide(detector, [same(4), batch(5, ("other", {}))])
    assert queued(detector) == [("delivered", True, 4, 1)]
    assert detector.pending(ScopeKey("t", "r")) == ()
    assert detector.pending(ScopeKey("nobody", None)) == ()


def warned(state: Any, text: str) -> Warned:
    return Warned(seq=90, ts=None, thread_id="t", run_id="r", state=state, text=text)


def test_a_recording_that_tells_is_followed() -> None:
    """Delivered, requeued and dropped texts are believed under the recording's own policy."""
    detector = LoopDetector()
    decide(detector, [same(1), same(2), same(3)])
    (text,) = detector.pending(ScopeKey("t", "r"))
    detector.observe(warned("queued", text))
    detector.observe(warned("delivered", text))
    assert queued(detector) == [("delivered", False, None, 0)]
    detector.observe(warned("requeued", text))
    assert detector.pending(ScopeKey("t", "r")) == (text,)
    detector.observe(same(4))
    assert queued(detector) == [("queued", False, None, 0)]
    detector.observe(warned("delivered", text))
    detector.observe(same(5))
    assert queued(detector) == [("delivered", False, 5, 1)]
    detector.observe(warned("dropped", text))
    detector.observe(warned("delivered", "a text that nobody queued"))
    assert queued(detector) == [("delivered", False, 5, 1)]


def test_a_policy_that_the_run_did_not_have_assumes_delivery() -> None:
    """What the recording tells of its own warnings says nothing of another policy's."""
    detector = LoopDetector(Policy(warn_threshold=2))
    decide(detector, [same(1), same(2)])
    (text,) = detector.pending(ScopeKey("t", "r"))
    detector.observe(warned("dropped", text))
    detector.observe(same(3))
    assert queued(detector) == [("delivered", True, 3, 1)]


def test_the_last_four_texts_wait_each_once() -> None:
    """Equal texts are one; a fifth one drops the oldest."""
    detector = LoopDetector(Policy(warn_threshold=1, tool_freq_warn=90, tool_freq_hard_limit=90), assume_delivery=False)
    for n, tool in enumerate("abcaed"):
        detector.observe(batch(n, (tool, {"query": str(n)})))
    assert [state for state, *_ in queued(detector)] == ["dropped", "queued", "queued", "queued", "queued"]


def test_settled_warnings_are_bounded() -> None:
    """A scope that is warned for ever remembers only the latest."""
    detector = LoopDetector(Policy(warn_threshold=1, tool_freq_warn=90, tool_freq_hard_limit=90))
    for n in range(60):
        detector.observe(batch(n, (f"tool{n}", {})))
    assert len(queued(detector)) == 17


def policy_event(policy: dict[str, Any], scope: tuple[str | None, str | None] = (None, None)) -> PolicySet:
    return PolicySet(seq=50, ts=None, thread_id=scope[0], run_id=scope[1], policy=policy)


def header(policy: dict[str, Any] | None) -> Header:
    return Header(format="loopscope/1", policy=policy)


def test_a_recordings_policies_are_followed() -> None:
    """Header and policy events decide, for one scope or for all; histories and marks stay."""
    detector = LoopDetector()
    detector.observe(header({"warn_threshold": 2}))
    actions = [d.action for d in decide(detector, [same(1), same(2)])]
    detector.observe(policy_event({"warn_threshold": 9, "hard_limit": 9}, ("t", "r")))
    assert detector.policy_of(ScopeKey("t", "r")).hard_limit == 9
    actions += [d.action for d in decide(detector, [same(3), same(4), same(5), same(6)])]
    detector.observe(policy_event({"hard_limit": 7}))
    actions += [d.action for d in decide(detector, [same(7)])]
    assert actions == ["pass", "warn", "pass", "pass", "pass", "pass", "hard_stop"]
    assert detector.policy == detector.policy_of(ScopeKey("t", "r")) == Policy(hard_limit=7)


def test_an_explicit_policy_is_not_changed_by_the_recording() -> None:
    """A flag wins over the recording."""
    detector = LoopDetector(Policy(hard_limit=3))
    detector.observe(header({"hard_limit": 9}))
    detector.observe(policy_event({"hard_limit": 9}))
    assert [d.action for d in decide(detector, [same(1), same(2), same(3)])][-1] == "hard_stop"


def test_a_window_is_cut_at_the_next_append() -> None:
    """A smaller window forgets the oldest batches only when the next one comes."""
    detector = LoopDetector()
    decide(detector, [same(n) for n in range(1, 5)])
    detector.adopt(Policy(window_size=2))
    scope = detector.scope(ScopeKey("t", "r"))
    assert scope is not None
    assert len(scope.hashes.items) == 4
    (decision,) = detector.observe(same(5))
    assert (decision.hash_count, decision.action) == (2, "pass")


def test_scopes_are_cut_at_the_next_touch() -> None:
    """A smaller number of scopes evicts when the next batch comes, not before."""
    detector = LoopDetector()
    decide(detector, [same(n, (str(n), None)) for n in range(5)])
    detector.adopt(Policy(max_tracked_threads=2))
    assert len(detector.scopes) == 5
    detector.observe(same(9, ("4", None)))
    assert [key.thread_id for key in detector.scopes] == ["3", "4"]


def test_policies_of_single_scopes_are_bounded() -> None:
    """Twice as many as scopes are remembered."""
    detector = LoopDetector(follow_policy=True, policy=Policy(max_tracked_threads=2))
    for n in range(9):
        detector.observe(policy_event({"hard_limit": 9}, (str(n), None)))
    assert detector.policy_of(ScopeKey("8", None)).hard_limit == 9
    assert detector.policy_of(ScopeKey("1", None)).hard_limit == 5


def test_a_second_header_begins_with_fresh_state_but_numbers_go_on() -> None:
    """A segment has nothing of the one before but the numbering of its batches."""
    detector = LoopDetector()
    decide(detector, [header({"hard_limit": 4}), same(1), same(2), same(3), header(None)])
    (decision,) = detector.observe(same(1))
    assert (decision.batch, decision.hash_count) == (4, 1)
    assert detector.policy == Policy()


def reset(scope: tuple[str | None, str | None]) -> Control:
    return Control(seq=9, ts=None, thread_id=scope[0], run_id=scope[1], action="reset")


def test_control_reset_forgets_one_scope_or_all() -> None:
    """A reset is part of the recording, so that a replay counts as the run did."""
    detector = LoopDetector()
    decide(detector, [same(1), same(2, ("u", None)), batch(3, scope=("v", None))])
    detector.observe(Control(seq=3, ts=None, thread_id="t", run_id="r", action="pause"))
    detector.observe(reset(("t", "r")))
    assert list(detector.scopes) == [ScopeKey("u", None)]
    detector.observe(reset((None, None)))
    assert not detector.scopes
    assert detector.spent(ScopeKey("v", None)).model_calls == 0


def test_reset_of_a_thread_and_of_all() -> None:
    """Every scope of a thread goes, or everything."""
    detector = LoopDetector()
    decide(detector, [same(1), same(2, ("t", "other")), same(3, ("u", None))])
    detector.reset("t")
    assert list(detector.scopes) == [ScopeKey("u", None)]
    detector.reset()
    assert not detector.scopes


def test_other_events_change_nothing() -> None:
    """Results are seen by no layer of this policy."""
    event: Event = Result(seq=1, ts=None, thread_id="t", run_id="r", call_id="c", status="ok", content="")
    assert LoopDetector().observe(event) == ()


def test_a_broken_recorded_policy_is_an_error() -> None:
    """A replay under a policy that cannot be is refused, not guessed."""
    with pytest.raises(PolicyError):
        LoopDetector().observe(header({"hard_limit": 1}))


def test_a_snapshot_of_another_version_is_refused() -> None:
    """State of another loopscope is not misread."""
    snapshot = msgspec.structs.replace(LoopDetector().snapshot(), version=99)
    with pytest.raises(ValueError, match="snapshot version 99 is not 1"):
        LoopDetector().restore(snapshot)


def test_a_snapshot_keeps_policies_and_charges() -> None:
    """Scopes with policies of their own, and those that made no call yet, are in the snapshot."""
    detector = LoopDetector()
    decide(detector, [header({"hard_limit": 8}), same(1), batch(2, scope=("quiet", None))])
    detector.observe(policy_event({"hard_limit": 6}, ("t", "r")))
    other = LoopDetector()
    other.restore(detector.snapshot())
    assert other.policy.hard_limit == 8
    assert other.policy_of(ScopeKey("t", "r")).hard_limit == 6
    assert other.spent(ScopeKey("quiet", None)).model_calls == 1
    assert other.snapshot() == detector.snapshot()


def test_a_recordings_line_can_be_observed_as_it_is() -> None:
    """A mapping is taken for the event that it describes; what is none is refused."""
    detector = LoopDetector()
    line = {"kind": "batch", "seq": 1, "calls": [{"id": "a", "name": "bash", "args": {"command": "ls"}}]}
    (decision,) = detector.observe(line)
    assert (decision.hash, decision.scope) == (LoopDetector().identify(same(1)).hash, ScopeKey(None, None))
    with pytest.raises(ValueError, match="kind"):
        detector.observe({"seq": 1})


@given(st.lists(st.tuples(SCOPES, st.sampled_from("abc")), max_size=30), policies())
def test_a_call_alone_is_decided_as_its_batch(calls: list[tuple[Any, str]], policy: Policy) -> None:
    """Whatever the policy looks at, and one of a scope's own too."""
    whole, alone = LoopDetector(policy), LoopDetector(policy)
    own = policy.with_(hard_limit=policy.warn_threshold, error_streak=Pair(1, 2))
    for detector in (whole, alone):
        detector.adopt(own, ScopeKey("t1", "r1"))
    for seq, (scope, command) in enumerate(calls):
        asked = batch(seq, ("bash", {"command": command}), scope=scope)
        place = batch(seq, ("other", {}), scope=scope)
        assert (alone.observe_call(place, asked.calls[0]),) == whole.observe(asked)
    assert alone.snapshot() == whole.snapshot()
