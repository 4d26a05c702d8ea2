"""What a sweep costs: every cell of a large grid over a long run, beside folding that run for a few of the cells."""

from __future__ import annotations

from benchmarks.frame import Figure, timed
from loopscope.engine.events import Batch, Call
from loopscope.engine.policy import Policy
from loopscope.session.grid import Grid, parse_grid
from loopscope.session.session import Session
from loopscope.session.sweep import Sweeper
from loopscope.session.tune import outcomes

_BATCHES = 10_000
_GRID = ("hard_limit=3..13", "window_size=5..60..5", "tool_freq_hard_limit=30..130..10", "warn_threshold=1..13")
_BAR = 10.0
"""Seconds on one core."""
_FOLDS = 5
_ROUND, _CIRCLING = 400, 60
"""Batches from one circling to the next, and how long it lasts."""


class _Nothing:
    """No line is read again."""

    def read_at(self, offset: int, length: int) -> None:
        """Nothing."""
        del offset, length


def figures() -> list[Figure]:
    """A run that goes in circles now and then, under some ten thousand settings."""
    session = Session("bench", _Nothing())
    session.append(_Line(batch) for batch in _batches())
    base = Policy()
    grid = parse_grid(_GRID, base)
    policies = [cell.policy for cell in grid.cells(base)]
    seconds = min(timed(lambda: _sweep(session, grid, base)) for _ in range(3))
    apart = [policy.with_(severity_first=False) for policy in policies[:: len(policies) // _FOLDS]]
    sweeper = Sweeper(session.timeline)
    fold = min(timed(lambda: [sweeper.outcome(policy) for policy in apart]) for _ in range(2)) / len(apart)
    return [
        Figure(
            f"sweep of {len(policies):,} cells over {_BATCHES:,} batches",
            f"{seconds:.2f} s",
            f"{fold * len(policies):,.0f} s: one fold a cell",
            f"<= {_BAR:.0f} s",
            seconds <= _BAR,
        )
    ]


def _sweep(session: Session, grid: Grid, base: Policy) -> None:
    outcomes(session.timeline, [cell.policy for cell in grid.cells(base)])


class _Line:
    """A batch that stands nowhere."""

    offset = length = 0

    def __init__(self, event: Batch) -> None:
        self.event = event


def _batches() -> list[Batch]:
    tools = ("bash", "read_file", "search", "fetch", "edit")
    return [
        Batch(
            seq=n,
            ts=float(n),
            thread_id="t",
            run_id=f"r{n // 2000}",
            calls=(Call(f"c{n}", tools[n % 5], {"query": str(n % 7 if n % _ROUND < _CIRCLING else n)}),),
        )
        for n in range(1, _BATCHES + 1)
    ]
