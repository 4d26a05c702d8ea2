"""Layer `cycle`: whole laps of a block of batches, by their hashes or by their tools' names.

Catches what the first two layers cannot: alternation, whose parts each stay below their limits (deer-flow issue 2569
and pull request 2590; gemini-cli pull request 28429 counts laps of blocks in the same way).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from itertools import islice, takewhile
from math import inf
from typing import Any

from loopscope.engine.policy import Policy
from loopscope.engine.rules.base import Facts, Finding, WokenBy
from loopscope.engine.sections import Pair
from loopscope.engine.trail import Trail

__all__ = ["CycleRule", "laps"]

HASH, NAMES = "hash", "names"
_NONE = (0, 0)
"""No laps, of no block."""
_NOBODY = object()


class _Reading:
    """The newest batches in one reading, by their hashes or by their tools' names.

    Mostly nothing can go round: what came is not among as many newest items as the longest period has, or is the same
    as all of them. `CycleRule.account` sees both by itself.
    """

    __slots__ = ("_at_least", "_echo", "_period", "_run", "again", "items", "newest", "same")

    def __init__(self, items: Iterable[Hashable] = ()) -> None:
        self.items: deque[Hashable] = deque(items)
        """Newest first."""

    def fit(self, max_period: int, keep: int, limit: float) -> None:
        """Compare the history anew, under another policy; from then on it is counted on instead."""
        items = self.items = deque(islice(self.items, keep), keep)
        self._period = max_period
        # The shortest block has two members: where no echo is as long as this, the laps of all blocks are too few.
        self._at_least = 2 * (limit - 1)
        self._run = sum(1 for _ in takewhile(lambda item: item == items[0], items))
        known = list(islice(items, max_period))
        self.newest: deque[Hashable] = deque(known + [_NOBODY] * (max_period - len(known)), max_period)
        """The first items, as many as the longest period has; what equals no item stands for those not there yet."""
        self.same: Hashable = items[0] if self._run >= max_period else None
        """What all of these are."""
        self._echo = self._echoes()
        self.again: float = max(self._at_least, 1) if any(self._echo) and limit < inf else 0
        """How many items in a row, from the first one on, were among those behind them, or more: no echo is longer,
        so that none is counted where this is too little."""

    def _echoes(self) -> list[int]:
        """At position p - 1: how many items in a row, from the first one on, equal the one p behind them."""
        return [_echo(self.items, period) for period in range(1, self._period + 1)]

    def append(self, item: Hashable) -> tuple[int, int]:
        """Take up one more; `laps` of the items from then on, or none of them where they are below the limit."""
        newest, again = self.newest, self.again + 1
        if item not in newest:
            again, self.same = 0, None
        elif item != newest[0]:
            self._run = 1
        else:
            self._run = 2 if again == 1 else self._run + 1
        self.again = again
        if again > max(self._at_least, 1):
            # Counted on from the item before, for which it was counted too.
            behind = zip(self._echo, newest, strict=True)
            self._echo = [count + 1 if older == item else 0 for count, older in behind]
        newest.appendleft(item)
        self.items.appendleft(item)
        if again and self._run >= self._period:
            # What differs next is none of the newest, so that nothing is ever counted on from here.
            self.same = item
            return _NONE
        if again < self._at_least:
            return _NONE
        if again <= max(self._at_least, 1):
            self._echo = self._echoes()
        return _NONE if max(self._echo) < self._at_least else _most(self._echo, len(self.items))


class _State:
    """The newest batches in both readings, and their numbers, newest first."""

    __slots__ = ("by_hash", "by_names", "marked", "numbers", "rule")

    def __init__(
        self,
        hashes: Iterable[str] = (),
        names: Iterable[Hashable] = (),
        numbers: Iterable[int] = (),
        marked: Iterable[str] = (),
    ) -> None:
        self.by_hash = _Reading(hashes)
        self.by_names = _Reading(names)
        self.numbers = deque(numbers)
        self.marked = set(marked)
        """The readings that have warned in this stretch."""
        self.rule: CycleRule | None = None
        """Whose periods and limits the history was last compared for."""

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
    woken_by: WokenBy | None = None
    __slots__ = ("_aware", "_from_one", "_hash", "_keep", "_max_period", "_names")

    def __init__(self, policy: Policy) -> None:
        cycle = policy.cycle
        self._max_period = cycle.max_period or 0
        self._hash, self._names = cycle.hash, cycle.names
        self._keep = self._max_period * max(cycle.hash.largest, cycle.names.largest)
        self._from_one = 1 in {_first(cycle.hash), _first(cycle.names)}
        """A block counts that has come only once."""
        self._aware = policy.result_aware

    def new_state(self) -> _State:
        return _State()

    def _fit(self, state: _State) -> None:
        state.rule = self
        state.numbers = deque(islice(state.numbers, self._keep), self._keep)
        for reading, pair in ((state.by_hash, self._hash), (state.by_names, self._names)):
            reading.fit(self._max_period, self._keep, _first(pair))

    def account(self, state: _State, facts: Facts, stop: Finding | None) -> Finding | None:  # noqa: ARG002 - a Rule
        if state.rule is not self:
            self._fit(state)
        digest, names, by_hash, by_names = facts.hash, facts.names, state.by_hash, state.by_names
        of_hash = of_names = _NONE
        state.numbers.appendleft(facts.n)
        # Mostly the batch is new, which its count tells in a fraction of the time, and of the tool that came all along.
        window = facts.window
        alone = window.counts[digest] == 1 and len(window.items) > self._max_period
        if self._from_one or (not alone and digest in by_hash.newest):
            of_hash = by_hash.append(digest)
        else:
            by_hash.again, by_hash.same = 0, None
            by_hash.newest.appendleft(digest)
            by_hash.items.appendleft(digest)
        if names == by_names.same:
            by_names.items.appendleft(names)
        else:
            of_names = by_names.append(names if len(names) == 1 else tuple(sorted(names)))
        if of_hash is _NONE and of_names is _NONE and not state.marked:
            return None
        hashes = self._found(state, of_hash, HASH, self._hash, facts.trail)
        tools = self._found(state, of_names, NAMES, self._names, facts.trail)
        if hashes is None or (tools is not None and tools.action == "hard_stop" != hashes.action):
            return tools
        return hashes

    def _found(
        self, state: _State, found: tuple[int, int], name: str, pair: Pair, trail: Trail | None
    ) -> Finding | None:
        limit, (count, period) = _first(pair), found
        if limit == inf:
            return None
        if count < limit:
            state.marked.discard(name)
            return None
        if pair.hard_limit is not None and count >= pair.hard_limit and self._idle(state, count, period, trail):
            return Finding("hard_stop", self.layer, None, count, pair.hard_limit)
        may_warn = (pair.warn is not None or self._aware) and name not in state.marked
        return Finding("warn", self.layer, None, count, limit, name) if may_warn else None

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
        return _State(data["hashes"], (tuple(names) for names in data["names"]), data["numbers"], data["marked"])


def _first(pair: Pair) -> float:
    """The limit that is reached first; without end where there is none."""
    limit = pair.warn if pair.warn is not None else pair.hard_limit
    return inf if limit is None else limit


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
