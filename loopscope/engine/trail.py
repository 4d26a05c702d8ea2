"""What the batches of a scope brought: the facts of their results, for the layers that do not stop what still moves on.

Kept only under a policy that looks at results. Everything here is bounded: batches by the largest window, results by
the newest thousand distinct ones.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from itertools import takewhile
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from loopscope.engine.events import Result
from loopscope.engine.joins import OpenCalls

__all__ = ["Brought", "Outcome", "Trail", "normalised_error", "outcome_of"]

DISTINCT_KEPT = 1000
"""Distinct results, and distinct hashes, of a scope that are remembered."""
ERROR_KEPT = 400
"""Characters of a normalised error text: the rest of a traceback differs from line to line, not from cause to cause."""
_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-fA-F]{8,}\b|\d+")
_SPACE = re.compile(r"\s+")


class Outcome(Struct, frozen=True, gc=False):
    """The result of one call as the layers see it."""

    tool: str
    digest: str
    failed: bool
    error: str
    """Its normalised text if it failed, else nothing."""


class Brought(Struct):
    """One batch, its results as they come in."""

    n: int
    hash: str
    hash_count: int
    names: tuple[str, ...]
    outcomes: list[Outcome | None]
    fresh: list[bool]
    """For each call: its result was new to the scope."""
    previous: int
    """Number of the newest batch before it with this hash; 0 where there is none."""
    moved: bool
    """A batch strictly between the previous occurrence of this hash and this one brought a new result."""

    @property
    def complete(self) -> bool:
        """Every call has its result."""
        return None not in self.outcomes

    @property
    def stale(self) -> bool:
        """It brought nothing new, and either failed or came without anything new in between."""
        if not self.complete or any(self.fresh):
            return False
        return not self.moved or any(outcome is not None and outcome.failed for outcome in self.outcomes)


class Trail:
    """The newest batches of a scope and the results it knows."""

    __slots__ = ("_last_new", "_last_of", "_seen", "batches", "keep", "open", "repeated")

    def __init__(self, keep: int) -> None:
        self.keep = keep
        """Batches that are remembered."""
        self.batches: OrderedDict[int, Brought] = OrderedDict()
        self.open = OpenCalls()
        self.repeated = 0
        """Results that were not new, ever: no window holds more of them, which spares counting in runs that move."""
        self._seen: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._last_of: OrderedDict[str, int] = OrderedDict()
        self._last_new = 0

    def begin(self, n: int, digest: str, names: tuple[str, ...]) -> Brought:
        """A batch was asked for; nothing of it is in yet."""
        batches, last_of, size = self.batches, self._last_of, len(names)
        previous = last_of.pop(digest, 0)
        last_of[digest] = n
        moved = self._last_new > previous
        brought = batches[n] = Brought(n, digest, 0, names, [None] * size, [False] * size, previous, moved)
        while len(batches) > self.keep:
            batches.popitem(last=False)
        if len(last_of) > DISTINCT_KEPT:
            last_of.popitem(last=False)
        return brought

    def add(self, n: int, call: int, outcome: Outcome) -> Brought | None:
        """A result came in; its batch, if it is still remembered and the call was open."""
        brought = self.batches.get(n)
        if brought is None or brought.outcomes[call] is not None:
            return None
        key, seen = (outcome.tool, outcome.digest), self._seen
        new = key not in seen
        if new:
            seen[key] = None
            if len(seen) > DISTINCT_KEPT:
                seen.popitem(last=False)
            self._note_new(n)
        else:
            seen.move_to_end(key)
            self.repeated += 1
        brought.fresh[call] = new
        brought.outcomes[call] = outcome
        return brought

    def _note_new(self, n: int) -> None:
        """A batch brought something new, which batches that were asked for before it came could not know."""
        self._last_new = max(self._last_new, n)
        if n == next(reversed(self.batches)):
            return
        for later in takewhile(lambda brought: brought.n > n, reversed(self.batches.values())):
            later.moved = later.moved or later.previous < n

    def stale(self, n: int) -> bool:
        """Whether a batch is known to have brought nothing new."""
        brought = self.batches.get(n)
        return brought is not None and brought.stale

    def not_new(self, n: int, call: int) -> bool:
        """Whether a call is known to have brought nothing new."""
        brought = self.batches.get(n)
        return brought is not None and brought.outcomes[call] is not None and not brought.fresh[call]

    def dump(self) -> dict[str, Any]:
        """The trail as plain data."""
        return {
            "keep": self.keep,
            "batches": [_dump(brought) for brought in self.batches.values()],
            "open": self.open.dump(),
            "seen": list(self._seen),
            "last_of": list(self._last_of.items()),
            "last_new": self._last_new,
            "repeated": self.repeated,
        }

    @classmethod
    def load(cls, data: dict[str, Any]) -> Trail:
        """The trail that `dump` gave."""
        trail = cls(data["keep"])
        for n, digest, count, names, outcomes, fresh, previous, moved in data["batches"]:
            known = [None if outcome is None else Outcome(*outcome) for outcome in outcomes]
            trail.batches[n] = Brought(n, digest, count, tuple(names), known, list(fresh), previous, moved)
        trail.open = OpenCalls.load(data["open"])
        trail._seen.update(((tool, digest), None) for tool, digest in data["seen"])
        trail._last_of.update((digest, n) for digest, n in data["last_of"])
        trail._last_new = data["last_new"]
        trail.repeated = data["repeated"]
        return trail


def _dump(brought: Brought) -> tuple[Any, ...]:
    outcomes = [outcome and list(astuple(outcome)) for outcome in brought.outcomes]
    of_batch = (brought.n, brought.hash, brought.hash_count, brought.names)
    return (*of_batch, outcomes, list(brought.fresh), brought.previous, brought.moved)


def outcome_of(result: Result, tool: str) -> Outcome:
    """What the layers see of a result; where no digest is known, its size and what is kept of its text stand for it."""
    failed = result.status == "error"
    digest = result.digest if result.digest is not None else f"{result.size}={result.content}"
    return Outcome(tool, digest, failed, normalised_error(result.content) if failed else "")


def normalised_error(text: str) -> str:
    """An error text without what differs from failure to failure: numbers, addresses, hashes, white space, case."""
    return _NUMBERS.sub("#", _SPACE.sub(" ", text[: 4 * ERROR_KEPT])).strip().lower()[:ERROR_KEPT]
