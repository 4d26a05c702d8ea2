"""Moving through a session, and the reason in words where that cannot be done."""

from __future__ import annotations

from loopscope.session.session import Lane, Session
from loopscope.views import moves
from loopscope.views.topbar import lane_name
from tests.session.support import session_of
from tests.views.support import Story, looping
from tests.views.test_scopes import family


def two_runs() -> Session:
    """Two runs of one thread, two batches each, the second one's at the cursor."""
    story = Story().call("a", {}).call("b", {}).in_scope("t", "r2").call("a", {}).call("b", {})
    return story.session()


def test_where_a_recording_opens() -> None:
    """At its first stop, else at its end; unreadable lines are told too."""
    assert moves.opened(looping().session()) == "opened at the first stop, batch 5"
    session = looping(2).session()
    assert moves.opened(session) == "no stop in this recording: opened at its end, batch 2"
    session.problems.append((3, "is no JSON"))
    assert moves.opened(session).endswith("; something is wrong in 1 place of it")
    session = looping().session()
    session.seek(2)
    assert moves.opened(session) == "opened at batch 2"
    assert moves.opened(session_of([])) == "this recording has no batch with calls"


def test_steps() -> None:
    """As far as the lane goes; then why no further, and how to see more."""
    session = two_runs()
    assert moves.step(session, 1) == "cannot step forward: this is the last batch of t/r2; u widens to its thread"
    assert moves.step(session, -10) is None
    assert session.cursor == 3
    assert moves.step(session, -1) == "cannot step back: this is the first batch of t/r2; u widens to its thread"
    session.select(Lane("t", None, whole_thread=True))
    session.seek(4)
    assert moves.step(session, 1) == "cannot step forward: this is the last batch of thread t"
    assert moves.step(looping(1).session(), 1) == "cannot step forward: this is the last batch of t/r"
    assert moves.step(session_of([]), 1) == "cannot step: there is no batch with calls"


def test_decisions() -> None:
    """From warning to stop and back; then why no further."""
    session = looping(6).session()
    assert moves.decision(session, -1) is None
    assert session.cursor == 3
    assert moves.decision(session, -1) == "no warning and no stop before batch 3 in t/r"
    assert [moves.decision(session, 1) for _ in range(2)] == [None, None]
    assert moves.decision(session, 1) == "no warning and no stop after batch 6 in t/r"


def test_both_ends() -> None:
    """The first and the last batch of the lane."""
    session = two_runs()
    assert moves.edge(session, -1) is None
    assert session.cursor == 3
    assert moves.edge(session, -1) == "this is the first batch of t/r2"
    assert moves.edge(session, 1) is None
    assert moves.edge(session, 1) == "this is the last batch of t/r2"
    assert moves.edge(session_of([]), 1) == "cannot move: there is no batch with calls"


def test_the_edges_of_the_cursors_scope() -> None:
    """Whatever the lane is; with the reason where the cursor is there."""
    story = Story()
    for n in range(6):
        story.in_scope("t", "r1" if n % 2 else "r2").call("a", {"n": n})
    session = story.session()
    session.select(Lane("t", None, whole_thread=True))
    session.seek(3)
    scope = session.timeline.scope_of(1)
    numbers = session.timeline.scopes[scope].batches
    assert (moves.scope_edge(session, 1), session.cursor) == (None, numbers[-1])
    assert moves.scope_edge(session, 1) == f"this is the last batch of {lane_name(Lane(*scope))}"
    assert (moves.scope_edge(session, -1), session.cursor) == (None, numbers[0])
    assert (moves.scope_edge(session, -1) or "").startswith("this is the first batch of")
    assert moves.scope_edge(session_of([]), 1) == "cannot move: there is no batch with calls"


def test_up_and_down_the_tree() -> None:
    """To the parent, to the thread; down again on the way to the cursor."""
    session = family().session()
    session.seek(5)
    assert session.lane == Lane("t", "r/tools:1/tools:2")
    lanes = []
    while moves.parent(session) is None:
        lanes.append(session.lane)
    assert lanes == [Lane("t", "r/tools:1"), Lane("t", "r"), Lane("t", None, whole_thread=True)]
    assert moves.parent(session) == "nothing is above thread t"
    lanes = []
    while moves.child(session) is None:
        lanes.append(session.lane)
    assert lanes == [Lane("t", "r"), Lane("t", "r/tools:1"), Lane("t", "r/tools:1/tools:2")]
    assert moves.child(session) == "t/r/tools:1/tools:2 has no sub-agent that made calls"


def test_down_to_the_nearest_child() -> None:
    """Where the cursor is in none of them."""
    session = family().session()
    session.select(Lane("t", "r"))
    assert moves.child(session) is None
    assert session.lane == Lane("t", "r/tools:1")


def test_a_parent_without_calls_is_passed_over() -> None:
    """There is nothing to show of it; its own parent is next."""
    story = Story().start("lead").call("a", {}).in_scope("t", "s").start("router", ("t", "r"))
    session = story.in_scope("t", "w").start("worker", ("t", "s")).call("b", {}).session()
    assert moves.parent(session) is None
    assert session.lane == Lane("t", "r")
    assert moves.show(session, Lane("t", "s")) == "cannot show t/s: it has made no calls"
    assert session.lane == Lane("t", "r")


def test_a_scope_whose_parents_are_in_another_thread() -> None:
    """Down from its thread is the scope itself."""
    session = Story().call("a", {}).in_scope("u", "s").start("w", ("t", "r")).call("b", {}).session()
    session.select(Lane("u", None, whole_thread=True))
    assert moves.child(session) is None
    assert session.lane == Lane("u", "s")


def test_parents_in_a_ring() -> None:
    """A recording may say anything; walking it ends."""
    story = Story().start("a", ("t", "s")).call("a", {}).in_scope("t", "s").start("b", ("t", "r")).call("b", {})
    session = story.session()
    session.select(Lane("t", None, whole_thread=True))
    assert moves.child(session) is None
    for _ in range(4):
        moves.parent(session)
    assert session.lane == Lane("t", None, whole_thread=True)


def test_nothing_to_walk() -> None:
    """An empty recording has no scope."""
    session = session_of([])
    assert moves.parent(session) == "nothing is above all scopes"
    assert moves.child(session) == "there is no scope"
