"""Layer `cycle`: whole laps of a block of batches, by their hashes or by their tools' names.

Catches what the first two layers cannot: alternation, whose parts each stay below their limits (deer-flow issue 2569
and pull request 2590; gemini-cli pull request 28429 counts laps of blocks in the same way).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from itertools import islice, takewhile
from typing import Any, Literal

from loopscope.engine.policy import Policy
from loopscope.engine.rules.base import Facts, Finding
from loopscope.engine.sections import Pair
from loopscope.engine.trail import Trail

__all__ = ["CycleRule", "laps"]

HASH, NAMES = "hash", "names"


class _Reading:
    """The newest batches in one reading, by their hashes or by their tools' names."""

    __slots__ = ("_last", "_period", "_places", "echo", "items", "marked", "run")

    def __init__(self, items: Iterable[Hashable] = ()) -> None:
        self.items: deque[Hashable] = deque(items)
        """Newest first."""
        self.echo: list[int] = []
        """At position p - 1: how many of the newest batches in a row equal the one p before them. Not kept up to date
        while one item repeats itself."""
        self.run = sum(1 for _ in takewhile(lambda item: item == self.items[0], self.items))
        """The newest items that are equal."""
        self.marked = False
        """It has warned in this stretch."""
        self._period = -1
        self._places = 0
        self._last: dict[Hashable, int] = {}

    def append(self, item: Hashable, max_period: int, keep: int) -> None:
        """Count on instead of comparing the history anew, which is done only where the policy is another."""
        if self._period != max_period:
            self._compare(max_period)
        items, last = self.items, self._last
        place = self._places = self._places + 1
        if items and items[0] == item:
            self.run += 1
            if self.run < max_period:
                self.echo = _grown(self.echo, items, item)
        else:
            absent = self.run >= max_period or place - last.get(item, -max_period) > max_period
            self.echo = [0] * max_period if absent else _grown(self.echo, items, item)
            self.run = 1
        last[item] = place
        items.appendleft(item)
        while len(items) > keep:
            gone = items.pop()
            if last[gone] <= place - len(items):
                del last[gone]

    def _compare(self, max_period: int) -> None:
        items = self.items
        self._period = max_period
        self.echo = [_echo(items, period) for period in range(1, max_period + 1)]
        self._places = len(items)
        self._last = {item: place for place, item in enumerate(reversed(items), start=1)}

    def laps(self) -> tuple[int, int]:
        """As `laps` of the items."""
        return (0, 0) if self.run >= self._period else _most(self.echo, len(self.items))


class _State:
    """The newest batches in both readings, and their numbers, newest first."""

    __slots__ = ("by_hash", "by_names", "numbers")

    def __init__(self, hashes: Iterable[str] = (), names: Iterable[Hashable] = (), numbers: Iterable[int] = ()) -> None:
        self.by_hash = _Reading(hashes)
        self.by_names = _Reading(names)
        self.numbers = deque(numbers)

    @property
    def hashes(self) -> deque[Hashable]:
        """The hashes, newest first."""
        return self.by_hash.items

    @property
    def names(self) -> deque[Hashable]:
        """The sorted names of each batch, newest first."""
        return self.by_names.items


class CycleRule:
    """Finds the period with the most laps that end at the newest batch."""

    layer = "cycle"
    woken_by: Literal["repeats", "results"] | None = None
    __slots__ = ("_aware", "_hash", "_keep", "_max_period", "_names")

    def __init__(self, policy: Policy) -> None:
        cycle = policy.cycle
        self._max_period = cycle.max_period or 0
        self._hash, self._names = cycle.hash, cycle.names
        self._keep = self._max_period * max(cycle.hash.largest, cycle.names.largest)
        self._aware = policy.result_aware

    def new_state(self) -> _State:
        return _State()

    def account(self, state: _State, facts: Facts, stop: Finding | None) -> Finding | None:  # noqa: ARG002 - a Rule
        names, numbers, keep = facts.names, state.numbers, self._keep
        state.by_hash.append(facts.hash, self._max_period, keep)
        state.by_names.append(names if len(names) == 1 else tuple(sorted(names)), self._max_period, keep)
        numbers.appendleft(facts.n)
        while len(numbers) > keep:
            numbers.pop()
        by_hash = self._found(state, state.by_hash, HASH, self._hash, facts.trail)
        by_names = self._found(state, state.by_names, NAMES, self._names, facts.trail)
        if by_hash is None or (by_names is not None and by_names.action == "hard_stop" != by_hash.action):
            return by_names
        return by_hash

    def _found(self, state: _State, reading: _Reading, name: str, pair: Pair, trail: Trail | None) -> Finding | None:
        limit = pair.warn if pair.warn is not None else pair.hard_limit
        if limit is None:
            return None
        count, period = reading.laps()
        if count < limit:
            reading.marked = False
            return None
        if pair.hard_limit is not None and count >= pair.hard_limit and self._idle(state, count, period, trail):
            return Finding("hard_stop", self.layer, None, count, pair.hard_limit)
        may_warn = pair.warn is not None or self._aware
        return Finding("warn", self.layer, None, count, limit, name) if may_warn and not reading.marked else None

    def _idle(self, state: _State, count: int, period: int, trail: Trail | None) -> bool:
        """Whether the laps went round without bringing anything new, where the policy asks for that."""
        if not self._aware or trail is None:
            return not self._aware
        behind = (count + 1) // 2 - 1
        numbers = list(islice(state.numbers, period, period * (1 + behind)))
        return bool(numbers) and all(trail.stale(number) for number in numbers)

    def mark(self, state: _State, finding: Finding) -> None:
        reading = state.by_hash if finding.mark == HASH else state.by_names
        reading.marked = True

    def dump(self, state: _State) -> dict[str, Any]:
        marked = [name for name, reading in ((HASH, state.by_hash), (NAMES, state.by_names)) if reading.marked]
        return {
            "hashes": list(state.hashes),
            "names": [list(names) for names in state.names],  # type: ignore[call-overload]
            "numbers": list(state.numbers),
            "marked": marked,
        }

    def load(self, data: dict[str, Any]) -> _State:
        state = _State(data["hashes"], (tuple(names) for names in data["names"]), data["numbers"])
        state.by_hash.marked = HASH in data["marked"]
        state.by_names.marked = NAMES in data["marked"]
        return state


def _grown(echo: list[int], newest_first: Iterable[Hashable], item: Hashable) -> list[int]:
    """The echoes once this item has come."""
    known = [count + 1 if before == item else 0 for count, before in zip(echo, newest_first, strict=False)]
    return known + [0] * (len(echo) - len(known))


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
