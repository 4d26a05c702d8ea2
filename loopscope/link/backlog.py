"""What happened so far, for viewers that come late: lines in segments, each of which begins with the whole state.

Apart from the connections, which only hold a position in it: a viewer that reads slowly costs no memory of its own, and
one that falls behind what is kept goes on at the next whole state, with a `gap` that says so.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import NamedTuple

from loopscope.engine.events import Gap
from loopscope.link.wire import encode

__all__ = ["Backlog", "Reading"]

_SEGMENTS = 16
_LINES = 5_000
"""Lines of one segment, so that nobody folds more than this from a state on."""


class Reading(NamedTuple):
    """Lines, and the position after them."""

    position: int
    lines: list[bytes]


class _Segment:
    """A whole state and the lines after it."""

    __slots__ = ("lines", "opening", "places", "seq", "size", "start")

    def __init__(self, start: int, seq: int, opening: bytes) -> None:
        self.start = start
        """Position of its first line."""
        self.seq = seq
        """The event that the state is after."""
        self.opening = opening
        self.lines: list[bytes] = []
        self.places: list[int] = []
        """Of each line: twice its `seq`, or one more than that of the event before it where it is no event itself."""
        self.size = len(opening)

    def add(self, line: bytes, seq: int | None) -> None:
        before = self.places[-1] if self.places else 2 * self.seq
        self.places.append(before | 1 if seq is None else 2 * seq)
        self.lines.append(line)


class Backlog:
    """Bounded in bytes. A position counts lines from the first one of the process; dropping lines does not change it.

    Args:
        limit: the most bytes to keep; the newest segment is kept in any case.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._segments: deque[_Segment] = deque()
        self.size = 0
        """Bytes that are kept."""
        self.end = 0
        """The position after the newest line."""

    def open(self, seq: int, opening: bytes, *, broken: bool = False) -> None:
        """Begin a segment with the state after this event.

        Args:
            seq: the event.
            opening: the state as a line.
            broken: lines before it are missing, so that those who come from there must take the state as well.
        """
        segment = _Segment(self.end, seq, opening)
        if broken:
            segment.add(opening, None)
            self.end += 1
        self._segments.append(segment)
        self.size += segment.size
        while self.size > self._limit and len(self._segments) > 1:
            self.size -= self._segments.popleft().size

    @property
    def is_full(self) -> bool:
        """Whether the newest segment has had enough, so that another one should be opened."""
        newest = self._segments[-1]
        room = max(self._limit // _SEGMENTS, 2 * len(newest.opening))
        return newest.size - len(newest.opening) >= room or len(newest.lines) >= _LINES

    def add(self, line: bytes, seq: int | None = None) -> None:
        """Keep a line; `seq` is None for what is no event."""
        newest = self._segments[-1]
        newest.add(line, seq)
        newest.size += len(line)
        self.size += len(line)
        self.end += 1

    def start(self, since: int | None) -> Reading:
        """What a viewer must have first, and where it reads on.

        Args:
            since: the newest event that it has; None for one that has nothing.
        """
        oldest = self._segments[0]
        if since is not None and since >= oldest.seq:
            segment = next(each for each in reversed(self._segments) if each.seq <= since)
            return Reading(segment.start + bisect_right(segment.places, 2 * since), [])
        lines = [oldest.opening] if since is None else [_gap(oldest.seq, oldest.seq - since), oldest.opening]
        return Reading(self._after_opening(oldest), lines)

    def read(self, position: int, room: int) -> Reading:
        """Some of the lines from a position on, about `room` bytes of them."""
        oldest = self._segments[0]
        if position < oldest.start:
            return Reading(self._after_opening(oldest), [_gap(oldest.seq, oldest.start - position), oldest.opening])
        at = bisect_right([segment.start for segment in self._segments], position) - 1
        segment = self._segments[at]
        lines: list[bytes] = []
        while room > 0 and position - segment.start < len(segment.lines):
            line = segment.lines[position - segment.start]
            lines.append(line)
            position += 1
            room -= len(line)
        return Reading(position, lines)

    @staticmethod
    def _after_opening(segment: _Segment) -> int:
        """A state that stands among the lines too is not sent twice."""
        return segment.start + (bool(segment.lines) and segment.lines[0] is segment.opening)


def _gap(seq: int, lost: int) -> bytes:
    return encode(Gap(seq=seq, ts=None, thread_id=None, run_id=None, lost=lost))
