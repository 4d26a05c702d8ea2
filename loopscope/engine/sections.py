"""The sections of a policy that bound a loop beyond repetition: cycles, error streaks, stagnation, budgets.

Each is off until one of its limits is set; None for a limit means never. They are apart from the policy's own
thresholds since those keep DeerFlow's names and defaults, and these are ours.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

__all__ = [
    "BUILT_IN_WITNESSES",
    "COUNTERS",
    "Budget",
    "Cycle",
    "OnStop",
    "Pair",
    "RepeatInBatch",
    "Stagnation",
    "WitnessMode",
]

WitnessMode: TypeAlias = Literal["changes", "increases", "decreases", "shrinks", "improves"]
OnStop: TypeAlias = Literal["strip", "interrupt", "drain"]

BUILT_IN_WITNESSES = ("results", "last_error")
"""Witnesses that need nothing of the program: what the batch brought, and what its failed calls said."""

COUNTERS = (
    "iterations",
    "model_calls",
    "tool_calls",
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cost_usd",
    "wall_clock_s",
    "requests_per_minute",
)
"""What a budget can limit, in the order in which they are looked at."""

DEFAULT_BUDGET_WARN = 0.8
"""Share of a budget at which the model is warned, as in DeerFlow's TokenBudgetMiddleware."""


class Pair(Struct, frozen=True):
    """A warning limit and a hard limit, each None for never."""

    warn: int | None = None
    hard_limit: int | None = None

    @property
    def active(self) -> bool:
        """Whether either limit is set."""
        return self.warn is not None or self.hard_limit is not None

    @property
    def largest(self) -> int:
        """The larger of the two limits; 0 where none is set."""
        return max(self.warn or 0, self.hard_limit or 0)


class Cycle(Struct, frozen=True):
    """Limits, in whole laps, of a block of batches that repeats."""

    max_period: int | None = 6
    """Batches in the longest block that is looked for; None looks for none."""
    hash: Pair = Pair()
    """Laps of equal batch hashes."""
    names: Pair = Pair()
    """Laps of equal tool names, whatever the arguments."""

    @property
    def active(self) -> bool:
        """Whether any limit is set."""
        return self.max_period is not None and (self.hash.active or self.names.active)


class Stagnation(Struct, frozen=True):
    """Limits, in iterations without progress, of a witness."""

    witness: str = "results"
    """`results`, `last_error`, or the name of a value in the program's `witness` events."""
    mode: WitnessMode = "changes"
    """What counts as progress from one iteration to the next."""
    warn: int | None = None
    hard_limit: int | None = None

    @property
    def limits(self) -> Pair:
        """The two limits."""
        return Pair(self.warn, self.hard_limit)


class RepeatInBatch(Struct, frozen=True):
    """The limit of one call key within one batch."""

    warn: int | None = None


class Budget(Struct, frozen=True):
    """What one counter may reach."""

    limit: float
    warn: float = DEFAULT_BUDGET_WARN
    """Share of the limit that warns."""
