"""Keys that walk in other ways than by batches, and those that mark, undo, play and copy."""

from __future__ import annotations

import pytest

from loopscope.session.session import Lane
from loopscope_widgets.terminal.screens.debug import DebugScreen
from loopscope_widgets.terminal.screens.plain import PlainText
from tests.session.support import session_of
from tests.views.support import looping
from tests.widgets.support import NARROW, debugging, eventful, screen_of, shown
from tests.widgets.test_debugger import front, told, until


def at(screen: DebugScreen) -> tuple[int, int | None]:
    """The batch at the cursor, and which of its events is looked at."""
    return screen.session.cursor, screen.inspect.event


async def test_events_within_a_batch() -> None:
    """From the first to the last, then into the next batch; S goes back, another move leaves them."""
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)
        await pilot.press("N", "s")
        await pilot.pause()
        assert any("EVENTS #7  1 of 5" in line for line in shown(pilot))
        await pilot.press("s", "s", "s")
        assert at(screen) == (7, 3)
        await pilot.press("s", "s")
        assert at(screen) == (8, 0)
        await pilot.press("S")
        assert at(screen) == (7, 4)
        await pilot.press("escape")
        assert at(screen) == (7, None)
        await pilot.press("S")
        assert at(screen) == (7, 4)
        await pilot.press("n")
        await pilot.pause()
        assert at(screen) == (8, None)
        assert not any("EVENTS" in line for line in shown(pilot))


async def test_events_end_where_the_lane_does() -> None:
    """And say so; on a narrow screen Inspect comes to the front for them."""
    async with debugging(eventful(), NARROW) as pilot:
        screen = screen_of(pilot)
        await pilot.press("g", "s")
        await pilot.pause()
        assert screen.tabs.current == 3
        await pilot.press("S")
        assert "this is the first batch" in told(pilot)
        assert screen.inspect.event == 0


async def test_the_edges_of_the_cursors_scope() -> None:
    """Of the scope even where the whole thread is shown."""
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)
        await pilot.press("u", "R")
        assert screen.session.cursor == 1
        await pilot.press("r")
        assert screen.session.cursor == 9
        await pilot.press("r")
        assert "this is the last batch of order-7f3/run-1" in told(pilot)
        assert screen.session.lane == Lane("order-7f3", None, whole_thread=True)


async def test_marks() -> None:
    """On the strip, walked by ' in a circle, taken away by m again."""
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)
        await pilot.press("apostrophe")
        assert "no batch is marked" in told(pilot)
        await pilot.press("m", "apostrophe")
        assert "no other batch is marked" in told(pilot)
        await pilot.press("g", "m", "apostrophe")
        await pilot.pause()
        assert screen.session.cursor == 8
        assert "◆8" in shown(pilot)[2]
        assert shown(pilot)[2].index("◆") == shown(pilot)[3].index("A")
        await pilot.press("apostrophe", "m")
        assert screen.session.cursor == 1
        assert screen.journal.marks == (8,)


async def test_undo() -> None:
    """Scope, filter and marks, the newest first."""
    async with debugging(eventful()) as pilot:
        screen = screen_of(pilot)
        await pilot.press("U")
        assert told(pilot) == "nothing to undo"
        await pilot.press("u", "slash", *"stop", "enter")
        await pilot.pause()
        await pilot.press("m", "U")
        assert told(pilot) == "undone: marks"
        await pilot.press("U")
        assert told(pilot) == "undone: filter"
        assert len(screen.decisions.entries) == 3
        await pilot.press("U")
        assert told(pilot) == "undone: scope"
        assert screen.session.lane == Lane("order-7f3", "run-1")
        await pilot.press("slash", *"stop", "enter")
        await pilot.pause()
        await pilot.press("escape", "U")
        await pilot.pause()
        assert screen.decisions.entries.filter == "stop"


async def test_play() -> None:
    """It walks to the end by itself and stops there; the bar says how fast, space pauses."""
    many = 2000  # more than are played while a busy machine takes a picture
    async with debugging(looping(many).session()) as pilot:
        screen = screen_of(pilot)
        await pilot.press("g", "plus", "equals_sign", "plus")
        assert told(pilot) == "plays 16 batches a second"
        await pilot.press("space")
        await pilot.pause()
        assert "PLAY 16/s" in shown(pilot)[0]
        await pilot.press("minus")
        await pilot.pause()
        assert "PLAY 8/s" in shown(pilot)[0]
        await pilot.press("space")
        await pilot.pause()
        assert "REPLAY" in shown(pilot)[0]
        stood = screen.session.cursor
        assert 1 < stood < many
        await pilot.press("plus", "G", "N", "N", "space")
        await until(pilot, lambda: screen.session.cursor == many and screen.top.mode == "REPLAY", "it never ended")
        await pilot.press("space")
        assert "this is the last batch" in told(pilot)


async def test_copy() -> None:
    """To the clipboard, and to a plain view without borders that esc closes."""
    async with debugging(eventful()) as pilot:
        await pilot.press("y")
        await pilot.pause()
        assert isinstance(pilot.app.screen, PlainText)
        assert pilot.app.clipboard.startswith("recordings/orders.jsonl  order-7f3/run-1  batch 8 of 10\n{")
        text = shown(pilot)
        assert text[0].startswith("recordings/orders.jsonl")
        assert "if the terminal refused, select here" in text[-1]
        await pilot.press("escape")
        assert front(pilot) is DebugScreen


@pytest.mark.parametrize("key", ["s", "S", "r", "R", "m", "apostrophe", "U", "space"])
async def test_without_a_batch(key: str) -> None:
    """Each says why it cannot."""
    async with debugging(session_of([])) as pilot:
        pilot.app.clear_notifications()
        await pilot.press(key)
        await pilot.pause()
        assert told(pilot) != ""
