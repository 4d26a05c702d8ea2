"""Go to: what a person may type, and where that is."""

from __future__ import annotations

import pytest

from loopscope.session.session import Lane, Session
from loopscope.views.goto import Target, resolve
from tests.session.support import session_of
from tests.views.support import Story
from tests.views.test_scopes import family


@pytest.fixture
def session() -> Session:
    """A B A A B in one scope, then one batch each in two others."""
    story = Story()
    for name in "abaab":
        story.call(name, {"path": name})
    story.in_scope("other", "r7").start("lead").call("x", {}).in_scope("other", "r8").start("lead").call("x", {})
    found = story.session()
    found.seek(2)
    return found


@pytest.mark.parametrize(
    ("text", "number"), [("4", 4), ("#4", 4), (" 1 ", 1), ("A", 3), ("B", 5), ("+0", 1), ("2s", 3)]
)
def test_batches(session: Session, text: str, number: int) -> None:
    """By number, by the next sighting of a letter, by time."""
    target = resolve(session, text)
    assert target.number == number
    target.go(session)
    assert session.cursor == number


@pytest.mark.parametrize(("text", "number"), [("0:03", 4), ("t+0:01.5", 2), ("1:00:00", 5), ("+3.9s", 4), ("t+3", 4)])
def test_times(session: Session, text: str, number: int) -> None:
    """The newest batch of the lane at that time since the beginning; after the end it is the last one."""
    assert resolve(session, text).number == number


def test_a_letter_comes_round_to_its_first_batch(session: Session) -> None:
    """After its last sighting."""
    session.seek(5)
    assert (resolve(session, "A").number, resolve(session, "B").number) == (1, 2)


def test_a_hash(session: Session) -> None:
    """By its beginning, at least four digits."""
    digest = session.row(5).hash
    assert resolve(session, digest).number == 5
    assert resolve(session, digest[:5]).number == 5
    assert not resolve(session, "0" * 12).found


@pytest.mark.parametrize(
    ("text", "lane"),
    [
        ("r7", Lane("other", "r7")),
        ("other/r8", Lane("other", "r8")),
        ("thread other", Lane("other", None, whole_thread=True)),
        ("t/r", Lane("t", "r")),
        ("thread t", Lane("t", None, whole_thread=True)),
    ],
)
def test_scopes(session: Session, text: str, lane: Lane) -> None:
    """By name, or by a part of it that only one has."""
    target = resolve(session, text)
    assert target.lane == lane
    target.go(session)
    assert session.lane == lane


def test_a_scope_by_its_agent() -> None:
    """Sub-agents have ids that nobody types; a thread's own word finds the thread where no scope has it."""
    session = family().session()
    assert resolve(session, "research").lane == Lane("t", "r/tools:1")
    assert resolve(session, "thread t-9").lane == Lane("t-9", None, whole_thread=True)


def test_a_scope_without_batches_is_not_offered() -> None:
    """There is nothing to see of it."""
    session = Story().in_scope("t", "empty").start("idle").in_scope("t", "r").call("a", {}).session()
    assert resolve(session, "empty").says == "nothing is called empty"


def test_a_name_that_several_have(session: Session) -> None:
    """They are named, so that one can go on typing; a few of them where they are many."""
    assert resolve(session, "lead") == Target("2 scopes: other/r7, other/r8")
    story = Story()
    for n in range(5):
        story.in_scope("t", f"run-{n}").call("a", {})
    assert resolve(story.session(), "run").says == "5 scopes: t/run-0, t/run-1, t/run-2 …"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "a batch 20 · a hash letter A · a time +1:12 · a scope by part of its name"),
        ("0", "there is no batch 0: there are 7"),
        ("99", "there is no batch 99: there are 7"),
        ("zz\x1b", r"nothing is called zz\x1b"),
        ("Q", "nothing is called Q"),
    ],
)
def test_what_leads_nowhere_says_why(session: Session, text: str, says: str) -> None:
    """In a few words, safe to draw; going there changes nothing."""
    target = resolve(session, text)
    assert target == Target(says)
    assert not target.found
    target.go(session)
    assert session.cursor == 2


def test_a_recording_without_times_or_batches() -> None:
    """Each says what it lacks."""
    untimed = Story(timed=False).call("a", {}).session()
    assert resolve(untimed, "+1") == Target("this recording has no times")
    assert resolve(untimed, "7").says == "there is no batch 7: there is 1"
    assert resolve(session_of([]), "A").says == "nothing is called A"


def test_a_target_says_what_is_there(session: Session) -> None:
    """Batch, state and scope before one goes."""
    assert resolve(session, "3").says == "batch 3, repeat, t/r"
    assert resolve(session, "+1").says == "batch 2 at t+00:01.000"
