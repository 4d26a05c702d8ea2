"""The panes Graph and Decisions: where they stand, what keys and clicks do there, and the filter of the log."""

from __future__ import annotations

import pytest

from loopscope.engine.events import Call
from loopscope.session.session import Lane, Session
from loopscope.views import decisions as log_view
from loopscope.views.model import plain
from loopscope_widgets.terminal.screens.ask import Filter
from loopscope_widgets.terminal.screens.debug import DebugScreen
from tests.session.support import session_of
from tests.views.support import looping
from tests.widgets.support import NARROW, debugging, eventful, screen_of, settled, shown
from tests.widgets.test_debugger import told


def visible(screen: DebugScreen) -> list[str | None]:
    """The panes that can be seen."""
    return [pane.name for pane in screen.panes if pane.region.width]


async def test_graph_takes_the_place_of_detect_and_gives_it_back() -> None:
    """By their keys; the border names both, and the circle is told in words."""
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)
        assert visible(screen) == ["Scopes", "Detect", "Inspect", "Decisions", "Breakpoints"]
        assert any("2 Detect │ 4 Graph" in line for line in shown(pilot))
        await pilot.press("4")
        await settled(pilot)
        assert visible(screen) == ["Scopes", "Inspect", "Graph", "Decisions", "Breakpoints"]
        text = "\n".join(shown(pilot))
        assert "4 Graph │ 2 Detect" in text
        assert "circle  agent → run_sql → agent  ×2" in text
        await pilot.press("3")
        await pilot.pause()
        assert "Graph" in visible(screen)
        await pilot.press("2")
        await pilot.pause()
        assert "Graph" not in visible(screen)


async def test_the_graph_follows_the_cursor() -> None:
    """While it is shown and when it is shown again."""
    async with debugging(eventful()) as pilot:
        await pilot.press("4")
        await settled(pilot)
        await pilot.press("g")
        await pilot.pause()
        assert any("none in the window at the cursor" in line for line in shown(pilot))
        await pilot.press("2", "G", "4")
        await pilot.pause()
        assert any("circle  agent → run_sql → agent  ×3" in line for line in shown(pilot))


async def test_the_log_stands_at_the_bottom_at_every_height_that_has_room() -> None:
    """With its columns named where it is tall, as three rows where it is not; as a tab where there is no room."""
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)
        assert screen.decisions.size.height == 7
        assert any("rule" in line and "verdict" in line for line in shown(pilot))
        await pilot.resize_terminal(*NARROW)
        await pilot.pause()
        assert shown(pilot)[21].split()[:5] == ["8", "▶", "identical_call_set", "A", "5/5"]
        await pilot.resize_terminal(60, 16)
        await pilot.pause()
        assert visible(screen) == ["Detect"]
        await pilot.press("6")
        await pilot.pause()
        assert visible(screen) == ["Decisions"]
        assert "■ STOP" in "\n".join(shown(pilot)[7:])


async def test_rows_are_made_only_where_they_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of hundreds of decisions as many as there are lines, also at the end."""
    made: list[int] = []
    real = log_view.entry

    def entry(session: Session, number: int) -> log_view.Entry:
        made.append(number)
        return real(session, number)

    monkeypatch.setattr(log_view, "entry", entry)
    async with debugging(looping(600).session()) as pilot:
        assert 0 < len(made) < 60
        await pilot.press("6", "end")
        await pilot.pause()
        assert any(line.lstrip("│ ").startswith("600") for line in shown(pilot))
        assert len(made) < 120


async def test_keys_of_the_log() -> None:
    """By j and k a row is chosen, by enter its batch is shown; at first the cursor's row is chosen."""
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)
        await pilot.press("6", "k", "enter")
        await pilot.pause()
        assert screen.session.cursor == 4
        await pilot.press("pagedown", "enter")
        await pilot.pause()
        assert screen.session.cursor == 9
        await pilot.press("home", "enter")
        await pilot.pause()
        assert screen.session.cursor == 4
        await pilot.press("g", "enter")
        await pilot.pause()
        assert "no row is chosen" in told(pilot)


async def test_clicks_on_the_log() -> None:
    """A row is its batch; the names of the columns, the border and the room below are nothing."""
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)
        await pilot.click(screen.decisions, offset=(10, 2))
        await pilot.pause()
        assert screen.session.cursor == 4
        for y in (0, 1, 7):
            await pilot.click(screen.decisions, offset=(10, y))
        await pilot.pause()
        assert screen.session.cursor == 4


async def test_the_filter_shows_what_it_leaves_while_one_types() -> None:
    """Enter keeps it, the border says so, and , and . walk over what is left; esc shows all again."""
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)
        await pilot.press("slash", *"stop")
        await pilot.pause()
        assert isinstance(pilot.app.screen, Filter)
        assert "2 matches" in "\n".join(shown(pilot))
        assert list(screen.decisions.entries.numbers) == [8, 9]
        await pilot.press("enter")
        await pilot.pause()
        assert pilot.app.focused is screen.decisions
        assert "6 Decisions  /stop  2 matches" in "\n".join(shown(pilot))
        await pilot.press("full_stop")
        assert screen.session.cursor == 9
        await pilot.press("full_stop")
        assert "nothing that matches stop after batch 9" in told(pilot)
        await pilot.press("comma")
        assert screen.session.cursor == 8
        await pilot.press("escape")
        assert len(screen.decisions.entries) == 3
        await pilot.press("comma")
        assert screen.session.cursor == 4
        await pilot.press("comma")
        assert "no decision before batch 4" in told(pilot)


async def test_the_filter_is_left_by_esc_and_shows_all() -> None:
    """What does not match anything is told."""
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)
        await pilot.press("slash", *"budget")
        await pilot.pause()
        text = "\n".join(shown(pilot))
        assert "nothing matches" in text
        await pilot.press("escape")
        await pilot.pause()
        assert len(screen.decisions.entries) == 3
        await pilot.press("escape")
        assert "nothing is open in front" in told(pilot)


async def test_the_log_is_of_the_lane() -> None:
    """Another scope has its own decisions, or none."""
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)
        screen.session.select(Lane("order-8a0", "run-2"))
        screen.moved()
        await pilot.pause()
        assert "no warning and no stop" in "\n".join(shown(pilot))


async def test_without_a_batch() -> None:
    """Both say that there is nothing."""
    async with debugging(session_of([])) as pilot:
        await pilot.press("6", "j", "k", "enter", "end", "full_stop", "4")
        await pilot.pause()
        text = "\n".join(shown(pilot))
        assert "There is no batch yet." in text
        assert "no warning and no stop" in text


async def test_zoom_of_the_log() -> None:
    """It has the whole screen, and the others stay away."""
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)
        await pilot.press("6", "z")
        await pilot.pause()
        assert visible(screen) == ["Decisions"]
        assert screen.decisions.size.height > 20
        await pilot.press("2")
        await pilot.pause()
        assert visible(screen) == ["Detect"]


async def test_a_click_and_a_drag_on_the_strip() -> None:
    """The pointer is followed while the button is held, in a line of its own; on the overview it means a bucket."""
    async with debugging(looping(300).session(), NARROW) as pilot:
        screen = screen_of(pilot)
        await pilot.press("g")
        await pilot.mouse_down(screen.strip, offset=(1 + 7 + 4, 3))
        assert screen.session.cursor == 5
        await pilot.hover(screen.tabs, offset=(1 + 7 + 9, 0))
        await pilot.pause()
        assert screen.session.cursor == 10
        await pilot.mouse_up(screen.tabs, offset=(1 + 7 + 9, 0))
        await pilot.hover(screen.strip, offset=(1 + 7 + 2, 2))
        await pilot.pause()
        assert screen.session.cursor == 10
        assert shown(pilot)[5].startswith(" all    ")
        await pilot.click(screen.strip, offset=(1 + 7 + 70, 4))
        await pilot.pause()
        assert 290 <= screen.session.cursor <= 300


async def test_the_border_of_the_strip_tells_the_part() -> None:
    """Where it has a border and the lane is longer; a click there does nothing."""
    async with debugging(looping(300).session()) as pilot:
        screen = screen_of(pilot)
        assert any("#1-#49, 49 of 300" in line for line in shown(pilot))
        before = screen.session.cursor
        await pilot.click(screen.strip, offset=(20, 0))
        await pilot.pause()
        assert screen.session.cursor == before


async def test_the_graph_of_a_long_scope_is_made_in_a_thread() -> None:
    """Until it is there the pane says so; another scope that is short needs no thread then."""
    story = looping(5)
    for n in range(2100):
        story.in_scope("t", "long").batch(Call(f"l{n}", "open", {"n": n}))
    async with debugging(story.session()) as pilot:
        screen = screen_of(pilot)
        await pilot.press("4")
        await settled(pilot)
        assert any("[▓search" in line for line in shown(pilot))
        screen.session.select(Lane("t", "long"))
        screen.moved()
        assert any("reading the graph" in plain(line) for line in screen.pane(4)._lines)
        await settled(pilot)
        assert any("[▓open" in line for line in shown(pilot))
