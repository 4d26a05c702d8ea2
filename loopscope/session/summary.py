"""What one policy does to many runs, added up: of each run its outcomes and its label, of all runs the totals."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Literal, TypeAlias

from msgspec import Struct

from loopscope.session.grid import Values
from loopscope.session.sweep import Outcome

__all__ = ["Label", "Run", "Summary", "summarise"]

Label: TypeAlias = Literal["loop", "ok"]


class Run(Struct, frozen=True):
    """One recording, what a person says of it, and what each policy does to it."""

    name: str
    """What it is called where many are named; no two have the same."""
    batches: int
    outcomes: Sequence[Outcome]
    """In the order of the policies."""
    label: Label | None = None
    target: str = ""
    """What opens it."""


class Summary(Struct, frozen=True):
    """What one policy does to all runs."""

    values: Values
    """In the order of the grid's settings; empty where there is no grid."""
    warned: int
    """Runs with a warning or a stop."""
    stopped: int
    """Runs with a stop."""
    median_first_stop: float | None
    """Median over the stopped runs of the first stop's batch number."""
    saved_batches: int
    """Batches that came after the first stop of their scope, but for those of healthy runs."""
    saved_tokens: int
    saved_cost_usd: float
    lost_batches: int
    """Batches of healthy runs that came after the first stop of their scope: work that would not have been done."""
    healthy_warned: int
    healthy_stopped: int
    loops_missed: int
    """Runs labelled loop that are neither warned nor stopped."""
    loops_not_stopped: int


def summarise(values: Values, runs: Sequence[Run], index: int) -> Summary:
    """The runs' outcomes under one policy, added up."""
    stops: list[int] = []
    warned = batches = tokens = lost = healthy_warned = healthy_stopped = missed = not_stopped = 0
    cost = 0.0
    for run in runs:
        outcome = run.outcomes[index]
        stopped = outcome.first_stop is not None
        flagged = stopped or outcome.first_warning is not None
        warned += flagged
        if outcome.first_stop is not None:
            stops.append(outcome.first_stop)
        if run.label == "ok":
            lost += outcome.saved_batches
            healthy_warned += flagged
            healthy_stopped += stopped
            continue
        batches += outcome.saved_batches
        tokens += outcome.saved_tokens
        cost += outcome.saved_cost_usd
        if run.label == "loop":
            missed += not flagged
            not_stopped += not stopped
    middle = float(median(stops)) if stops else None
    return Summary(
        values, warned, len(stops), middle, batches, tokens, cost, lost,
        healthy_warned, healthy_stopped, missed, not_stopped,
    )  # fmt: skip
