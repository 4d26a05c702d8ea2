"""Which batch a result belongs to: the newest one of its scope in which its call id is still open.

Ids may be used again by later batches, so an id alone does not name a call. Both the layers that look at results and
the session that shows them join in this way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["OpenCalls", "Place"]

OPEN_KEPT = 1000
"""Open calls of a scope that are remembered: those of runs that were cut off must not add up for ever."""


class Place(NamedTuple):
    """A call by its batch and its position in it."""

    batch: int
    call: int


class OpenCalls:
    """The calls of one scope that have no result yet."""

    __slots__ = ("_batch", "_by_id", "_count", "_ids")

    def __init__(self) -> None:
        self._by_id: dict[str | None, list[tuple[int, int]]] = {}
        self._count = 0
        # Mostly the one call of the newest batch is the next to have its result: until then it stays out of the table.
        self._batch = 0
        self._ids: Sequence[str | None] = ()

    def opened(self, batch: int, call_ids: Sequence[str | None]) -> None:
        """The calls of this batch are open; batches come in the order of their numbers."""
        if self._ids:
            self._enter()
        self._batch, self._ids = batch, call_ids
        if len(call_ids) > 1 or self._count >= OPEN_KEPT:
            self._enter()

    def closed(self, call_id: str | None) -> tuple[int, int] | None:
        """The call that this result closes, as batch and position; None if no open call has the id."""
        if ids := self._ids:
            if ids[0] == call_id:
                self._ids = ()
                return self._batch, 0
            self._enter()
        places = self._by_id.get(call_id)
        if places is None:
            return None
        self._count -= 1
        if len(places) == 1:
            del self._by_id[call_id]
            return places[0]
        newest = places[-1][0]
        return places.pop(next(index for index, place in enumerate(places) if place[0] == newest))

    def _enter(self) -> None:
        """Put the calls of the newest batch in the table."""
        for position, call_id in enumerate(self._ids):
            self._by_id.setdefault(call_id, []).append((self._batch, position))
        self._count += len(self._ids)
        self._ids = ()
        if self._count > OPEN_KEPT:
            self._forget_half()

    def _forget_half(self) -> None:
        """Keep the newest half of what is open."""
        everything = sorted((place, call_id) for call_id, places in self._by_id.items() for place in places)
        self._by_id = {}
        for place, call_id in everything[-OPEN_KEPT // 2 :]:
            self._by_id.setdefault(call_id, []).append(place)
        self._count = OPEN_KEPT // 2

    def dump(self) -> list[tuple[str | None, int, int]]:
        """What is open, as plain data, oldest first."""
        self._enter()
        return [(call_id, *place) for call_id, places in self._by_id.items() for place in places]

    @classmethod
    def load(cls, saved: Iterable[tuple[str | None, int, int]]) -> OpenCalls:
        """The open calls that `dump` gave."""
        calls = cls()
        for call_id, batch, call in saved:
            calls._by_id.setdefault(call_id, []).append((batch, call))
            calls._count += 1
        return calls
