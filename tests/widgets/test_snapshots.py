"""What every pane and window looks like, at two sizes, in both themes and without colours.

`pytest tests/widgets/test_snapshots.py --snapshot-update` draws the pictures anew; look at each one that has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from loopscope_widgets.terminal.app import LoopscopeApp
from tests.widgets.support import NARROW, WIDE, eventful, settled

Compare = Callable[..., bool]

LOOKS: dict[str, dict[str, Any]] = {"dark": {}, "light": {"theme": "light"}, "no-color": {"no_color": True}}
PANES = {"scopes": "1", "detect": "2", "inspect": "3", "graph": "4", "decisions": "6"}
WINDOWS = {"why": ["w"], "help": ["question_mark"], "goto": ["colon", "A"], "filter": ["slash", *"stop"]}


def same(compare: Compare, size: tuple[int, int], keys: list[str], **options: Any) -> bool:
    """Whether the screen looks as it did, after these keys and once everything has settled."""

    async def ready(pilot: Pilot[None]) -> None:
        await settled(pilot)
        pilot.app.clear_notifications()
        await pilot.press(*keys)
        await settled(pilot)

    return compare(LoopscopeApp(eventful(), **options), terminal_size=size, run_before=ready)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("pane", PANES)
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["160x45", "80x24"])
def test_a_pane(snap_compare: Compare, size: tuple[int, int], pane: str, look: str) -> None:
    """With the focus, at the first stop."""
    assert same(snap_compare, size, [PANES[pane]], **LOOKS[look])


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["160x45", "80x24"])
def test_a_window(snap_compare: Compare, size: tuple[int, int], window: str) -> None:
    """In front of the panes."""
    assert same(snap_compare, size, WINDOWS[window])


@pytest.mark.parametrize("size", [(110, 32), (60, 16), (58, 14)], ids=["110x32", "60x16", "58x14"])
def test_sizes_at_the_edge_of_a_layout(snap_compare: Compare, size: tuple[int, int]) -> None:
    """Nothing overflows where a layout has least room."""
    assert same(snap_compare, size, [])


def test_ascii(snap_compare: Compare) -> None:
    """Glyphs and borders of ASCII."""
    assert same(snap_compare, WIDE, ["1"], ascii_only=True)


def test_before_the_warning(snap_compare: Compare) -> None:
    """Half-way: the whole thread, with a batch of the sub-agent at the cursor."""
    assert same(snap_compare, WIDE, ["u", "g", "n", "n", "n", "n", "n"])
