"""What Detect and Why look like under a policy with all layers: laps, streaks, the witness strip, budgets."""

from __future__ import annotations

from typing import Any

import pytest

from loopscope.engine.events import Usage
from loopscope.engine.policy import BOUNDED
from loopscope.session.session import Session
from tests.views.support import Story
from tests.widgets.support import NARROW, WIDE
from tests.widgets.test_snapshots import LOOKS, Compare, same

SIZES = pytest.mark.parametrize("size", [WIDE, NARROW, (60, 16)], ids=["160x45", "80x24", "60x16"])


def bounded() -> Session:
    """A lead that goes round between two tools that bring nothing new, and its helper; half of a budget is spent."""
    budget = {
        "tool_calls": {"limit": 20},
        "total_tokens": {"limit": 6_000},
        "cost_usd": {"limit": 0.2},
        "wall_clock_s": {"limit": 120},
    }
    usage = Usage(400, 60, 0.012)
    story = Story(BOUNDED.with_(budget=budget), enforced=True).in_scope("order-7f3", "run-1").start("lead")
    for n in range(3):
        story.call("search", {"query": f"rust {n % 2}"}, f"{n} hits", usage=usage)
        story.call("open_page", {"url": "https://example.org/a"}, "the page", usage=usage)
    for n in range(2):
        story.call("run_sql", {"query": f"SELECT {n}"}, "no such table: orderz", usage=usage, status="error")
    session = story.session()
    session.source = "recordings/bounded.jsonl"
    return session


@SIZES
@pytest.mark.parametrize("look", LOOKS)
def test_detect(snap_compare: Compare, size: tuple[int, int], look: str) -> None:
    """After the third lap: the circle in words, the strip, and what is left of each budget."""
    session = bounded()
    session.seek(6)
    options: dict[str, Any] = LOOKS[look]
    assert same(snap_compare, size, ["2"], session=session, **options)


@SIZES
def test_detect_below_the_first_lines(snap_compare: Compare, size: tuple[int, int]) -> None:
    """Scrolled to its end, where the warnings and what was spent are."""
    assert same(snap_compare, size, ["2", "z", "end"], session=bounded())


@SIZES
def test_why(snap_compare: Compare, size: tuple[int, int]) -> None:
    """The row of the layer that decided, here a circle of tools with ever new arguments, above its reasons."""
    story = Story(BOUNDED)
    for n in range(6):
        story.call("search", {"query": f"rust {n}"}, f"{n} hits").call("open_page", {"url": f"/{n}"}, f"page {n}")
    assert same(snap_compare, size, ["w"], session=story.session())
