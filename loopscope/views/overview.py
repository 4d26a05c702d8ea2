"""The overview: a whole lane in one row, for lanes that are longer than the strip is wide.

A cell stands for a bucket of batches and shows the worst of them, so that no stop is ever too small to be seen.
What a bucket holds does not depend on the cursor and is kept until the lane grows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple
from weakref import WeakKeyDictionary

from loopscope.session.session import Session
from loopscope.views.glyphs import GLYPH, TONE
from loopscope.views.model import Mark, Span, Style

__all__ = ["Bucket", "buckets", "cells", "target"]


class Bucket(NamedTuple):
    """Some batches in a row."""

    first: int
    """Position in the lane of the first one."""
    state: str
    """The worst of them: `new`, `repeat`, `warn` or `stop`."""
    worst: int
    """Number of the first batch in that state; of the first batch where none was warned or stopped."""


_KEPT: WeakKeyDictionary[Session, tuple[tuple[object, ...], tuple[Bucket, ...]]] = WeakKeyDictionary()


def buckets(session: Session, count: int) -> tuple[Bucket, ...]:
    """The lane in so many buckets, or in one for each batch where it has fewer."""
    numbers = session.batches
    key = (session.lane, count, len(session), len(session.timeline.notable), len(session.timeline.at_result))
    kept = _KEPT.get(session)
    if kept is not None and kept[0] == key:
        return kept[1]
    count = min(count, len(numbers))
    edges = [len(numbers) * index // count for index in range(count + 1)] if count else []
    found = tuple(_bucket(session, numbers, first, end) for first, end in pairwise(edges))
    _KEPT[session] = (key, found)
    return found


def _bucket(session: Session, numbers: Sequence[int], first: int, end: int) -> Bucket:
    timeline = session.timeline
    low, high = numbers[first], numbers[end - 1]
    notable = timeline.notable
    inside: Sequence[int] = notable[bisect_left(notable, low) : bisect_right(notable, high)]
    if len(inside) and high - low >= end - first:
        own = set(numbers[first:end])
        inside = [number for number in inside if number in own]
    stop = next((number for number in inside if timeline.verdict(number).action == "hard_stop"), None)
    if stop is not None:
        return Bucket(first, "stop", stop)
    if inside:
        return Bucket(first, "warn", inside[0])
    counts = timeline.decisions.counts
    repeats = any(counts[number - 1] > 1 for number in numbers[first:end])
    return Bucket(first, "repeat" if repeats else "new", low)


def cells(session: Session, count: int, shown: range, cursor: int) -> list[Span]:
    """A cell a bucket; what is after the cursor is dim, as it has not happened yet.

    Args:
        session: whose lane.
        count: cells.
        shown: positions in the lane that the strip shows: their buckets stand out.
        cursor: position in the lane.
    """
    found = buckets(session, count)
    ends = [bucket.first for bucket in found[1:]] + [len(session.batches)]
    spans: list[Span] = []
    for bucket, end in zip(found, ends, strict=True):
        here = bucket.first <= cursor < end
        mark: Mark = "cursor" if here else "strong" if bucket.first < shown.stop and end > shown.start else ""
        tone: Style = "dim" if bucket.first > cursor else TONE[bucket.state]
        spans.append(Span(GLYPH[bucket.state], tone, mark))
    return spans


def target(session: Session, count: int, cell: int) -> int | None:
    """The batch that a click on a cell means: the first of the worst ones in its bucket; None beside the cells."""
    found = buckets(session, count)
    return found[cell].worst if 0 <= cell < len(found) else None
