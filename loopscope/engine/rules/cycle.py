"""Layer `cycle`: whole laps of a block of batches, by their hashes or by their tools' names.

Catches what the first two layers cannot: alternation, whose parts each stay below their limits (deer-flow issue 2569
and pull request 2590; gemini-cli pull request 28429 counts laps of blocks in the same way).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from itertools import islice, takewhile
from typing import Any

from loopscope.engine.policy import Policy
from loopscope.engine.rules.base import Facts, Finding
from loopscope.engine.sections import Pair
from loopscope.engine.trail import Trail

__all__ = ["CycleRule", "laps"]

HASH, NAMES = "hash", "names"


class _State:
    """The newest batches in both readings, newest first, and which reading has warned in this stretch."""

    __slots__ = ("hash_echo", "hashes", "marked", "name_echo", "names", "numbers")

    def __init__(self) -> None:
        self.hash_echo: list[int] = []
        """At position p - 1: how many of the newest batches in a row equal the one p before them."""
        self.name_echo: list[int] = []
        self.hashes: deque[Hashable] = deque()
        self.names: deque[Hashable] = deque()
        self.numbers: deque[int] = deque()
        self.marked: set[str] = set()


class CycleRule:
    """Finds the period with the most laps that end at the newest batch."""

    layer = "cycle"
    __slots__ = ("_aware", "_keep", "_limits", "_max_period")

    def __init__(self, policy: Policy) -> None:
        cycle = policy.cycle
        self._max_period = cycle.max_period or 0
        self._limits = ((HASH, cycle.hash), (NAMES, cycle.names))
        self._keep = self._max_period * max(cycle.hash.largest, cycle.names.largest)
        self._aware = policy.result_aware

    def new_state(self) -> _State:
        return _State()

    def account(self, state: _State, facts: Facts, stop: Finding | None) -> Finding | None:  # noqa: ARG002 - a Rule
        names = facts.names
        self._append(state.hashes, state.hash_echo, facts.hash)
        self._append(state.names, state.name_echo, names if len(names) == 1 else tuple(sorted(names)))
        state.numbers.appendleft(facts.n)
        while len(state.hashes) > self._keep:
            state.hashes.pop()
            state.names.pop()
            state.numbers.pop()
        found = [self._reading(state, name, pair, facts.trail) for name, pair in self._limits if pair.active]
        stops = [finding for finding in found if finding is not None and finding.action == "hard_stop"]
        return next(iter(stops), None) or next((finding for finding in found if finding is not None), None)

    def _append(self, items: deque[Hashable], echo: list[int], item: Hashable) -> None:
        """Count on instead of comparing the history anew, which is done only where the policy is another."""
        if len(echo) != self._max_period:
            echo[:] = [_echo(items, period) for period in range(1, self._max_period + 1)]
        known = [count + 1 if before == item else 0 for count, before in zip(echo, items, strict=False)]
        echo[: len(known)] = known
        items.appendleft(item)

    def _reading(self, state: _State, name: str, pair: Pair, trail: Trail | None) -> Finding | None:
        count, period = _most(state.hash_echo if name == HASH else state.name_echo, len(state.hashes))
        limit = pair.warn if pair.warn is not None else pair.hard_limit
        if limit is None or count < limit:
            state.marked.discard(name)
            return None
        if pair.hard_limit is not None and count >= pair.hard_limit and self._idle(state, count, period, trail):
            return Finding("hard_stop", self.layer, None, count, pair.hard_limit)
        may_warn = pair.warn is not None or self._aware
        return Finding("warn", self.layer, None, count, limit, name) if may_warn and name not in state.marked else None

    def _idle(self, state: _State, count: int, period: int, trail: Trail | None) -> bool:
        """Whether the laps went round without bringing anything new, where the policy asks for that."""
        if not self._aware or trail is None:
            return not self._aware
        behind = (count + 1) // 2 - 1
        numbers = list(islice(state.numbers, period, period * (1 + behind)))
        return bool(numbers) and all(trail.stale(number) for number in numbers)

    def mark(self, state: _State, finding: Finding) -> None:
        state.marked.add(finding.mark or "")

    def dump(self, state: _State) -> dict[str, Any]:
        return {
            "hashes": list(state.hashes),
            "names": [list(names) for names in state.names],  # type: ignore[call-overload]
            "numbers": list(state.numbers),
            "marked": sorted(state.marked),
        }

    def load(self, data: dict[str, Any]) -> _State:
        state = _State()
        state.hashes.extend(data["hashes"])
        state.names.extend(tuple(names) for names in data["names"])
        state.numbers.extend(data["numbers"])
        state.marked.update(data["marked"])
        return state


def _echo(newest_first: Sequence[Hashable] | deque[Hashable], period: int) -> int:
    """How many of the newest items in a row equal the one so many before them."""
    older = islice(newest_first, period, None)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(newest_first, older, strict=False)))


def _most(echo: Sequence[int], length: int) -> tuple[int, int]:
    """As `laps`, from the echoes of a history of this length."""
    if not any(echo):
        return (1, 2) if min(length, len(echo)) > 1 else (0, 0)
    best, best_period = 0, 0
    if echo[0] >= len(echo) - 1:
        return best, best_period
    for period in range(2, min(len(echo), length) + 1):
        count = min(echo[period - 1] + period, length) // period
        # Where all of the block's neighbours are equal it has one member: repetition, not a cycle.
        if count > best and echo[0] < period - 1:
            best, best_period = count, period
    return best, best_period


def laps(newest_first: Sequence[Hashable] | deque[Hashable], max_period: int) -> tuple[int, int]:
    """The most whole laps of a block of 2 to `max_period` with two distinct members, and the block's length."""
    return _most([_echo(newest_first, period) for period in range(1, max_period + 1)], len(newest_first))
