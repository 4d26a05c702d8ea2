"""The debugger while its recording is still being read: what is there can be looked at, and the bar says how far."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from textual.pilot import Pilot

from benchmarks.big_recording import write
from loopscope.errors import PolicyError
from loopscope.session.loading import Loading
from loopscope.session.timeline import Located
from loopscope.settings import Choice
from loopscope.targets import open_session, start_session
from loopscope_widgets.terminal.app import LoopscopeApp
from loopscope_widgets.terminal.screens.loading import LoadingScreen
from tests.widgets.support import WIDE, screen_of, shown
from tests.widgets.test_debugger import told, until

HELD = 600
"""Events after which nothing more comes until the gate opens."""


class Gate:
    """A recording of which only the beginning comes for now."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.open = threading.Event()
        self.closed = False
        loading = start_session(path, Choice.of())
        loading._lines = self._held(loading._lines)
        loading.begin(0.0)
        self.loading = loading

    def _held(self, lines: Iterator[Located]) -> Iterator[Located]:
        for count, line in enumerate(lines):
            if count == HELD:
                self.open.wait(30)
            yield line
        self.closed = True


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    """Two thousand events."""
    path = tmp_path / "run.jsonl"
    write(path, count=2_000)
    found = Gate(path)
    yield found
    found.open.set()


@asynccontextmanager
async def reading(loading: Loading) -> AsyncIterator[Pilot[None]]:
    """The debugger on what is there of it."""
    app = LoopscopeApp(loading.session, screen=partial(LoadingScreen, loading))
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await pilot.pause()
        yield pilot


def bar(pilot: Pilot[None]) -> str:
    """The line at the top."""
    return shown(pilot)[0]


async def test_the_bar_says_how_far_it_is(gate: Gate) -> None:
    """Until all of it is there; then it is told where the cursor stands, which is where it opens when read at once."""
    async with reading(gate.loading) as pilot:
        assert "READING" in bar(pilot)
        assert "%" in bar(pilot)
        assert not pilot.app._notifications
        gate.open.set()
        await until(pilot, lambda: gate.loading.done, "it was never read")
        await until(pilot, lambda: "READING" not in bar(pilot), "the bar never said so")
        whole = open_session(gate.path, Choice.of())
        assert f"batch {whole.cursor}/{len(whole)}" in bar(pilot)
        assert told(pilot).startswith("opened at the first stop")
        await pilot.pause()
        assert len(pilot.app._notifications) == 1
        assert screen_of(pilot).journal.undo() is None


async def test_keys_work_meanwhile(gate: Gate) -> None:
    """And the cursor stays where they have put it, and a row of the log where it was chosen."""
    async with reading(gate.loading) as pilot:
        await until(pilot, lambda: len(screen_of(pilot).session) > 100, "the beginning never came")
        await pilot.press("colon", "1", "enter", "n", "n")
        at = screen_of(pilot).session.cursor
        await pilot.press("6", "home")
        row = screen_of(pilot).decisions._row
        gate.open.set()
        await until(pilot, lambda: gate.loading.done, "it was never read")
        assert screen_of(pilot).session.cursor == at
        assert f"batch {at}/" in bar(pilot)
        assert row == 0


async def test_playing_says_so_and_not_that_it_reads(gate: Gate) -> None:
    """What the bar is called goes back to reading when it stops."""
    async with reading(gate.loading) as pilot:
        await until(pilot, lambda: len(screen_of(pilot).session) > 100, "the beginning never came")
        await pilot.press("g", "space")
        assert "PLAY" in bar(pilot)
        await pilot.press("space")
        assert "READING" in bar(pilot)


async def test_leaving_ends_the_reading(gate: Gate) -> None:
    """The thread does not read on for nobody."""
    async with reading(gate.loading) as pilot:
        await pilot.press("q")
    gate.open.set()
    for thread in threading.enumerate():
        if thread.name == "loopscope-read":
            thread.join(30)
            assert not thread.is_alive()
    assert not gate.loading.done


async def test_what_cannot_be_read_ends_the_debugger(gate: Gate) -> None:
    """Its caller tells why."""
    bad = b'{"kind":"policy","seq":9999,"ts":null,"thread_id":null,"run_id":null,"policy":{"hard_limit":0}}\n'
    with gate.path.open("ab") as file:
        file.write(bad)
    async with reading(gate.loading) as pilot:
        gate.open.set()
        await until(pilot, lambda: gate.loading.error is not None, "nothing was found wrong")
    assert isinstance(gate.loading.error, PolicyError)
    assert pilot.app._exit


async def test_where_it_stands_is_told_once(gate: Gate) -> None:
    """Also where all of it is there before the first picture is."""
    gate.open.set()
    gate.loading.finish()
    async with reading(gate.loading) as pilot:
        await until(pilot, lambda: bool(pilot.app._notifications), "it was never told")
        screen = screen_of(pilot)
        screen.post_message(LoadingScreen.Arrived())
        await pilot.pause()
        assert len(pilot.app._notifications) == 1
