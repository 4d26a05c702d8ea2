"""The screen where a recording is picked, and what is remembered of those that were."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from loopscope.recording.codec import encode
from loopscope.samples import samples
from loopscope.targets import state_folder
from loopscope_widgets.terminal.app import LoopscopeApp
from loopscope_widgets.terminal.screens import picker
from loopscope_widgets.terminal.screens.debug import DebugScreen
from loopscope_widgets.terminal.screens.picker import Picker
from loopscope_widgets.terminal.user import RECENT, recent, remember
from tests.views.support import looping
from tests.widgets.support import debugging, eventful, screen_of, shown
from tests.widgets.test_debugger import until


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Four equal searches."""
    path = tmp_path / "four.jsonl"
    path.write_bytes(b"".join(encode(event) + b"\n" for event in looping(4).events if event is not None))
    return path


@asynccontextmanager
async def picking() -> AsyncIterator[Pilot[None]]:
    """The picker as the first screen."""
    async with LoopscopeApp(None).run_test(size=(100, 30), notifications=True) as pilot:
        await pilot.pause()
        yield pilot


def text(pilot: Pilot[None]) -> str:
    return "\n".join(shown(pilot))


async def test_recent_recordings_and_samples_with_their_worst_state(recording: Path) -> None:
    """The states come while one reads the names; a file that cannot be read says why, a large one that it was not."""
    broken = recording.with_name("broken.jsonl")
    broken.write_text("nonsense\n")
    for path in (broken, recording):
        remember(str(path))
    async with picking() as pilot:
        last = samples()[-1].name
        await until(pilot, lambda: f"sample:{last}" in screen(pilot).rows.states, "the states never came")
        lines = [line.strip("│ ").split() for line in shown(pilot)]
        assert next(line for line in lines if line[:1] == ["four.jsonl"])[1:5] == ["▲", "WARN", "4", "batches"]
        assert next(line for line in lines if line[:1] == ["sql-retry-storm"])[1:5] == ["■", "STOP", "20", "batches"]
        assert next(line for line in lines if line[:1] == ["broken.jsonl"])[1] != "·"


def screen(pilot: Pilot[None]) -> Picker:
    """The picker in front."""
    front = pilot.app.screen
    assert isinstance(front, Picker)
    return front


async def test_a_large_file_is_not_read_ahead(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its size stands in place of its state; one that is gone says so."""
    monkeypatch.setattr(picker, "_HEAVY", 10)
    remember(str(recording))
    async with picking() as pilot:
        await until(pilot, lambda: "not read" in text(pilot), "its size was not told")
        assert screen(pilot)._state(str(recording.with_name("gone.jsonl"))).problem == "No such file or directory"


async def test_enter_opens_what_is_chosen() -> None:
    """By keys that pass over the titles; q then quits, as where it was named on the command line."""
    remember(str(Path(__file__)))
    async with picking() as pilot:
        await pilot.press("j")
        assert screen(pilot).rows._row == 3
        await pilot.press("k", "k", "pagedown", "home", "end", "home", "j", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, DebugScreen), "it never opened")
        await pilot.pause()
        assert screen_of(pilot).session.source == "sample:sql-retry-storm"
        assert "sample:sql-retry-storm" in shown(pilot)[0]
        await pilot.press("n")
        assert screen_of(pilot).session.cursor == 6


async def test_a_path_can_be_typed(recording: Path) -> None:
    """What is not there is told, and another try is free; what was opened is remembered."""
    async with picking() as pilot:
        await pilot.press("slash", *"nowhere", "enter")
        await until(pilot, lambda: "nowhere: no such file" in text(pilot), "nothing was said")
        pilot.app.screen.query_one(Input).value = str(recording)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, DebugScreen), "it never opened")
        assert len(screen_of(pilot).session) == 4
    assert recent() == [str(recording)]


async def test_another_recording_from_the_debugger(recording: Path) -> None:
    """By o; esc comes back to the one that is open, and a click opens another one in its place."""
    remember(str(recording))
    async with debugging(eventful()) as pilot:
        before = screen_of(pilot)
        await pilot.press("o")
        await pilot.pause()
        await pilot.press("colon", "enter")
        await pilot.press("escape", "escape")
        assert pilot.app.screen is before
        await pilot.press("o")
        await pilot.pause()
        await pilot.click(screen(pilot).rows, offset=(8, 1))
        await pilot.click(screen(pilot).rows, offset=(8, 2))
        await until(pilot, lambda: isinstance(pilot.app.screen, DebugScreen), "it never opened")
        await pilot.pause()
        assert len(screen_of(pilot).session) == 4
        assert len(pilot.app.screen_stack) == 1


async def test_esc_leaves_the_program_where_nothing_is_open() -> None:
    """As q does."""
    async with picking() as pilot:
        await pilot.press("escape")
        await pilot.pause()
        assert pilot.app._exit


def test_what_is_remembered(tmp_path: Path) -> None:
    """Files alone, each once, the newest first, not too many; those that are gone are left out."""
    for name in ("-", "sample:sql-retry-storm", str(tmp_path), "a\0b", ""):
        remember(name)
    assert recent() == []
    files = [tmp_path / f"{n}.jsonl" for n in range(RECENT + 5)]
    for file in files:
        file.write_text("")
        remember(str(file))
    remember(str(files[-2]))
    assert recent()[:2] == [str(files[-2]), str(files[-1])]
    assert len(recent()) == RECENT
    files[-2].unlink()
    assert recent()[0] == str(files[-1])


@pytest.mark.parametrize("content", ["", "{", "{}", "[1, null]", "\ud800".encode("utf-8", "surrogatepass")])
def test_a_list_that_is_spoilt_is_empty(content: str | bytes) -> None:
    """And is written anew."""
    state_folder().mkdir(parents=True)
    file = state_folder() / "recent.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert recent() == []
    remember(__file__)
    assert json.loads(file.read_text()) == [__file__]


def test_a_folder_that_cannot_be_written_is_no_reason_to_fail() -> None:
    """Nothing is remembered then."""
    state_folder().parent.mkdir(parents=True)
    state_folder().write_text("a file in its place")
    remember(__file__)
    assert recent() == []
