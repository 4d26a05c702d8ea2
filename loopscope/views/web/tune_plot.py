"""The drawings of a sweep: a heat map, the plane in which the front lies, and how both look."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from loopscope.session.grid import Values
from loopscope.views.heat import SHADES, shade
from loopscope.views.palette import Palette
from loopscope.views.tune import Map, Metric, Point, Slice
from loopscope.views.web.markup import Markup, joined, tag
from loopscope.views.words import amount, plural

__all__ = ["PLANE", "Box", "cell_size", "describe", "heat_map", "plane", "shade_name", "sign", "style"]

PLANE = (420, 250)
"""Width and height of the plane of points."""
_LEAST = 22
"""Width of a cell from which on its number has room."""
_SIGNS = {"●": "best", "○": "now", "◆": "front"}
_PATHS = {
    "best": "M0-5 1.5-1.6 5-1.3 2.3.9 3.1 4.3 0 2.5-3.1 4.3-2.3.9-5-1.3-1.5-1.6z",
    "front": "M0-4 4 0 0 4-4 0z",
    "now": "M0-3.5a3.5 3.5 0 1 0 .01 0z",
}
_RULES = """
.loopscope .sign{stroke-width:1.2;stroke-linejoin:round}
.loopscope .axis{stroke:var(--dim);fill:none}
.loopscope .grid{stroke:var(--line);fill:none}
.loopscope .dot{fill:var(--dim);fill-opacity:.55}
.loopscope .dot.front{fill:var(--repeat);fill-opacity:1}
.loopscope .dot.best{fill:var(--warn);fill-opacity:1}
.loopscope .dot.now{fill:none;stroke:var(--text);stroke-width:1.6}
.loopscope .edge{fill:none;stroke:var(--repeat);stroke-width:1.5}
.loopscope .none{fill:none;stroke:var(--line);stroke-dasharray:2 3}
.loopscope text.number{font-size:11px;fill:var(--text)}
"""


def style(palette: Palette) -> str:
    """The rules of both drawings, to be added to those of a picture or page, which say what `var(--text)` is."""
    rules = [_RULES, f".loopscope .level_0{{fill:{palette.panel};background:{palette.panel};color:{palette.text}}}"]
    for name, harm in (("cool", False), ("warm", True)):
        for level in range(1, len(SHADES) + 1):
            found = shade(palette, level, harm=harm)
            rules.append(f".loopscope .{name}_{level}{{fill:{found.back};background:{found.back};color:{found.text}}}")
            rules.append(f".loopscope text.on_{name}_{level}{{fill:{found.text}}}")
            rules.append(f".loopscope .sign.on_{name}_{level}{{fill:{found.text};stroke:{found.text}}}")
    rules.append(f".loopscope .sign.on_level_0{{fill:{palette.text};stroke:{palette.text}}}")
    rules.append(".loopscope .sign.now{fill:none}")
    return "".join(rules)


def shade_name(sheet: Map, metric: Metric, values: Values) -> str:
    """The class of a cell's shade."""
    cell = sheet.cell(values)
    level = 0 if cell is None else sheet.level(metric, cell)
    return f"{'warm' if metric.harm else 'cool'}_{level}" if level else "level_0"


def sign(kind: str, x: float, y: float, look: str) -> Markup:
    """The sign of the advised cell, of today's limits, or of the front."""
    return tag("path", class_=f"sign {kind} {look}", d=_PATHS[kind], transform=f"translate({x:g} {y:g})")


def cell_size(part: Slice, room: float) -> tuple[float, float]:
    """Width and height of a cell where so much width is there for all columns."""
    height = 24 if len(part.rows) <= 40 else max(4.0, 960 / len(part.rows))  # noqa: PLR2004 - a page's height
    return min(42.0, room / len(part.columns)), height


class Box(NamedTuple):
    """Where something is drawn, and how large."""

    x: float
    y: float
    wide: float
    high: float


def heat_map(sheet: Map, part: Slice, metric: Metric, first: Box) -> Markup:
    """A slice as rectangles with their numbers; the labels of columns are above them, those of rows on their left.

    Args:
        sheet: the sweep.
        part: the slice.
        metric: what is counted.
        first: the first cell's place and size.
    """
    x, y, wide, high = first
    parts: list[Markup] = []
    names = sheet.tuning.grid.settings
    for column, value in enumerate(part.columns):
        if wide >= _LEAST or column % max(1, round(_LEAST / wide)) == 0:
            at = x + (column + 0.5) * wide
            parts.append(tag("text", f"{value}", class_="dim count", x=at, y=y - 5, text_anchor="middle"))
    for row, value in enumerate(part.rows):
        if len(names) > 1 and (high >= 12 or row % 4 == 0):  # noqa: PLR2004 - the height of a text
            at = y + (row + 0.5) * high + 4
            parts.append(tag("text", f"{value}", class_="dim count", x=x - 6, y=at, text_anchor="end"))
        for column in range(len(part.columns)):
            values = sheet.values(part, column, row)
            parts += _cell(sheet, metric, values, Box(x + column * wide, y + row * high, wide, high))
    return joined(parts)


def _cell(sheet: Map, metric: Metric, values: Values, place: Box) -> Iterator[Markup]:
    x, y, wide, high = place
    cell = sheet.cell(values)
    box = {"x": x + 0.5, "y": y + 0.5, "width": wide - 1, "height": high - 1}
    if cell is None:
        yield tag("rect", class_="none", **box)
        return
    look = shade_name(sheet, metric, values)
    told = tag("title", f"{sheet.setting(values)}: {sheet.text(metric, cell)}")
    yield tag("g", told, tag("rect", class_=look, **box))
    kind = _SIGNS.get(sheet.sign(values))
    if wide >= _LEAST and high >= 14:  # noqa: PLR2004 - the height of a text
        middle = x + wide / 2 - (0 if kind is None else 5)
        said = sheet.text(metric, cell)
        yield tag("text", said, class_=f"number on_{look}", x=middle, y=y + high / 2 + 4, text_anchor="middle")
    if kind is not None:
        yield sign(kind, x + wide - 8, y + high / 2, f"on_{look}")


def plane(sheet: Map, x: float, y: float) -> Markup:
    """All cells as points: harm to the right, good upwards; the size of a point tells how many cells are there."""
    found = sheet.points()
    wide, high = PLANE
    right, top = max(1, *(point.x for point in found)), max(1, *(point.y for point in found))
    parts = [tag("path", class_="axis", d=f"M{x:g} {y:g}V{y + high:g}H{x + wide:g}")]
    parts += _ticks(right, x, y + high, wide)
    parts += _marks(top, x, y, (wide, high))

    def at(point: Point) -> tuple[float, float]:
        return x + 14 + point.x / right * (wide - 28), y + high - 10 - point.y / top * (high - 24)

    edge = [at(point) for point in _rising(found)]
    parts.append(tag("path", class_="edge", d="M" + "L".join(f"{px:.4g} {py:.4g}" for px, py in edge)))
    for point in sorted(found, key=lambda p: (p.front, p.now, p.best)):
        px, py = at(point)
        kind = "best" if point.best else "front" if point.front else ""
        said = f"{plural(point.cells, 'setting')}: {sheet.axes[0]} {point.x}, {sheet.axes[1]} {point.y:,}"
        radius = min(9.0, 2.5 + point.cells**0.5 / 2)
        dot = tag("circle", class_=f"dot {kind}".strip(), cx=px, cy=py, r=radius)
        parts.append(tag("g", tag("title", said), dot))
        if point.now:
            parts.append(tag("circle", class_="dot now", cx=px, cy=py, r=radius + 3))
    parts.append(tag("text", sheet.axes[0], class_="dim", x=x + wide, y=y + high + 34, text_anchor="end"))
    parts.append(tag("text", sheet.axes[1], class_="dim", x=x - 24, y=y - 8))
    return joined(parts)


def _rising(found: list[Point]) -> Iterator[Point]:
    """The points that have more good than any with as little harm: others are on the front for what they save."""
    best = -1
    for point in found:
        highest = max(other.y for other in found if other.x == point.x)
        if point.y == highest > best:
            best = point.y
            yield point


def _ticks(right: int, x: float, y: float, wide: float) -> Iterator[Markup]:
    step = max(1, -(-right // 10))
    for value in range(0, right + 1, step):
        at = x + 14 + value / right * (wide - 28)
        yield tag("text", amount(value), class_="dim count", x=at, y=y + 16, text_anchor="middle")


def _marks(top: int, x: float, y: float, size: tuple[float, float]) -> Iterator[Markup]:
    wide, high = size
    step = max(1, -(-top // 5))
    for value in range(0, top + 1, step):
        at = y + high - 10 - value / top * (high - 24)
        yield tag("path", class_="grid", d=f"M{x:g} {at:g}H{x + wide:g}")
        yield tag("text", amount(value), class_="dim count", x=x - 6, y=at + 4, text_anchor="end")


def describe(sheet: Map) -> str:
    """The plane in words."""
    across, up = sheet.axes
    told = [f"{across} {p.x}, {up} {p.y:,}" for p in sheet.points() if p.front]
    return f"What no other setting beats: {'; '.join(told)}." if told else "There is no setting."
