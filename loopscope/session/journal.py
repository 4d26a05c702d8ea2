"""Marks, and the undo of what a person changed: thresholds, breakpoints, which scope is shown, the filter, the marks.

Undo is an ordinary operation here: each change is a picture of what was before it. Moving the cursor is no change,
but undoing one puts the cursor back where it was.
"""

from __future__ import annotations

from typing import NamedTuple

from loopscope.engine.breakpoints import Breakpoint
from loopscope.session.draft import Draft
from loopscope.session.session import Lane, Session

__all__ = ["Journal"]

MOST = 200
"""Changes that are kept."""


class _View(NamedTuple):
    """What can be undone."""

    lane: Lane | None
    filter: str
    marks: tuple[int, ...]
    breakpoints: tuple[Breakpoint, ...]
    draft: Draft | None


_WORDS = {"filter": "filter", "marks": "marks", "breakpoints": "breakpoints", "draft": "thresholds", "lane": "scope"}
"""What was changed, in words; of two at once the first one is told."""


class _Change(NamedTuple):
    """What was before a change, and where the cursor stood."""

    view: _View
    cursor: int


class Journal:
    """The marks of a session, and its changes.

    Args:
        session: whose lane, cursor and breakpoints.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.marks: tuple[int, ...] = ()
        """Numbers of the batches that are marked, in order."""
        self.filter = ""
        """The filter of the decisions."""
        self.draft: Draft | None = None
        """The overrides that are being tried; None while nothing was changed."""
        self._changes: list[_Change] = []
        self._last = _Change(self._view, session.cursor)

    @property
    def _view(self) -> _View:
        return _View(self._session.lane, self.filter, self.marks, tuple(self._session.breakpoints), self.draft)

    def look(self) -> None:
        """Something may have changed: keep what was before it. To be called after every operation."""
        if self._view != self._last.view:
            self._changes = [*self._changes[-MOST:], self._last]
        self._last = _Change(self._view, self._session.cursor)

    def forget(self) -> None:
        """What has changed was nobody's doing, as where a recording opens: it is not to be undone."""
        self._last = _Change(self._view, self._session.cursor)

    def toggle(self, number: int) -> bool:
        """Mark a batch, or take its mark away; whether it is marked then."""
        self.marks = tuple(sorted(set(self.marks) ^ {number}))
        self.look()
        return number in self.marks

    def next_mark(self) -> int | None:
        """The next marked batch after the cursor, round to the first one; None where nothing else is marked."""
        after = [number for number in self.marks if number > self._session.cursor]
        found = (after or [number for number in self.marks if number < self._session.cursor])[:1]
        return found[0] if found else None

    def undo(self) -> str | None:
        """Take the last change back; what it was in a word, or None where there is none."""
        self.look()
        if not self._changes:
            return None
        change = self._changes.pop()
        now, then = self._view, change.view
        what = next(word for name, word in _WORDS.items() if getattr(now, name) != getattr(then, name))
        self.filter, self.marks, self.draft = then.filter, then.marks, then.draft
        self._session.breakpoints[:] = then.breakpoints
        self._session.lane = then.lane
        self._session.cursor = change.cursor
        self._last = _Change(then, change.cursor)
        return what
