"""The debugger beside the program that it began: the pane of what the program writes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.pilot import Pilot

from loopscope.engine.events import ScopeKey
from loopscope.recording.feed import Message, Verb
from loopscope.session.live import LiveSession
from loopscope.session.output import Output
from loopscope_widgets.terminal.app import LoopscopeApp
from loopscope_widgets.terminal.panes.base import LinePane
from loopscope_widgets.terminal.screens.beside import BesideScreen
from tests.widgets.support import shown

PATIENCE = 120.0


class Silent:
    """A feed of a program that has begun no graph."""

    name = "main.py"
    capabilities: Mapping[str, str] = {"pause": "not yet"}

    def __init__(self) -> None:
        self.closed = threading.Event()

    def __iter__(self) -> Iterator[Message]:
        self.closed.wait(PATIENCE)
        yield from ()

    def request(self, verb: Verb, scope: ScopeKey | None = None, **arguments: Any) -> Mapping[str, Any]:
        """Nothing is asked."""
        raise AssertionError(verb, scope, arguments)

    def close(self) -> None:
        """The end."""
        self.closed.set()


@asynccontextmanager
async def beside(output: Output, size: tuple[int, int]) -> AsyncIterator[Pilot[None]]:
    """The debugger with this output."""
    live = LiveSession("main.py")
    live.state = "starting"
    app = LoopscopeApp(live.session, screen=lambda: BesideScreen(Silent(), live, output))
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.pause()
        yield pilot


async def until(pilot: Pilot[None], true: Callable[[str], object]) -> None:
    """Wait until this is true of the picture."""
    end = time.monotonic() + PATIENCE
    while not true("\n".join(shown(pilot))):
        assert time.monotonic() < end, "\n".join(shown(pilot))
        await asyncio.sleep(0.02)
        await pilot.pause()


@pytest.mark.parametrize("size", [(160, 45), (130, 28), (80, 24), (50, 20), (160, 14)])
async def test_it_shows_what_is_written_at_every_size(size: tuple[int, int]) -> None:
    """With `8`, where it has no room beside the others; zoomed, it is alone."""
    output = Output()
    async with beside(output, size) as pilot:
        await until(pilot, lambda text: "STARTING" in text)
        await pilot.press("8")
        await until(pilot, lambda text: "nothing written yet" in text)
        output.feed(b"a word\n\x1b[2J")
        await until(pilot, lambda text: "a word" in text and r"\x1b[2J" in text)
        await pilot.press("z")
        await until(pilot, lambda text: "a word" in text and "Inspect #" not in text)
        await pilot.press("z", "2")
        await until(pilot, lambda text: "nothing is counted" in text)


@pytest.mark.parametrize("size", [(160, 45), (130, 40), (120, 34)])
async def test_it_leaves_room_for_the_others(size: tuple[int, int]) -> None:
    """The scopes are seen above the breakpoints, where all are on the screen at once."""
    async with beside(Output(), size) as pilot:
        await until(pilot, lambda text: "8 Output" in text)
        panes = [pane for pane in pilot.app.screen.query(LinePane) if pane.display]
        assert {1, 2, 3, 6, 7, 8} == {pane.number for pane in panes}
        assert all(pane.size.height >= 2 for pane in panes)


async def test_it_stays_at_the_newest_line_until_one_scrolls_up() -> None:
    """And follows again from the bottom on; what is lost at the top moves nothing."""
    output = Output()
    async with beside(output, (160, 45)) as pilot:
        output.feed(b"".join(b"line %d\n" % n for n in range(100)))
        await until(pilot, lambda text: "line 99" in text)
        output.feed(b"line 100\n")
        await until(pilot, lambda text: "line 100" in text and "line 88" not in text)
        await pilot.press("8", "k", "k", "k")
        await until(pilot, lambda text: "line 97" in text and "line 98" not in text)
        output.feed(b"line 101\n")
        await asyncio.sleep(0)
        await until(pilot, lambda text: "line 97" in text and "line 98" not in text)
        output.feed(b"".join(b"line %d\n" % n for n in range(102, 5_050)))
        await until(pilot, lambda text: "earlier lines not kept" in text)
        assert "line 97 " in "\n".join(shown(pilot))
        await pilot.press("end")
        await until(pilot, lambda text: "line 5049" in text)
        output.feed(b"the last\n")
        await until(pilot, lambda text: "the last" in text)


async def test_it_is_a_pane_as_the_others() -> None:
    """In the tabs, the keys and the help."""
    async with beside(Output(), (160, 24)) as pilot:
        await until(pilot, lambda text: "8 Output" in text)
        await pilot.press("8", "question_mark")
        await until(pilot, lambda text: "In Output" in text and "what the program writes" in text)
