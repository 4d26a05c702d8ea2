"""Lines, spans and their styles: the one language between presenters and those who draw.

A style is a meaning ("warn"), never a colour, so that themes, plain text and HTML can each say it in their own way.
Widths are terminal cells, as wide characters take two.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from loopscope.views.cells import cell_len, set_cell_size

__all__ = ["Line", "Mark", "Span", "Style", "clip", "crop", "fit", "line_width", "link_at", "marked", "plain", "spread"]

Style: TypeAlias = Literal[
    "text", "dim", "title", "key", "ok", "repeat", "warn", "stop", "ahead",
    "bar_ok", "bar_repeat", "bar_warn", "bar_stop", "tick_warn", "tick_stop",
    "cool_1", "cool_2", "cool_3", "cool_4", "warm_1", "warm_2", "warm_3", "warm_4",
]  # fmt: skip
"""What a span means. `title` heads a section, `key` is a key to press, `bar_…` fills a bar: the same colours, but never
reversed or underlined as the words are; `tick_…` is a line across such a bar. `cool_…` and `warm_…` are the shades of a
heat map, warm where more is worse."""
Mark: TypeAlias = Literal["", "strong", "cursor"]
"""What is laid over a style: `strong` for what moved at this step, `cursor` for the column or row that is selected."""
ELLIPSIS = "…"


class Span(NamedTuple):
    """A piece of a line in one style."""

    text: str
    style: Style = "text"
    mark: Mark = ""
    link: int = 0
    """Number of the batch that this span leads to; 0 for none."""


Line: TypeAlias = tuple[Span, ...]


def clip(text: str, width: int) -> str:
    """The text, or its beginning and an ellipsis where it has more than `width` cells."""
    if len(text) * 2 <= width or (len(text) <= width * 2 and cell_len(text) <= width):
        return text
    return set_cell_size(text[: width * 2], width - 1).rstrip(" ") + ELLIPSIS if width > 0 else ""


def fit(text: str, width: int, *, right: bool = False) -> str:
    """The text in exactly `width` cells: clipped, else padded (before it with `right`)."""
    text = clip(text, width)
    padding = " " * (width - cell_len(text))
    return padding + text if right else text + padding


def line_width(line: Line) -> int:
    """Cells that a line takes."""
    return sum(cell_len(span.text) for span in line)


def crop(line: Line, width: int) -> Line:
    """The line in at most `width` cells."""
    kept: list[Span] = []
    for span in line:
        cells = cell_len(span.text)
        if cells > width:
            return (*kept, span._replace(text=clip(span.text, width))) if width > 0 else tuple(kept)
        kept.append(span)
        width -= cells
    return tuple(kept)


def spread(left: Line, right: Line, width: int) -> Line:
    """`left` and `right` at the two ends of a line; the left one gives way."""
    room = width - line_width(right)
    left = crop(left, room - 1)
    return (*left, Span(" " * max(0, room - line_width(left))), *right)


def marked(line: Line, mark: Mark) -> Line:
    """The line with every span under this mark."""
    return tuple(span._replace(mark=mark) for span in line)


def link_at(line: Line, cell: int) -> int:
    """The batch that the span at this cell leads to; 0 for none."""
    for span in line:
        cell -= cell_len(span.text)
        if cell < 0:
            return span.link
    return 0


def plain(line: Line) -> str:
    """The text of a line."""
    return "".join(span.text for span in line)
