"""The screen of a sweep: moving over its settings, the runs under them, the front, and a run in the debugger."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from loopscope.errors import UnreadableInputError
from loopscope.session.session import Session
from loopscope.session.tune import Tuning
from loopscope_widgets.terminal.app import LoopscopeApp
from loopscope_widgets.terminal.keymap import TUNE
from loopscope_widgets.terminal.screens.tune import RunScreen, TuneScreen
from tests.views.support import looping
from tests.views.test_tune import GRID, LOOPS, swept
from tests.widgets.support import shown
from tests.widgets.test_debugger import until


def opener(target: str) -> Session:
    """A run that is stopped at its fifth batch."""
    if target == "quiet.jsonl":
        raise UnreadableInputError("quiet.jsonl: is gone")
    session = looping(8).session()
    session.source = target
    session.open_at_first_stop()
    return session


@asynccontextmanager
async def tuning(
    swept_: Tuning = LOOPS, size: tuple[int, int] = (140, 40), **options: Any
) -> AsyncIterator[Pilot[None]]:
    app = LoopscopeApp(None, screen=lambda: TuneScreen(swept_, opener), **options)
    async with app.run_test(size=size, notifications=True) as pilot:
        await pilot.pause()
        yield pilot


def screen(pilot: Pilot[None]) -> TuneScreen:
    found = pilot.app.screen_stack[0]
    assert isinstance(found, TuneScreen)
    return found


async def press(pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await pilot.pause()


async def test_the_advised_setting_is_at_the_cursor() -> None:
    """With the runs under it, the front and the reasons."""
    async with tuning() as pilot:
        text = "\n".join(shown(pilot))
        assert screen(pilot).settings.values == (4, 20)
        assert "TUNE  4 recordings (2 loops, 2 ok), 80 batches; 8 settings" in text
        assert "hard_limit=4 window_size=20  advised" in text
        assert "healthy runs stopped" in text
        assert "every loop stopped" in text
        rows = [line for line in shown(pilot) if "quiet" in line]
        assert "passes" in rows[0]


async def test_keys_move_over_the_grid() -> None:
    """To its edges and no further; the runs follow."""
    async with tuning() as pilot:
        await press(pilot, "l", "right")
        assert screen(pilot).settings.values == (6, 20)
        await press(pilot, "right", "k", "up")
        assert screen(pilot).settings.values == (6, 10)
        assert "wrong" in "\n".join(line for line in shown(pilot) if "slow" in line)
        await press(pilot, "h", "j", "end", "pagedown", "left")
        assert screen(pilot).settings.values == (4, 20)
        await press(pilot, "home")
        assert screen(pilot).settings.values == (4, 10)
        await press(pilot, "b")
        assert screen(pilot).settings.values == (4, 20), "the advised one"
        await press(pilot, "b")
        assert screen(pilot).settings.values == (5, 20), "today's limits"


async def test_other_things_are_counted_and_other_slices_shown() -> None:
    """By m and M, [ and ]; a grid of two settings has one slice, which is said."""
    three = swept([("stuck", "loop", 6), ("fine", "ok", 4)], (*GRID, "warn_threshold=2,3"))
    async with tuning(three) as pilot:
        assert "warn_threshold 3  [2 of 2]" in "\n".join(shown(pilot))
        await press(pilot, "right_square_bracket")
        assert "warn_threshold 2  [1 of 2]" in "\n".join(shown(pilot))
        await press(pilot, "m")
        assert "loops stopped  warn_threshold 2" in "\n".join(shown(pilot))
        await press(pilot, "M", "M", "left_square_bracket")
        assert "batch of the first stop, median  warn_threshold 3" in "\n".join(shown(pilot))
    async with tuning() as pilot:
        await press(pilot, "right_square_bracket")
        assert "there is one slice" in "\n".join(shown(pilot))


async def test_enter_opens_a_run_with_the_setting_as_override() -> None:
    """Under its own limits, What-if in front; q leads back, and q there quits."""
    async with tuning() as pilot:
        await press(pilot, "right", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "no run was opened")
        await pilot.pause()
        run = pilot.app.screen
        assert isinstance(run, RunScreen)
        assert run.session.source == "slow.jsonl", "the first run that is decided wrongly"
        assert run.focused is run.whatif
        assert run.journal.draft is not None
        assert run.journal.draft.policy.hard_limit == 5
        assert run.journal.draft.policy.window_size == 20
        await press(pilot, "z", "q")
        assert pilot.app.screen is run, "the zoom was left"
        await press(pilot, "q")
        assert len(pilot.app.screen_stack) == 1
        await press(pilot, "q")
    assert not pilot.app.is_running


async def test_the_chosen_run_is_opened() -> None:
    """One that cannot be read says why, and another one can be opened then."""
    async with tuning() as pilot:
        await press(pilot, "2", "end", "enter")
        await until(pilot, lambda: "quiet.jsonl: is gone" in "\n".join(shown(pilot)), "nothing was said")
        await press(pilot, "k", "pageup", "j", "home", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "no run was opened")
        assert pilot.app.screen.session.source == "stuck.jsonl"  # type: ignore[attr-defined]


async def test_what_is_no_policy_cannot_be_opened() -> None:
    """It says why."""
    async with tuning(swept([("a", None, 4)], ("hard_limit=2..4", "warn_threshold=3"))) as pilot:
        await press(pilot, "left", "left", "enter")
        assert screen(pilot).settings.values == (2, 3)
        assert "no valid policy" in "\n".join(shown(pilot))
        assert pilot.app.screen is screen(pilot)
        await press(pilot, "b")
        assert "no other setting is advised" in "\n".join(shown(pilot))


async def test_a_cell_of_the_front_is_gone_to() -> None:
    """By keys and by a click."""
    async with tuning() as pilot:
        await press(pilot, "3", "end", "j", "j")
        await press(pilot, "enter")
        assert screen(pilot).settings.values in {cell.values for cell in LOOPS.front}
        assert screen(pilot).front.has_focus


async def test_cells_and_runs_can_be_clicked() -> None:
    """Once chooses, twice opens."""
    async with tuning() as pilot:
        pane = screen(pilot).settings
        await pilot.click(pane, offset=(2 + 13 + 2, 4))
        await pilot.pause()
        assert pane.values == (3, 10)
        for beside in ((2, 4), (2 + 13 + 60, 4), (20, 1), (20, 30)):
            await pilot.click(pane, offset=beside)
        await pilot.pause()
        assert pane.values == (3, 10)
        runs = screen(pilot).runs
        await pilot.click(runs, offset=(4, 2))
        await pilot.pause()
        assert runs.row == 1
        await pilot.click(runs, offset=(4, 30))
        await pilot.click(runs, offset=(4, 2))
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "no run was opened")
        await press(pilot, "q")
        await pilot.click(pane, offset=(2 + 13 + 2, 4))
        await until(pilot, lambda: isinstance(pilot.app.screen, RunScreen), "no run was opened")


@pytest.mark.parametrize("size", [(80, 24), (60, 16)])
async def test_one_pane_on_a_narrow_screen(size: tuple[int, int]) -> None:
    """Keys and tabs choose it."""
    async with tuning(size=size) as pilot:
        assert "window_size" in "\n".join(shown(pilot))
        for keys, expected in (
            (["2"], "passes"),
            (["tab"], "healthy runs stopped"),
            (["shift+tab", "4"], "every loop"),
        ):
            await press(pilot, *keys)
            assert expected in "\n".join(shown(pilot))
        await pilot.click(screen(pilot).tabs, offset=(4, 0))
        await pilot.pause()
        assert screen(pilot).settings.has_focus


async def test_help_names_the_keys() -> None:
    """As this user has them."""
    async with tuning() as pilot:
        await press(pilot, "question_mark")
        text = "\n".join(shown(pilot))
        assert "the next slice" in text
        assert "count something else" in text
        assert "open the chosen run under this setting" in text
        await press(pilot, "q")
        assert pilot.app.screen is screen(pilot)


async def test_in_ascii_and_without_colours() -> None:
    """Nothing else is drawn."""
    async with tuning(ascii_only=True, no_color=True) as pilot:
        assert "\n".join(shown(pilot)).isascii()


def test_the_documentation_has_every_key() -> None:
    """The same words as the help."""
    page = (Path(__file__).parents[2] / "docs" / "tuning.md").read_text("utf-8")
    for key in TUNE:
        assert f"| {key.help} | `{key.id}` |" in page, key.id
