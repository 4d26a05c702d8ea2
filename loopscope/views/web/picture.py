"""A run as one SVG picture: the verdict, the strip and the bars, for an issue, a chat or a slide.

It has the numbers of the screen, as it is made from the same presenters, and looks good where text cannot flow: in rows
of a fixed width.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from loopscope.recording.inert import inert
from loopscope.session.session import Session
from loopscope.views import detect, topbar
from loopscope.views.glyphs import GLYPH
from loopscope.views.model import clip
from loopscope.views.web import look, meters, strip
from loopscope.views.web.document import drawing
from loopscope.views.web.markup import Markup, tag

__all__ = ["picture"]

WIDTH = 960
_MARGIN = 28
_LABELS = 56
"""Room for the names of the strip's rows."""
_ROW = (WIDTH - 2 * _MARGIN - _LABELS) // strip.COLUMN
"""Columns in a row of the strip."""
_ROWS = 5
_CELLS = 200
_LINE = 22
_BAR = (400, 240)
"""Where bars begin, and how long they are."""
_COUNT = 700
_NOTE = 716


def picture(session: Session, *, theme: str | None = None) -> str:
    """The picture of the batch at the cursor, as a whole SVG document that ends in a newline.

    Args:
        session: what to draw.
        theme: `dark` or `light`; None follows the colours of whoever looks at it.
    """
    canvas = _Canvas()
    _head(canvas, session)
    shown = strip.strip(session, _ROW * _ROWS, _CELLS)
    if shown.columns:
        _strip(canvas, shown)
        _legend(canvas)
    found = detect.data(session)
    if found is not None:
        for section in meters.sections(found):
            _section(canvas, section)
    height = canvas.y + _MARGIN - 8
    style = look.picture_style(theme)
    return drawing(_title(session), _description(session, shown, found), style, WIDTH, height, canvas.parts)


class _Canvas:
    """What is drawn so far, and where the next line begins."""

    def __init__(self) -> None:
        self.parts: list[Markup] = []
        self.y = 0.0

    def down(self, by: float) -> float:
        """Go down; the new place."""
        self.y += by
        return self.y

    def text(self, text: str, x: float, y: float, look: str = "", *, right: bool = False) -> None:
        """A line of text that begins, or ends, there."""
        self.parts.append(tag("text", text, class_=look or None, x=x, y=y, text_anchor="end" if right else None))


def _name(session: Session) -> str:
    return inert(PurePath(session.source).name or session.source)


def _title(session: Session) -> str:
    return f"loopscope: {_name(session)}, {topbar.verdict(session).text}"


def _head(canvas: _Canvas, session: Session) -> None:
    """What is looked at, and the verdict at the cursor."""
    y = canvas.down(_MARGIN + 14)
    canvas.text(clip(_name(session), 50), _MARGIN, y, "name")
    canvas.text(clip(topbar.lane_name(session.lane), 55), WIDTH - _MARGIN, y, "dim", right=True)
    y = canvas.down(_LINE + 4)
    verdict = topbar.verdict(session)
    state = session.row(session.cursor).state if session.cursor else "new"
    if session.cursor:
        canvas.parts.append(strip.shape(state, _MARGIN + 5, y - 4))
    words = verdict.text.removeprefix(f"{GLYPH[state]} ")
    canvas.text(clip(words, 80), _MARGIN + (16 if session.cursor else 0), y, f"said title {state}")
    where = f"batch {session.cursor:,} of {len(session):,} · limits: {topbar.config(session)}"
    canvas.text(clip(where, 60), WIDTH - _MARGIN, y, "dim", right=True)
    canvas.down(20)


def _strip(canvas: _Canvas, shown: strip.Strip) -> None:
    """The overview where there is one, then the columns in rows."""
    if shown.overview:
        first, last = shown.columns[0].n, shown.columns[-1].n
        width = WIDTH - 2 * _MARGIN - _LABELS
        canvas.text("all", _MARGIN, canvas.y + 16, "dim")
        canvas.parts.append(strip.draw_overview(shown, _MARGIN + _LABELS, canvas.y, width, 20))
        canvas.down(42)
        canvas.text(
            f"#{first:,} to #{last:,}, {len(shown.columns)} of {shown.total:,} batches", _MARGIN, canvas.y, "dim"
        )
        canvas.down(12)
    for start in range(0, len(shown.columns), _ROW):
        for label, y in (("batch", 10), ("hash", 28), ("count", 47), ("state", 62)):
            canvas.text(label, _MARGIN, canvas.y + y, "dim")
        canvas.parts.append(strip.draw(shown.columns[start : start + _ROW], _MARGIN + _LABELS, canvas.y))
        canvas.down(strip.HEIGHT + 8)


def _legend(canvas: _Canvas) -> None:
    y = canvas.down(14)
    x = float(_MARGIN + _LABELS)
    for state in GLYPH:
        canvas.parts.append(strip.shape(state, x + 12, y - 4))
        canvas.text(state, x + 22, y, "dim")
        x += 40 + 8 * len(state)
    canvas.down(18)


def _section(canvas: _Canvas, section: meters.Section) -> None:
    y = canvas.down(_LINE)
    canvas.text(section.layer, _MARGIN, y, "title")
    canvas.text(section.about, _MARGIN + 8 + 8 * len(section.layer), y, "dim")
    canvas.text(section.limits, WIDTH - _MARGIN, y, "dim", right=True)
    for meter in section.meters:
        y = canvas.down(_LINE)
        label = f"{meter.letter} {meter.label}" if meter.letter else meter.label
        canvas.text(clip(label, 48), _MARGIN + 8, y, "title" if meter.moved else "")
        canvas.parts.append(meters.draw(meter, _BAR[0], y - 9, _BAR[1], 10))
        canvas.text(meter.tell(meter.value), _COUNT, y, "title" if meter.moved else "", right=True)
        canvas.text(clip(meter.note, 29), _NOTE, y, f"said {meter.state}")
    if section.more:
        canvas.text(section.more, _MARGIN + 8, canvas.down(_LINE), "dim")
    canvas.down(10)


def _description(session: Session, shown: strip.Strip, found: detect.Data | None) -> str:
    """The picture in words."""
    parts = [f"Batch {session.cursor} of {len(session)} in {topbar.lane_name(session.lane)}."]
    if shown.columns:
        parts.append(f"Batches with hash, count in the window and state: {strip.describe(shown.columns)}.")
    parts.extend(_in_words(found) if found is not None else ())
    return " ".join(parts)


def _in_words(found: detect.Data) -> Iterator[str]:
    for section in meters.sections(found):
        counts = "; ".join(
            f"{meter.letter} {meter.label}: {meter.tell(meter.value)}, {meter.note}".strip() for meter in section.meters
        )
        yield f"{section.layer}, {section.limits}: {counts}."
