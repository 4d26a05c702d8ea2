"""A sweep as one SVG picture: its heat maps, the front, and what to take of it."""

from __future__ import annotations

from loopscope.recording.inert import inert
from loopscope.session.grid import Values
from loopscope.session.tune import Tuning
from loopscope.views.flow import wrap
from loopscope.views.model import clip
from loopscope.views.tune import Map, Slice
from loopscope.views.tune_lines import slice_name, title
from loopscope.views.web import look, tune_plot
from loopscope.views.web.document import drawing
from loopscope.views.web.markup import Markup, tag

__all__ = ["MOST_SLICES", "picture"]

MOST_SLICES = 6
"""Heat maps that are drawn; of more, the one with the advised cell."""
WIDTH = 960
_MARGIN = 28
_LABEL = 64
_LINE = 20
_LONGEST = 1000


def picture(tuning: Tuning, *, theme: str | None = None) -> str:
    """The picture, as a whole SVG document that ends in a newline.

    Args:
        tuning: the sweep.
        theme: `dark` or `light`; None follows the colours of whoever looks at it.
    """
    sheet = Map(tuning)
    parts: list[Markup] = []
    y = _head(parts, sheet)
    y = _maps(parts, sheet, y)
    y = _front(parts, sheet, y)
    y = _advice(parts, sheet, y)
    height = y + _MARGIN
    description = f"{tune_plot.describe(sheet)} {' '.join(tuning.advice.reasons)}"
    style = look.picture_style(theme, tune_plot.style)
    return drawing(f"loopscope tune: {title(tuning)}", description, style, WIDTH, height, parts)


def _text(text: str, x: float, y: float, look_: str = "", *, right: bool = False) -> Markup:
    return tag("text", text, class_=look_ or None, x=x, y=y, text_anchor="end" if right else None)


def _head(parts: list[Markup], sheet: Map) -> float:
    y = _MARGIN + 14
    parts.append(_text("loopscope tune", _MARGIN, y, "name"))
    parts.append(_text(clip(title(sheet.tuning), 80), WIDTH - _MARGIN, y, "dim", right=True))
    parts.append(_text(sheet.metrics[0].title, _MARGIN, y + 30, "title"))
    x = WIDTH - _MARGIN - 280
    for kind, said in (("best", "advised"), ("now", "limits now"), ("front", "front")):
        parts.append(tune_plot.sign(kind, x, y + 26, "on_level_0"))
        parts.append(_text(said, x + 12, y + 30, "dim"))
        x += 40 + 8 * len(said)
    return y + 44


def _maps(parts: list[Markup], sheet: Map, y: float) -> float:
    """The heat maps, as many beside each other as there is room for."""
    shown = list(sheet.slices)
    if len(shown) > MOST_SLICES:
        shown = [sheet.slices[sheet.slice_of(sheet.start)]]
    wide, high = tune_plot.cell_size(shown[0], WIDTH - 2 * _MARGIN - _LABEL)
    if len(shown) > 1:
        wide = min(wide, max(28.0, (WIDTH / 2 - _MARGIN - _LABEL - 12) / len(shown[0].columns)))
    each = _LABEL + wide * len(shown[0].columns)
    beside = max(1, int((WIDTH - 2 * _MARGIN + 20) // (each + 20)))
    for start in range(0, len(shown), beside):
        for place, part in enumerate(shown[start : start + beside]):
            _map(parts, sheet, part, (_MARGIN + place * (each + 20), y), (wide, high))
        y += 52 + high * len(shown[0].rows) + 12
    hidden = len(sheet.slices) - len(shown)
    if hidden:
        parts.append(
            _text(f"one of {len(sheet.slices):,} slices; the page, --json and --csv have the others", _MARGIN, y, "dim")
        )
        y += _LINE
    return y + 6


def _map(parts: list[Markup], sheet: Map, part: Slice, place: tuple[float, float], size: tuple[float, float]) -> None:
    x, y = place
    names = [inert(name) for name in sheet.tuning.grid.settings]
    parts.append(_text(clip(slice_name(sheet, part), 60), x, y + 12, "dim"))
    down = f"{clip(names[1], 30)} ↓  " if len(names) > 1 else ""
    parts.append(_text(f"{down}{clip(names[0], 30)} →", x, y + 28, "count dim"))
    parts.append(tune_plot.heat_map(sheet, part, sheet.metrics[0], tune_plot.Box(x + _LABEL, y + 48, *size)))


def _front(parts: list[Markup], sheet: Map, y: float) -> float:
    """The plane, and beside it the cells of the front."""
    wide, high = tune_plot.PLANE
    parts.append(_text("what no other setting beats", _MARGIN, y + 14, "title"))
    parts.append(tune_plot.plane(sheet, _MARGIN + 34, y + 46))
    x, line = _MARGIN + 34 + wide + 36, y + 52
    for cell in sheet.tuning.front[:8]:
        kind = {"●": "best", "○": "now"}.get(sheet.sign(cell.values), "front")
        parts.append(tune_plot.sign(kind, x + 4, line - 4, "on_level_0"))
        parts.append(_text(clip(sheet.setting(cell.values), 54), x + 16, line))
        parts.append(_text(_does(sheet, cell.values), x + 16, line + 15, "count dim"))
        line += 36
    more = len(sheet.tuning.front) - 8
    if more > 0:
        parts.append(_text(f"and {more:,} more", x + 16, line, "dim"))
    return y + 46 + high + 72


def _does(sheet: Map, values: Values) -> str:
    tuning, cell = sheet.tuning, sheet.tuning.cells[sheet.index[values]]
    if sheet.labelled:
        stopped = tuning.loops - cell.loops_not_stopped
        told = f"{stopped} of {tuning.loops} loops, {cell.healthy_stopped} of {tuning.healthy} healthy stopped"
    else:
        told = f"{cell.stopped} of {len(tuning.runs)} runs stopped"
    return f"{told}, {cell.saved_batches:,} batches saved"


def _advice(parts: list[Markup], sheet: Map, y: float) -> float:
    for place, reason in enumerate(sheet.tuning.advice.reasons):
        for row, piece in enumerate(wrap(inert(reason, _LONGEST), 118)):
            parts.append(_text("" if row else "•", _MARGIN, y, "dim"))
            parts.append(_text(piece, _MARGIN + 14, y, "title" if place == 0 else ""))
            y += _LINE
    return y
