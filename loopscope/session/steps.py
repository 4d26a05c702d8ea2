"""The batches of one scope as the engine folds them again, each made from its row when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from loopscope.engine.events import Control, Event, Header, ScopeKey, Witness
from loopscope.engine.nearest import Arrival, Step
from loopscope.engine.snapshot import Snapshot
from loopscope.session.timeline import Timeline

__all__ = ["Steps"]


class Steps(Sequence[Step]):
    """A sequence that holds numbers alone: a long scope is not copied to look at its end."""

    __slots__ = ("_end", "_numbers", "_timeline")

    def __init__(self, timeline: Timeline, numbers: Sequence[int], end: int | None = None) -> None:
        self._timeline = timeline
        self._numbers = numbers
        self._end = len(timeline) + 1 if end is None else end
        """Number of the scope's first batch behind these, as if there were one at the end of the timeline."""

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> Steps: ...
    def __getitem__(self, index: int | slice) -> Step | Steps:
        if isinstance(index, slice):
            stop = index.indices(len(self))[1]
            return Steps(self._timeline, self._numbers[index], self._numbers[stop] if stop < len(self) else self._end)
        return self._step(range(len(self._numbers))[index])

    def _step(self, index: int) -> Step:
        number = self._numbers[index]
        timeline, row = self._timeline, number - 1
        rows = timeline.batches
        return Step(
            number=number,
            batch=timeline.stub(number),
            hash=timeline.hashes.values[rows.hash[row]],
            names=timeline.names.values[rows.names[row]],
            policy=timeline.policy_at(number),
            fresh=number in timeline.fresh,
            repeats=timeline.repeats.get(number, ()),
            after=tuple(self._arrivals(index)) if timeline.looks_at_results else (),
            over_budget=number in timeline.over_budget,
        )

    def _arrivals(self, index: int) -> Iterator[Arrival | Witness]:
        """What came in for this scope between one of its batches and the next, or the end of its state."""
        timeline, number = self._timeline, self._numbers[index]
        end = self._numbers[index + 1] if index + 1 < len(self) else self._end
        key = timeline.scope_of(number)
        for between in range(number, end):
            for item in timeline.between.get(between, ()):
                if _forgets(item, key):
                    return
                if isinstance(item, Witness):
                    if item.scope == key:
                        yield item
                elif isinstance(item, int) and timeline.scope_of(timeline.results.batch[item]) == key:
                    yield timeline.arrival(item)


def _forgets(item: Event | Snapshot | int, key: ScopeKey) -> bool:
    """Whether the engine forgets this scope here."""
    reset = isinstance(item, Control) and item.action == "reset" and item.scope in (key, ScopeKey(None, None))
    return reset or isinstance(item, (Header, Snapshot))
