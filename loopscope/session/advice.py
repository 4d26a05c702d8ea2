"""What to take of a sweep, with the reasons; or the plain statement that no setting of the grid tells the runs apart.

A healthy run that is stopped is worse than a loop that goes on: the first is work that is lost, the second has other
bounds. So every healthy run is spared first, then as many loops are stopped as can be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from loopscope.session.grid import Values
from loopscope.session.summary import Run, Summary

__all__ = ["Advice", "Inseparable", "advise"]

_MOST_NAMED = 6
"""Runs that are named of those that cannot be told apart."""


class Inseparable(Struct, frozen=True):
    """A loop that no cell stops without a healthy run."""

    loop: str
    """Name of the run."""
    healthy: tuple[str, ...]
    """Names of the runs that are stopped whenever it is."""


class Advice(Struct, frozen=True):
    """The setting to take, or none, and why."""

    best: Values | None
    """Values of the cell, in the order of the grid's settings; None where there is nothing to take."""
    separates: bool
    """It stops every loop and spares every healthy run."""
    reasons: tuple[str, ...]
    inseparable: tuple[Inseparable, ...] = ()


def advise(
    settings: Sequence[str],
    cells: Sequence[Summary],
    near: Mapping[Values, float],
    runs: Sequence[Run],
    others: Mapping[str, Summary],
) -> Advice:
    """The advice for a grid.

    Args:
        settings: of the grid.
        cells: what each does.
        near: how far each is from the policy in force.
        runs: with the outcomes of the cells.
        others: what other policies do, by name.
    """
    loops, healthy = (sum(run.label == label for run in runs) for label in ("loop", "ok"))
    if not cells:
        return Advice(None, False, ("no combination of the grid is a valid policy",))
    if not loops or not healthy:
        missing = "runs labelled loop and ok"
        if loops or healthy:
            missing = f"a run labelled {'ok' if loops else 'loop'}"
        return Advice(None, False, (f"without {missing} nobody can say which stop is right: give --labels",))
    best = min(cells, key=lambda cell: (*_harm(cell), near[cell.values]))
    told = f"{_setting(settings, best)}: {_of(loops - best.loops_not_stopped, loops, 'loop')} stopped"
    if best.healthy_stopped == 0 and best.loops_not_stopped == 0:
        spared = (f"{told}, no healthy run stopped", _warned(best, healthy))
        return Advice(best.values, True, (*spared, *_ties(best, cells)))
    plainly = "no setting of this grid separates the labels: none stops every loop and spares every healthy run"
    pairs = _inseparable(runs, cells, best)
    reasons = [plainly, *_named(pairs), _price(cells, loops, healthy), *_instead(others, loops, healthy)]
    if best.healthy_stopped or best.loops_not_stopped == loops:
        return Advice(None, False, tuple(reasons), pairs)
    found = (f"{told}, no healthy run stopped", _warned(best, healthy))
    return Advice(best.values, False, (*found, *reasons), pairs)


def _harm(cell: Summary) -> tuple[int, int, int]:
    """What a cell does wrong, worst first."""
    return cell.healthy_stopped, cell.loops_not_stopped, cell.healthy_warned


def _setting(settings: Sequence[str], cell: Summary) -> str:
    return ", ".join(f"{name}={value}" for name, value in zip(settings, cell.values, strict=True))


def _of(count: int, of: int, noun: str) -> str:
    return f"every {noun}" if count == of else f"{count} of {of} {noun}s"


def _warned(best: Summary, healthy: int) -> str:
    return f"{best.healthy_warned} of {healthy} healthy runs are warned"


def _ties(best: Summary, cells: Sequence[Summary]) -> list[str]:
    """Other cells do as well: the one that was taken is the nearest to what is now."""
    more = sum(_harm(cell) == _harm(best) for cell in cells) - 1
    other = "setting does" if more == 1 else "settings do"
    return [f"{more} more {other} the same; this one changes least"] if more else []


def _inseparable(runs: Sequence[Run], cells: Sequence[Summary], best: Summary) -> tuple[Inseparable, ...]:
    """The loops that go on, each with the healthy runs that are stopped in every cell that stops it."""
    chosen = next(index for index, cell in enumerate(cells) if cell is best)
    found: list[Inseparable] = []
    for run in runs:
        if run.label != "loop" or (run.outcomes[chosen].first_stop is not None and not best.healthy_stopped):
            continue
        stopping = [index for index, outcome in enumerate(run.outcomes) if outcome.first_stop is not None]
        always = tuple(
            other.name
            for other in runs
            if other.label == "ok" and all(other.outcomes[index].first_stop is not None for index in stopping)
        )
        if stopping and always:
            found.append(Inseparable(run.name, always))
    return tuple(found)


def _named(pairs: Sequence[Inseparable]) -> list[str]:
    said = [f"whatever stops {pair.loop} stops {_listed(pair.healthy)} too" for pair in pairs[:_MOST_NAMED]]
    if len(pairs) > _MOST_NAMED:
        said.append(f"and so it is with {len(pairs) - _MOST_NAMED} more loops")
    return said


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_NAMED])
    return f"{shown} and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else shown


def _price(cells: Sequence[Summary], loops: int, healthy: int) -> str:
    """What it costs to stop more: the most loops that can be stopped, and the healthy runs that go with them."""
    most = min(cells, key=lambda cell: (cell.loops_not_stopped, cell.healthy_stopped))
    if most.loops_not_stopped == loops:
        return "none of its settings stops a loop at all"
    return (
        f"the most that can be stopped is {loops - most.loops_not_stopped} of {loops} loops, "
        f"with {most.healthy_stopped} of {healthy} healthy runs"
    )


def _instead(others: Mapping[str, Summary], loops: int, healthy: int) -> list[str]:
    """Other layers look at what came of the calls."""
    return [
        f"the preset {name} stops {loops - found.loops_not_stopped} of {loops} loops and {found.healthy_stopped} of "
        f"{healthy} healthy runs, and misses {found.loops_missed} loops altogether"
        for name, found in others.items()
    ]
