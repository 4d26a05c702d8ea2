"""A sliding window that knows how often each item is in it, without counting it over.

Both layers of the detector count occurrences among the newest items; `list.count` over the window costs more than the
rest of a decision, so the counts are kept as items come and go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

__all__ = ["Window"]


class Window:
    """The newest items, oldest first, and the marks of items that were warned of."""

    __slots__ = ("counts", "items", "marked")

    def __init__(self, items: Iterable[str] = (), marked: Iterable[str] = ()) -> None:
        self.items: deque[str] = deque(items)
        self.counts: dict[str, int] = {}
        self.marked: set[str] = set(marked)
        for item in self.items:
            self.counts[item] = self.counts.get(item, 0) + 1

    def dump(self) -> dict[str, list[str]]:
        """The window as plain data: `Window(**window.dump())` is the same window."""
        return {"items": list(self.items), "marked": sorted(self.marked)}
