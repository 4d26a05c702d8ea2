"""The rows of one thread, decoded; what cannot be read is reported and left out.

Apart from the walk over them, so that a damaged or hostile row is no concern of its.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from loopscope.recording.inert import inert
from loopscope.sources.langgraph_sqlite.readonly import FAILURES, MAX_VALUE
from loopscope.sources.langgraph_sqlite.state import State, read_state
from loopscope.sources.langgraph_sqlite.store import BEFORE_ALL, CheckpointRow, Store, Stored, ThreadRow
from loopscope.sources.langgraph_sqlite.tree import Node
from loopscope.sources.langgraph_sqlite.unpack import Undecodable, Unpacker

__all__ = ["Rows", "Written"]


class Written(NamedTuple):
    """One value that a task wrote to a channel."""

    channel: str
    value: Any


class Rows:
    """What the file holds of one thread.

    Args:
        store: the database.
        thread: the thread in it.
        report: told the number of each row that is left out, and why; 0 where SQLite does not say which.
    """

    def __init__(self, store: Store, thread: ThreadRow, report: Callable[[int, str], None]) -> None:
        self.thread_id = thread.name
        self._store = store
        self._thread = thread
        self._report = report
        self._row = 0
        self._unpack = Unpacker().value

    def reopen(self, store: Store) -> None:
        """Go on with the same file, opened again."""
        self._store = store

    def checkpoints(self, after: int = BEFORE_ALL) -> Iterator[CheckpointRow]:
        """The checkpoints behind this row, without their states, up to the first that SQLite cannot read."""
        try:
            yield from self._store.checkpoints(self._thread, after)
        except FAILURES as error:
            self._report(
                0, f"the checkpoints of thread {inert(self.thread_id or '', 60)} end here: {inert(str(error))}"
            )

    def state(self, node: Node) -> State | None:
        """What a checkpoint holds; None if that cannot be read."""
        self._row = node.number
        try:
            return read_state(self._value(self._store.state(node.number)), node.time)
        except (Undecodable, *FAILURES) as error:
            self._report(node.number, f"the checkpoint {inert(str(error))}")
        return None

    def writes(self, node: Node) -> Iterator[Written]:
        """What the tasks that ran on top of a checkpoint wrote, task by task."""
        try:
            for row in self._store.writes(self._thread, node.namespace, node.id):
                try:
                    yield Written(row.channel, self._value(row.value))
                except Undecodable as error:
                    self._report(row.number, f"the write to {inert(row.channel, 60)} {inert(str(error))}")
        except FAILURES as error:
            self._report(node.number, f"the writes of the checkpoint cannot be read: {inert(str(error))}")

    def report(self, reason: str) -> None:
        """Tell of something in the newest checkpoint that was left out."""
        self._report(self._row, reason)

    def _value(self, stored: Stored) -> Any:
        if stored.size > MAX_VALUE:
            raise Undecodable(f"holds {stored.size:,} bytes, more than the {MAX_VALUE:,} that are read")
        return self._unpack(stored.kind, stored.blob)
