"""Breakpoints on the screen: set, typed, put off, taken away, kept, and run to in both directions."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from textual.events import Key
from textual.pilot import Pilot

from loopscope.engine.breakpoints import Breakpoint, parse
from loopscope.session.session import Lane, Session
from loopscope.settings import Choice
from loopscope.targets import open_session, state_folder
from loopscope_widgets.terminal import kept
from loopscope_widgets.terminal.kept import breakpoints_of, keep_breakpoints
from loopscope_widgets.terminal.screens.condition import Condition
from tests.engine.support import batch
from tests.session.support import session_of
from tests.views.support import Story, looping
from tests.widgets.support import NARROW, debugging, eventful, screen_of, settled, shown
from tests.widgets.test_debugger import front, told, until


def points(pilot: Pilot[None]) -> list[str]:
    return [str(point) for point in screen_of(pilot).session.breakpoints]


async def arrived(pilot: Pilot[None], number: int) -> None:
    await until(pilot, lambda: screen_of(pilot).session.cursor == number, f"batch {number} was never reached")


def recording(folder: Path) -> Path:
    """A run of six equal batches in a file."""
    lines: list[dict[str, object]] = [{"kind": "header", "format": "loopscope/1", "enforced": False}]
    for n in range(1, 7):
        call = {"id": f"c{n}", "name": "bash", "args": {"command": "ls"}}
        lines.append({"kind": "batch", "seq": n, "ts": None, "thread_id": "t", "run_id": "r", "calls": [call]})
    file = folder / "run.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    return file


async def test_b_sets_one_at_the_batch_and_takes_it_away() -> None:
    """And says so; the pane shows it with its hits."""
    async with debugging(eventful()) as pilot:
        await pilot.press("b")
        await settled(pilot)
        assert points(pilot) == ["batch 8"]
        assert told(pilot) == "breakpoint at batch 8"
        assert any("● 1 batch 8" in line and "1/1" in line for line in shown(pilot))
        await pilot.press("b")
        await pilot.pause()
        assert points(pilot) == []
        assert told(pilot) == "breakpoint at batch 8 taken away"


async def test_without_a_batch_there_is_nowhere_to_set_one() -> None:
    """It says so, and what c says."""
    async with debugging(Story().session()) as pilot:
        await pilot.press("b")
        await pilot.pause()
        assert "no breakpoint can be set" in told(pilot)
        await pilot.press("c")
        await pilot.pause()
        assert "there is no breakpoint; b sets one at this batch" in told(pilot)


async def test_one_is_typed_and_edited() -> None:
    """What it stops at is told while one types; what is wrong, too, and is not taken."""
    async with debugging(eventful()) as pilot:
        await pilot.press("B", "i")
        await pilot.pause()
        assert front(pilot) is Condition
        assert "a condition, as below" in "\n".join(shown(pilot))
        assert "usage COUNTER >= N" in "\n".join(shown(pilot))
        await pilot.press(*"hash A >= x", "enter")
        await pilot.pause()
        assert "'x' is no number" in "\n".join(shown(pilot))
        await pilot.press("backspace", "2")
        await pilot.pause()
        assert "this batch, from its k-th occurrence" in "\n".join(shown(pilot))
        await pilot.press("enter")
        await settled(pilot)
        assert points(pilot) == ["hash A >= 2"]
        await pilot.press("enter")
        await pilot.pause()
        await pilot.press("end", "5", "enter")
        await settled(pilot)
        assert points(pilot) == ["hash A >= 25"]
        await pilot.press("enter")
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        assert points(pilot) == ["hash A >= 25"]


async def test_one_is_typed_in_one_go() -> None:
    """From the key that shows the pane to the enter behind it, as a fast line brings them."""
    async with debugging(eventful()) as pilot:
        for key in ("B", "i", *"tool run_sql", "enter"):
            pilot.app.post_message(Key("space" if key == " " else key, key if len(key) == 1 else None))
        await until(pilot, lambda: len(points(pilot)) == 1, "the last key never came")
        assert points(pilot) == ["tool run_sql"]


async def test_enter_without_any_asks_for_one() -> None:
    """The other keys say that there is none."""
    async with debugging(eventful()) as pilot:
        for key in ("a", "x"):
            await pilot.press("B", key)
            await pilot.pause()
            assert "there is no breakpoint; i asks for one" in told(pilot)
            pilot.app.clear_notifications()
        await pilot.press("enter")
        await pilot.pause()
        await pilot.press(*"stop", "enter")
        await settled(pilot)
        assert points(pilot) == ["stop"]


async def test_on_off_and_away() -> None:
    """For the one that is chosen; a click chooses, a double click edits; undo brings back."""
    session = eventful()
    session.breakpoints += [parse("stop"), parse("warn"), parse("tool run_sql")]
    async with debugging(session) as pilot:
        await settled(pilot)
        await pilot.press("B", "j", "a")
        await pilot.pause()
        assert [point.enabled for point in session.breakpoints] == [True, False, True]
        assert any("○ 2 warn" in line for line in shown(pilot))
        await pilot.press("end", "x")
        await pilot.pause()
        assert points(pilot) == ["stop", "warn"]
        await pilot.press("home", "pagedown", "pageup", "delete")
        await pilot.pause()
        assert points(pilot) == ["warn"]
        await pilot.press("U", "U")
        await pilot.pause()
        assert points(pilot) == ["stop", "warn", "tool run_sql"]
        await pilot.click("#breakpoints", offset=(5, 3))
        await pilot.press("x")
        await pilot.pause()
        assert points(pilot) == ["stop", "warn"]
        await pilot.click("#breakpoints", offset=(5, 1), times=2)
        await pilot.pause()
        assert front(pilot) is Condition
        await pilot.press("escape")
        await pilot.pause()
        await pilot.click("#breakpoints", offset=(5, 8))
        await pilot.pause()
        assert screen_of(pilot).breaks._row == 0


async def test_a_click_where_there_are_none() -> None:
    """Chooses nothing."""
    async with debugging(eventful()) as pilot:
        await pilot.click("#breakpoints", offset=(5, 1), times=2)
        await pilot.pause()
        assert pilot.app.focused is screen_of(pilot).breaks
        assert front(pilot) is not Condition


async def test_run_on_and_back() -> None:
    """To each batch in turn where one holds, in the lane that is shown; at the end it says that there is none."""
    session = eventful()
    session.breakpoints += [parse("tool list_tables"), parse("warn")]
    async with debugging(session) as pilot:
        for key, number in (("C", 5), ("C", 4), ("C", 3), ("c", 4), ("c", 5)):
            await pilot.press(key)
            await arrived(pilot, number)
        await pilot.press("c")
        await until(pilot, lambda: "no breakpoint holds after batch 5 in order-7f3/run-1" in told(pilot), "never told")
        assert session.cursor == 5


async def test_keys_in_a_row_are_runs_in_a_row() -> None:
    """Also while the first one is still searching."""
    session = eventful()
    session.breakpoints.append(parse("argument SELECT"))
    async with debugging(session, NARROW) as pilot:
        await pilot.press("g")
        screen = screen_of(pilot)
        for direction in (1, 1, -1):
            screen.action_run_to(direction)
        assert screen._search_for is not None
        await until(pilot, lambda: screen._search_for is None, "the search never ended")
        assert (session.cursor, screen._further) == (2, ())
        for direction in (-1, -1, 1):
            screen.action_run_to(direction)
        assert session.cursor == 2


async def test_a_search_does_not_take_a_cursor_that_has_moved() -> None:
    """Whoever moves it has other plans."""
    session = session_of([batch(n, ("bash", {"command": str(n)})) for n in range(1, 2001)])
    session.breakpoints.append(parse('argument "1999"'))
    session.seek(1)
    async with debugging(session, NARROW) as pilot:
        screen = screen_of(pilot)
        screen.action_run_to(1)
        session.seek(3)
        screen.moved()
        await until(pilot, lambda: screen._search_for is None, "the search never ended")
        assert session.cursor == 3


async def test_a_one_shot_is_spent() -> None:
    """And stays in the list, off."""
    session = looping(6).session()
    session.breakpoints.append(parse("once hash A >= 2"))
    async with debugging(session) as pilot:
        await pilot.press("g", "c")
        await arrived(pilot, 2)
        await settled(pilot)
        assert any("○ 1 once hash" in line for line in shown(pilot))
        assert told(pilot) == "breakpoint once hash A >= 2, batch 2"
        await pilot.press("c")
        await pilot.pause()
        assert "1 breakpoint, none of them on" in told(pilot)


async def test_hits_that_another_process_counts() -> None:
    """Then nothing is counted here."""
    session = eventful()
    session.breakpoints.append(parse("stop"))
    async with debugging(session) as pilot:
        breaks = screen_of(pilot).breaks
        await settled(pilot)
        breaks.hits = {parse("stop"): 12}
        breaks.show()
        await pilot.pause()
        assert any("● 1 stop" in line and "×12" in line for line in shown(pilot))
        assert breaks.settled


async def test_they_are_kept_for_the_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its path, whatever it is called by; what was taken away is gone."""
    file = recording(tmp_path)
    async with debugging(open_session(file, Choice.of())) as pilot:
        await pilot.press("b")
        await pilot.pause()
        screen_of(pilot).session.breakpoints.append(Breakpoint("warn", enabled=False))
        screen_of(pilot).breakpoints_changed()
    monkeypatch.chdir(tmp_path)
    async with debugging(open_session("run.jsonl", Choice.of())) as pilot:
        await settled(pilot)
        assert points(pilot) == ["batch 5", "warn"]
        assert screen_of(pilot).journal.undo() is None
        await pilot.press("B", "x", "x")
        await pilot.pause()
    assert breakpoints_of(str(file)) == []
    assert list((state_folder() / "breakpoints").iterdir()) == []


def test_what_is_kept_is_for_its_own_recording_alone(tmp_path: Path) -> None:
    """Samples by their names; nothing for what has no name that lasts; what cannot be read counts as nothing."""
    file = recording(tmp_path)
    keep_breakpoints(str(file), [parse("once usage batches >= 3")])
    assert breakpoints_of(str(file)) == [parse("once usage batches >= 3")]
    assert breakpoints_of(str(tmp_path / "other.jsonl")) == []
    keep_breakpoints("sample:once-per-run", [parse("stop")])
    assert breakpoints_of("sample:once-per-run") == [parse("stop")]
    for nobody in ("stdin", "-", "memory", "a\0b", "x" * 5000):
        keep_breakpoints(nobody, [parse("stop")])
        assert breakpoints_of(nobody) == []
    files = list((state_folder() / "breakpoints").iterdir())
    assert len(files) == 2
    for stored in files:
        assert stored.parent.stat().st_mode & 0o077 == 0
    for content in (b"", b"{}", b"[1]", b'{"recording":"elsewhere","breakpoints":[{"kind":"stop"}]}', b"\xff"):
        kept._file(str(file)).write_bytes(content)
        assert breakpoints_of(str(file)) == []
    odd = {"recording": str(file), "breakpoints": [{"kind": "argument", "subject": "("}, {"kind": "stop"}]}
    kept._file(str(file)).write_text(json.dumps(odd))
    assert breakpoints_of(str(file)) == [parse("stop")]


def test_as_many_recordings_as_a_person_comes_back_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were changed longest ago go first; a folder that cannot be written is no error."""
    monkeypatch.setattr(kept, "MOST", 3)
    for n in range(5):
        name = f"sample:{n}"
        keep_breakpoints(name, [parse("stop")])
        os.utime(kept._file(name), (n, n))
    assert [bool(breakpoints_of(f"sample:{n}")) for n in range(5)] == [False, False, True, True, True]
    monkeypatch.setenv("XDG_STATE_HOME", str(recording(tmp_path)))
    keep_breakpoints("sample:x", [parse("stop")])
    assert breakpoints_of("sample:x") == []


async def test_the_pane_at_every_height() -> None:
    """Where it is low, as one pane; the keys stand below where they have room."""
    session = eventful()
    session.breakpoints += [parse("stop"), parse("warn")]
    for size in ((160, 45), (160, 24), (80, 24), (60, 16), (58, 14)):
        async with debugging(session, size) as pilot:
            await pilot.press("7")
            await settled(pilot)
            text = "\n".join(shown(pilot))
            assert "● 1 stop" in text
            assert "i new" in text
    session.breakpoints += [parse(f"batch {n}") for n in range(1, 10)]
    async with debugging(session, (60, 16)) as pilot:
        await pilot.press("7")
        await settled(pilot)
        assert "i new" not in "\n".join(shown(pilot))


async def test_scopes_stay_beside_it() -> None:
    """On a wide screen they share a column."""
    async with debugging(eventful()) as pilot:
        await pilot.press("7")
        await pilot.pause()
        text = "\n".join(shown(pilot))
        assert "1 Scopes" in text
        assert "7 Breakpoints" in text
        screen_of(pilot).session.select(Lane("order-8a0", "run-2"))
        screen_of(pilot).moved()


def of(session: Session) -> list[str]:
    return [str(point) for point in session.breakpoints]


async def test_undo_brings_the_kept_ones_back_too(tmp_path: Path) -> None:
    """What is on the screen is what is kept."""
    file = recording(tmp_path)
    session = open_session(file, Choice.of())
    async with debugging(session) as pilot:
        await pilot.press("b", "U")
        await pilot.pause()
        assert (of(session), breakpoints_of(str(file))) == ([], [])
        assert told(pilot) == "undone: breakpoints"
