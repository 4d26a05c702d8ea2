"""Marks, and the undo of what a person changed."""

from __future__ import annotations

from loopscope.engine.breakpoints import parse
from loopscope.session.draft import Draft
from loopscope.session.journal import MOST, Journal
from loopscope.session.session import Lane
from tests.views.support import Story, looping


def journal() -> Journal:
    story = Story()
    for n in range(10):
        story.in_scope("t", "r1" if n % 2 else "r2").call("a", {"n": n})
    session = story.session()
    session.seek(5)
    return Journal(session)


def test_marks_are_toggled_and_walked() -> None:
    """In order of the file, round to the first; the one at the cursor alone leads nowhere."""
    found = journal()
    assert found.next_mark() is None
    assert found.toggle(8)
    assert found.toggle(2)
    assert found.marks == (2, 8)
    assert found.next_mark() == 8
    found._session.seek(9)
    assert found.next_mark() == 2
    assert not found.toggle(2)
    assert not found.toggle(8)
    found.toggle(9)
    assert found.next_mark() is None


def test_changes_are_undone_one_by_one() -> None:
    """The newest first, with the cursor where it stood; moving alone is no change."""
    found = journal()
    session = found._session
    session.seek(7)
    found.look()
    session.select(Lane("t", None, whole_thread=True))
    found.look()
    session.seek(2)
    found.look()
    found.filter = "stop"
    found.look()
    found.toggle(2)
    assert found.undo() == "marks"
    assert (found.marks, found.filter) == ((), "stop")
    assert found.undo() == "filter"
    assert (found.filter, session.cursor) == ("", 2)
    assert found.undo() == "scope"
    assert (session.lane, session.cursor) == (Lane("t", "r2"), 7)
    assert found.undo() is None


def test_what_opening_did_is_not_undone() -> None:
    """A cursor that was put by the program is where the first undo leads back to, and no further."""
    found = journal()
    found._session.select(Lane("t", None, whole_thread=True))
    found._session.seek(3)
    found.forget()
    assert found.undo() is None
    found.toggle(4)
    assert found.undo() == "marks"
    assert (found._session.lane, found._session.cursor) == (Lane("t", None, whole_thread=True), 3)


def test_what_was_not_looked_at_is_undone_too() -> None:
    """A change just before the undo is the last one."""
    found = journal()
    found.filter = "warn"
    assert found.undo() == "filter"
    assert found.undo() is None


def test_it_does_not_grow_for_ever() -> None:
    """The oldest changes are forgotten."""
    found = journal()
    for _ in range(MOST + 50):
        found.toggle(1)
    assert len(found._changes) == MOST + 1


def test_limits_and_breakpoints_are_taken_back_too() -> None:
    """In one history with everything else, newest first; the caller's list of breakpoints stays the same list."""
    session = looping().session()
    journal, points = Journal(session), session.breakpoints
    journal.draft = Draft.of(session.policy).with_(("hard_limit",), 9)
    journal.look()
    points.append(parse("stop"))
    journal.look()
    journal.toggle(2)
    assert [journal.undo() for _ in range(4)] == ["marks", "breakpoints", "thresholds", None]
    assert points == session.breakpoints == []
    assert session.breakpoints is points
    assert journal.draft is None
