"""Tuning: policies over many runs, what each does to them, and which ones no other one beats.

Labels say which runs are loops and which are healthy; `loopscope.session.advice` tells what to take of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from loopscope.engine.policy import Policy
from loopscope.session.advice import Advice, advise
from loopscope.session.grid import Cell, Grid, Values
from loopscope.session.summary import Run, Summary, summarise
from loopscope.session.sweep import Outcome, Sweeper
from loopscope.session.timeline import Timeline
from loopscope.session.whatif import Reader

__all__ = ["Comparison", "Tuning", "compare_policies", "outcomes", "tune"]


class _Labelled(Struct, frozen=True):
    """Something of many runs, some of which a person has labelled."""

    runs: tuple[Run, ...]

    @property
    def loops(self) -> int:
        """Runs labelled loop."""
        return sum(run.label == "loop" for run in self.runs)

    @property
    def healthy(self) -> int:
        """Runs labelled ok."""
        return sum(run.label == "ok" for run in self.runs)


class Tuning(_Labelled, frozen=True):
    """A grid over many runs."""

    grid: Grid
    base: Policy
    """What the grid is laid over."""
    cells: tuple[Summary, ...]
    """Every valid combination; `Run.outcomes` are in their order."""
    front: tuple[Summary, ...]
    """The cells that no other one beats: in loops stopped, healthy runs spared and batches saved at once; without
    labels, in runs spared and batches saved."""
    advice: Advice
    policies: tuple[Policy, ...]
    """Of each cell."""


class Comparison(_Labelled, frozen=True):
    """Some policies over many runs: the matrix of verdicts."""

    names: tuple[str, ...]
    policies: tuple[Policy, ...]
    totals: tuple[Summary, ...]
    """Of each policy."""


def outcomes(timeline: Timeline, policies: Sequence[Policy], reader: Reader | None = None) -> list[Outcome]:
    """What each policy does to one run: the part that may run in parallel, one run a worker.

    Args:
        timeline: the run.
        policies: what to decide it under.
        reader: reads batches again, for policies whose identity is another one than the run was folded with.
    """
    sweeper = Sweeper(timeline, reader)
    known: dict[Outcome, Outcome] = {}
    found = [sweeper.outcome(policy) for policy in policies]
    # Most cells do the same: one object each is little to keep, and to send from a worker.
    return [known.setdefault(outcome, outcome) for outcome in found]


def tune(
    grid: Grid, base: Policy, runs: Sequence[Run], others: Mapping[str, Sequence[Outcome]] | None = None
) -> Tuning:
    """Every cell of a grid over every run.

    Args:
        grid: the settings that were tried.
        base: the policy that they are laid over.
        runs: with the outcomes of `grid.cells(base)`, in their order.
        others: what other policies, by name, do to each of the runs: what to advise where the grid has no answer.
    """
    cells = list(grid.cells(base))
    summaries = tuple(summarise(cell.values, runs, index) for index, cell in enumerate(cells))
    now = grid.now(base)
    near = {cell.values: _distance(cell, now) for cell in cells}
    labelled = any(run.label is not None for run in runs)
    front = tuple(_front(summaries, near, labelled=labelled))
    totals = {
        name: summarise((), [Run(r.name, r.batches, [found[i]], r.label) for i, r in enumerate(runs)], 0)
        for name, found in (others or {}).items()
    }
    advice = advise(grid.settings, summaries, near, runs, totals)
    return Tuning(tuple(runs), grid, base, summaries, front, advice, tuple(cell.policy for cell in cells))


def compare_policies(policies: Mapping[str, Policy], runs: Sequence[Run]) -> Comparison:
    """Policies side by side over every run, whose outcomes are in their order."""
    totals = tuple(summarise((), runs, index) for index in range(len(policies)))
    return Comparison(tuple(runs), tuple(policies), tuple(policies.values()), totals)


def _distance(cell: Cell, now: Sequence[float | None]) -> float:
    """How far a cell is from what is now, each setting as a share of its own value."""
    pairs = zip(cell.values, now, strict=True)
    return sum(abs(value - own) / max(1, own) for value, own in pairs if own is not None)


def _front(cells: Sequence[Summary], near: Mapping[Values, float], *, labelled: bool) -> list[Summary]:
    """Cells that are not beaten; of those that do the same, the one nearest to the base."""

    def harm(cell: Summary) -> tuple[int, int]:
        return (cell.healthy_stopped, cell.loops_not_stopped) if labelled else (cell.stopped, 0)

    best: dict[tuple[int, int], int] = {}
    kept: list[Summary] = []
    for cell in sorted(cells, key=lambda each: (*harm(each), -each.saved_batches, near[each.values])):
        place = harm(cell)
        if not any(left <= place[1] and saved >= cell.saved_batches for (_, left), saved in best.items()):
            kept.append(cell)
            best[place] = max(best.get(place, -1), cell.saved_batches)
    return kept
