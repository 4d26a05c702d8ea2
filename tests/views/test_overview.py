"""The overview: a whole lane in one row, worst state wins."""

from __future__ import annotations

from loopscope.engine.policy import Policy
from loopscope.session.session import Lane, Session
from loopscope.views import overview, timeline
from loopscope.views.model import line_width, plain
from tests.session.support import session_of
from tests.views.support import Story

LOOSE = Policy(tool_freq_warn=5000, tool_freq_hard_limit=9999)


def long(*, loop_at: int = 300, size: int = 600, times: int = 5) -> Session:
    """Many different searches, and at one place the same one until it is warned or stopped."""
    story = Story(LOOSE)
    for n in range(size):
        same = loop_at <= n < loop_at + times
        story.call("search", {"query": "same" if same else str(n)})
    return story.session()


def test_a_bucket_shows_the_worst_of_its_batches() -> None:
    """One stop among six hundred batches is seen; without it the warning, without that the repeat."""
    for times, state in ((5, "stop"), (3, "warn"), (2, "repeat"), (1, "new")):
        found = overview.buckets(long(times=times), 60)
        assert len(found) == 60
        assert found[30].state == state
        assert {bucket.state for index, bucket in enumerate(found) if index != 30} == {"new"}
        assert [bucket.first for bucket in found] == list(range(0, 600, 10))


def test_a_click_means_the_first_of_the_worst() -> None:
    """The stop or the warning of a bucket, else its first batch; nothing beside the cells."""
    assert overview.target(long(), 60, 30) == 305
    assert overview.target(long(times=3), 60, 30) == 303
    assert overview.target(long(), 60, 3) == 31
    assert overview.target(long(), 60, 60) is None
    assert overview.target(long(), 60, -1) is None


def test_buckets_of_a_scope_leave_out_what_others_did() -> None:
    """Batches of another scope lie between, with a stop of their own."""
    story = Story(LOOSE)
    for n in range(200):
        story.in_scope("t", "r1").call("search", {"query": str(n)})
        story.in_scope("t", "r2").call("search", {"query": "same" if 50 <= n < 55 else str(n)})
    session = story.session()
    session.select(Lane("t", "r1"))
    assert {bucket.state for bucket in overview.buckets(session, 20)} == {"new"}
    session.select(Lane("t", "r2"))
    assert [bucket.state for bucket in overview.buckets(session, 20)].count("stop") == 1
    session.select(Lane("t", None, whole_thread=True))
    assert [bucket.state for bucket in overview.buckets(session, 20)].count("stop") == 1


def test_buckets_are_kept_until_something_changes() -> None:
    """The same object while the cursor moves; another for another width."""
    session = long()
    first = overview.buckets(session, 60)
    session.seek(3)
    assert overview.buckets(session, 60) is first
    assert overview.buckets(session, 50) is not first
    assert overview.buckets(session_of([]), 60) == ()


def test_the_strip_has_it_where_the_lane_does_not_fit() -> None:
    """One row as wide as the strip; the page is strong, the cursor marked, what comes later dim. Else there is none."""
    session = long()
    session.seek(305)
    line = timeline.lines(session, timeline.OVERVIEW, 1, 80)[0]
    assert plain(line).startswith("all    ····")
    assert line_width(line) == 80
    assert "■" in plain(line)
    assert [span.text for span in line if span.mark == "cursor"] == ["■"]
    assert any(span.mark == "strong" for span in line)
    assert line[-1].style == "dim"
    assert timeline.number_at(session, 80, 7, timeline.OVERVIEW) == 1
    assert timeline.height(session, 80) == timeline.HEIGHT + 1
    short = long(size=20, loop_at=30)
    assert timeline.height(short, 80) == timeline.HEIGHT
    assert timeline.number_at(short, 80, 7, timeline.OVERVIEW) == 1
