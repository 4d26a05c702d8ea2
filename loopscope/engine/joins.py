"""Which batch a result belongs to: the newest one of its scope in which its call id is still open.

Ids may be used again by later batches, so an id alone does not name a call. Both the layers that look at results and
the session that shows them join in this way.
"""

from __future__ import annotations

from collections.abc import Iterable
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

    __slots__ = ("_by_id", "_count")

    def __init__(self) -> None:
        self._by_id: dict[str | None, list[Place]] = {}
        self._count = 0

    def opened(self, batch: int, call_ids: Iterable[str | None]) -> None:
        """The calls of this batch are open; batches come in the order of their numbers."""
        for position, call_id in enumerate(call_ids):
            self._by_id.setdefault(call_id, []).append(Place(batch, position))
            self._count += 1
        if self._count > OPEN_KEPT:
            self._forget_half()

    def opened_one(self, batch: int, call_id: str | None) -> None:
        """As `opened`, for a batch of one call."""
        places = self._by_id.get(call_id)
        if places is None:
            self._by_id[call_id] = [Place(batch, 0)]
        else:
            places.append(Place(batch, 0))
        self._count += 1
        if self._count > OPEN_KEPT:
            self._forget_half()

    def closed(self, call_id: str | None) -> Place | None:
        """The call that this result closes; None if no open call has the id."""
        places = self._by_id.get(call_id)
        if not places:
            return None
        if len(places) == 1:
            del self._by_id[call_id]
            self._count -= 1
            return places[0]
        newest = places[-1].batch
        first = next(index for index, place in enumerate(places) if place.batch == newest)
        place = places.pop(first)
        self._count -= 1
        return place

    def _forget_half(self) -> None:
        """Keep the newest half of what is open."""
        everything = sorted((place, call_id) for call_id, places in self._by_id.items() for place in places)
        self._by_id = {}
        for place, call_id in everything[-OPEN_KEPT // 2 :]:
            self._by_id.setdefault(call_id, []).append(place)
        self._count = OPEN_KEPT // 2

    def dump(self) -> list[tuple[str | None, int, int]]:
        """What is open, as plain data, oldest first."""
        return [(call_id, p.batch, p.call) for call_id, places in self._by_id.items() for p in places]

    @classmethod
    def load(cls, saved: Iterable[tuple[str | None, int, int]]) -> OpenCalls:
        """The open calls that `dump` gave."""
        calls = cls()
        for call_id, batch, call in saved:
            calls._by_id.setdefault(call_id, []).append(Place(batch, call))
            calls._count += 1
        return calls
