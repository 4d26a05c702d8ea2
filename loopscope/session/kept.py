"""What a timeline keeps of every batch and result beside its columns: numbers where almost all are alike.

A list or an object for each batch would weigh more than everything else that is known of it, so these look like lists
and dictionaries, hold arrays, and make what is asked for when it is asked for.
"""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar, overload

import msgspec

from loopscope.engine.decision import Decision
from loopscope.engine.events import ScopeKey
from loopscope.engine.snapshot import Snapshot
from loopscope.session.columns import BatchColumns, Interned

__all__ = ["Between", "Chains", "Decisions", "Snapshots"]

T = TypeVar("T")


class Decisions(Sequence[Decision]):
    """The engine's decision of batch i + 1; of one that passed only how often its hash was in the window is kept.

    Args:
        rows: the batches.
        keys: their scopes.
        hashes: their hashes.
    """

    __slots__ = ("_fired", "_hashes", "_keys", "_rows", "counts")

    def __init__(self, rows: BatchColumns, keys: Interned[ScopeKey], hashes: Interned[str]) -> None:
        self._rows = rows
        self._keys = keys
        self._hashes = hashes
        self._fired: dict[int, Decision] = {}
        self.counts = array("l")
        """Each decision's `hash_count`."""

    def __len__(self) -> int:
        return len(self.counts)

    def append(self, decision: Decision) -> None:
        """Keep the decision of the next batch, whose row is there already."""
        row = len(self.counts)
        self.counts.append(decision.hash_count)
        if decision.action != "pass" or self._passed(row) != decision:
            self._fired[row] = decision

    @overload
    def __getitem__(self, index: int) -> Decision: ...
    @overload
    def __getitem__(self, index: slice) -> list[Decision]: ...
    def __getitem__(self, index: int | slice) -> Decision | list[Decision]:
        rows = range(len(self.counts))[index]
        return [self._one(row) for row in rows] if isinstance(rows, range) else self._one(rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(Decision.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]

    def _one(self, row: int) -> Decision:
        return self._fired.get(row) or self._passed(row)

    def _passed(self, row: int) -> Decision:
        rows = self._rows
        thread_id, run_id = self._keys.values[rows.scope[row]]
        return Decision(
            row + 1, rows.seq[row], thread_id, run_id, self._hashes.values[rows.hash[row]], self.counts[row]
        )


class Chains:
    """Rows by what they belong to, which is known by a number. Rows are numbered as they are added, from 0."""

    __slots__ = ("_before", "_newest")

    def __init__(self) -> None:
        self._newest = array("l")
        """By the number, the row that was added last; -1 for none."""
        self._before = array("l")
        """By row, the one of the same number that was added before it."""

    def add(self, number: int) -> None:
        """The next row belongs to this."""
        newest = self._newest
        if number >= len(newest):
            newest.extend([-1] * (number + 1 - len(newest)))
        row = len(self._before)
        self._before.append(newest[number])
        newest[number] = row

    def newest_first(self, number: int) -> Iterator[int]:
        """The rows of this, the newest one first."""
        row = self._newest[number] if number < len(self._newest) else -1
        while row >= 0:
            yield row
            row = self._before[row]

    def __getitem__(self, number: int) -> list[int]:
        """The rows of this in order; none where there is none."""
        return list(self.newest_first(number))[::-1]

    def __contains__(self, number: int) -> bool:
        return number < len(self._newest) and self._newest[number] >= 0


class Between(Generic[T]):
    """What came between two batches, by the number of batches before it: rows of results, and other things."""

    __slots__ = ("_numbers", "_others", "_rows", "_starts")

    def __init__(self) -> None:
        self._starts = array("l", [0])
        """How many rows there were when each number of batches was reached."""
        self._rows = 0
        self._others: dict[int, list[tuple[int, T]]] = {}
        """Other things, each with how many rows came before it."""
        self._numbers = array("l")
        """Where there are other things, in order."""

    def next_batch(self) -> None:
        """What is added from now on comes after one batch more."""
        self._starts.append(self._rows)

    def add_row(self) -> None:
        """The next row comes here."""
        self._rows += 1

    def add(self, item: T) -> None:
        """This comes here."""
        number = len(self._starts) - 1
        if number not in self._others:
            self._others[number] = []
            self._numbers.append(number)
        self._others[number].append((self._rows, item))

    def __contains__(self, number: int) -> bool:
        return bool(self._range(number)) or number in self._others

    def __getitem__(self, number: int) -> Sequence[T | int]:
        """What came after so many batches, in order."""
        rows, others = self._range(number), self._others.get(number)
        if others is None:
            return rows
        found: list[T | int] = []
        at = rows.start
        for before, item in others:
            found.extend(range(at, before))
            found.append(item)
            at = before
        found.extend(range(at, rows.stop))
        return found

    @property
    def size(self) -> tuple[int, int, int]:
        """Numbers of batches, rows, and numbers with other things: while it is the same, the same numbers have some."""
        return len(self._starts), self._rows, len(self._numbers)

    def items(self) -> Iterator[tuple[int, Sequence[T | int]]]:
        """All that is not empty, by number."""
        return ((number, self[number]) for number in range(len(self._starts)) if number in self)

    @property
    def others(self) -> Iterator[T]:
        """All that is no row."""
        return (item for items in self._others.values() for _, item in items)

    def others_from(self, number: int, end: int) -> Iterator[T]:
        """What is no row, from a number of batches up to another one, which is not counted."""
        numbers = self._numbers
        for place in range(bisect_left(numbers, number), bisect_left(numbers, end)):
            yield from (item for _, item in self._others[numbers[place]])

    def _range(self, number: int) -> range:
        starts = self._starts
        if not 0 <= number < len(starts):
            return range(0)
        return range(starts[number], starts[number + 1] if number + 1 < len(starts) else self._rows)


class Snapshots:
    """States of the engine after some numbers of batches, packed: most of their texts are in all of them."""

    __slots__ = ("_numbers", "_packed")

    def __init__(self) -> None:
        self._numbers = array("l")
        self._packed: list[bytes] = []

    def __len__(self) -> int:
        return len(self._packed)

    def add(self, number: int, state: Snapshot) -> int:
        """Keep the state after so many batches, more than the one before; how many bytes it takes."""
        packed = zlib.compress(msgspec.msgpack.encode(state), 1)
        self._packed.append(packed)
        self._numbers.append(number)
        return len(packed)

    def before(self, number: int) -> tuple[int, Snapshot] | None:
        """The newest state that is not after so many batches, and after how many it is."""
        index = bisect_right(self._numbers, number) - 1
        if index < 0:
            return None
        return self._numbers[index], msgspec.msgpack.decode(zlib.decompress(self._packed[index]), type=Snapshot)
