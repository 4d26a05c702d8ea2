"""The timeline as a drawing: a column a batch with number, letter, count and state, and an overview of a long lane.

Apart from `timeline`, which draws it in cells; the numbers are the same, as both read the session's rows. Pages show it
in tiles of a few columns, so that it flows in any width; a picture has it in rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from loopscope.session.letters import letter_name
from loopscope.session.session import Session
from loopscope.views import timeline
from loopscope.views.web.markup import Markup, joined, tag
from loopscope.views.words import plural

__all__ = [
    "COLUMN",
    "HEIGHT",
    "Column",
    "Strip",
    "describe",
    "draw",
    "draw_cells",
    "draw_overview",
    "overview",
    "shape",
    "strip",
]

COLUMN, HEIGHT = 24, 66
"""Width and height of one column, in pixels."""
_CHIP = 20
_SEVERITY = ("new", "repeat", "warn", "stop")
_NARROW = 3
"""Characters that a column has room for; what is longer is squeezed."""


class Column(NamedTuple):
    """One batch."""

    n: int
    letter: str
    seen: int
    """Occurrences of its hash in the window."""
    state: str
    """`new`, `repeat`, `warn`, `stop`, or `ahead` of the cursor."""
    here: bool
    """The cursor is on it."""


class Strip(NamedTuple):
    """The columns around the cursor."""

    columns: tuple[Column, ...]
    first: int
    """Position in the lane of the first column, from 0."""
    total: int
    """Batches in the lane."""
    overview: tuple[str, ...]
    """The whole lane in a few cells; empty where all of it is in `columns`."""


def strip(session: Session, most: int, cells: int) -> Strip:
    """The lane of the session, around its cursor.

    Args:
        session: its lane and cursor say what is shown.
        most: columns.
        cells: of the overview.
    """
    shown = timeline.around(session, most)
    columns = tuple(_column(session, number) for number in shown.shown)
    total = len(shown.numbers)
    return Strip(columns, shown.first, total, overview(session, shown.numbers, cells) if total > len(columns) else ())


def _column(session: Session, number: int) -> Column:
    row = session.row(number)
    state = row.state if number <= session.cursor else "ahead"
    return Column(number, letter_name(row.letter), row.decision.hash_count, state, number == session.cursor)


def overview(session: Session, numbers: Sequence[int], cells: int) -> tuple[str, ...]:
    """So many batches in at most so many cells; of the batches in a cell the worst state wins."""
    count = min(cells, len(numbers))
    edges = [index * len(numbers) // count for index in range(count)] + [len(numbers)]
    return tuple(_worst(session, numbers[start:end]) for start, end in pairwise(edges))


def _worst(session: Session, numbers: Sequence[int]) -> str:
    found = 0
    verdict = session.timeline.verdict
    for number in numbers:
        decision = verdict(number)
        severity = {"hard_stop": 3, "warn": 2}.get(decision.action, int(decision.hash_count > 1))
        found = max(found, severity)
    return _SEVERITY[found]


def describe(columns: Sequence[Column]) -> str:
    """The columns in words, for who cannot see them."""
    return ", ".join(f"#{column.n} {column.letter} {column.seen} {column.state}" for column in columns)


def draw(columns: Sequence[Column], x: float = 0, y: float = 0, *, every: int = 5) -> Markup:
    """The columns from a place on; every so many of them, and the cursor's, have their number."""
    here = next((index for index, column in enumerate(columns) if column.here), -every)
    return joined(
        _draw(column, x + COLUMN * index, y, numbered=index % every == 0 and abs(index - here) > 1)
        for index, column in enumerate(columns)
    )


def _draw(column: Column, x: float, y: float, *, numbered: bool) -> Markup:
    middle, state = x + COLUMN / 2, column.state
    many = plural(column.seen, "occurrence")
    parts = [tag("title", f"#{column.n}: {column.letter}, {state}, {many} in the window")]
    if column.here:
        frame = {"x": x + 0.75, "y": y + 0.75, "width": COLUMN - 1.5, "height": HEIGHT - 1.5}
        parts.append(tag("rect", class_="cursor", **frame, rx=4))
    if numbered or column.here:
        parts.append(_text(str(column.n), middle, y + 10, "number here" if column.here else "number", wide=6))
    chip = {"x": x + (COLUMN - _CHIP) / 2, "y": y + 14.0, "width": _CHIP, "height": _CHIP, "rx": 4}
    parts.append(tag("rect", class_=f"chip {state}", **chip))
    parts.append(_text(column.letter, middle, y + 28, f"letter {state}", wide=2))
    parts.append(_text(str(column.seen), middle, y + 47, f"count {state}", wide=_NARROW))
    parts.append(shape(state, middle, y + 58))
    return tag("g", *parts)


def _text(text: str, x: float, y: float, look: str, *, wide: int) -> Markup:
    squeezed = COLUMN - 3 if len(text) > wide else None
    adjust = "spacingAndGlyphs" if squeezed else None
    return tag("text", text, class_=look, x=x, y=y, text_anchor="middle", textLength=squeezed, lengthAdjust=adjust)


def shape(state: str, x: float, y: float) -> Markup:
    """The sign of a state around a point: what colour alone must not say."""
    paths = {
        "new": f"M{x - 1.5:g} {y:g}a1.5 1.5 0 1 0 3 0a1.5 1.5 0 1 0-3 0z",
        "repeat": f"M{x - 3.5:g} {y - 2.5:g}h7v1.6h-7zM{x - 3.5:g} {y + 0.9:g}h7v1.6h-7z",
        "warn": f"M{x:g} {y - 4:g}l4.6 8h-9.2z",
        "stop": f"M{x - 3.8:g} {y - 3.8:g}h7.6v7.6h-7.6z",
        "ahead": "".join(f"M{x + by:g} {y - 0.5:g}h1.4v1.2h-1.4z" for by in (-3, -0.7, 1.6)),
    }
    return tag("path", class_=f"shape {state}", d=paths[state])


def draw_overview(shown: Strip, x: float, y: float, width: float, height: float) -> Markup:
    """The whole lane, and below it a line under what the columns show."""
    start, part = shown.first / shown.total * width, len(shown.columns) / shown.total * width
    under = tag("rect", class_="part", x=x + start, y=y + height + 3, width=max(2, part), height=2)
    return joined([draw_cells(shown.overview, x, y, width, height), under])


def draw_cells(states: Sequence[str], x: float, y: float, width: float, height: float) -> Markup:
    """The cells of an overview side by side; equal neighbours are one piece, and what is worse stands higher."""
    step = width / len(states)
    pieces: list[Markup] = []
    start = 0
    for end in range(1, len(states) + 1):
        if end == len(states) or states[end] != states[start]:
            tall = height * (0.4 + 0.2 * _SEVERITY.index(states[start]))
            place = {"x": x + start * step, "y": y + height - tall, "width": (end - start) * step, "height": tall}
            pieces.append(tag("rect", class_=f"piece {states[start]}", **place))
            start = end
    return joined(pieces)
