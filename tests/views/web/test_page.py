from __future__ import annotations

import re

import pytest

from loopscope.api import open as open_session
from loopscope.engine.events import Call, Header
from loopscope.engine.policy import Policy
from loopscope.samples import samples
from loopscope.session.session import Session
from loopscope.views.palette import DARK, LIGHT
from loopscope.views.web import report
from loopscope.views.web.page import page
from loopscope.views.web.report import AROUND, MOST_EXPLAINED, MOST_ROWS, Gap, Passage
from tests.session.support import session_of
from tests.views.support import Story, looping
from tests.views.web.reading import ReadPage, text_of


def read(session: Session) -> ReadPage:
    return ReadPage(page(session))


def spread(count: int, *repeats: int) -> Session:
    """A run of new queries in which those at these numbers are one and the same."""
    story = Story(
        Policy(warn_threshold=2, hard_limit=3, window_size=count, tool_freq_warn=10_000, tool_freq_hard_limit=10_000)
    )
    for number in range(1, count + 1):
        story.call("find", {"query": "same" if number in repeats else f"q{number}"})
    return story.session()


@pytest.mark.parametrize("name", [sample.name for sample in samples()])
def test_tables_have_headings_and_drawings_have_words(name: str) -> None:
    """For those who do not see the page: a caption, a heading of every column and row, and a text for every drawing."""
    found = read(open_session(f"sample:{name}"))
    for table in found.all("table"):
        caption, head, body = table
        assert caption.tag == "caption"
        assert text_of(caption)
        columns = head[0]
        assert {(cell.tag, cell.get("scope")) for cell in columns} == {("th", "col")}
        assert all(text_of(cell) for cell in columns)
        for row in body:
            if len(row) > 1:
                assert len(row) == len(columns)
                assert (row[0].tag, row[0].get("scope")) == ("th", "row")
    for drawing in found.all("svg"):
        assert drawing.get("aria-hidden") == "true" or (drawing.get("role") == "img" and drawing.get("aria-label"))
    headings = {heading.get("id") for heading in found.all("h2")}
    assert {section.get("aria-labelledby") for section in found.all("section")} == headings


@pytest.mark.parametrize("name", [sample.name for sample in samples()])
def test_links_lead_to_rows_that_are_there(name: str) -> None:
    """And no two rows have the same name."""
    found = read(open_session(f"sample:{name}"))
    names = [element.get("id") for element in found.root.iter() if element.get("id")]
    assert len(names) == len(set(names))
    assert {link.get("href", "").removeprefix("#") for link in found.all("a")} <= set(names)


def test_the_same_run_gives_the_same_page() -> None:
    """Byte for byte: nothing of the time or the place of its making is in it."""
    assert page(looping().session()) == page(looping().session())


def test_a_page_follows_the_reader_or_is_as_asked() -> None:
    """Colours have names, whose values the reader's preference or the theme chooses; printed, it is light."""
    session = looping().session()
    both, dark, light = page(session), page(session, theme="dark"), page(session, theme="light")
    assert "@media screen and (prefers-color-scheme:dark)" in both
    assert "@media screen{" in dark
    assert "prefers-color-scheme" not in dark + light
    assert [f"--stop:{DARK.stop}" in text for text in (both, dark, light)] == [True, True, False]
    assert all(text.index(f"--stop:{LIGHT.stop}") < text.index("@media") for text in (both, dark, light))
    assert [re.search(r'name="color-scheme" content="([^"]*)"', text)[1] for text in (both, dark, light)] == [  # type: ignore[index]
        "light dark", "dark", "light",
    ]  # fmt: skip
    assert "@media print" in both


def test_a_run_without_calls_has_a_page() -> None:
    """With what there is to say of it."""
    found = read(session_of([Header(format="loopscope/1")]))
    assert text_of(next(found.all("h1"))) == "memory"
    assert "no batch with calls yet" in text_of(next(found.all("header")))
    assert found.facts["batches"] == "0"
    assert not list(found.all("section"))


def test_the_head_tells_when_it_was_recorded_and_what_could_not_be_read() -> None:
    """Where there is something to tell."""
    story = looping()
    story.events[0] = Header(format="loopscope/1", created="2026-01-02T03:04:05Z")
    session = story.session()
    session.problems.append((3, "is not JSON"))
    found = read(session)
    assert found.facts["recorded"] == "2026-01-02T03:04:05Z"
    assert "1 line could not be read." in text_of(next(found.all("header")))
    plain = read(looping().session())
    assert "recorded" not in plain.facts
    assert "could not be read" not in text_of(plain.root)


def test_the_title_is_the_verdict() -> None:
    """It is the name of the file's tab, and of a printed page."""
    session = looping().session()
    session.source = "somewhere/run.jsonl"
    found = read(session)
    assert text_of(next(found.all("title"))) == "run.jsonl: ■ STOP identical_call_set A 5/5"
    assert "loopscope attach somewhere/run.jsonl" in text_of(next(found.all("footer")))


def test_a_long_lane_has_an_overview_and_a_window() -> None:
    """Around the cursor."""
    session = spread(500, 10, 20)
    found = read(session)
    assert len(found.columns) == 200
    assert "#301 to #500: 200 of 500 batches" in text_of(found.section("timeline"))
    assert len(list(found.all("svg", "overview"))) == 1
    assert not list(read(spread(10)).all("svg", "overview"))


def test_batches_between_verdicts_are_counted_not_told() -> None:
    """Two on each side of a warning and of a stop are told."""
    session = spread(60, 10, 20, 40)
    found, after = report.passages(session)
    assert found == [Passage(Gap(17, 0), range(18, 23)), Passage(Gap(15, 0), range(38, 43))]
    assert after == Gap(18, 0)
    texts = [row[0] for row in read(session).rows("decisions") if len(row) == 1]
    assert texts == ["… 17 batches passed", "… 15 batches passed", "… 18 batches passed"]


def test_the_batch_at_the_cursor_is_told_too() -> None:
    """Also where it passed; passages that touch are one."""
    session = spread(20, 1, 2, 20)
    session.seek(8)
    assert report.passages(session) == (
        [Passage(Gap(0, 0), range(1, 5)), Passage(Gap(1, 0), range(6, 11)), Passage(Gap(7, 0), range(18, 21))],
        Gap(0, 0),
    )
    session.seek(7)
    assert report.passages(session)[0][0] == Passage(Gap(0, 0), range(1, 10))
    here = next(row for row in read(session).section("decisions").iter("tr") if "here" in row.get("class", ""))
    assert here.get("id") == "b7"


def test_a_run_that_goes_on_and_on_is_told_from_its_beginning() -> None:
    """What is left out is counted, and how much of it was a verdict."""
    session = looping(MOST_ROWS + 100).session()
    session.seek(MOST_ROWS + 80)
    found, after = report.passages(session)
    first = session.timeline.notable[0]
    last = session.timeline.notable[MOST_ROWS - 1] + AROUND
    assert [passage.numbers for passage in found] == [
        range(first - AROUND, last + 1), range(session.cursor - AROUND, session.cursor + AROUND + 1),
    ]  # fmt: skip
    left = session.cursor - AROUND - last - 1
    assert found[1].gap == Gap(left, left)
    assert after == Gap(18, 18)
    assert f"… {left} batches, {left} of them warned or stopped" in text_of(read(session).section("decisions"))


def test_each_scope_has_its_first_stop_explained_after_the_cursors() -> None:
    """As many as can be read; the others are counted."""
    story = Story(Policy(warn_threshold=1, hard_limit=2))
    for number in range(MOST_EXPLAINED + 2):
        story.in_scope("t", f"r{number}")
        for _ in range(3):
            story.call("find", {"query": "q"})
    session = story.session()
    found = report.explained(session)
    assert found.numbers == tuple(range(2, 3 * MOST_EXPLAINED, 3))
    assert (found.search, found.more) == (True, 2)
    session.seek(4)
    assert report.explained(session).numbers[:3] == (4, 2, 5)
    assert "3 more scopes had a stop." in text_of(read(session).section("why"))
    session.seek(9)
    assert report.explained(session).numbers[:3] == (9, 2, 5)


def test_a_run_without_stops_has_the_batch_at_the_cursor_explained() -> None:
    """Why nothing happened is also a question."""
    session = spread(5)
    assert report.explained(session).numbers == (5,)
    assert "PASS" in text_of(read(session).section("why"))


def test_nearest_settings_are_searched_only_where_that_is_quick() -> None:
    """On a long run the page says who will search them."""
    session = spread(report.FOLDED + 1, 3, 5, 7)
    assert not report.explained(session).search
    said = text_of(read(session).section("why"))
    assert "nearest settings that" not in said
    assert "loopscope explain --at N searches them" in said
    assert "loopscope explain" not in text_of(read(spread(20, 3, 5, 7)).section("why"))


def test_scopes_are_told_where_there_are_several() -> None:
    """A column of the decisions, and a row of the tree each, with how they ended and what they did."""
    long = f"r/{'tools:' * 9}1"
    story = Story().start("lead").call("find", {"query": "q"}).in_scope("t", long).start("sub", ("t", "r"))
    story.call("find", {"query": "q"}).call("find", {"query": "q"}).end("error").in_scope("t", "idle").start("none")
    found = read(story.session())
    assert [row[2] for row in found.rows("decisions")] == ["t/r", *[f"…{long[-39:]}"] * 2]
    tree = found.rows("scopes")
    assert [row[2] for row in tree] == ["3", "1", "2", "0"]
    assert "error" in tree[2][0]
    assert all(len(row) == 5 for row in read(looping().session()).rows("decisions"))


def test_a_forest_of_scopes_is_cut() -> None:
    """The rest is counted."""
    story = Story()
    for number in range(250):
        story.in_scope(f"t{number}", "r").call("find", {"query": "q"})
    rows = read(story.session()).rows("scopes")
    assert len(rows) == 201
    assert rows[-1] == ["… 300 more rows"]


def _warning(session: Session) -> list[str]:
    """What the page tells of its one warning."""
    (row,) = (row[1:] for row in read(session).rows("detect") if len(row) == 4)
    return row


def test_what_became_of_a_warning_is_told() -> None:
    """Queued, delivered before a batch or before none yet, or dropped; assumed where the recording does not tell."""
    policy = Policy(warn_threshold=2, hard_limit=9)
    session = looping(2, policy=policy).session()
    assert _warning(session) == ["#2", "waits for the next model call", "not so far"]
    (record,) = session.state.warnings
    record.state = "delivered"
    assert _warning(session) == ["#2", "yes", "not so far"]
    assert _warning(looping(3, policy=policy).session()) == ["#2", "before #3 (assumed)", "once"]
    again = {"name": "search", "args": {"query": "rust tls"}}
    for state, told in (("delivered", ["#2", "before #3", "once"]), ("dropped", ["#2", "dropped before a model call"])):
        story = looping(2, policy=policy).warned("queued", record.text).warned(state, record.text)
        assert _warning(story.call(**again).session())[: len(told)] == told  # type: ignore[arg-type]


def test_a_warning_of_a_tool_has_its_name() -> None:
    """A hash has its letter."""
    story = Story(Policy(tool_freq_warn=2))
    story.call("find", {"query": "a"}).call("find", {"query": "b"}).call("find", {"query": "c"})
    assert next(row for row in read(story.session()).rows("detect") if len(row) == 4)[0] == "find 2/2 tool_frequency"


def test_a_run_without_times_tells_none() -> None:
    """An empty cell, and no time among what was spent."""
    found = read(looping(timed=False).session())
    assert {row[1] for row in found.rows("decisions")} == {""}
    assert "time" not in text_of(next(found.section("detect").iter("dl")))


def test_limits_that_are_not_set_are_said_to_be_none() -> None:
    """Of layers that only warn."""
    found = read(looping(4, policy=Policy.load("bounded")).session())
    rows = [row for row in found.rows("detect", "meters") if "tools" in row[0]]
    assert rows == [["tools", "0", "6", "none", "· no circle"]]


def test_hashes_and_tools_beyond_those_shown_are_counted() -> None:
    """As on the screen."""
    assert ["16 more, none above 1"] in read(spread(20)).rows("detect")


def test_a_batch_of_several_calls_and_a_line_that_is_gone() -> None:
    """The batch panel is the inspector's, so that it tells both."""
    story = Story().batch(Call("1", "find", {"query": "a"}), Call("2", "find", {"query": "b"}))
    session = story.session()
    assert "2 calls" in text_of(read(session).section("batch"))
    session = story.session()
    session._store.events[1] = None  # type: ignore[attr-defined]
    assert "its line is not in the file any more" in text_of(read(session).section("batch"))


def test_a_graph_that_is_too_large_to_draw_is_a_table() -> None:
    """With every node and way."""
    story = Story()
    for number in range(60):
        story.call(f"tool{number}", {"query": "q"})
    section = read(story.session()).section("graph")
    assert not [drawing for drawing in section.iter("svg") if drawing.get("class") == "diagram"]
    assert "derived from the batches" in text_of(section)
    assert "tool59 ×1" in text_of(section)
