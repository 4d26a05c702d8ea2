"""A bar that shows a count on its way to its two limits.

Eighths of a cell are drawn with block characters, so that one more call of fifty can be seen. The warn tick is thin,
the hard tick is heavy and closes the bar, a tick that the count has passed is crossed.
"""

from __future__ import annotations

from loopscope.views.model import Line, Span, Style

__all__ = ["BARS", "COUNT", "NOTE", "ROOMY", "SHORT_NOTE", "WARN_TICK", "bar", "columns"]

FULL, WARN_TICK, HARD_TICK, PASSED_TICK = "█", "┊", "┃", "╋"
_TICKS: dict[Style, Style] = {"bar_warn": "tick_warn", "bar_stop": "tick_stop"}
BARS: dict[str, Style] = {"new": "bar_ok", "repeat": "bar_repeat", "warn": "bar_warn", "stop": "bar_stop"}
"""The style of a bar by its row's state."""
ROOMY = 70
"""Cells from which on a row's note is told in full."""
COUNT = 5
"""Cells of the count behind a bar."""
NOTE, SHORT_NOTE = 26, 13
"""Cells of the note behind the count, where there is room and where not."""
_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")


def bar(count: float, warn: float, hard: float, width: int, style: Style) -> Line:
    """The bar in exactly `width` cells (3 or more), the last of which is the hard tick.

    Args:
        count: what is counted; at or above `hard` the bar is full.
        warn: where the thin tick stands; none is drawn where it would fall on the hard one.
        hard: what the whole bar stands for, above 0.
        width: cells, ticks included.
        style: of the filled part.
    """
    room = width - 1
    eighths = min(room * 8, int(count / hard * room * 8))
    if count > 0:
        eighths = max(eighths, 1)
    filled = FULL * (eighths // 8) + _EIGHTHS[eighths % 8]
    cells = filled.ljust(room)
    tick = max(1, int(warn / hard * room))
    end = Span(HARD_TICK, style if count >= hard else "dim")
    if tick >= room:
        return (Span(cells, style), end)
    middle = Span(PASSED_TICK, _TICKS.get(style, "dim")) if count >= warn else Span(WARN_TICK, "dim")
    return (Span(cells[:tick], style), middle, Span(cells[tick + 1 :], style), end)


def columns(width: int) -> tuple[int, int]:
    """Cells of the bar and of the label before it: the bar gives way first."""
    room = width - len(" A  ") - COUNT - (NOTE if width >= ROOMY else SHORT_NOTE)
    bar_width = max(6, min(40, room // 2))
    return bar_width, max(4, room - bar_width + 2)
