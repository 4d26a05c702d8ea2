"""What the screen of a sweep looks like, at two sizes, in both themes and without colours.

`pytest tests/widgets/test_tune_snapshots.py --snapshot-update` draws the pictures anew; look at each that has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from loopscope_widgets.terminal.app import LoopscopeApp
from loopscope_widgets.terminal.screens.tune import TuneScreen
from tests.views.test_tune import swept
from tests.widgets.support import NARROW, WIDE
from tests.widgets.test_snapshots import LOOKS
from tests.widgets.test_tune_screen import opener

RUNS: Any = [("stuck", "loop", 6), ("slow", "loop", 4), ("fine", "ok", 3), ("quiet", "ok", None), ("表の名前", None, 5)]
KEYS = {"settings": ["1"], "runs": ["2", "j"], "front": ["3", "end", "j"], "advice": ["4"], "count": ["m", "l"]}


CASES = [(WIDE, "settings", look) for look in LOOKS]
CASES += [(WIDE, "count", "dark"), *((NARROW, name, "dark") for name in KEYS), (NARROW, "settings", "no-color")]


@pytest.mark.parametrize(("size", "keys", "look"), CASES, ids=[f"{s[0]}x{s[1]}-{k}-{look}" for s, k, look in CASES])
def test_a_sweep(snap_compare: Callable[..., bool], size: tuple[int, int], keys: str, look: str) -> None:
    """Loops and healthy runs over two settings and two slices."""

    async def ready(pilot: Pilot[None]) -> None:
        await pilot.pause()
        await pilot.press(*KEYS[keys])
        await pilot.pause()

    tuning = swept(RUNS, ("hard_limit=3..9", "window_size=10,20,40", "warn_threshold=2,3"))
    app = LoopscopeApp(None, screen=lambda: TuneScreen(tuning, opener), **LOOKS[look])
    assert snap_compare(app, terminal_size=size, run_before=ready)
