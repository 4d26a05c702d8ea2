"""Tuning: a grid over many runs, what each setting does to them, and which one to take, with the reasons.

Labels say which runs are loops and which are healthy; without them nobody can say that a stop was right, so without
them nothing is recommended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from loopscope.engine.policy import Policy
from loopscope.session.sweep import Cell, Grid, Outcome, Sweeper
from loopscope.session.timeline import Timeline

__all__ = ["Label", "Recommendation", "Run", "Summary", "Tuning", "outcomes", "tune"]

Label: TypeAlias = Literal["loop", "ok"]


class Run(NamedTuple):
    """One recording, and what a person says of it."""

    name: str
    timeline: Timeline
    label: Label | None = None


class Summary(Struct, frozen=True):
    """What one setting does to all runs."""

    values: tuple[int, ...]
    """In the order of the grid's settings."""
    warned: int
    """Runs with a warning or a stop."""
    stopped: int
    """Runs with a stop."""
    median_first_stop: float | None
    """Median over the stopped runs of the first stop's batch number."""
    saved_batches: int
    saved_tokens: int
    saved_cost_usd: float
    healthy_warned: int
    healthy_stopped: int
    loops_missed: int
    """Runs labelled loop that are neither warned nor stopped."""
    loops_not_stopped: int


class Recommendation(Struct, frozen=True):
    """The setting to take, or the plain statement that there is none."""

    best: Summary | None
    reasons: tuple[str, ...]


class Tuning(Struct, frozen=True):
    """A grid over many runs."""

    settings: tuple[str, ...]
    cells: tuple[Summary, ...]
    front: tuple[Summary, ...]
    """The cells that no other one beats in loops stopped, healthy runs spared and batches saved at once."""
    recommendation: Recommendation
    runs: int
    loops: int
    healthy: int


def outcomes(timeline: Timeline, policies: Sequence[Policy]) -> list[Outcome]:
    """What each policy does to one run: the part of a sweep that runs in parallel, one run a worker."""
    sweeper = Sweeper(timeline)
    return [sweeper.outcome(policy) for policy in policies]


def tune(
    runs: Sequence[Run],
    grid: Grid,
    base: Policy,
    *,
    spread: Callable[[Sequence[Run], Sequence[Policy]], Iterable[list[Outcome]]] | None = None,
) -> Tuning:
    """Every cell of a grid over every run.

    Args:
        runs: the recordings, labelled or not.
        grid: the settings to try.
        base: the policy that they are laid over.
        spread: computes the outcomes of every run, in order; by default here, one after the other.
    """
    cells = list(grid.cells(base))
    policies = [cell.policy for cell in cells]
    every = list(spread(runs, policies)) if spread else [outcomes(run.timeline, policies) for run in runs]
    summaries = tuple(_summary(cell, runs, [row[i] for row in every]) for i, cell in enumerate(cells))
    loops = sum(run.label == "loop" for run in runs)
    healthy = sum(run.label == "ok" for run in runs)
    recommendation = _recommend(grid, summaries, base, loops, healthy)
    return Tuning(grid.settings, summaries, tuple(_front(summaries)), recommendation, len(runs), loops, healthy)


def _summary(cell: Cell, runs: Sequence[Run], found: Sequence[Outcome]) -> Summary:
    stops = [outcome.first_stop for outcome in found if outcome.first_stop is not None]
    flagged = [outcome.first_stop is not None or outcome.first_warning is not None for outcome in found]
    labelled = [(run.label, outcome, flag) for run, outcome, flag in zip(runs, found, flagged, strict=True)]
    return Summary(
        values=cell.values,
        warned=sum(flagged),
        stopped=len(stops),
        median_first_stop=float(median(stops)) if stops else None,
        saved_batches=sum(outcome.saved_batches for outcome in found),
        saved_tokens=sum(outcome.saved_tokens for outcome in found),
        saved_cost_usd=sum(outcome.saved_cost_usd for outcome in found),
        healthy_warned=sum(label == "ok" and flag for label, _, flag in labelled),
        healthy_stopped=sum(label == "ok" and outcome.first_stop is not None for label, outcome, _ in labelled),
        loops_missed=sum(label == "loop" and not flag for label, _, flag in labelled),
        loops_not_stopped=sum(label == "loop" and outcome.first_stop is None for label, outcome, _ in labelled),
    )


def _front(cells: Sequence[Summary]) -> list[Summary]:
    """Cells that are not beaten: fewer healthy runs stopped, more loops stopped, more batches saved."""
    best: dict[tuple[int, int], int] = {}
    kept: list[Summary] = []
    for cell in sorted(cells, key=lambda c: (c.healthy_stopped, c.loops_not_stopped, -c.saved_batches)):
        beaten = any(
            loops <= cell.loops_not_stopped and saved >= cell.saved_batches for (_, loops), saved in best.items()
        )
        if not beaten:
            kept.append(cell)
            place = (cell.healthy_stopped, cell.loops_not_stopped)
            best[place] = max(best.get(place, -1), cell.saved_batches)
    return kept


def _recommend(grid: Grid, cells: Sequence[Summary], base: Policy, loops: int, healthy: int) -> Recommendation:
    """Spare every healthy run first, then stop as many loops as can be, warn few healthy runs, stay near the base."""
    if not cells:
        return Recommendation(None, ("no combination of the grid is a valid policy",))
    if not loops or not healthy:
        return Recommendation(
            None, ("without runs labelled loop and ok nobody can say which stop is right: give --labels",)
        )
    now = _now(grid, base)

    def rank(cell: Summary) -> tuple[float, ...]:
        distance = sum(
            abs(value - now[name]) / max(1, now[name]) for name, value in zip(grid.settings, cell.values, strict=True)
        )
        return (cell.healthy_stopped, cell.loops_not_stopped, cell.healthy_warned, distance)

    best = min(cells, key=rank)
    setting = ", ".join(f"{name}={value}" for name, value in zip(grid.settings, best.values, strict=True))
    stopped = f"{loops - best.loops_not_stopped} of {loops} loops stopped"
    if best.healthy_stopped == 0 and best.loops_not_stopped == 0:
        return Recommendation(best, (f"{setting}: every loop is stopped and no healthy run is", _warned(best, healthy)))
    if best.healthy_stopped == 0 and best.loops_not_stopped < loops:
        reason = f"{setting}: {stopped}, no healthy run stopped"
        return Recommendation(best, (reason, _warned(best, healthy), _price(cells, loops, healthy)))
    inseparable = (
        "no setting of this grid separates the loops from the healthy runs: whatever stops a loop stops one of them"
    )
    blind = "these layers see what was asked for, not what came of it: try the preset progress, or a witness"
    return Recommendation(None, (inseparable, _price(cells, loops, healthy), blind))


def _now(grid: Grid, base: Policy) -> Mapping[str, int]:
    """The base's own values of the grid's settings; the first of the grid where the base has none."""
    flat = base.to_dict()
    return {name: int(flat.get(name) or values[0]) for name, values in zip(grid.settings, grid.values, strict=True)}


def _warned(best: Summary, healthy: int) -> str:
    return f"{best.healthy_warned} of {healthy} healthy runs are warned"


def _price(cells: Sequence[Summary], loops: int, healthy: int) -> str:
    """What it costs to stop more: the most loops that can be stopped, and the healthy runs that go with them."""
    most = min(cells, key=lambda cell: (cell.loops_not_stopped, cell.healthy_stopped))
    return (
        f"the most that can be stopped is {loops - most.loops_not_stopped} of {loops} loops, "
        f"with {most.healthy_stopped} of {healthy} healthy runs"
    )
