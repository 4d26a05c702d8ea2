"""What the second writing of the layers remembers: every batch of a scope with its results, and what scopes spent.

Apart from its rules, which count over these lists anew for every batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

LAYERS = (
    "identical_call_set",
    "tool_frequency",
    "cycle",
    "error_streak",
    "stagnation",
    "repeat_in_batch",
    "budget",
)
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


@dataclass(frozen=True)
class Finding:
    """What one layer says: the severest one is emitted, and only its mark is set."""

    stops: bool
    layer: str
    tool: str | None
    count: float
    threshold: float
    counter: str | None = None
    mark: Callable[[], None] = field(default=lambda: None)

    @property
    def rank(self) -> tuple[bool, int]:
        return (not self.stops, LAYERS.index(self.layer))


@dataclass
class Brought:
    """One call's result."""

    tool: str
    digest: str | None
    failed: bool
    text: str
    new: bool


@dataclass
class Past:
    """One batch with what it brought so far."""

    number: int
    hash: str
    count: int
    names: list[str]
    ids: list[str | None]
    keys: list[str]
    results: list[Brought | None]

    @property
    def complete(self) -> bool:
        return None not in self.results

    @property
    def brought(self) -> list[Brought]:
        return [result for result in self.results if result is not None]

    @property
    def new(self) -> bool:
        return any(result.new for result in self.brought)

    @property
    def all_failed(self) -> bool:
        return all(result.failed for result in self.brought)


@dataclass
class Account:
    """What a scope and those below it spent."""

    first: float | None = None
    spent: dict[str, float] = field(default_factory=lambda: dict.fromkeys(COUNTERS, 0))
    calls: list[float] = field(default_factory=list)
    warned: set[str] = field(default_factory=set)

    def value(self, counter: str, now: float | None) -> float:
        if counter == "wall_clock_s":
            return 0 if now is None or self.first is None else now - self.first
        if counter == "requests_per_minute":
            last = max(self.calls, default=0.0)
            return sum(ts > last - 60 for ts in self.calls)
        return self.spent[counter]


@dataclass
class Scope:
    past: list[Past] = field(default_factory=list)
    settled: list[Past] = field(default_factory=list)
    hashes: list[Past] = field(default_factory=list)
    tools: list[tuple[str, Past, int]] = field(default_factory=list)
    laps: list[Past] = field(default_factory=list)
    marks: set[Any] = field(default_factory=set)
    values: list[Any] = field(default_factory=list)
    told: list[Any] = field(default_factory=list)
    waits: bool = False
    carried: list[Finding] = field(default_factory=list)
    seen: list[tuple[str, str | None]] = field(default_factory=list)


def laps(items: Sequence[Any], period: int) -> int:
    """How often the last `period` items stand one after the other at the end."""
    block, count = items[-period:], 0
    if len(block) < period or len(set(block)) < 2:
        return 0
    while items[len(items) - (count + 1) * period : len(items) - count * period] == block:
        count += 1
        if (count + 1) * period > len(items):
            break
    return count
