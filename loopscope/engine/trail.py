"""What the batches of a scope brought: the facts of their results, for the layers that do not stop what still moves on.

Kept only under a policy that looks at results. Everything here is bounded: batches by the largest window, results by
the newest thousand distinct ones.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
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


class Brought(Struct, gc=False):
    """One batch, its results as they come in."""

    n: int
    hash: str
    names: tuple[str, ...]
    outcomes: list[Outcome | None]
    missing: int
    """Calls that have no result yet."""
    previous: int
    """Number of the newest batch before it with this hash; 0 where there is none."""
    moved: bool
    """A batch strictly between the previous occurrence of this hash and this one brought a new result."""
    hash_count: int
    known: tuple[int, ...] = ()
    """Positions of the calls whose result was not new to the scope."""

    @property
    def complete(self) -> bool:
        """Every call has its result."""
        return not self.missing

    @property
    def stale(self) -> bool:
        """It brought nothing new, and either failed or came without anything new in between."""
        if self.missing or len(self.known) < len(self.outcomes):
            return False
        return not self.moved or any(outcome is not None and outcome.failed for outcome in self.outcomes)


class Trail:
    """The newest batches of a scope and the results it knows."""

    __slots__ = ("_last_new", "_last_of", "_newest", "_seen", "batches", "keep", "open", "repeated")

    def __init__(self, keep: int) -> None:
        self.keep = keep
        """Batches that are remembered."""
        self.batches: dict[int, Brought] = {}
        self.open = OpenCalls()
        self.repeated = 0
        """Results that were not new, ever: no window holds more of them, which spares counting in runs that move."""
        self._seen: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._last_of: OrderedDict[str, int] = OrderedDict()
        self._last_new = self._newest = 0

    def begin(self, n: int, digest: str, names: tuple[str, ...], count: int, ids: Sequence[str | None]) -> None:
        """A batch was asked for; nothing of it is in yet. Without ids its results are told by their places alone."""
        batches, last_of, size = self.batches, self._last_of, len(names)
        previous = last_of.get(digest, 0)
        last_of[digest] = self._newest = n
        if previous:
            last_of.move_to_end(digest)
        elif len(last_of) > DISTINCT_KEPT:
            last_of.popitem(last=False)
        batches[n] = Brought(n, digest, names, [None] * size, size, previous, self._last_new > previous, count)
        while len(batches) > self.keep:
            del batches[next(iter(batches))]
        if ids:
            self.open.opened(n, ids)

    def add(self, brought: Brought, call: int, outcome: Outcome) -> bool:
        """A result came in; whether it is the last one of its batch that was missing."""
        outcomes, key, seen = brought.outcomes, (outcome.tool, outcome.digest), self._seen
        if outcomes[call] is not None:
            return False
        outcomes[call] = outcome
        if key in seen:
            seen.move_to_end(key)
            self.repeated += 1
            brought.known += (call,)
        else:
            seen[key] = None
            if len(seen) > DISTINCT_KEPT:
                seen.popitem(last=False)
            if brought.n == self._newest:
                self._last_new = brought.n
            else:
                self._tell_later(brought.n)
        brought.missing = missing = brought.missing - 1
        return not missing

    def _tell_later(self, n: int) -> None:
        """A batch brought something new, which batches that were asked for before it came could not know."""
        self._last_new = max(self._last_new, n)
        for later in takewhile(lambda brought: brought.n > n, reversed(self.batches.values())):
            later.moved = later.moved or later.previous < n

    def stale(self, n: int) -> bool:
        """Whether a batch is known to have brought nothing new."""
        brought = self.batches.get(n)
        return brought is not None and brought.stale

    def not_new(self, n: int, call: int) -> bool:
        """Whether a call is known to have brought nothing new."""
        brought = self.batches.get(n)
        return brought is not None and call in brought.known

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
            missing = known.count(None)
            stale = tuple(call for call, new in enumerate(fresh) if known[call] is not None and not new)
            trail.batches[n] = Brought(n, digest, tuple(names), known, missing, previous, moved, count, stale)
        trail.open = OpenCalls.load(data["open"])
        trail._seen.update(((tool, digest), None) for tool, digest in data["seen"])
        trail._last_of.update((digest, n) for digest, n in data["last_of"])
        trail._last_new = data["last_new"]
        trail._newest = max(trail.batches, default=0)
        trail.repeated = data["repeated"]
        return trail


def _dump(brought: Brought) -> tuple[Any, ...]:
    outcomes = [outcome and list(astuple(outcome)) for outcome in brought.outcomes]
    of_batch = (brought.n, brought.hash, brought.hash_count, brought.names)
    fresh = [outcome is not None and call not in brought.known for call, outcome in enumerate(brought.outcomes)]
    return (*of_batch, outcomes, fresh, brought.previous, brought.moved)


def outcome_of(result: Result, tool: str) -> Outcome:
    """What the layers see of a result; where no digest is known, its size and what is kept of its text stand for it."""
    failed = result.status == "error"
    digest = result.digest if result.digest is not None else f"{result.size}={result.content}"
    return Outcome(tool, digest, failed, normalised_error(result.content) if failed else "")


def normalised_error(text: str) -> str:
    """An error text without what differs from failure to failure: numbers, addresses, hashes, white space, case."""
    return _NUMBERS.sub("#", _SPACE.sub(" ", text[: 4 * ERROR_KEPT])).strip().lower()[:ERROR_KEPT]
