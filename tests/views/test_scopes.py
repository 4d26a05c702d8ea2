"""Scopes: the tree of threads, runs and sub-agents."""

from __future__ import annotations

from loopscope.engine.policy import Policy
from loopscope.session.session import Lane
from loopscope.views import scopes
from loopscope.views.model import line_width
from tests.views.support import Story, looping, texts


def family() -> Story:
    """A lead with two sub-agents, one of which has its own, and a second run; a second thread."""
    story = Story().start("lead").call("plan", {})
    story.in_scope("t", "r/tools:1").start("research", ("t", "r"))
    for _ in range(3):
        story.call("search", {"query": "x"})
    story.in_scope("t", "r/tools:1/tools:2").start("reader", ("t", "r/tools:1")).call("open", {"url": "u"})
    story.in_scope("t", "r/tools:3").start(None, ("t", "r")).call("write", {}).end("cancelled")
    story.in_scope("t", "r2").start("lead")
    for _ in range(5):
        story.call("again", {})
    return story.in_scope("t-9", None).call("a", {}).end("completed")


def test_the_tree() -> None:
    """Threads, runs and sub-agents, each with its worst verdict and its batches; the lane has a pointer."""
    session = family().session()
    assert texts(scopes.body(session, 40)) == [
        " ■ thread t                           11",
        " ├─ · run r · lead                     1",
        " │  ├─ ▲ sub research · tools:1        3",
        " │  │  └─ · sub reader · tools:2       1",
        " │  └─ · sub tools:3  cancelled        1",
        "▶└─ ■ run r2 · lead                    5",
        " · thread t-9                          1",
        " └─ · run -                            1",
    ]


def test_the_pointer_follows_the_lane() -> None:
    """A whole thread can be the lane too."""
    session = family().session()
    session.select(Lane("t", None, whole_thread=True))
    assert [line[0] for line in texts(scopes.body(session, 40))] == ["▶", *" " * 7]


def test_a_sub_agent_with_a_thread_of_its_own_stands_below_its_parent() -> None:
    """Its batches are its thread's, its verdict is also its parent's thread's."""
    story = Story().start("lead").call("plan", {}).in_scope("sub-thread", "s").start("worker", ("t", "r"))
    for _ in range(3):
        story.call("search", {"query": "x"})
    assert texts(scopes.body(story.session(), 40)) == [
        " ▲ thread t                            1",
        " └─ · run r · lead                     1",
        "▶   └─ ▲ sub worker · s                3",
    ]


def test_a_scope_that_the_engine_forgot_is_dim() -> None:
    """One tracked scope: the first is gone when the second comes."""
    story = Story(Policy(max_tracked_threads=1)).call("a", {}).in_scope("t", "r2").call("a", {})
    session = story.session()
    styles = [[span.style for span in line] for line in scopes.body(session, 40)]
    assert styles[1][2:4] == ["dim", "dim"]
    assert styles[2][2:4] == ["ok", "text"]


def test_a_thread_without_a_name() -> None:
    """A dash stands for it."""
    session = Story().in_scope(None, None).call("a", {}).session()
    assert texts(scopes.body(session, 30))[0].startswith(" · thread -")


def test_long_and_wide_names_stay_in_their_column() -> None:
    """The batches stand in one column, whatever the names are."""
    story = Story().in_scope("会" * 40, "議" * 40).start("室" * 9).call("a", {})
    for width in (20, 30, 41, 80):
        assert {line_width(line) for line in scopes.body(story.session(), width)} == {width}


def test_a_view_gives_what_is_asked_for() -> None:
    """Some lines of it are the same lines."""
    session = family().session()
    whole = scopes.body(session, 40)
    assert scopes.height(session, 40) == len(whole)
    assert scopes.lines(session, 2, 3, 40) == whole[2:5]


def test_the_chosen_row_is_marked() -> None:
    """As a whole."""
    session = looping().session()
    first, second = scopes.draw(scopes.rows(session), session.lane, 40, chosen=1)
    assert {span.mark for span in second} == {"cursor"}
    assert "cursor" not in {span.mark for span in first}


def test_how_a_run_ended_stands_behind_a_long_name() -> None:
    """The name gives way, down to what one knows it by."""
    story = Story().in_scope("2", "1f077aaa-6240-68d4-8002-08681e89470b").call("a", {}).end("cancelled")
    session = story.session()
    assert texts(scopes.body(session, 40))[1].split("   ")[0] == "▶└─ · run 1f077aaa-624…  cancelled"
    assert texts(scopes.body(session, 31))[1] == "▶└─ · run 1f077aa…  canc…     1"
    assert texts(scopes.body(session, 26))[1] == "▶└─ · run 1f077aaa-…     1", (
        "too little room for a word of how it ended"
    )


def test_a_name_that_fits_is_whole_where_its_end_does_not() -> None:
    """No two ellipses in a row."""
    session = Story().in_scope("t", "run-1").start("writer").call("a", {}).end("loop_capped").session()
    assert texts(scopes.body(session, 26))[1] == "▶└─ · run-1 · writer     1"
