"""Where breakpoints hold in a recording, found once and only as far as somebody looks.

The predicates are the engine's; what is here keeps a long recording from being asked again and again: most batches can
be ruled out by a number in a column, and what needs the engine's state or the arguments is walked over once, forward,
also for those who search back. Any thread may search; the screen only looks at what is known.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock
from typing import NamedTuple, Protocol

import msgspec

from loopscope.engine.breakpoints import Breakpoint, Moment, hits
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch
from loopscope.session.letters import letter_name, letter_order
from loopscope.session.timeline import Timeline

__all__ = ["Halt", "Halts", "condition"]

_STRIDE = 256
"""Batches that are looked at before a hit among them counts, and between two times that a search may end."""
_LATER = ("stop", "warn", "layer")
"""Kinds whose answer a result may change after its batch."""


class Halt(NamedTuple):
    """A batch at which a breakpoint holds."""

    number: int
    point: Breakpoint


class Reader(Protocol):
    """Reads whole batches again, for conditions on arguments."""

    def batch(self, number: int) -> Batch | None:
        """The batch with its arguments; None where its line is gone."""


class _Found:
    """What is known of one condition."""

    __slots__ = ("detector", "numbers", "upto", "version")

    def __init__(self, version: object) -> None:
        self.numbers = array("l")
        """Batches at which it holds, in order."""
        self.upto = 0
        """All batches up to this one were looked at."""
        self.version = version
        self.detector: LoopDetector | None = None


def condition(point: Breakpoint) -> Breakpoint:
    """The breakpoint without what does not decide where it holds."""
    return msgspec.structs.replace(point, enabled=True, one_shot=False)


class Halts:
    """The batches at which conditions hold.

    Args:
        timeline: the run.
        reader: for conditions on arguments.
    """

    def __init__(self, timeline: Timeline, reader: Reader) -> None:
        self._timeline = timeline
        self._reader = reader
        self._found: dict[Breakpoint, _Found] = {}
        self._lock = Lock()

    def known(self, point: Breakpoint) -> Sequence[int] | None:
        """The batches at which a condition holds; None where not all were looked at yet. Never waits."""
        found = self._found.get(condition(point))
        if found is None or found.version != self._version(point) or found.upto < len(self._timeline):
            return None
        return found.numbers

    def look(self, points: Iterable[Breakpoint], last: int, wanted: Callable[[], bool] = lambda: True) -> bool:
        """Look at all batches up to `last`; False where nobody wanted that any more."""
        for point in map(condition, points):
            with self._lock:
                found = self._of(point)
                while found.upto < last:
                    if not wanted():
                        return False
                    end = min(last, found.upto + _STRIDE)
                    for number in self._candidates(point, found.upto + 1, end):
                        if hits(point, self._moment(point, found, number)):
                            found.numbers.append(number)
                    found.upto = end
        return True

    def search(
        self,
        points: Sequence[Breakpoint],
        lane: Sequence[int],
        cursor: int,
        direction: int,
        wanted: Callable[[], bool] = lambda: True,
    ) -> Halt | None:
        """The next batch (-1: the previous one) at which an enabled breakpoint holds; None where there is none.

        Args:
            points: of two that hold at one batch, the first one counts.
            lane: numbers of the batches that count, in order.
            cursor: the batch to begin behind, or before.
            direction: 1 or -1.
            wanted: asked now and then; the search ends with None where it says no.
        """
        points = [point for point in points if point.enabled]
        last = len(self._timeline) if direction > 0 else cursor - 1
        end = cursor if direction > 0 else last - 1
        while points and end < last:
            end = min(last, max(end + _STRIDE, 2 * end - cursor))
            if not self.look(points, end, wanted):
                return None
            found = [
                Halt(number, point) for point in points if (number := self._beside(point, lane, cursor, direction))
            ]
            if found:
                return (min if direction > 0 else max)(found, key=lambda halt: halt.number)
        return None

    def _beside(self, point: Breakpoint, lane: Sequence[int], cursor: int, direction: int) -> int | None:
        """The nearest known hit of the lane on one side of the cursor."""
        numbers = self._found[condition(point)].numbers
        if direction > 0:
            places = range(bisect_right(numbers, cursor), len(numbers))
        else:
            places = range(bisect_left(numbers, cursor) - 1, -1, -1)
        return next((numbers[place] for place in places if _holds(lane, numbers[place])), None)

    def _of(self, point: Breakpoint) -> _Found:
        version = self._version(point)
        found = self._found.get(point)
        if found is None or found.version != version:
            found = self._found[point] = _Found(version)
        return found

    def _version(self, point: Breakpoint) -> object:
        """What a condition must be looked at anew for."""
        timeline = self._timeline
        return (len(timeline.notable), len(timeline.at_result)) if point.kind in _LATER else None

    def _candidates(self, point: Breakpoint, first: int, last: int) -> Iterator[int]:
        """The batches in this range at which the condition can hold at all."""
        timeline = self._timeline
        rows = timeline.batches
        if point.kind in _LATER:
            notable = timeline.notable
            yield from notable[bisect_left(notable, first) : bisect_right(notable, last)]
        elif point.kind == "batch":
            yield from [int(point.at_least)] if first <= point.at_least <= last else []
        elif point.kind == "tool":
            names = timeline.names.values
            yield from (n for n in range(first, last + 1) if point.subject in names[rows.names[n - 1]])
        elif point.kind == "hash":
            digest, letter = timeline.hashes.numbers.get(point.subject, -1), letter_order(point.subject)
            columns = zip(rows.hash[first - 1 : last], rows.letter[first - 1 : last], strict=True)
            yield from (n for n, (own, order) in enumerate(columns, first) if own == digest or order == letter)
        else:
            yield from range(first, last + 1)

    def _moment(self, point: Breakpoint, found: _Found, number: int) -> Moment:
        """A batch as breakpoints see it, with no more than this one asks for."""
        timeline, row = self._timeline, number - 1
        rows = timeline.batches
        scope = None
        if point.kind in ("pending", "usage"):
            detector = found.detector = found.detector or timeline.detector_at(0)
            timeline.fold(detector, number)
            scope = detector.scope(timeline.scope_of(number))
        whole = self._reader.batch(number) if point.kind == "argument" else None
        return Moment(
            decision=timeline.verdict(number),
            calls=whole.calls if whole is not None else (),
            names=timeline.names.values[rows.names[row]],
            scope=scope,
            letter=letter_name(rows.letter[row]),
        )


def _holds(lane: Sequence[int], number: int) -> bool:
    place = bisect_left(lane, number)
    return place < len(lane) and lane[place] == number
