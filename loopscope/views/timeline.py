"""The timeline: every batch of the lane as a column of letter, count and state, in pages around the cursor.

Letters stand for hashes, so that A B A B is seen as a word. What lies after the cursor shows that it is there, not
what became of it. Past the width of the screen a page moves in halves, so that the strip stands still while the
cursor walks over it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import NamedTuple

from loopscope.session.letters import letter_name
from loopscope.session.session import Row, Session
from loopscope.views import overview
from loopscope.views.glyphs import GLYPH, LEGEND, STYLE, TONE
from loopscope.views.model import Line, Mark, Span, Style, fit, line_width, spread

__all__ = ["HEIGHT", "OVERVIEW", "Page", "around", "height", "lines", "number_at", "page", "part"]

HEIGHT = 5
"""Ruler, letters, counts, states and the legend; one more where the overview is among them."""
OVERVIEW = 4
"""The line of the overview, before the legend: of a lane that has no room on one page."""
LABELS = 7
"""Cells before the first batch."""
_WIDE = 106
_MANY = "+"
"""Stands for a letter or a count that its column is too narrow for."""


class Page(NamedTuple):
    """The batches that are visible."""

    numbers: Sequence[int]
    """Of the whole lane."""
    first: int
    """Position in `numbers` of the first column."""
    columns: int
    """How many of them."""
    cell: int
    """Cells of one column."""
    cursor: int
    """Position in `numbers` of the cursor; past the end where it is on no batch of the lane."""

    @property
    def shown(self) -> Sequence[int]:
        """The numbers of the visible batches."""
        return self.numbers[self.first : self.first + self.columns]

    @property
    def paged(self) -> bool:
        """The lane has more batches than there are columns."""
        return self.columns < len(self.numbers)


def page(session: Session, width: int) -> Page:
    """The page around the cursor at this width."""
    cell = 3 if width >= _WIDE else 1
    return around(session, max(1, (width - LABELS) // cell), cell)


def around(session: Session, room: int, cell: int = 1) -> Page:
    """The page around the cursor of at most so many columns."""
    numbers = session.batches
    cursor = bisect_left(numbers, session.cursor)
    half = max(1, room // 2)
    first = min(max(0, cursor // half * half - half // 2), max(0, len(numbers) - room))
    return Page(numbers, first, min(room, len(numbers) - first), cell, cursor)


def number_at(session: Session, width: int, cell: int, line: int = 0) -> int | None:
    """The batch whose column is at this cell of the strip; None beside the columns."""
    shown = page(session, width)
    if line == OVERVIEW and shown.paged:
        return overview.target(session, width - LABELS, cell - LABELS)
    column = (cell - LABELS) // shown.cell
    return shown.shown[column] if 0 <= column < shown.columns else None


def height(session: Session, width: int) -> int:
    """Lines of the whole strip."""
    return HEIGHT + page(session, width).paged


def part(session: Session, width: int) -> str:
    """Which part of the lane the page is; nothing where it is all of it."""
    shown = page(session, width)
    if not shown.paged:
        return ""
    return f"#{shown.shown[0]}-#{shown.shown[-1]}, {shown.columns} of {len(shown.numbers):,}"


def lines(session: Session, first: int, count: int, width: int, marks: Collection[int] = ()) -> list[Line]:
    """The lines of the strip; rows are read for the visible batches alone. Batches that are marked have a `◆`."""
    shown = page(session, width)
    if not shown.columns:
        text = "no batch with calls" if session.lane is None else "this scope has made no calls"
        nothing: Line = (Span(text, "dim"),)
        return [nothing][first : first + count]
    rows = [session.row(number) for number in shown.shown]
    states = [row.state if row.n <= session.cursor else "ahead" for row in rows]
    letters: list[Style] = [STYLE[state] for state in states]
    tones: list[Style] = [TONE[state] for state in states]
    strip = [
        _ruler(shown, rows, marks),
        _row("hash", shown, [letter_name(row.letter) for row in rows], letters),
        _row("count", shown, [str(row.decision.hash_count) for row in rows], tones),
        _row("state", shown, [GLYPH[state] for state in states], tones),
        *([_overview(session, shown, width)] if shown.paged else []),
        _legend(session, width),
    ]
    return strip[first : first + count]


def _row(label: str, shown: Page, texts: list[str], tones: list[Style]) -> Line:
    """One row of the strip: its label, then a cell a batch; the cursor's column is marked."""
    glyphs = max(1, shown.cell - 1)
    spans = [Span(label.ljust(LABELS), "dim")]
    for position, (text, tone) in enumerate(zip(texts, tones, strict=True), shown.first):
        mark: Mark = "cursor" if position == shown.cursor else ""
        drawn = text if len(text) <= glyphs else _MANY * glyphs
        spans.append(Span(drawn, tone, mark))
        if len(drawn) < shown.cell:
            spans.append(Span(" " * (shown.cell - len(drawn))))
    return tuple(_joined(spans))


def _joined(spans: list[Span]) -> list[Span]:
    """Neighbours of one look as one span: a strip of thousands of cells draws as a few segments."""
    joined: list[Span] = []
    for span in spans:
        if joined and joined[-1][1:] == span[1:]:
            joined[-1] = span._replace(text=joined[-1].text + span.text)
        else:
            joined.append(span)
    return joined


def _ruler(shown: Page, rows: list[Row], marks: Collection[int]) -> Line:
    """Batch numbers where there is room for them, marks, and the cursor with its own number."""
    cursor = shown.cursor - shown.first
    here = f"{'◆' if rows[cursor].n in marks else '▼'}{rows[cursor].n}" if 0 <= cursor < shown.columns else ""
    start = cursor * shown.cell
    marked = {place * shown.cell for place, row in enumerate(rows) if marks and row.n in marks}
    taken = set(range(start - 1, start + len(here) + 1) if here else ())
    beside = {cell + 1 for cell in marked}  # a number there would seem to be the mark's
    line = _numbers(shown, rows, taken | marked | beside)
    line = "".join("◆" if cell in marked and cell not in taken else text for cell, text in enumerate(line))
    if not here:
        return (Span("batch".ljust(LABELS), "dim"), Span(line.rstrip(), "dim"))
    return (
        Span("batch".ljust(LABELS), "dim"),
        Span(line[:start], "dim"),
        Span(here, "title"),
        Span(line[start + len(here) :].rstrip(), "dim"),
    )


def _numbers(shown: Page, rows: list[Row], taken: set[int]) -> str:
    """The first number, multiples of five, and where long neither came any other; cells of `taken` stay free."""
    cells = [" "] * (shown.columns * shown.cell + 12)
    seldom = 10 if shown.cell > 1 else 20
    free = since = 0
    for position, row in enumerate(rows):
        text, place = str(row.n), position * shown.cell
        since = 0 if place in taken else since + 1
        wanted = position == 0 or row.n % 5 == 0 or since >= seldom
        if wanted and place >= free and not set(range(place, place + len(text))).intersection(taken):
            cells[place : place + len(text)] = text
            free, since = place + len(text) + 1, 0
    return "".join(cells)


def _overview(session: Session, shown: Page, width: int) -> Line:
    """The whole lane in one row."""
    on_page = range(shown.first, shown.first + shown.columns)
    cells = overview.cells(session, width - LABELS, on_page, shown.cursor)
    return tuple(_joined([Span("all".ljust(LABELS), "dim"), *cells]))


def _legend(session: Session, width: int) -> Line:
    """What the glyphs mean and, where the lane is longer than the page, which part of it is shown."""
    left = (Span(" " * LABELS), *LEGEND)
    shown = part(session, width)
    if not shown:
        return left if line_width(left) <= width else spread(left, (), width)
    return spread(left, (Span(fit(shown, min(len(shown), width)), "dim"),), width)
