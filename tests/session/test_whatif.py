"""What-if: two folds of one run, their difference, and what of it is certain."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, Call, Event, Header, PolicySet, Result, RunStart
from loopscope.engine.policy import BOUNDED, PROGRESS, Policy
from loopscope.samples import samples
from loopscope.session import refold
from loopscope.session.timeline import Origin
from loopscope.settings import Choice
from loopscope.targets import open_session
from tests.engine.support import batch
from tests.engine.test_detector import RUNS, events, policies
from tests.session.support import Line, session_of


def same(seq: int, run: str = "r") -> Batch:
    return batch(seq, ("bash", {"command": "ls"}), scope=("t", run))


@given(policies(), RUNS)
@settings(max_examples=60)
def test_under_the_baselines_own_policy_nothing_differs(policy: Policy, run: Any) -> None:
    """For any policy and run."""
    difference = session_of(events(run), Origin(policy)).whatif(policy)
    assert difference.differing == ()
    assert difference.first is None
    assert difference.baseline == difference.override
    assert difference.notes() == []


@given(policies(), policies(), RUNS)
@settings(max_examples=60)
def test_an_override_is_a_fold_of_its_own(baseline: Policy, override: Policy, run: Any) -> None:
    """What the override says is what the engine says of the same events."""
    stream = events(run)
    difference = session_of(stream, Origin(baseline)).whatif(override)
    folded = [decision for event in stream for decision in _observe(override, stream, event)]
    stops = [decision.batch for decision in folded if decision.action == "hard_stop"]
    assert difference.override.stops == len(stops)
    assert difference.override.first_stop == (stops[0] if stops else None)
    assert difference.override.warnings == sum(decision.action == "warn" for decision in folded)


_detectors: dict[int, LoopDetector] = {}


def _observe(policy: Policy, stream: list[Batch], event: Batch) -> Any:
    if event is stream[0]:
        _detectors[id(stream)] = LoopDetector(policy)
    return _detectors[id(stream)].observe(event)


def test_what_came_after_the_first_stop() -> None:
    """Batches, calls, tokens and cost of the stopped scope and its sub-agents; others' do not count."""
    child = RunStart(seq=1, ts=None, thread_id="t", run_id="sub", agent=None, parent_thread_id="t", parent_run_id="r")
    grandchild = RunStart(
        seq=1, ts=None, thread_id="t", run_id="subsub", agent=None, parent_thread_id="t", parent_run_id="sub"
    )
    quiet = Batch(seq=9, ts=None, thread_id="t", run_id="r", calls=(Call("a", "x", {}), Call("b", "y", {})))
    stream: list[Event] = [
        child,
        grandchild,
        *[same(n) for n in range(1, 5)],
        same(5, "sub"),
        same(6, "subsub"),
        same(7, "other"),
        quiet,
    ]
    after = session_of(stream).whatif(Policy(hard_limit=3)).after_first_stop
    assert after is not None
    assert (after.batches, after.calls, after.input_tokens, after.output_tokens, after.cost_usd) == (4, 5, 30, 6, 1.5)
    assert session_of(stream).whatif(Policy(hard_limit=9)).after_first_stop is None


def test_a_watched_run_is_certain_until_the_overrides_first_word() -> None:
    """It felt nothing, so the first warning or stop of the override is where it might have gone another way."""
    session = session_of([same(n) for n in range(1, 8)])
    difference = session.whatif(Policy(warn_threshold=2, hard_limit=9))
    assert [(d.batch, d.baseline.action, d.override.action) for d in difference.differing] == [
        (2, "pass", "warn"),
        (3, "warn", "pass"),
        (5, "hard_stop", "pass"),
        (6, "hard_stop", "pass"),
        (7, "hard_stop", "pass"),
    ]
    assert difference.certain_until == 2
    assert difference.notes() == ["After #2 the model might have acted differently: the recording cannot know."]


def test_an_enforced_run_is_certain_until_the_first_difference() -> None:
    """It felt its own policy; past a stop that the override lets pass, nothing is recorded."""
    begin: list[Event] = [Header(format="loopscope/1", enforced=True), *[same(n) for n in range(1, 6)]]
    difference = session_of(begin).whatif(Policy(hard_limit=6))
    assert (difference.first, difference.certain_until, difference.nothing_after) == (5, 5, 5)
    assert difference.notes()[1] == (
        "The recorded run was stopped at #5: what it would have done next is not recorded."
    )
    stricter = session_of(begin).whatif(Policy(hard_limit=4))
    assert (stricter.certain_until, stricter.nothing_after) == (4, None)
    assert session_of(begin).whatif(Policy()).certain_until is None


def test_another_identity_reads_the_arguments_again() -> None:
    """Hashes are computed anew; keys that were recorded stay, and are counted."""
    stream: list[Event] = [batch(n, ("find", {"query": "x", "page": n})) for n in range(1, 6)]
    stream.append(
        Batch(seq=9, ts=None, thread_id="t", run_id="r", calls=(Call("a", "find", {"query": "?"}, key="~1"),))
    )
    session = session_of(stream)
    assert session.whatif(Policy()).baseline.stops == 1
    difference = session.whatif(Policy(identity="full_args"))
    assert (difference.override.stops, difference.keys_kept) == (0, 1)
    assert difference.notes()[-1].startswith("one call keeps its recorded key")
    twice = session_of([*stream, stream[-1]])
    assert "2 calls keep their recorded key" in twice.whatif(Policy(identity="full_args")).notes()[-1]


def test_another_identity_with_lines_that_are_gone_keeps_their_hashes() -> None:
    """What cannot be read again counts as it was hashed before."""
    stream: list[Event] = [batch(n, ("find", {"query": "x", "page": n})) for n in range(1, 6)]
    session = session_of(stream)
    session._store.events[:] = [None] * 5  # type: ignore[attr-defined]
    assert session.whatif(Policy(identity="full_args")).override.stops == 1


def test_the_recordings_own_policies_do_not_count() -> None:
    """Neither its header's nor its policy events."""
    stream: list[Event] = [Header(format="loopscope/1", policy={"hard_limit": 9}), *[same(n) for n in range(1, 4)]]
    stream.append(PolicySet(seq=9, ts=None, thread_id=None, run_id=None, policy={"hard_limit": 8}))
    stream += [same(n) for n in range(4, 7)]
    assert session_of(stream).whatif(Policy(hard_limit=6)).override.first_stop == 6


def test_decisions_at_results_are_compared_too() -> None:
    """Five failures in a row stop under `bounded`, at the result of the fifth."""
    stream: list[Event] = []
    for n in range(1, 7):
        stream.append(batch(n, ("find", {"query": str(n)})))
        stream.append(
            Result(
                seq=n,
                ts=None,
                thread_id="t",
                run_id="r",
                call_id=f"c{n}-0",
                status="error",
                content="no",
                digest=f"{n}",
            )
        )
    difference = session_of(stream).whatif(BOUNDED)
    assert [(d.batch, d.override.action, d.override.layer) for d in difference.differing] == [
        (3, "warn", "error_streak"),
        (5, "hard_stop", "error_streak"),
        (6, "hard_stop", "error_streak"),
    ]
    back = session_of(stream, Origin(BOUNDED)).whatif(Policy())
    assert [d.batch for d in back.differing] == [3, 5, 6]
    assert session_of(stream, Origin(PROGRESS)).whatif(PROGRESS).differing == ()


@given(
    st.sampled_from([BOUNDED, PROGRESS]),
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.booleans()), max_size=30),
)
@settings(max_examples=60)
def test_the_same_presets_differ_in_nothing(policy: Policy, run: list[tuple[str, str, bool]]) -> None:
    """Also where layers look at results."""
    stream: list[Event] = []
    for n, (query, digest, failed) in enumerate(run, 1):
        stream.append(batch(n, ("find", {"query": query})))
        status: Any = "error" if failed else "ok"
        stream.append(
            Result(
                seq=n, ts=None, thread_id="t", run_id="r", call_id=f"c{n}-0", status=status, content="", digest=digest
            )
        )
    assert session_of(stream, Origin(policy)).whatif(policy).differing == ()


@pytest.mark.parametrize("sample", [sample.name for sample in samples()])
def test_every_sample_under_its_own_policy_differs_in_nothing(sample: str) -> None:
    """Recorded live, by watchers and by the middleware."""
    session = open_session(f"sample:{sample}", Choice.of())
    assert len(session.timeline.policies) == 1
    difference = session.whatif(session.timeline.policies[0])
    assert (difference.differing, difference.certain_until, difference.nothing_after) == ((), None, None)
    assert difference.baseline == difference.override
    assert difference.notes() == []


@given(policies(), policies(), RUNS)
@settings(max_examples=40)
def test_a_trial_has_the_state_of_every_batch(baseline: Policy, override: Policy, run: Any) -> None:
    """As the timeline would draw it, were the override the run's own policy; and the first stop of each scope."""
    stream: list[Event] = list(events(run))
    session, own = session_of(stream, Origin(baseline)), session_of(stream, Origin(override))
    trial = session.attempt(override)
    assert trial is not None
    assert [trial.state(n) for n in range(1, len(own) + 1)] == [own.row(n).state for n in range(1, len(own) + 1)]
    assert trial.state(len(own) + 1) == ""
    assert trial.difference == session.whatif(override)
    stops: dict[Any, int] = {}
    for number in range(1, len(own) + 1):
        if own.timeline.verdict(number).action == "hard_stop":
            stops.setdefault(own.timeline.scope_of(number), number)
    assert trial.stopped == stops
    assert trial.stopped_before.keys() == {
        session.timeline.scope_of(n)
        for n in range(1, len(session) + 1)
        if session.timeline.verdict(n).action == "hard_stop"
    }


def test_a_trial_that_nobody_wants_is_given_up() -> None:
    """In the midst of it."""
    session = session_of([same(n) for n in range(1, 1201)])
    asked: list[bool] = []

    def wanted() -> bool:
        asked.append(True)
        return len(asked) < 2

    assert session.attempt(Policy(hard_limit=9), wanted) is None
    assert len(asked) == 2
    assert session.attempt(Policy(hard_limit=9)) is not None


def test_a_run_may_grow_while_it_is_tried() -> None:
    """What comes meanwhile does not count, neither batches nor what follows them."""
    session = session_of([same(n) for n in range(1, 1025)])
    more = iter([same(n) for n in range(1025, 1030)])

    def grow() -> bool:
        session.append([Line(next(more), 0, 1)])
        return True

    trial = session.attempt(Policy(hard_limit=9), grow)
    assert trial is not None
    assert (trial.batches, len(trial.states), len(session)) == (1024, 1024, 1026)
    assert trial.difference.after_first_stop is not None
    assert trial.difference.after_first_stop.batches == 1024 - 9


def test_a_run_that_was_come_upon_late_goes_on_from_its_state() -> None:
    """What the engine had counted before counts under the override as well; its numbers are the timeline's."""
    before = LoopDetector(Policy(hard_limit=9))
    for n in range(1, 4):
        before.observe(same(n))
    stream: list[Event] = [same(n) for n in range(4, 8)]
    session = session_of([None, *stream[:0]])
    session.timeline.restore(before.snapshot())
    for place, event in enumerate(stream):
        session._store.events.append(event)  # type: ignore[attr-defined]
        session.append([Line(event, place + 1, 1)])
    difference = session.whatif(Policy(hard_limit=5))
    assert [(d.batch, d.override.action) for d in difference.differing] == [
        (2, "hard_stop"),
        (3, "hard_stop"),
        (4, "hard_stop"),
    ]


def test_trying_again_reads_no_line_twice() -> None:
    """Neither under the same identity nor when the run has grown; of a few identities what was read is kept."""
    stream: list[Event] = [batch(n, ("find", {"query": "x", "page": n})) for n in range(1, 6)]
    session = session_of(stream)
    store: Any = session._store
    for limit in (5, 6, 7):
        assert session.whatif(Policy(identity="full_args", hard_limit=limit)).override.stops == 0
    assert store.reads == 5
    more = batch(6, ("find", {"query": "x", "page": 1}))
    store.events.append(more)
    session.append([Line(more, 5, 1)])
    assert session.whatif(Policy(identity="full_args", warn_threshold=2)).override.warnings == 1
    assert store.reads == 6
    for n in range(6):
        session.whatif(Policy(identity_fields={"find": (str(n),)}))
    session.whatif(Policy(identity="full_args"))
    assert store.reads == 6 + 6 * 6 + 6


def test_another_identity_that_nobody_wants_is_read_no_further() -> None:
    """And the next trial goes on where it ended."""
    session = session_of([batch(n, ("find", {"query": "x", "page": n})) for n in range(1, 1101)])
    assert session.attempt(Policy(identity="full_args"), lambda: False) is None
    store: Any = session._store
    assert store.reads == 511
    assert session.attempt(Policy(identity="full_args")) is not None
    assert store.reads == 1100


def test_of_very_long_runs_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result is the same."""
    session = session_of([same(n) for n in range(1, 8)])
    kept = session.whatif(Policy(hard_limit=6))
    monkeypatch.setattr(refold, "_MOST_KEPT", 3)
    other = session_of([same(n) for n in range(1, 8)])
    assert other.whatif(Policy(hard_limit=6)) == kept
    assert other.timeline not in refold._KEPT


def test_what_a_trial_needs_can_be_made_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says is the same; of a run too long to be kept nothing is made."""
    stream = [same(n) for n in range(1, 8)]
    session, other = session_of(stream), session_of(stream)
    refold.prepare(session.timeline)
    assert len(refold._KEPT[session.timeline].stubs) == 7
    assert session.whatif(Policy(hard_limit=6)) == other.whatif(Policy(hard_limit=6))
    monkeypatch.setattr(refold, "_MOST_KEPT", 3)
    long = session_of(stream)
    refold.prepare(long.timeline)
    assert long.timeline not in refold._KEPT


def test_what_a_batch_cost_counts_where_a_policy_has_budgets() -> None:
    """After an override that needs none of it, and before another; also what a run brought meanwhile."""
    session, plain = session_of([same(n) for n in range(1, 5)]), Policy(hard_limit=6)
    priced = plain.with_(budget={"cost_usd": {"limit": 1.5}, "wall_clock_s": {"limit": 5}})
    assert session.whatif(plain).override.stops == 0
    assert session.whatif(priced).override.stops == 2
    session.append([Line(same(n), n - 1, 1) for n in range(5, 8)])
    assert session.whatif(priced).override.stops == 5
    assert session.whatif(plain).override.stops == 2
