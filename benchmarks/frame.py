"""What every benchmark shares: a figure beside its yardstick, and timing that is fair on a shared machine.

Machines are shared and noisy, so a figure and its yardstick are taken in turns in the same run, the least of many
rounds counts, and what is judged is their ratio.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Figure", "in_turns", "ratio", "timed"]


class Figure(NamedTuple):
    """One measured figure beside its yardstick."""

    what: str
    value: str
    yardstick: str
    bar: str
    met: bool


def in_turns(rounds: int, ours: Callable[[], float], yardstick: Callable[[], float]) -> tuple[float, float]:
    """The least of each measurement, taken in turns.

    Args:
        rounds: how often each is taken, after one that does not count.
        ours: gives the seconds of one measurement.
        yardstick: as `ours`.
    """
    ours()
    yardstick()
    pairs = [(yardstick(), ours()) for _ in range(rounds)]
    return min(own for _, own in pairs), min(theirs for theirs, _ in pairs)


def timed(work: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def ratio(what: str, times: tuple[float, float], limit: float, yardstick: str, *, per: int = 1) -> Figure:
    """A figure whose bar is a multiple of its yardstick.

    Args:
        what: what was measured.
        times: seconds of ours and of the yardstick.
        limit: the bar, as a multiple of the yardstick.
        yardstick: what the yardstick is.
        per: how many repetitions the seconds are of.
    """
    ours, theirs = times
    found = ours / theirs
    return Figure(
        what,
        f"{_time(ours / per)} = {found:.2f} x",
        f"{_time(theirs / per)}: {yardstick}",
        f"<= {limit} x",
        found <= limit,
    )


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} us" if seconds < 1e-3 else f"{seconds * 1e3:.0f} ms"  # noqa: PLR2004 - a millisecond
