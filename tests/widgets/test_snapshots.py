"""What every pane and window looks like, at two sizes, in both themes and without colours.

`pytest tests/widgets/test_snapshots.py --snapshot-update` draws the pictures anew; look at each one that has changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from loopscope.engine.breakpoints import parse
from loopscope.engine.policy import Policy
from loopscope.samples import samples
from loopscope.session.session import Session
from loopscope_widgets.terminal.app import LoopscopeApp
from loopscope_widgets.terminal.screens.picker import Picker
from tests.views.support import Story
from tests.widgets.support import DEADLINE, NARROW, WIDE, eventful, settled

Compare = Callable[..., bool]

LOOKS: dict[str, dict[str, Any]] = {"dark": {}, "light": {"theme": "light"}, "no-color": {"no_color": True}}
PANES = {"scopes": "1", "detect": "2", "inspect": "3", "graph": "4", "decisions": "6"}
TRYING = ["t", "left", "j", "right", "right"]
"""A lower warning and a higher stop in What-if."""
BESIDE = [*TRYING, "v", "p", "end", "enter", "v", "p", "j", "j", "enter"]
"""Two presets beside that."""
WINDOWS = {
    "why": ["w"],
    "help": ["question_mark"],
    "goto": ["colon", "A"],
    "filter": ["slash", *"stop"],
    "copy": ["y"],
    "presets": ["t", "p", "j"],
    "condition": ["B", "i", *"usage"],
    "export": [*TRYING, "e"],
    "confirm": [*TRYING, "e", "l", "s", "enter"],
}


def same(
    compare: Compare, size: tuple[int, int], keys: list[str], *, session: Session | None = None, **options: Any
) -> bool:
    """Whether the screen looks as it did, after these keys and once everything has settled."""

    async def ready(pilot: Pilot[None]) -> None:
        await settled(pilot)
        pilot.app.clear_notifications()
        await pilot.press(*keys)
        await settled(pilot)

    return compare(LoopscopeApp(session or eventful(), **options), terminal_size=size, run_before=ready)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("pane", PANES)
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["160x45", "80x24"])
def test_a_pane(snap_compare: Compare, size: tuple[int, int], pane: str, look: str) -> None:
    """With the focus, at the first stop."""
    assert same(snap_compare, size, [PANES[pane]], **LOOKS[look])


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["160x45", "80x24"])
def test_what_if(snap_compare: Compare, size: tuple[int, int], look: str) -> None:
    """Two limits changed: both strips, what differs, what is not known."""
    assert same(snap_compare, size, TRYING, **LOOKS[look])


@pytest.mark.parametrize("size", [WIDE, NARROW, (60, 16)], ids=["160x45", "80x24", "60x16"])
def test_policies_side_by_side(snap_compare: Compare, size: tuple[int, int]) -> None:
    """A strip and totals each; where it is small, what has room."""
    assert same(snap_compare, size, BESIDE)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["160x45", "80x24"])
def test_breakpoints(snap_compare: Compare, size: tuple[int, int], look: str) -> None:
    """Two hold at the cursor, one is off, one is good for one hit; the second is chosen."""
    session = eventful()
    session.breakpoints += [parse(text) for text in ("stop", "warn", "hash A >= 2", "once tool list_tables")]
    assert same(snap_compare, size, ["B", "j", "a"], session=session, **LOOKS[look])


@pytest.mark.parametrize("keys", [TRYING, ["B"]], ids=["what-if", "breakpoints"])
def test_the_panes_in_ascii_and_where_there_is_least_room(snap_compare: Compare, keys: list[str]) -> None:
    """At 60 by 16, in ASCII."""
    session = eventful()
    session.breakpoints += [parse(text) for text in ("stop", "warn")]
    assert same(snap_compare, (60, 16), keys, session=session, ascii_only=True)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["160x45", "80x24"])
def test_a_window(snap_compare: Compare, size: tuple[int, int], window: str) -> None:
    """In front of the panes."""
    assert same(snap_compare, size, WINDOWS[window])


@pytest.mark.parametrize("size", [(110, 32), (60, 16), (58, 14)], ids=["110x32", "60x16", "58x14"])
def test_sizes_at_the_edge_of_a_layout(snap_compare: Compare, size: tuple[int, int]) -> None:
    """Nothing overflows where a layout has least room."""
    assert same(snap_compare, size, [])


@pytest.mark.parametrize("pane", PANES)
def test_a_pane_where_there_is_least_room(snap_compare: Compare, pane: str) -> None:
    """At 60 by 16 one pane has the place of all."""
    assert same(snap_compare, (60, 16), [PANES[pane]])


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["160x45", "80x24"])
def test_the_picker(snap_compare: Compare, size: tuple[int, int], look: str) -> None:
    """Samples alone, all of whose states are known."""

    async def ready(pilot: Pilot[None]) -> None:
        end = time.monotonic() + DEADLINE
        picker = pilot.app.screen
        assert isinstance(picker, Picker)
        while len(picker.rows.states) < len(samples()):
            assert time.monotonic() < end, "the states never came"
            await pilot.pause(0.02)
        await pilot.press("j")

    assert snap_compare(LoopscopeApp(None, **LOOKS[look]), terminal_size=size, run_before=ready)


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["160x45", "80x24"])
def test_within_a_batch_and_marks(snap_compare: Compare, size: tuple[int, int]) -> None:
    """The engine's events above the batch, two marks on the strip."""
    assert same(snap_compare, size, ["g", "m", "G", "m", "N", "s", "s", "s"])


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["160x45", "80x24"])
def test_a_long_run(snap_compare: Compare, size: tuple[int, int]) -> None:
    """A page of the strip, and the whole lane in a row."""
    story = Story(Policy(tool_freq_warn=200, tool_freq_hard_limit=290), enforced=True)
    for n in range(300):
        story.call("search", {"query": "same" if n in range(50, 55) else str(n)})
    assert same(snap_compare, size, ["6"], session=story.session())


def test_ascii(snap_compare: Compare) -> None:
    """Glyphs and borders of ASCII."""
    assert same(snap_compare, WIDE, ["1"], ascii_only=True)


def test_before_the_warning(snap_compare: Compare) -> None:
    """Half-way: the whole thread, with a batch of the sub-agent at the cursor."""
    assert same(snap_compare, WIDE, ["u", "g", "n", "n", "n", "n", "n"])
