"""Layer `cycle`: whole laps of a block of batches, by their hashes or by their tools' names.

Catches what the first two layers cannot: alternation, whose parts each stay below their limits (deer-flow issue 2569
and pull request 2590; gemini-cli pull request 28429 counts laps of blocks in the same way).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from itertools import islice
from typing import Any

from loopscope.engine.policy import Policy
from loopscope.engine.rules.base import Facts, Finding
from loopscope.engine.sections import Pair
from loopscope.engine.trail import Trail

__all__ = ["CycleRule", "laps"]

HASH, NAMES = "hash", "names"


class _State:
    """The newest batches in both readings, newest first, and which reading has warned in this stretch."""

    __slots__ = ("hashes", "marked", "names", "numbers")

    def __init__(self) -> None:
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
        state.hashes.appendleft(facts.hash)
        state.names.appendleft(tuple(sorted(facts.names)))
        state.numbers.appendleft(facts.n)
        while len(state.hashes) > self._keep:
            state.hashes.pop()
            state.names.pop()
            state.numbers.pop()
        found = [self._reading(state, name, pair, facts.trail) for name, pair in self._limits if pair.active]
        stops = [finding for finding in found if finding is not None and finding.action == "hard_stop"]
        return next(iter(stops), None) or next((finding for finding in found if finding is not None), None)

    def _reading(self, state: _State, name: str, pair: Pair, trail: Trail | None) -> Finding | None:
        count, period = laps(state.hashes if name == HASH else state.names, self._max_period)
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


def laps(newest_first: Sequence[Hashable] | deque[Hashable], max_period: int) -> tuple[int, int]:
    """The most whole laps of a block of 2 to `max_period` with two distinct members, and the block's length."""
    items = list(newest_first)
    best, best_period = 0, 0
    for period in range(2, min(max_period, len(items)) + 1):
        if len(set(items[:period])) < 2:  # noqa: PLR2004 - one member is repetition, not a cycle
            continue
        same = next((i for i in range(period, len(items)) if items[i] != items[i - period]), len(items))
        if same // period > best:
            best, best_period = same // period, period
    return best, best_period
