"""The window Export: three forms, copied or written, and written only after `y`."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopscope.settings import load_policy
from loopscope_widgets.terminal.screens.confirm import Confirm
from loopscope_widgets.terminal.screens.debug import DebugScreen
from loopscope_widgets.terminal.screens.exporting import ExportWindow, FileName
from tests.widgets.support import NARROW, WIDE, debugging, eventful, shown
from tests.widgets.test_debugger import front, told


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_the_forms_one_after_the_other(size: tuple[int, int]) -> None:
    """Round in both directions; each with what changes and how to verify it."""
    async with debugging(eventful(), size) as pilot:
        await pilot.press("t", "j", "right", "e")
        await pilot.pause()
        assert front(pilot) is ExportWindow
        assert "[TOML]" in "\n".join(shown(pilot))
        assert "hard_limit 5 → 6" in "\n".join(shown(pilot))
        await pilot.press("l")
        await pilot.pause()
        assert "loop_detection:" in "\n".join(shown(pilot))
        await pilot.press("tab")
        await pilot.pause()
        assert "from loopscope import Policy" in "\n".join(shown(pilot))
        assert "loopscope whatif recordings/orders.jsonl --set hard_limit=6" in "\n".join(shown(pilot))
        await pilot.press("right", "h", "left", "shift+tab")
        await pilot.pause()
        assert "[TOML]" in "\n".join(shown(pilot))
        await pilot.press("q")
        await pilot.pause()
        assert front(pilot) is DebugScreen


async def test_it_is_written_after_y_and_reads_back(tmp_path: Path) -> None:
    """Under the name that one gives; the command that verifies it is told."""
    async with debugging(eventful()) as pilot:
        await pilot.press("t", "j", "right", "e", "s")
        await pilot.pause()
        assert front(pilot) is FileName
        assert "a new file" in "\n".join(shown(pilot))
        await pilot.press("enter")
        await pilot.pause()
        assert front(pilot) is Confirm
        assert "write loopscope.toml?" in "\n".join(shown(pilot))
        assert "1 of its limits are not those of this run" in "\n".join(shown(pilot))
        await pilot.press("y")
        await pilot.pause()
        assert told(pilot) == (
            "wrote loopscope.toml; verify: loopscope replay recordings/orders.jsonl --policy loopscope.toml"
        )
        assert load_policy(str(tmp_path / "loopscope.toml")).hard_limit == 6


async def test_what_is_there_is_not_overwritten_by_accident(tmp_path: Path) -> None:
    """It is told while one types the name and in the question; anything but y leaves it."""
    file = tmp_path / "mine.toml"
    file.write_text("hard_limit = 99\n")
    async with debugging(eventful()) as pilot:
        await pilot.press("e", "s")
        await pilot.pause()
        await pilot.press(*["backspace"] * len("loopscope.toml"), "enter")
        await pilot.pause()
        assert "the name of a file" in "\n".join(shown(pilot))
        await pilot.press(*"mine.toml")
        await pilot.pause()
        assert "is there already: it would be overwritten" in "\n".join(shown(pilot))
        for key in ("enter", "s", "escape"):
            await pilot.press("enter")
            await pilot.pause()
            assert "overwrite mine.toml?" in "\n".join(shown(pilot))
            assert "its limits are those of this run" in "\n".join(shown(pilot))
            await pilot.press(key)
            await pilot.pause()
            assert told(pilot) == "nothing was written"
            assert file.read_text() == "hard_limit = 99\n"
            await pilot.press("s")
            await pilot.pause()
        await pilot.press("enter", "y")
        await pilot.pause()
        assert load_policy(str(file)).hard_limit == 5


async def test_where_it_cannot_be_written_it_says_so() -> None:
    """And goes on; so does who asks for no name."""
    async with debugging(eventful()) as pilot:
        await pilot.press("e", "s")
        await pilot.pause()
        await pilot.press(*["backspace"] * len("loopscope.toml"), *"no/x.toml", "enter")
        await pilot.pause()
        await pilot.press("y")
        await pilot.pause()
        assert told(pilot) == "no/x.toml cannot be written: No such file or directory"
        await pilot.press("s")
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        assert front(pilot) is ExportWindow
        await pilot.press("s")
        await pilot.pause()
        await pilot.press(*["backspace"] * len("no/x.toml"), *"~nobody-of-this-name/x", "enter")
        await pilot.pause()
        await pilot.press("y")
        await pilot.pause()
        assert "cannot be written" in told(pilot)


async def test_it_is_copied() -> None:
    """The text of the form that is shown."""
    async with debugging(eventful()) as pilot:
        await pilot.press("e", "l", "y")
        await pilot.pause()
        assert pilot.app.clipboard.startswith("loop_detection:\n")
        assert "copied" in told(pilot)
