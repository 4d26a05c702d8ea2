"""What is drawn after keys that change a few lines is what is drawn when everything is drawn anew."""

from __future__ import annotations

import random

import pytest

from loopscope_widgets.terminal.panes.base import LinePane
from loopscope_widgets.terminal.screens import debug
from tests.widgets.support import NARROW, WIDE, debugging, eventful, screen_of, settled, shown

KEYS = (
    "n", "N", "s", "S", "right_square_bracket", "left_square_bracket", "g", "G", "j", "k", "1", "2", "3", "4", "6",
    "z", "tab", "u", "d", "m", "r", "R", "pagedown", "pageup", "home", "end",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The nearest settings are looked for without a rest before."""
    monkeypatch.setattr(debug, "_REST", 0.001)


@pytest.mark.parametrize(("size", "seed"), [(WIDE, 1), (NARROW, 2), ((100, 30), 3)])
async def test_lines_that_are_not_drawn_again_are_as_they_were(size: tuple[int, int], seed: int) -> None:
    """Whatever the keys were, whether panes began or ceased to scroll, and wherever they were scrolled to."""
    rng = random.Random(seed)  # noqa: S311 - the same keys each time
    async with debugging(eventful(), size) as pilot:
        for _ in range(5):
            await pilot.press(*rng.choices(KEYS, k=4))
            await settled(pilot)
            pilot.app.clear_notifications()
            await pilot.pause()
            before = shown(pilot)
            for pane in screen_of(pilot).query(LinePane):
                pane.refresh()
            await pilot.pause()
            assert shown(pilot) == before


async def test_a_pane_that_scrolls_reaches_its_last_line() -> None:
    """Also where it was scrolled further down before, and where only the number of its lines has changed."""
    async with debugging(eventful(), (100, 24)) as pilot:
        await pilot.press("3")
        inspect = screen_of(pilot).inspect
        for key in ("N", "N", "n", "N", "g", "n", "G"):
            await pilot.press("end", key)
            await settled(pilot)
            assert 0 <= inspect.scroll_offset.y <= max(0, len(inspect._lines) - inspect.size.height)
            if inspect.show_vertical_scrollbar:
                assert inspect.vertical_scrollbar.window_virtual_size == inspect.virtual_size.height
                assert inspect.virtual_size.height == len(inspect._lines)
