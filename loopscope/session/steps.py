"""The batches of one scope as the engine folds them again, each made from its row when it is asked for."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from typing import overload

from loopscope.engine.events import Control, Event, Header, ScopeKey, Witness
from loopscope.engine.nearest import Arrival, Step
from loopscope.engine.snapshot import Snapshot
from loopscope.session.timeline import Timeline

__all__ = ["Steps", "Unwanted", "counted_with"]

_LOOK = 256
"""Batches between two times that a fold looks whether it is still wanted."""


class Unwanted(Exception):  # noqa: N818 - no error: nobody waits for an answer any more
    """The steps end here: what is made of them is not wanted any more."""


def _always() -> bool:
    return True


def counted_with(timeline: Timeline, number: int) -> Sequence[int]:
    """The batches that share a history with this one: its scope's, or its thread's where the policy says so."""
    key = timeline.scope_of(number)
    if timeline.policy_at(number).scope == "run":
        return timeline.scopes[key].batches
    return array("l", merge(*[r.batches for k, r in timeline.scopes.items() if k.thread_id == key.thread_id]))


class Steps(Sequence[Step]):
    """A sequence that holds numbers alone: a long scope is not copied to look at its end.

    Args:
        timeline: the run.
        numbers: of the batches, in order.
        end: number of the scope's first batch behind these; by default there is none.
        wanted: asked now and then; where it says no, the next step raises `Unwanted`.
    """

    __slots__ = ("_end", "_numbers", "_timeline", "_wanted")

    def __init__(
        self,
        timeline: Timeline,
        numbers: Sequence[int],
        end: int | None = None,
        wanted: Callable[[], bool] = _always,
    ) -> None:
        self._timeline = timeline
        self._numbers = numbers
        self._wanted = wanted
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
            end = self._numbers[stop] if stop < len(self) else self._end
            return Steps(self._timeline, self._numbers[index], end, self._wanted)
        return self._step(range(len(self._numbers))[index])

    def _step(self, index: int) -> Step:
        if index % _LOOK == 0 and not self._wanted():
            raise Unwanted
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
        key = self._home(timeline.scope_of(number), number)
        for between in range(number, end):
            for item in timeline.between[between]:
                if self._forgets(item, key, number):
                    return
                if isinstance(item, Witness):
                    if self._home(item.scope, number) == key:
                        yield item
                elif (
                    isinstance(item, int) and self._home(timeline.scope_of(timeline.results.batch[item]), number) == key
                ):
                    yield timeline.arrival(item)

    def _home(self, key: ScopeKey, number: int) -> ScopeKey:
        """Where the engine keeps the state of a scope under the policy of a batch."""
        return ScopeKey(key.thread_id, None) if self._timeline.policy_at(number).scope == "thread" else key

    def _forgets(self, item: Event | Snapshot | int, key: ScopeKey, number: int) -> bool:
        """Whether the engine forgets this scope here."""
        if isinstance(item, Control) and item.action == "reset":
            return item.scope == ScopeKey(None, None) or self._home(item.scope, number) == key
        return isinstance(item, (Header, Snapshot))
