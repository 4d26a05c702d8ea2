"""The session: moving the cursor, lanes, state at any batch, and what is read again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscope.engine.breakpoints import parse
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import (
    Batch,
    Control,
    Event,
    Gap,
    Graph,
    Header,
    PolicySet,
    Result,
    RunEnd,
    RunStart,
    ScopeKey,
    Warned,
)
from loopscope.engine.policy import Policy
from loopscope.errors import UsageError
from loopscope.session.letters import letter_name, letter_order
from loopscope.session.session import Lane, Session
from loopscope.session.timeline import SNAPSHOT_EVERY, Origin
from tests.engine.support import batch
from tests.engine.test_detector import RUNS, events, policies
from tests.session.support import Memory, session_of


def same(seq: int, scope: tuple[str | None, str | None] = ("t", "r")) -> Batch:
    return batch(seq, ("bash", {"command": "ls"}), scope=scope)


def other(seq: int, scope: tuple[str | None, str | None] = ("t", "r")) -> Batch:
    return batch(seq, ("bash", {"command": f"cat {seq}"}), scope=scope)


def result(seq: int, call_id: str, content: str = "x", digest: str | None = "d", **more: Any) -> Result:
    fields: dict[str, Any] = {"ts": None, "thread_id": "t", "run_id": "r", "status": "ok", "name": "bash"}
    return Result(**fields | {"seq": seq, "call_id": call_id, "content": content, "digest": digest} | more)


@pytest.fixture
def looping() -> Session:
    """Seven batches of one scope: A A A B A A A, warned at 3, stopped at 6 and 7."""
    return session_of([Header(format="loopscope/1"), *[other(n) if n == 4 else same(n) for n in range(1, 8)]])


def test_an_empty_session_has_no_cursor() -> None:
    """Nothing can be asked of a recording without batches, and nothing breaks."""
    session = session_of([])
    assert (len(session), session.cursor, session.decision, session.scopes) == (0, 0, None, [])
    assert session.open_at_first_stop() is None
    assert not session.step()
    assert not session.next_decision()
    assert session.policy == Policy()
    assert list(session.batches) == []
    with pytest.raises(IndexError, match="there is no batch 1: the recording has 0"):
        session.seek(1)
    with pytest.raises(IndexError):
        session.explain()


def test_it_opens_at_the_first_stop(looping: Session) -> None:
    """The first thing to see is what was stopped; a run without a stop opens at its end."""
    assert looping.open_at_first_stop() == 6
    assert looping.cursor == 6
    healthy = session_of([other(n) for n in range(1, 4)])
    assert healthy.open_at_first_stop() is None
    assert healthy.cursor == 3


def test_stepping_stays_inside(looping: Session) -> None:
    """Steps end at the first and the last batch."""
    looping.seek(6)
    assert looping.step(10)
    assert looping.cursor == 7
    assert not looping.step()
    assert looping.step(-99)
    assert looping.cursor == 1
    assert not looping.step(-1)


def test_the_next_decision_is_a_warning_or_a_stop(looping: Session) -> None:
    """Both ways, until there is no further one."""
    looping.seek(1)
    found = []
    while looping.next_decision():
        found.append(looping.cursor)
    assert found == [3, 6, 7]
    assert looping.next_decision(-1)
    assert looping.next_decision(-1)
    assert looping.cursor == 3
    assert not looping.next_decision(-1)


def test_rows_tell_letter_state_and_usage(looping: Session) -> None:
    """The strip's letters are in order of first use, its states those of the decisions."""
    rows = [looping.row(n) for n in range(1, 8)]
    assert [letter_name(row.letter) for row in rows] == list("AAABAAA")
    assert [row.state for row in rows] == ["new", "repeat", "warn", "new", "repeat", "stop", "stop"]
    assert rows[0].names == ("bash",)
    assert rows[0].ts == 1.0
    assert rows[0].usage is not None
    assert (rows[0].usage.input_tokens, rows[0].usage.cost_usd) == (10, 0.5)
    bare = session_of([Batch(seq=1, ts=None, thread_id="t", run_id=None, calls=same(1).calls)])
    assert (bare.row(1).ts, bare.row(1).usage) == (None, None)


def test_letters_are_names_both_ways() -> None:
    """A to z, then two letters; what is no letter has no order."""
    assert [letter_name(n) for n in (0, 25, 26, 51, 52, 53, 104, 2756)] == ["A", "Z", "a", "z", "AA", "AB", "BA", "AAA"]
    assert all(letter_order(letter_name(n)) == n for n in range(3000))
    assert letter_order("") is None
    assert letter_order("A1") is None


@pytest.fixture
def crowd() -> Session:
    """A lead with two sub-agents in thread t, and another thread."""

    def start(seq: int, run: str, parent: str | None = None) -> RunStart:
        return RunStart(
            seq=seq, ts=None, thread_id="t", run_id=run, agent=f"agent {run}",
            parent_thread_id="t" if parent else None, parent_run_id=parent, graph=Graph(),
        )  # fmt: skip

    stream: list[Event] = [start(1, "lead"), same(2, ("t", "lead")), start(3, "sub1", "lead"), same(4, ("t", "sub1"))]
    stream += [start(5, "sub2", "lead"), same(6, ("t", "sub2")), same(7, ("u", None)), same(8, ("t", "lead"))]
    stream += [RunEnd(seq=9, ts=None, thread_id="t", run_id="sub1", status="completed")]
    stream += [same(n, ("t", "sub2")) for n in range(10, 14)]
    return session_of(stream)


def test_scopes_are_a_tree(crowd: Session) -> None:
    """Sub-agents stand below their parent, threads in order of appearance, worst decisions and ends with them."""
    crowd.seek(5)
    assert [(s.key.run_id, s.depth, s.batches, s.seen, s.worst, s.status) for s in crowd.scopes] == [
        ("lead", 0, 2, 2, "pass", None),
        ("sub1", 1, 1, 1, "pass", "completed"),
        ("sub2", 1, 5, 1, "hard_stop", None),
        (None, 0, 1, 1, "pass", None),
    ]
    assert crowd.scopes[1].parent == ScopeKey("t", "lead")
    assert crowd.scopes[0].agent == "agent lead"
    assert not any(scope.evicted for scope in crowd.scopes)


def test_hostile_parents_do_not_loop() -> None:
    """Scopes that are each other's parents, their own, or children of nobody are drawn once each."""

    def start(run: str, parent: str) -> RunStart:
        return RunStart(
            seq=1, ts=None, thread_id="t", run_id=run, agent=None, parent_thread_id="t", parent_run_id=parent
        )

    session = session_of([start("a", "b"), start("b", "a"), start("c", "c"), start("d", "nobody")])
    assert sorted(str(scope.key.run_id) for scope in session.scopes) == ["a", "b", "c", "d"]


def test_lanes(crowd: Session) -> None:
    """A scope's lane holds its own batches, a thread's all of it; the cursor goes to the nearest one."""
    assert list(crowd.batches) == list(range(1, 10))
    crowd.cursor = 4
    crowd.select(Lane("t", "sub1"))
    assert (list(crowd.batches), crowd.cursor) == ([2], 2)
    crowd.select(Lane("t", whole_thread=True))
    assert list(crowd.batches) == [1, 2, 3, 5, 6, 7, 8, 9]
    crowd.select(Lane("u"))
    assert (list(crowd.batches), crowd.cursor) == ([4], 4)
    crowd.select(Lane("u", whole_thread=True))
    assert list(crowd.batches) == [4]
    crowd.select(Lane("t", "sub2"))
    assert crowd.cursor == 3
    assert crowd.next_decision()
    assert crowd.cursor == 7
    assert crowd.next_decision(-1) is False
    crowd.select(Lane("t", "lead"))
    assert not crowd.next_decision()
    crowd.select(Lane("nobody"))
    assert list(crowd.batches) == []


def test_the_lane_follows_a_seek(crowd: Session) -> None:
    """A batch of another scope takes its lane along; inside a thread's lane it stays."""
    crowd.seek(2)
    assert crowd.lane == Lane("t", "sub1")
    crowd.seek(1)
    assert crowd.lane == Lane("t", "lead")
    crowd.select(Lane("t", whole_thread=True))
    crowd.seek(2)
    assert crowd.lane == Lane("t", whole_thread=True)
    crowd.seek(4)
    assert crowd.lane == Lane("u", None)


def test_batches_and_results_are_read_again() -> None:
    """Only what is looked at is read; results stand at their calls, and a repeated one is known."""
    first = batch(1, ("bash", {"command": "ls"}), ("bash", {"command": "pwd"}))
    stream: list[Event | None] = [first, result(2, "c1-1", "pwd"), result(3, "c1-0", "ls")]
    stream += [batch(4, ("bash", {"command": "ls"})), result(5, "c4-0", "ls"), result(6, "c4-0", "too many")]
    stream += [batch(7, ("bash", {"command": "x"})), result(8, "c7-0", "new", "e"), None]
    stream += [batch(9, ("bash", {"command": "y"})), result(10, "c9-0", "unknown", None, status="error")]
    stream += [result(11, "nobody", thread_id="elsewhere")]
    store = Memory(stream)
    session = session_of(stream)
    assert session.batch(1) == first
    assert [r.content for r in session.results(1) if r is not None] == ["ls", "pwd"]
    assert [r.content for r in session.results(1, 1) if r is not None] == ["ls"]
    assert session.same_result(2, 0) == 1
    assert session.same_result(1, 0) is None
    assert session.same_result(3, 0) is None
    assert session.same_result(4, 0) is None
    assert session.same_result(4, 1) is None, "there is no such call"
    assert session.results(4)[0] is not None
    assert list(session.sightings(2)) == [2]
    assert store.reads == 0


def test_a_line_that_is_gone_reads_as_nothing() -> None:
    """A file that was cut while it was open leaves the numbers standing."""
    events = [same(1), result(2, "c1-0")]
    session = Session("memory", Memory([None, None]))
    session.append(line for line in _lines(events))
    assert session.batch(1) is None
    assert session.results(1) == (None,)


def _lines(stream: list[Any]) -> list[Any]:
    from tests.session.support import Line

    return [Line(event, position, 1) for position, event in enumerate(stream)]


def test_callless_batches_and_unknown_events_are_no_batches() -> None:
    """AI messages without calls are charged for and take no number."""
    quiet = Batch(seq=1, ts=1.0, thread_id="t", run_id="r", calls=(), text="thinking " * 100, usage=batch(1).usage)
    session = session_of([quiet, same(2), batch(3), None, Gap(seq=4, ts=None, thread_id=None, run_id=None, lost=3)])
    session.seek(1)
    assert len(session) == 1
    assert session.state.spent.model_calls == 2
    assert session.timeline.events == 4


def test_state_just_after_a_batch(looping: Session) -> None:
    """Histories, warnings and spending as they stood when the batch was decided."""
    looping.seek(3)
    view = looping.state
    assert view.scope is not None
    assert list(view.scope.hashes.counts.values()) == [3]
    assert [w.state for w in view.warnings] == ["queued"]
    assert view.spent.batches == 3
    looping.seek(4)
    assert [(w.state, w.before) for w in looping.state.warnings] == [("delivered", 4)]
    nobody = looping.state_at(1, ScopeKey("nobody", None))
    assert nobody.scope is None
    assert list(nobody.warnings) == []


@given(policies(), RUNS, st.lists(st.integers(0, 59), max_size=12))
@settings(max_examples=60)
def test_seek_gives_the_state_of_the_fold(policy: Policy, run: Any, targets: list[int]) -> None:
    """In whatever order batches are looked at, the state is that of a detector that came there in one go."""
    stream = [event for event in events(run) if event.calls]
    session = session_of(stream, Origin(policy))
    for target in targets:
        if target < len(stream):
            detector = LoopDetector(policy)
            for event in stream[: target + 1]:
                detector.observe(event)
            assert session._detector(target + 1).snapshot() == detector.snapshot()


def test_seeking_far_uses_snapshots() -> None:
    """Beyond a snapshot the state is still that of the whole fold, marks and policies included."""
    stream: list[Event] = [Header(format="loopscope/1", policy={"hard_limit": 7})]
    for n in range(1, 2 * SNAPSHOT_EVERY + 50):
        stream.append(batch(n, ("tool", {"query": str(n % 9)}), scope=("t", str(n % 3))))
        if n % 100 == 0:
            stream.append(PolicySet(seq=n, ts=None, thread_id=None, run_id=None, policy={"hard_limit": 5 + n // 100}))
        if n == 30:
            stream.append(Control(seq=n, ts=None, thread_id="t", run_id="1", action="reset"))
    session = session_of(stream)
    for target in (2 * SNAPSHOT_EVERY + 10, SNAPSHOT_EVERY, 3, SNAPSHOT_EVERY - 1, SNAPSHOT_EVERY + 1, len(session)):
        detector = LoopDetector()
        for event in stream:
            detector.observe(event)
            if detector.batches == target:
                break
        assert session._detector(target).snapshot() == detector.snapshot()
    decisions = [decision for event in stream for decision in _fresh.observe(event)]
    assert session.timeline.decisions == decisions
    assert list(session.timeline.refold(LoopDetector())) == decisions


_fresh = LoopDetector()


def test_a_fixed_policy_wins_over_the_recordings() -> None:
    """With a policy of the user's own, the recorded one decides nothing."""
    stream: list[Event] = [Header(format="loopscope/1", policy={"hard_limit": 3}), *[same(n) for n in range(1, 6)]]
    own, fixed = session_of(stream), session_of(stream, Origin(Policy(hard_limit=4)))
    assert (own.first_stop(), fixed.first_stop()) == (3, 4)
    own.seek(3)
    fixed.seek(3)
    assert (own.policy.hard_limit, fixed.policy.hard_limit) == (3, 4)
    assert (own.where("hard_limit"), own.where("window_size"), fixed.where("hard_limit")) == (
        "recording",
        "default",
        "default",
    )


def test_origins_are_told() -> None:
    """A limit from a file is told with the file and the line."""
    session = Session("memory", Memory([]), origins={"hard_limit": "loopscope.toml:14"})
    assert session.where("hard_limit") == "loopscope.toml:14"


def test_a_new_segment_closes_no_call_of_the_one_before() -> None:
    """After a second header, an id of the first segment is not open any more."""
    first: list[Event] = [same(1), Header(format="loopscope/1"), result(2, "c1-0")]
    session = session_of(first)
    assert session.results(1) == (None,)
    assert session.timeline.segments == 1


def test_evicted_scopes_are_told() -> None:
    """A scope that the engine forgot for newer ones is marked, at the cursor and not before."""
    session = session_of([same(1, ("a", None)), same(2, ("b", None))], Origin(Policy(max_tracked_threads=1)))
    session.seek(1)
    assert [scope.evicted for scope in session.scopes] == [False, False]
    session.seek(2)
    assert [scope.evicted for scope in session.scopes] == [True, False]


def test_explain_follows_the_recorded_warnings(looping: Session) -> None:
    """Why a batch was stopped, in five numbered lines."""
    explanation = looping.explain(6)
    assert explanation.headline == "STOP identical_call_set A 5/5"
    assert list(explanation.lines) == [
        "rule identical_call_set counted A 5 times in the last 20 batches: #1 #2 #3 #5 #6",
        "hard limit is 5: hard_limit (default)",
        "a warning was delivered before #4 (assumed: the recording does not tell), then A came 2 times more",
        "effect: none, the run was only watched; with the middleware no tool of this batch would have run",
        (
            "nearest settings that would not stop #6: hard_limit >= 6 (then stopped first at #7, from 7 on never); "
            "or window_size <= 5 (no stop in this scope)"
        ),
    ]
    assert looping.explain(6) is explanation
    assert len(looping.explain(6, search=False).lines) == 4


def test_explain_tells_of_warnings_in_every_state() -> None:
    """Queued, dropped and delivered warnings of an enforced run are told as they were."""

    def warned(state: Any, text: str) -> Warned:
        return Warned(seq=5, ts=None, thread_id="t", run_id="r", state=state, text=text)

    probe = session_of([same(1), same(2), same(3)])
    probe.seek(3)
    text = probe.state.warnings[0].text
    begin: list[Event] = [
        Header(format="loopscope/1", enforced=True),
        same(1),
        same(2),
        same(3),
        warned("queued", text),
    ]
    queued = session_of([*begin, same(4)])
    assert queued.explain(4).lines[2] == "a warning of A was queued at #3 and waits for the next model call"
    dropped = session_of([*begin, warned("dropped", text), same(4)])
    assert dropped.explain(4).lines[2] == "a warning of A was queued at #3 and dropped before a model call"
    delivered = session_of([*begin, warned("delivered", text), same(4), same(5)])
    assert delivered.explain(5).lines[2:4] == (
        "a warning was delivered before #4, then A came 2 times more",
        "effect: the calls were removed and a closing text was put in their place; no tool ran",
    )


def test_explanations_are_remembered_within_bounds() -> None:
    """Looking at very many batches keeps only some explanations."""
    session = session_of([other(n) for n in range(1, 300)])
    for n in range(1, 300):
        session.explain(n, search=False)
    assert len(session._explained) < 260
    unknown = session.letters(ScopeKey("t", "r"))
    assert unknown("no hash of this run") == "no hash of this run"


def test_a_search_that_nobody_wants_any_more() -> None:
    """It ends within some hundred steps, leaves nothing behind, and can be asked for again."""
    session = session_of([other(n) for n in range(1, 1_000)])
    asked = 0

    def wanted() -> bool:
        nonlocal asked
        asked += 1
        return asked < 2

    assert session.search(900, wanted) is None
    assert asked == 2
    found = session.search(900, lambda: True)
    assert found is not None
    assert found == session.explain(900)


def test_running_to_breakpoints(looping: Session) -> None:
    """Both ways over the lane; a one-shot one is disabled when it is hit; without any nothing moves."""
    looping.seek(1)
    assert looping.run_to_breakpoint() is None
    looping.breakpoints = [parse("once hash A >= 4"), parse("stop")]
    hit = looping.run_to_breakpoint()
    assert hit is not None
    assert (str(hit), looping.cursor) == ("hash A >= 4", 5)
    assert not looping.breakpoints[0].enabled
    assert str(looping.run_to_breakpoint()) == "stop"
    assert looping.cursor == 6
    looping.breakpoints = [parse("pending"), parse("argument cat")]
    assert str(looping.run_to_breakpoint(-1)) == "argument cat"
    assert looping.cursor == 4
    assert str(looping.run_to_breakpoint(-1)) == "pending"
    assert looping.cursor == 3
    assert looping.run_to_breakpoint(-1) is None
    assert looping.cursor == 3


def test_arguments_that_are_gone_match_nothing() -> None:
    """A line that cannot be read again has no arguments to search."""
    session = session_of([same(1), same(2)])
    session._store.events[:] = [None, None]  # type: ignore[attr-defined]
    session.seek(1)
    session.breakpoints = [parse("argument ls")]
    assert session.run_to_breakpoint() is None


def test_the_scope_at_the_cursor(crowd: Session) -> None:
    """As the tree has it."""
    assert session_of([]).scope is None
    crowd.seek(2)
    assert crowd.scope is not None
    assert (crowd.scope.key.run_id, crowd.scope.depth) == ("sub1", 1)


@pytest.mark.parametrize(
    ("kind", "text"),
    [("toml", "hard_limit = 5"), ("yaml", "hard_limit: 5"), ("json", '"hard_limit": 5'), ("python", "Policy.parse(")],
)
def test_the_policy_can_be_exported(looping: Session, kind: str, text: str) -> None:
    """As a file's text, in each form; an unknown form is refused with those that there are."""
    looping.seek(1)
    assert text in looping.export(kind)
    with pytest.raises(UsageError, match="there are toml, yaml, json, python, html, svg"):
        looping.export("xml")
