"""What the batches of a scope brought: the facts of their results, for the layers that do not stop what still moves on.

Kept only under a policy that looks at results. Everything here is bounded: batches by the largest window, results by
the newest thousand distinct ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice, takewhile
from typing import Any, NamedTuple, TypeVar, final

from msgspec import Struct
from msgspec.structs import astuple

from loopscope.engine.events import Result
from loopscope.engine.joins import OpenCalls, Place

__all__ = ["Brought", "Outcome", "Told", "Trail", "normalised_error", "outcome_of"]

DISTINCT_KEPT = 1000
"""Distinct results, and distinct hashes, of a scope that are remembered."""
_SLACK = 250
"""So many more may lie behind them until they are forgotten together, which costs a fraction of one by one."""
ERROR_KEPT = 400
"""Characters of a normalised error text: the rest of a traceback differs from line to line, not from cause to cause."""
_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-fA-F]{8,}\b|\d+")
_SPACE = re.compile(r"\s+")
K = TypeVar("K")
V = TypeVar("V")


class Outcome(Struct, frozen=True, gc=False):
    """The result of one call as the layers see it."""

    tool: str
    digest: str
    failed: bool
    error: str
    """Its normalised text if it failed, else nothing."""


@final
class Told(NamedTuple):
    """A result whose call is known."""

    place: Place
    outcome: Outcome
    seq: int


class Brought(Struct, gc=False):
    """One batch, its results as they come in."""

    n: int
    hash: str
    names: tuple[str, ...]
    came: Outcome | list[Outcome | None] | None
    """The one result of a batch of one call; a list of as many as it has calls otherwise."""
    previous: int
    """Number of the newest batch before it with this hash; 0 where there is none."""
    moved: bool
    """A batch strictly between the previous occurrence of this hash and this one brought a new result."""
    hash_count: int
    known: tuple[int, ...] = ()
    """Positions of the calls whose result was not new to the scope."""
    missing: int = 0
    """Calls that have no result yet, of a batch that has more than one."""
    failures: int = 0
    """Calls that failed."""

    @property
    def outcomes(self) -> list[Outcome | None]:
        """The results in call order; None where one has not come in."""
        return self.came if isinstance(self.came, list) else [self.came]

    @property
    def complete(self) -> bool:
        """Every call has its result."""
        return self.came is not None and not self.missing

    @property
    def stale(self) -> bool:
        """It brought nothing new, and either failed or came without anything new in between."""
        return len(self.known) == len(self.names) and (not self.moved or self.failures > 0)


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
        # Both with the ones that came last at the end, and perhaps more than count at the beginning.
        self._seen: dict[tuple[str, str], bool] = {}
        self._last_of: dict[str, int] = {}
        self._last_new = self._newest = 0

    def begin(self, n: int, digest: str, names: tuple[str, ...], count: int, ids: Sequence[str | None]) -> None:
        """A batch was asked for; nothing of it is in yet. Without ids its results are told by their places alone."""
        batches, last_of, calls = self.batches, self._last_of, len(names)
        previous = last_of.get(digest, 0)
        if previous:
            previous = _recall(last_of, digest) or 0
        last_of[digest] = self._newest = n
        if len(last_of) > DISTINCT_KEPT + _SLACK:
            _cut(last_of)
        moved = self._last_new > previous
        if calls == 1:
            batches[n] = Brought(n, digest, names, None, previous, moved, count)
        else:
            awaited: list[Outcome | None] = [None] * calls
            batches[n] = Brought(n, digest, names, awaited, previous, moved, count, (), calls)
        while len(batches) > self.keep:
            del batches[next(iter(batches))]
        if ids:
            self.open.opened(n, ids)

    def take(self, result: Result | Told) -> Brought | None:
        """A result came in; its batch, if it is the last one that was missing."""
        place = result.place if type(result) is Told else self.open.closed(result.call_id)
        if place is None or (brought := self.batches.get(place[0])) is None:
            return None
        call, came, seen = place[1], brought.came, self._seen
        outcome = result.outcome if type(result) is Told else outcome_of(result, brought.names[call])
        if came is None:
            brought.came = outcome
        elif isinstance(came, list) and came[call] is None:
            came[call] = outcome
            brought.missing -= 1
        else:
            return None
        if outcome.failed:
            brought.failures += 1
        key = (outcome.tool, outcome.digest)
        old = key in seen and _recall(seen, key)
        seen[key] = True
        if old:
            self.repeated += 1
            brought.known += (call,)
        else:
            if len(seen) > DISTINCT_KEPT + _SLACK:
                _cut(seen)
            if brought.n == self._newest:
                self._last_new = self._newest
            else:
                self._tell_later(brought.n)
        return None if brought.missing else brought

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
        _cut(self._seen)
        _cut(self._last_of)
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
            came = [None if outcome is None else Outcome(*outcome) for outcome in outcomes]
            known = tuple(call for call, new in enumerate(fresh) if came[call] is not None and not new)
            failures = sum(outcome is not None and outcome.failed for outcome in came)
            one, missing = (came[0], 0) if len(came) == 1 else (came, came.count(None))
            trail.batches[n] = Brought(n, digest, tuple(names), one, previous, moved, count, known, missing, failures)
        trail.open = OpenCalls.load(data["open"])
        trail._seen.update(((tool, digest), True) for tool, digest in data["seen"])
        trail._last_of.update((digest, n) for digest, n in data["last_of"])
        trail._last_new = data["last_new"]
        trail._newest = max(trail.batches, default=0)
        trail.repeated = data["repeated"]
        return trail


def _recall(known: dict[K, V], key: K) -> V | None:
    """What is known of a key, if it is among the newest: taken out, to be put in again as the newest one of all."""
    _cut(known)
    return known.pop(key, None)


def _cut(known: dict[K, V]) -> None:
    """Forget all but the newest ones."""
    for old in list(islice(known, max(len(known) - DISTINCT_KEPT, 0))):
        del known[old]


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
