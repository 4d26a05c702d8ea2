"""A sweep as a picture's values: which two settings are its axes, what is counted, and where the front lies.

Apart from those who draw: the terminal's screen, plain text, SVG and HTML all show these numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

from loopscope.session.grid import Values
from loopscope.session.summary import Run, Summary
from loopscope.session.sweep import Outcome
from loopscope.session.tune import Tuning
from loopscope.views.words import amount, safe_name

__all__ = ["LEVELS", "Map", "Metric", "Point", "Slice", "verdict", "wrong"]

LEVELS = 4
"""Shades of a heat map, beside none."""


class Metric(NamedTuple):
    """What a heat map counts."""

    name: str
    title: str
    get: Callable[[Tuning, Summary], float | None]
    harm: bool = True
    """More of it is worse."""


_LABELLED = (
    Metric(
        "wrong",
        "runs decided wrongly: healthy stopped, loops not",
        lambda _, c: c.healthy_stopped + c.loops_not_stopped,
    ),
    Metric("loops", "loops stopped", lambda t, c: t.loops - c.loops_not_stopped, harm=False),
    Metric("healthy", "healthy runs stopped", lambda _, c: c.healthy_stopped),
    Metric("missed", "loops neither warned nor stopped", lambda _, c: c.loops_missed),
)
_ALWAYS = (
    Metric("stopped", "runs stopped", lambda _, c: c.stopped, harm=False),
    Metric("warned", "runs warned or stopped", lambda _, c: c.warned, harm=False),
    Metric("saved", "batches saved by stopping", lambda _, c: c.saved_batches, harm=False),
    Metric("first", "batch of the first stop, median", lambda _, c: c.median_first_stop, harm=False),
)


class Slice(NamedTuple):
    """Two settings as axes, the others fixed."""

    columns: Values
    """Values of the first setting."""
    rows: Values
    """Values of the second one; one row where the grid has one setting."""
    fixed: Values
    """Of the third setting on."""


class Point(NamedTuple):
    """Where some cells lie between the harm that their stops do and the good."""

    x: int
    """Healthy runs stopped; without labels, runs stopped."""
    y: int
    """Loops stopped; without labels, batches saved."""
    cells: int
    front: bool
    best: bool
    now: bool


class Map:
    """A sweep with what is looked up again and again, each thing computed once.

    Args:
        tuning: the sweep.
    """

    def __init__(self, tuning: Tuning) -> None:
        self.tuning = tuning
        self.labelled = bool(tuning.loops and tuning.healthy)
        self.metrics = (*_LABELLED, *_ALWAYS) if self.labelled else _ALWAYS
        """What can be looked at, most telling first."""
        self.index = {cell.values: place for place, cell in enumerate(tuning.cells)}
        """Values of a cell -> its place among the cells, and among the outcomes of each run."""
        columns, *others = tuning.grid.values
        rows = others[0] if others else (0,)
        self.slices = tuple(Slice(columns, rows, fixed) for fixed in product(*others[1:]))
        self.front = frozenset(cell.values for cell in tuning.front)
        self.now = tuple(value or 0 for value in tuning.grid.now(tuning.base))
        """The limits in force; they need not be a cell."""
        self._ranges: dict[str, tuple[float, float]] = {}

    @property
    def start(self) -> Values:
        """The cell to begin at: the advised one, else that of today's limits, else the first of the front."""
        wanted = (self.tuning.advice.best, self.now, *(cell.values for cell in self.tuning.front))
        return next((values for values in wanted if values in self.index), ())

    def slice_of(self, values: Values) -> int:
        """The slice that holds a cell; the first one where there is no such cell."""
        return next((n for n, each in enumerate(self.slices) if each.fixed == values[2:]), 0)

    def values(self, part: Slice, column: int, row: int) -> Values:
        """The values of the cell at a place of a slice, in the order of the settings."""
        first = (part.columns[column],)
        return first if len(self.tuning.grid.settings) == 1 else (*first, part.rows[row], *part.fixed)

    def cell(self, values: Values) -> Summary | None:
        """The cell; None where its values are no valid policy."""
        place = self.index.get(values)
        return None if place is None else self.tuning.cells[place]

    def text(self, metric: Metric, cell: Summary) -> str:
        """The value of a cell, short."""
        value = metric.get(self.tuning, cell)
        return "-" if value is None else amount(value)

    def level(self, metric: Metric, cell: Summary) -> int:
        """The shade of a cell, 0 to `LEVELS`: where its value lies between the least and the largest of the sweep."""
        low, high = self._range(metric)
        value = metric.get(self.tuning, cell)
        return 0 if value is None or high <= low else round((value - low) / (high - low) * LEVELS)

    def _range(self, metric: Metric) -> tuple[float, float]:
        known = self._ranges.get(metric.name)
        if known is None:
            found = [v for cell in self.tuning.cells if (v := metric.get(self.tuning, cell)) is not None]
            known = self._ranges[metric.name] = (min(found, default=0.0), max(found, default=0.0))
        return known

    def sign(self, values: Values) -> str:
        """What a cell is beside its number: `●` advised, `◆` on the front, `○` today's limits."""
        if values == self.tuning.advice.best:
            return "●"
        if values == self.now:
            return "○"
        return "◆" if values in self.front else " "

    def setting(self, values: Values) -> str:
        """A cell in words, as `--set` takes it; safe to draw."""
        return " ".join(f"{safe_name(n)}={value}" for n, value in zip(self.tuning.grid.settings, values, strict=True))

    def points(self) -> list[Point]:
        """The cells in the plane of the front."""
        found: dict[tuple[int, int], list[Summary]] = {}
        for cell in self.tuning.cells:
            found.setdefault(self._place(cell), []).append(cell)
        return [self._point(place, cells) for place, cells in sorted(found.items())]

    def _point(self, place: tuple[int, int], cells: list[Summary]) -> Point:
        values = {cell.values for cell in cells}
        best = self.tuning.advice.best in values
        return Point(*place, len(cells), bool(values & self.front), best, self.now in values)

    def _place(self, cell: Summary) -> tuple[int, int]:
        if self.labelled:
            return cell.healthy_stopped, self.tuning.loops - cell.loops_not_stopped
        return cell.stopped, cell.saved_batches

    @property
    def axes(self) -> tuple[str, str]:
        """What the plane's two axes count."""
        return ("healthy runs stopped", "loops stopped") if self.labelled else ("runs stopped", "batches saved")


def verdict(outcome: Outcome) -> str:
    """What a policy does to a run: its first warning and its first stop, `-` for none."""
    return f"{outcome.first_warning or '-'}/{outcome.first_stop or '-'}"


def wrong(run: Run, outcome: Outcome) -> bool:
    """Whether the policy does to the run what its label says that it should not."""
    stopped = outcome.first_stop is not None
    return (run.label == "ok" and stopped) or (run.label == "loop" and not stopped)
