"""A sweep in lines: the heat map, the front as a plane of points, a cell in numbers, the runs under it, the advice."""

from __future__ import annotations

from typing import NamedTuple, cast

from loopscope.recording.inert import inert
from loopscope.session.grid import Values
from loopscope.session.summary import Run, Summary
from loopscope.session.tune import Tuning
from loopscope.views.cells import cell_len
from loopscope.views.flow import wrap
from loopscope.views.glyphs import GLYPH, TONE
from loopscope.views.model import Line, Span, Style, crop, fit, marked
from loopscope.views.tune import Map, Metric, Slice, wrong
from loopscope.views.words import amount, plural, safe_name

__all__ = [
    "CELL", "View", "advice", "cell_lines", "every_cell", "front", "front_cells", "heat", "label_width", "legend",
    "run_line", "runs", "slice_name", "text", "title",
]  # fmt: skip

CELL = 6
"""Cells of the terminal that one cell of the grid takes."""
_LONGEST = 1000
"""Characters of a reason, which names runs."""
_HEIGHT = 10
"""Rows of the plane of points."""
_TONES: dict[str, Style] = {"●": "bar_warn", "○": "title", "◆": "repeat"}
_SIGNS = (("●", "advised"), ("○", "limits now"), ("◆", "front"))


class View(NamedTuple):
    """What is looked at."""

    part: Slice
    metric: Metric
    column: int = -1
    """Of the cell at the cursor; -1 where there is no cursor."""
    row: int = -1


def label_width(sheet: Map, part: Slice) -> int:
    """Cells before the first column of a heat map."""
    grid = sheet.tuning.grid
    names = [*(safe_name(name) for name in grid.settings[:2]), *map(str, part.rows)]
    return min(24, max(map(cell_len, names))) + 2


def slice_name(sheet: Map, part: Slice) -> str:
    """The settings that a slice fixes."""
    names = sheet.tuning.grid.settings[2:]
    return "  ".join(f"{safe_name(name)} {value}" for name, value in zip(names, part.fixed, strict=True))


def heat(sheet: Map, view: View, width: int, first: int = 0) -> list[Line]:
    """The heat map of a slice: a row a value of the second setting, and as many columns as there is room for.

    Args:
        sheet: the sweep.
        view: slice, metric and cursor.
        width: cells.
        first: position of the first column that is shown.
    """
    part, settings = view.part, sheet.tuning.grid.settings
    label = label_width(sheet, part)
    room = max(1, (width - label) // CELL)
    columns = range(first, min(len(part.columns), first + room))
    more = len(part.columns) - len(columns)
    head: list[Span] = [Span(fit(safe_name(settings[0]), label), "title")]
    head += [Span(f"{part.columns[c]:^{CELL}}", "title" if c == view.column else "dim") for c in columns]
    lines: list[Line] = [tuple(head)]
    for row, value in enumerate(part.rows):
        name = str(value) if len(settings) > 1 else ""
        style: Style = "title" if row == view.row else "dim"
        spans = [Span(fit(name, label - 2, right=True), style), Span("  ")]
        spans += [_cell(sheet, view, column, row) for column in columns]
        lines.append(tuple(spans))
    if len(settings) > 1:
        lines.insert(1, (Span(fit(safe_name(settings[1]), label), "title"),))
    if more:
        lines.append((Span(f"{' ' * label}and {plural(more, 'more column')}", "dim"),))
    return [crop(line, width) for line in lines]


def _cell(sheet: Map, view: View, column: int, row: int) -> Span:
    values = sheet.values(view.part, column, row)
    cell = sheet.cell(values)
    here = (column, row) == (view.column, view.row)
    if cell is None:
        return Span(f"{'·':^{CELL}}", "dim", "cursor" if here else "")
    text = f"{sheet.text(view.metric, cell):>{CELL - 3}} {sheet.sign(values)} "
    level = sheet.level(view.metric, cell)
    scale = "warm" if view.metric.harm else "cool"
    style = cast("Style", f"{scale}_{level}") if level else "text"
    return Span(text, style, "cursor" if here else "")


def legend() -> Line:
    """What the signs in a heat map mean."""
    return tuple(Span(f"{sign} {said}   ", "dim") for sign, said in _SIGNS)


def cell_lines(sheet: Map, values: Values, width: int) -> list[Line]:
    """One cell: its settings, and all that is counted of it."""
    tuning, cell = sheet.tuning, sheet.cell(values)
    title: Line = (Span(sheet.setting(values), "title"), Span(f"  {_said(sheet, values)}", "dim"))
    if cell is None:
        return [crop(title, width), (Span(" no valid policy: a hard limit below its warning", "dim"),)]
    told = [piece for line in _numbers(tuning, cell) for piece in wrap(line, max(1, width - 1))]
    return [crop(title, width), *((Span(f" {piece}"),) for piece in told)]


def _said(sheet: Map, values: Values) -> str:
    return dict(_SIGNS).get(sheet.sign(values), "")


def _numbers(tuning: Tuning, cell: Summary) -> list[str]:
    middle = "" if cell.median_first_stop is None else f", first stop at #{cell.median_first_stop:g} (median)"
    lines = [f"{cell.warned} of {plural(len(tuning.runs), 'run')} warned or stopped, {cell.stopped} stopped{middle}"]
    if tuning.loops:
        missed = f", {cell.loops_missed} neither warned nor stopped" if cell.loops_missed else ""
        lines.append(f"loops: {tuning.loops - cell.loops_not_stopped} of {tuning.loops} stopped{missed}")
    if tuning.healthy:
        lost = f", {plural(cell.lost_batches, 'batch')} of theirs lost" if cell.lost_batches else ""
        told = f"healthy: {cell.healthy_stopped} of {tuning.healthy} stopped, {cell.healthy_warned} warned or stopped"
        lines.append(told + lost)
    return [*lines, _saved(cell)]


def _saved(cell: Summary) -> str:
    tokens = f", {amount(cell.saved_tokens)} tokens" if cell.saved_tokens else ""
    cost = f", ${cell.saved_cost_usd:,.2f}" if cell.saved_cost_usd else ""
    return f"saved by stopping: {plural(cell.saved_batches, 'batch')}{tokens}{cost}"


def runs(sheet: Map, values: Values, width: int, chosen: int = -1) -> list[Line]:
    """Every run under a cell, the chosen one marked."""
    place = sheet.index.get(values)
    if place is None:
        return []
    return [
        marked(line, "cursor") if row == chosen else line
        for row, line in enumerate(run_line(run, place, width) for run in sheet.tuning.runs)
    ]


def run_line(run: Run, place: int, width: int) -> Line:
    """One run under one policy: its name, its label, its first warning and first stop."""
    outcome = run.outcomes[place]
    state = "stop" if outcome.first_stop is not None else "warn" if outcome.first_warning is not None else "new"
    bad = wrong(run, outcome)
    parts = [f"warned #{outcome.first_warning}"] if outcome.first_warning is not None else []
    parts += [f"stopped #{outcome.first_stop}"] if outcome.first_stop is not None else []
    said = ", ".join(parts) or "passes"
    room = max(8, width - 36)
    return crop(
        (
            Span(f"{GLYPH[state]} ", TONE[state]),
            Span(f"{fit(safe_name(run.name), room)} "),
            Span(fit(run.label or "", 5), "dim"),
            Span(fit(said, 23), TONE[state] if state != "new" else "text"),
            Span("wrong" if bad else "     ", "bar_warn"),
        ),
        width,
    )


def front(sheet: Map, width: int) -> list[Line]:
    """The plane of all cells: harm to the right, good upwards; what no cell beats is the front."""
    across, up = sheet.axes
    found = sheet.points()
    if not found:
        return []
    xs = sorted({point.x for point in found})
    top = max(point.y for point in found)
    low = min(point.y for point in found)
    span = max(1, top - low)
    rows = min(_HEIGHT, span + 1)
    label = max(len(amount(top)), len(amount(low))) + 2
    step = min(CELL, max(3, (width - label) // max(1, len(xs))))
    signs: dict[tuple[int, int], str] = {}
    for point in sorted(found, key=lambda each: (each.best, each.now, each.front)):
        place = (xs.index(point.x), round((point.y - low) / span * (rows - 1)))
        signs[place] = "●" if point.best else "○" if point.now else "◆" if point.front else "·"
    lines: list[Line] = [(Span(up, "dim"),)]
    for row in range(rows - 1, -1, -1):
        each = row in {0, rows - 1} or span < _HEIGHT
        value = amount(round(low + span * row / max(1, rows - 1))) if each else ""
        spans = [Span(f"{value:>{label - 2}} │", "dim")]
        spans += [_mark(signs.get((column, row), " "), step) for column in range(len(xs))]
        lines.append(tuple(spans))
    lines.append((Span(f"{' ' * (label - 2)} └{'─' * (step * len(xs))}", "dim"),))
    numbers = "".join(f"{amount(x):^{step}}" for x in xs)
    lines.append((Span(f"{' ' * label}{numbers}  {across}", "dim"),))
    return [crop(line, width) for line in lines]


def _mark(sign: str, step: int) -> Span:
    return Span(f"{sign:^{step}}", _TONES.get(sign, "dim"))


def front_cells(sheet: Map, width: int) -> list[Line]:
    """The cells of the front as a table, least harm first."""
    rows = [(sheet.sign(cell.values), _front_row(sheet, cell)) for cell in sheet.tuning.front]
    return _table(sheet, _heads(sheet), rows, width)


def every_cell(sheet: Map, width: int) -> list[Line]:
    """All cells as a table, with all that is counted of each."""
    heads = ["warned", "stopped", "first stop"]
    heads += ["healthy stopped", "missed"] if sheet.labelled else []
    rows = [(sheet.sign(cell.values), _whole_row(sheet, cell)) for cell in sheet.tuning.cells]
    return _table(sheet, [*heads, *_saved_heads(sheet)], rows, width)


def _whole_row(sheet: Map, cell: Summary) -> list[str]:
    middle = "-" if cell.median_first_stop is None else f"#{cell.median_first_stop:g}"
    told = [f"{cell.warned}", f"{cell.stopped}", middle]
    told += [f"{cell.healthy_stopped}", f"{cell.loops_missed}"] if sheet.labelled else []
    return [*map(str, cell.values), *told, *_saved_row(sheet, cell)]


def _table(sheet: Map, heads: list[str], cells: list[tuple[str, list[str]]], width: int) -> list[Line]:
    """Rows of settings with their signs, under their heads."""
    heads = [*(safe_name(name) for name in sheet.tuning.grid.settings), *heads]
    widths = [max(cell_len(head), 6) + 2 for head in heads]
    rows = [(" ", heads), *cells]
    lines: list[Line] = []
    for place, (sign, row) in enumerate(rows):
        told = "".join(fit(text, cells) for text, cells in zip(row, widths, strict=True)).rstrip()
        lines.append(
            crop((Span(f"{sign} ", _TONES.get(sign, "dim")), Span(told, "dim" if place == 0 else "text")), width)
        )
    return lines


def _heads(sheet: Map) -> list[str]:
    told = ["loops", "healthy"] if sheet.labelled else ["stopped"]
    return [*told, *_saved_heads(sheet)]


def _saved_heads(sheet: Map) -> list[str]:
    return ["batches saved", *(["tokens saved"] if _has_tokens(sheet) else [])]


def _saved_row(sheet: Map, cell: Summary) -> list[str]:
    return [f"{cell.saved_batches:,}", *([amount(cell.saved_tokens)] if _has_tokens(sheet) else [])]


def _has_tokens(sheet: Map) -> bool:
    return any(cell.saved_tokens for cell in sheet.tuning.cells)


def _front_row(sheet: Map, cell: Summary) -> list[str]:
    tuning = sheet.tuning
    told = [f"{cell.stopped}/{len(tuning.runs)}"]
    if sheet.labelled:
        stopped = tuning.loops - cell.loops_not_stopped
        told = [f"{stopped}/{tuning.loops}", f"{cell.healthy_stopped}/{tuning.healthy}"]
    return [*map(str, cell.values), *told, *_saved_row(sheet, cell)]


def advice(sheet: Map, width: int) -> list[Line]:
    """What to take, with the reasons."""
    reasons = sheet.tuning.advice.reasons
    lines: list[Line] = []
    for place, reason in enumerate(reasons):
        first: Style = "title" if place == 0 else "text"
        for row, piece in enumerate(wrap(inert(reason, _LONGEST), max(1, width - 2))):
            lines.append((Span("· " if row == 0 else "  ", "dim"), Span(piece, first)))
    return lines


def text(sheet: Map, width: int) -> list[Line]:
    """All of it, for where no screen is: heat maps, front and advice."""
    tuning = sheet.tuning
    metric = sheet.metrics[0]
    shown = sheet.slice_of(sheet.start)
    lines: list[Line] = [(Span(title(tuning), "title"),), ()]
    lines.append((Span(metric.title, "title"),))
    for number, part in enumerate(sheet.slices):
        if number == shown or len(sheet.slices) <= _MOST_SLICES:
            name = slice_name(sheet, part)
            lines += [(Span(name, "dim"),)] if name else []
            lines += [*_wrapped(sheet, View(part, metric), width), ()]
    hidden = len(sheet.slices) - 1 if len(sheet.slices) > _MOST_SLICES else 0
    if hidden:
        lines += [(Span(f"and {plural(hidden, 'more slice')}; --json and --csv have every cell", "dim"),), ()]
    table = every_cell if len(tuning.cells) <= _MOST_CELLS else front_cells
    lines += [legend(), (), *front(sheet, width), (), *table(sheet, width), (), *advice(sheet, width)]
    return lines


_MOST_SLICES = 6
_MOST_CELLS = 24
"""Cells that are all told as text; of more, those of the front."""


def _wrapped(sheet: Map, view: View, width: int) -> list[Line]:
    """A heat map whose columns go on below where they have no room."""
    room = max(1, (width - label_width(sheet, view.part)) // CELL)
    lines: list[Line] = []
    for first in range(0, len(view.part.columns), room):
        part = view.part._replace(columns=view.part.columns[first : first + room])
        lines += heat(sheet, view._replace(part=part), width)
    return lines


def title(tuning: Tuning) -> str:
    """What was swept."""
    labels = f" ({plural(tuning.loops, 'loop')}, {tuning.healthy} ok)" if tuning.loops or tuning.healthy else ""
    batches = sum(run.batches for run in tuning.runs)
    cells = plural(len(tuning.cells), "setting")
    return f"{plural(len(tuning.runs), 'recording')}{labels}, {plural(batches, 'batch')}; {cells}"
