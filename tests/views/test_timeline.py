"""The timeline: letters, counts and states in columns, in pages that stand still around the cursor."""

from __future__ import annotations

import pytest

from loopscope.session.session import Lane
from loopscope.views import timeline
from loopscope.views.model import line_width
from tests.session.support import session_of
from tests.views.support import Story, looping, texts


def strip(story: Story, cursor: int, width: int) -> list[str]:
    """The strip as text."""
    session = story.session()
    session.seek(cursor)
    return texts(timeline.lines(session, 0, timeline.height(session, width), width))


def alternating(times: int) -> Story:
    """A B A B."""
    story = Story()
    for _ in range(times):
        story.call("a", {}).call("b", {})
    return story


def test_a_narrow_strip() -> None:
    """One column a batch; what is after the cursor is there, and what became of it is not told."""
    assert strip(alternating(6), 6, 80) == [
        "batch  1    ▼6  10",
        "hash   ABABABABABAB",
        "count  112233445566",
        "state  ··==▲▲░░░░░░",
        "       ·new  =repeat  ▲warn  ■stop  ░ahead",
    ]


def test_a_wide_strip() -> None:
    """Three columns a batch."""
    assert strip(alternating(6), 9, 160)[:4] == [
        "batch  1           5           ▼9 10",
        "hash   A  B  A  B  A  B  A  B  A  B  A  B",
        "count  1  1  2  2  3  3  4  4  5  5  6  6",
        "state  ·  ·  =  =  ▲  ▲  =  =  ■  ░  ░  ░",
    ]


def test_the_cursor_takes_the_place_of_numbers_beside_it() -> None:
    """Its own number is always there and never runs into another."""
    assert strip(alternating(6), 11, 80)[0] == "batch  1   5     ▼11"
    assert strip(alternating(6), 1, 80)[0] == "batch  ▼1  5    10"
    assert strip(alternating(6), 12, 80)[0] == "batch  1   5      ▼12"


def test_counts_and_letters_that_are_too_long() -> None:
    """One column holds no two digits: a plus says that there is more."""
    assert strip(looping(11), 11, 80)[2] == "count  123456789++"
    assert strip(looping(11), 11, 160)[2].endswith("9  10 11")
    story = Story()
    for n in range(54):
        story.call("a", {"path": str(n)})
    assert strip(story, 54, 80)[1].endswith("xyz++")
    assert strip(story, 54, 200)[1].endswith("z  AA AB")


def test_the_columns_of_the_cursor_are_marked() -> None:
    """Letter, count and state of the cursor's batch, but not the legend."""
    session = looping(4).session()
    lines = timeline.lines(session, 0, timeline.HEIGHT, 80)
    assert [[span.text for span in line if span.mark] for line in lines] == [[], ["A"], ["4"], ["="], []]


def test_a_page_stands_still_while_the_cursor_walks_over_it() -> None:
    """It moves by half its columns; the cursor is never at its edge but at the ends of the lane."""
    session = alternating(200).session()
    firsts = []
    for number in range(1, 401):
        session.seek(number)
        page = timeline.page(session, 47)
        firsts.append(page.first)
        assert page.columns == 40
        assert number in page.shown
        assert page.first == 0 or number - page.shown[0] >= 10
        assert page.first == 360 or page.shown[-1] - number >= 10
    assert firsts == sorted(firsts)
    assert len(set(firsts)) == 20


def test_a_page_tells_which_part_it_is() -> None:
    """Where the lane is longer than the screen is wide."""
    legend = strip(alternating(100), 50, 80)[5]
    assert legend.endswith("#19-#91, 73 of 200")
    assert line_width(timeline.lines(alternating(100).session(), 5, 1, 40)[0]) <= 40
    assert timeline.part(alternating(3).session(), 80) == ""


def test_a_lane_shows_the_numbers_of_the_whole_file() -> None:
    """The batches of one scope keep their numbers; the thread shows all of them."""
    story = Story()
    for n in range(12):
        story.in_scope("t", "r1" if n % 3 else "r2").call("a", {"path": str(n)})
    session = story.session()
    session.select(Lane("t", "r2"))
    assert texts(timeline.lines(session, 0, 2, 80)) == ["batch  1  ▼10", "hash   ABCD"]
    session.select(Lane("t", None, whole_thread=True))
    assert texts(timeline.lines(session, 0, 2, 80))[1] == "hash   AABBCDCEFDGH"


def test_a_ruler_of_far_numbers() -> None:
    """Numbers that are no multiples of five are told where long none was."""
    story = Story()
    for n in range(200):
        story.in_scope("t", "r1" if n % 5 == 1 else "r2").call("a", {"path": str(n)})
    session = story.session()
    session.select(Lane("t", "r1"))
    session.seek(2)
    (ruler,) = texts(timeline.lines(session, 0, 1, 160))
    assert ruler.split() == ["batch", "▼2", "52", "102", "152"]


@pytest.mark.parametrize(("width", "cell"), [(80, 1), (160, 3)])
def test_a_click_finds_its_batch(width: int, cell: int) -> None:
    """Anywhere in a column; beside the columns there is none."""
    session = alternating(3).session()
    assert timeline.number_at(session, width, 7) == 1
    assert timeline.number_at(session, width, 7 + 5 * cell) == 6
    assert timeline.number_at(session, width, 7 + 6 * cell) is None
    assert timeline.number_at(session, width, 3) is None


def test_nothing_to_show() -> None:
    """An empty recording, and a scope that made no calls, say so."""
    assert texts(timeline.lines(session_of([]), 0, 5, 80)) == ["no batch with calls"]
    session = Story().start("lead").in_scope("t", "r2").call("a", {}).session()
    session.lane = Lane("t", "r")
    assert texts(timeline.lines(session, 0, 5, 80)) == ["this scope has made no calls"]


def test_a_cursor_that_is_not_in_the_lane() -> None:
    """The lane is drawn without one."""
    session = Story().call("a", {}).in_scope("t", "r2").call("a", {}).call("b", {}).session()
    session.lane = Lane("t", "r")
    assert texts(timeline.lines(session, 0, 2, 80)) == ["batch  1", "hash   A"]


def test_a_view_gives_what_is_asked_for() -> None:
    """Some lines of it are the same lines."""
    session = looping().session()
    whole = timeline.lines(session, 0, 99, 80)
    assert timeline.height(session, 80) == len(whole) == 5
    assert timeline.lines(session, 1, 2, 80) == whole[1:3]


def test_a_strip_is_a_few_spans() -> None:
    """Columns of one look are drawn together, so that a long strip costs little."""
    session = Story().session()
    story = Story()
    for n in range(300):
        story.call("a", {"path": str(n)})
    session = story.session()
    assert max(len(line) for line in timeline.lines(session, 0, 5, 80)) < 20


def test_marks_stand_above_their_columns() -> None:
    """In place of the cursor's arrow where the cursor is on one; a number gives way to a mark."""
    session = looping(12).session()
    session.seek(3)
    (ruler, letters) = texts(timeline.lines(session, 0, 2, 80, marks=(3, 9)))
    assert ruler == "batch  1 ◆3    ◆"
    assert letters == "hash   AAAAAAAAAAAA"
