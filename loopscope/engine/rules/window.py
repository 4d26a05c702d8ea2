"""A sliding window that knows how often each item is in it, without counting it over.

Both first layers count occurrences among the newest items; `list.count` over the window costs more than the rest of a
decision, so the counts are kept as items come and go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

__all__ = ["Window"]


class Window:
    """The newest items, oldest first, and the marks of items that were warned of."""

    __slots__ = ("counts", "items", "marked", "places")

    def __init__(
        self, items: Iterable[str] = (), marked: Iterable[str] = (), places: Iterable[tuple[int, int]] = ()
    ) -> None:
        self.items: deque[str] = deque(items)
        self.counts: dict[str, int] = {}
        self.marked: set[str] = set(marked)
        self.places: deque[int | tuple[int, int]] = deque((batch, call) if call else batch for batch, call in places)
        """Where the newest items come from, as batch and call, or as the batch alone where it is the first call of it:
        kept only where limits look at results."""
        for item in self.items:
            self.counts[item] = self.counts.get(item, 0) + 1

    def dump(self) -> dict[str, Any]:
        """The window as plain data: `Window(**window.dump())` is the same window."""
        data: dict[str, Any] = {"items": list(self.items), "marked": sorted(self.marked)}
        if self.places:
            data["places"] = [(place, 0) if isinstance(place, int) else place for place in self.places]
        return data
