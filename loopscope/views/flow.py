"""Breaking text into lines of a given width: words, parts of a row, and references to batches inside them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from loopscope.recording.inert import MARKS
from loopscope.views.cells import cell_len, set_cell_size
from loopscope.views.model import Line, Span, Style, line_width

__all__ = ["flow", "linked", "wrap"]

_REFERENCE = re.compile(r"(?<![\w#])#(\d{1,9})\b")


def wrap(text: str, width: int) -> list[str]:
    """The text broken at spaces into lines of at most `width` cells; words that are longer are cut."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        joined = f"{line} {word}" if line else word
        if cell_len(joined) <= width:
            line = joined
            continue
        if line:
            lines.append(line)
        *full, line = _cut(word, width)
        lines.extend(full)
    return [*lines, line]


def _cut(word: str, width: int) -> list[str]:
    """A word in pieces that fit; a piece has at least one character, however narrow the room is."""
    pieces: list[str] = []
    near = width * (MARKS + 2)  # as many characters as can stand in a line, so that a long word costs what it weighs
    while cell_len(word[:near]) > width:
        head = max(1, len(set_cell_size(word[:width], width).rstrip(" ")))
        pieces.append(word[:head])
        word = word[head:]
    return [*pieces, word] if word or not pieces else pieces


def flow(parts: Iterable[Line], width: int, *, indent: int = 0, gap: int = 3) -> list[Line]:
    """Parts side by side, `gap` cells apart, on as few lines as they need; each line after the first is indented."""
    lines: list[Line] = []
    row: list[Span] = []
    used = 0
    for part in parts:
        cells = line_width(part)
        if row and used + gap + cells > width:
            lines.append(tuple(row))
            row, used = [Span(" " * indent)] if indent else [], indent
        elif row:
            row.append(Span(" " * gap))
            used += gap
        row.extend(part)
        used += cells
    return [*lines, tuple(row)] if row else lines


def linked(text: str, last: int, style: Style = "text") -> Line:
    """The text as spans in which each `#n` leads to batch n, where there is one (`last` is the newest)."""
    return tuple(_spans(text, last, style))


def _spans(text: str, last: int, style: Style) -> Iterator[Span]:
    end = 0
    for found in _REFERENCE.finditer(text):
        number = int(found[1])
        if not 1 <= number <= last:
            continue
        if found.start() > end:
            yield Span(text[end : found.start()], style)
        yield Span(found[0], style, link=number)
        end = found.end()
    if end < len(text):
        yield Span(text[end:], style)
