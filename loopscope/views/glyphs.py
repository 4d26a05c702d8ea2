"""The glyphs that carry the meaning, and what stands for them where a terminal has nothing but ASCII.

Colour only repeats what a glyph says. All are one cell wide, so that swapping them never moves a column.
"""

from __future__ import annotations

from loopscope.views.cells import cell_len
from loopscope.views.model import Line, Span, Style

__all__ = ["GLYPH", "LEGEND", "STYLE", "TONE", "WORST", "in_ascii", "line_in_ascii"]

GLYPH = {"new": "·", "repeat": "=", "warn": "▲", "stop": "■", "ahead": "░"}
"""By the state of a batch on the timeline; `ahead` is after the cursor."""
STYLE: dict[str, Style] = {"new": "ok", "repeat": "repeat", "warn": "warn", "stop": "stop", "ahead": "ahead"}
TONE: dict[str, Style] = {**STYLE, "warn": "bar_warn", "stop": "bar_stop"}
"""The same colours for what is only coloured: glyphs, counts and bars, neither reversed nor underlined."""
LEGEND: Line = tuple(Span(f"{glyph}{state}  ", TONE[state]) for state, glyph in GLYPH.items())
WORST = {"pass": "new", "warn": "warn", "hard_stop": "stop"}
"""The state that shows the worst decision of a scope."""

_OURS = "·▲■░◆▼▶█▉▊▋▌▍▎▏┊┃╋│─├└…→←↑↓≠┆●○×▓▒╭╮╰╯┤┬┴┼◄◀≥≤"
_THEIRS = ".!X#*v>####----:|+|-|`~><^v%:@ox@%++++++++<<><"
_ASCII = str.maketrans(_OURS, _THEIRS)


def in_ascii(text: str) -> str:
    """The text with our glyphs swapped and any other character that is not ASCII as `?`, one for each of its cells."""
    text = text.translate(_ASCII)
    return text if text.isascii() else "".join(char if char.isascii() else "?" * cell_len(char) for char in text)


def line_in_ascii(line: Line) -> Line:
    """The line in ASCII, every cell in its place."""
    return tuple(span._replace(text=in_ascii(span.text)) for span in line)
