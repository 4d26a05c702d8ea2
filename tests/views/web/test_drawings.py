from __future__ import annotations

import re
from typing import Any

import pytest

from loopscope.engine.events import Graph, GraphEdge, GraphNode, RunStart
from loopscope.engine.policy import Policy
from loopscope.session.session import Session
from loopscope.session.timeline import Origin
from loopscope.views import detect, graph
from loopscope.views.palette import DARK, LIGHT
from loopscope.views.web import look, meters, strip
from loopscope.views.web.diagram import MOST_NODES, diagram
from loopscope.views.web.picture import picture
from loopscope.views.web.strip import Column
from tests.session.support import session_of
from tests.views.support import Story, looping


def varied(count: int, every: int = 7) -> Session:
    """A run that asks the same at every so many batches."""
    story = Story(Policy(warn_threshold=2, hard_limit=3))
    for number in range(count):
        story.call("find", {"query": "same" if number % every == 0 else f"q{number}"})
    return story.session()


def test_a_strip_around_the_cursor() -> None:
    """Up to so many columns, and an overview in which the worst state of a cell wins."""
    session = varied(400)
    session.seek(200)
    shown = strip.strip(session, 50, 20)
    assert len(shown.columns) == 50
    assert (shown.first, shown.total) == (shown.columns[0].n - 1, 400)
    assert [column.n for column in shown.columns if column.here] == [200]
    assert {column.state for column in shown.columns if column.n > 200} == {"ahead"}
    assert len(shown.overview) == 20
    assert shown.overview[0] == "stop"
    assert strip.overview(session, range(2, 8), 3) == ("new", "new", "new")
    assert strip.overview(session, range(1, 9), 2) == ("new", "warn")


def test_a_short_strip_needs_no_overview() -> None:
    """All of it is in the columns."""
    shown = strip.strip(varied(8), 50, 20)
    assert (len(shown.columns), shown.overview) == (8, ())


def test_an_overview_shows_which_part_is_below() -> None:
    """By a line, however small the part is."""
    session = varied(400)
    drawn = strip.draw_overview(strip.strip(session, 40, 200), 0, 0, 1000, 20)
    part = re.search(r'class="part" x="(\d+)" y="23" width="(\d+)"', drawn)
    assert part is not None
    assert part.groups() == ("0", "100")


def test_cells_that_are_equal_are_one_piece_and_worse_is_higher() -> None:
    """Neighbours only."""
    drawn = strip.draw_cells(["new", "new", "warn", "new", "stop"], 0, 0, 50, 10)
    pieces = re.findall(r'class="piece (\w+)" x="(\d+)" y="\d+" width="(\d+)" height="(\d+)"', drawn)
    assert pieces == [
        ("new", "0", "20", "4"),
        ("warn", "20", "10", "8"),
        ("new", "30", "10", "4"),
        ("stop", "40", "10", "10"),
    ]


def test_what_is_too_long_for_a_column_is_squeezed() -> None:
    """Letters of many hashes, and counts of a wide window."""
    columns = [Column(1, "A", 1, "new", here=False), Column(1_000_000, "ABC", 1000, "stop", here=True)]
    drawn = strip.draw(columns)
    squeezed = re.findall(r'textLength="21" lengthAdjust="spacingAndGlyphs">(\w+)<', drawn)
    assert squeezed == ["1000000", "ABC", "1000"]


def test_the_number_of_the_cursor_has_room() -> None:
    """Its neighbours have none."""
    drawn = strip.draw([Column(n, "A", 1, "new", here=n == 5) for n in range(1, 8)], every=2)
    assert re.findall(r'class="number[ here]*"[^>]*>(\d+)<', drawn) == ["1", "3", "5", "7"]
    drawn = strip.draw([Column(n, "A", 1, "new", here=n == 4) for n in range(1, 8)], every=2)
    assert re.findall(r'class="number[ here]*"[^>]*>(\d+)<', drawn) == ["1", "4", "7"]


@pytest.mark.parametrize("state", ["new", "repeat", "warn", "stop", "ahead"])
def test_every_state_has_a_shape_of_its_own(state: str) -> None:
    """So that colour is not needed to tell them apart."""
    others = {"new", "repeat", "warn", "stop", "ahead"} - {state}
    drawn = re.sub(r'class="[^"]*"', "", strip.shape(state, 0, 0))
    assert drawn not in [re.sub(r'class="[^"]*"', "", strip.shape(other, 0, 0)) for other in others]


def _widths(meter: meters.Meter) -> list[float]:
    drawn = meters.draw(meter, 0, 0, 100, 10)
    return [float(width) for width in re.findall(r'class="fill[^>]* width="([\d.]+)"', drawn)]


def _meter(value: int, warn: int | None, hard: int | None) -> meters.Meter:
    return meters.Meter("A", "x", value, warn, hard, "new", "", (), moved=False)


def test_a_bar_is_full_at_its_hard_limit() -> None:
    """And never longer; without one it is full at the warning; one of many can still be seen."""
    assert _widths(_meter(5, 3, 10)) == [50]
    assert _widths(_meter(10, 3, 10)) == _widths(_meter(99, 3, 10)) == [100]
    assert _widths(_meter(3, 3, None)) == [100]
    assert _widths(_meter(1, 100, 1000)) == [2]
    assert _widths(_meter(0, 3, 10)) == []


def test_a_bar_has_a_tick_at_each_limit_that_there_is() -> None:
    """The hard one is where it ends."""
    both = re.findall(r'class="tick (\w+)" x="(\d+)"', meters.draw(_meter(1, 5, 10), 0, 0, 100, 10))
    assert both == [("warn", "48"), ("stop", "98")]
    one = re.findall(r'class="tick (\w+)" x="(\d+)"', meters.draw(_meter(1, None, 10), 0, 0, 100, 10))
    assert one == [("stop", "98")]


def test_layers_that_count_how_long_have_a_section_each() -> None:
    """With their limits, as far as they have them."""
    session = looping(4, policy=Policy.load("bounded")).session()
    found = detect.data(session)
    assert found is not None
    layers = [(section.layer, section.limits) for section in meters.sections(found)]
    assert layers[:3] == [
        ("identical_call_set", "warn 3 · hard 5"),
        ("tool_frequency", "warn 30 · hard 50"),
        ("cycle", "warn 3 · hard 5"),
    ]
    assert ("cycle", "warn 6") in layers
    assert "stagnation" in picture(session)


def _graphed(edges: list[tuple[str, str]], nodes: list[str], **more: Any) -> graph.Data:
    shape = Graph(tuple(GraphNode(n, n) for n in nodes), tuple(GraphEdge(*edge) for edge in edges))
    story = Story()
    story.events.append(RunStart(seq=1, ts=1.0, thread_id="t", run_id="r", agent="a", graph=shape))
    for _ in range(2):
        story.call("find", {"query": "q"}, **more)
    return graph.data(story.session())


def test_a_graph_is_drawn_with_ways_back_left_and_ahead_right() -> None:
    """What was taken is drawn through, what was not is dashed, and steps go straight down."""
    content = _graphed(
        [("__start__", "agent"), ("agent", "tools"), ("tools", "agent"), ("agent", "__end__"), ("agent", "nowhere")],
        ["__start__", "agent", "tools", "__end__"],
    )
    drawn = diagram(content)
    assert drawn is not None
    ways = re.findall(r'class="way (\w+)" d="M([\d.]+) [\d.]+([HV])([\d.]+)', drawn)
    assert [(look, turn) for look, _, turn, _ in ways] == [
        ("taken", "V"),
        ("taken", "V"),
        ("taken", "H"),
        ("possible", "H"),
    ]
    back, ahead = ((float(start), float(lane)) for _, start, turn, lane in ways if turn == "H")
    assert back[1] < back[0]
    assert ahead[1] > ahead[0]
    assert "agent to tools 2 times" in drawn


def test_a_node_that_leads_to_itself_has_a_way_of_its_own() -> None:
    """On the left, as every way back."""
    drawn = diagram(_graphed([("__start__", "agent"), ("agent", "agent")], ["__start__", "agent"]))
    assert drawn is not None
    assert "q-5 0 -5 -5" in drawn


def test_a_graph_without_ways_and_visits_is_drawn_too() -> None:
    """As nodes."""
    drawn = diagram(_graphed([], ["other"]))
    assert drawn is not None
    assert "Ways taken: none." in drawn
    assert 'class="way' not in drawn


def test_a_graph_that_cannot_be_read_is_not_drawn() -> None:
    """Too many nodes, or too many ways side by side."""
    assert diagram(_graphed([], [f"n{n}" for n in range(MOST_NODES + 1)])) is None
    nodes = [f"n{n}" for n in range(20)]
    assert diagram(_graphed([("n0", node) for node in nodes[2:]], nodes)) is None


def test_a_picture_of_a_long_run_tells_which_part_it_shows() -> None:
    """Below an overview of all."""
    session = varied(400)
    session.seek(399)
    drawn = picture(session)
    assert "#226 to #400, 175 of 400 batches" in drawn
    assert 'class="part"' in drawn


def test_a_picture_of_a_run_without_calls_says_so() -> None:
    """It has a head and nothing else."""
    drawn = picture(session_of([]))
    assert "no batch with calls yet" in drawn
    assert "identical_call_set" not in drawn
    assert "batch 0 of 0" in drawn


def test_hashes_beyond_those_shown_are_counted_in_a_picture() -> None:
    """As on the screen."""
    assert "16 more, none above 1" in picture(varied(20, every=99))


def test_a_picture_has_colours_for_both_themes_unless_one_is_asked_for() -> None:
    """Written out, since many viewers know no names for colours; light where light or dark is not known."""
    session = looping().session()
    both, dark, light = picture(session), picture(session, theme="dark"), picture(session, theme="light")
    assert "var(" not in both + dark + light
    assert "@media (prefers-color-scheme:dark)" in both
    assert "@media" not in dark + light
    assert both.index(LIGHT.stop) < both.index("@media") < both.index(DARK.stop)
    assert LIGHT.stop not in dark
    assert DARK.stop not in light


def test_style_sheets_refer_to_nothing_outside() -> None:
    """No rule loads anything, and none can end its element."""
    for style in [look.page_style(theme) for theme in (None, "dark", "light")] + [look.picture_style(None)]:
        assert not re.search(r"url|@import|@font-face|<|expression|http|&", style)
        assert style.count("{") == style.count("}")


def test_a_session_under_a_fixed_policy_is_drawn_with_its_limits() -> None:
    """The picture shows what decided."""
    session = session_of(looping().events, Origin(Policy(warn_threshold=2, hard_limit=9)))
    session.open_at_first_stop()
    assert "warn 2 · hard 9" in picture(session)
