"""The debugger on a run that has everything a pane shows, without a terminal."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot

from loopscope.engine.events import Call, Usage
from loopscope.engine.policy import Policy
from loopscope.session.session import Session
from loopscope_widgets.terminal.app import LoopscopeApp
from loopscope_widgets.terminal.panes.graph import GraphPane
from loopscope_widgets.terminal.screens.debug import DebugScreen
from tests.views.support import Story

__all__ = ["debugging", "eventful", "screen_of", "settled", "shown"]

WIDE, NARROW = (160, 45), (80, 24)
DEADLINE = 120.0


def eventful() -> Session:
    """A lead that asks the same thing until it is stopped, its sub-agent, and a second thread."""
    usage = Usage(400, 60, 0.002)
    story = Story(Policy(warn_threshold=3, hard_limit=5), enforced=True).in_scope("order-7f3", "run-1").start("lead")
    for n in range(3):
        story.call("run_sql", {"query": "SELECT id FROM orderz", "limit": 50}, "no such table: orderz", usage=usage,
                   status="error", error_type="OperationalError")  # fmt: skip
        if n:
            story.call("list_tables", {}, "orders, customers", usage=usage)
    story.in_scope("order-7f3", "run-1/tools:8d1").start("research", ("order-7f3", "run-1"))
    story.batch(
        Call("p1", "検索", {"query": "表の名前"}),
        Call("p2", "open_page", {"url": "https://example.org/a"}),
        usage=usage,
    )
    story.result("p1", "三件").result("p2", "<html>").in_scope("order-7f3", "run-1")
    for _ in range(3):
        story.call("run_sql", {"query": "SELECT id FROM orderz", "limit": 99}, "no such table: orderz", usage=usage,
                   status="error", error_type="OperationalError")  # fmt: skip
    story.end("loop_capped").in_scope("order-8a0", "run-2").start("lead").call("list_tables", {}, "orders")
    session = story.end("completed").session()
    session.source = "recordings/orders.jsonl"
    return session


def screen_of(pilot: Pilot[None]) -> DebugScreen:
    """The debugger's screen, whatever is in front of it."""
    screen = pilot.app.screen_stack[0]
    assert isinstance(screen, DebugScreen)
    return screen


async def settled(pilot: Pilot[None]) -> None:
    """Wait until the nearest settings of the batch at the cursor are there and drawn."""
    screen = screen_of(pilot)
    end = time.monotonic() + DEADLINE
    graph = screen.pane(4)
    assert isinstance(graph, GraphPane)
    while screen.session.cursor and graph.display and not graph.ready:
        assert time.monotonic() < end, "the graph never came"
        await asyncio.sleep(0.01)
        await pilot.pause()
    while screen.session.cursor and (
        screen.inspect.explanation is None or screen.inspect.explanation.batch != screen.session.cursor
    ):
        assert time.monotonic() < end, "the nearest settings never came"
        await asyncio.sleep(0.01)
    while not (screen.breaks.settled and (screen.whatif.settled or not screen.whatif.display)):
        assert time.monotonic() < end, "breakpoints were never counted, or limits never tried"
        await asyncio.sleep(0.01)
    await pilot.pause()


@asynccontextmanager
async def debugging(session: Session, size: tuple[int, int] = WIDE, **options: Any) -> AsyncIterator[Pilot[None]]:
    """The debugger, running on a screen of this size."""
    app = LoopscopeApp(session, **options)
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.pause()
        yield pilot


def shown(pilot: Pilot[None]) -> list[str]:
    """What is on the screen, row by row."""
    width, height = pilot.app.size
    strips = pilot.app.screen._compositor.render_strips(pilot.app.size)
    assert (len(strips), width > 0) == (height, True)
    return [strip.text.rstrip() for strip in strips]
