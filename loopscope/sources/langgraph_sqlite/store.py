"""LangGraph's two tables, today's and those of early 2024, as rows in the shape that the rest works on.

Apart from what the rows mean: here is what the columns are called, and that any of them may hold anything.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any, NamedTuple

from loopscope.errors import UnreadableInputError
from loopscope.recording.inert import inert
from loopscope.sources.langgraph_sqlite.readonly import MAX_VALUE

__all__ = ["BEFORE_ALL", "CheckpointRow", "Store", "Stored", "ThreadRow", "WriteRow"]

BEFORE_ALL = -(1 << 63)
"""No row has a smaller number."""
_COLUMNS_SHOWN = 8
_MAX_METADATA = 4 * 1024 * 1024


class ThreadRow(NamedTuple):
    """One conversation."""

    key: Any
    """What stands in the column, for asking for it again."""
    name: str | None
    checkpoints: int


class CheckpointRow(NamedTuple):
    """A checkpoint without its state."""

    number: int
    """SQLite's own number of the row: checkpoints were written in this order."""
    namespace: str
    id: str
    parent: str | None
    metadata: dict[str, Any]


class Stored(NamedTuple):
    """A value as it is stored."""

    kind: str | None
    blob: Any
    """None where it is larger than `MAX_VALUE` bytes."""
    size: int


class WriteRow(NamedTuple):
    """What one task wrote to one channel on top of a checkpoint."""

    number: int
    channel: str
    value: Stored


class Store:
    """The rows of one database.

    Raises:
        UnreadableInputError: it has no table of LangGraph checkpoints.
    """

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self._sql = connection.execute
        self._checkpoints = _columns(connection, "checkpoints")
        self._writes = _columns(connection, "writes")
        self._id = "checkpoint_id" if "checkpoint_id" in self._checkpoints else "thread_ts"
        if not {"thread_id", "checkpoint", self._id} <= self._checkpoints.keys():
            raise UnreadableInputError(f"{inert(name)}: {_not_langgraph(self._checkpoints)}")

    def threads(self) -> Iterator[ThreadRow]:
        """Conversations, in the order in which they began."""
        for key, count in self._sql(
            "SELECT thread_id, count(*) FROM checkpoints GROUP BY thread_id ORDER BY min(rowid)",
        ).fetchall():
            yield ThreadRow(key, _text(key), count)

    def checkpoints(self, thread: ThreadRow, after: int = BEFORE_ALL) -> Iterator[CheckpointRow]:
        """The checkpoints of a thread and its subgraphs, as they were written; those behind this row alone."""
        metadata = f"CASE WHEN length(metadata) <= {_MAX_METADATA} THEN metadata END"
        columns = ", ".join(
            [
                self._checkpoint_column("checkpoint_ns", "''"),
                self._id,
                self._checkpoint_column("parent_checkpoint_id" if self._id == "checkpoint_id" else "parent_ts"),
                metadata if "metadata" in self._checkpoints else "NULL",
            ]
        )
        for number, namespace, key, parent, data in self._sql(
            f"SELECT rowid, {columns} FROM checkpoints WHERE thread_id IS ? AND rowid > ? ORDER BY rowid",  # noqa: S608 - own names
            (thread.key, after),
        ):
            yield CheckpointRow(number, _text(namespace) or "", _text(key) or "", _text(parent), _mapping(data))

    def newest(self) -> dict[Any, tuple[int, int]]:
        """The newest rows of each thread, of checkpoints and of writes, by the thread's key."""
        found: dict[Any, tuple[int, int]] = {}
        for key, row in self._sql("SELECT thread_id, max(rowid) FROM checkpoints GROUP BY thread_id").fetchall():
            found[key] = (row, 0)
        if "thread_id" in self._writes:
            for key, row in self._sql("SELECT thread_id, max(rowid) FROM writes GROUP BY thread_id").fetchall():
                found[key] = (found.get(key, (0, 0))[0], row)
        return found

    def state(self, number: int) -> Stored:
        """What the checkpoint in a row holds."""
        kind = self._checkpoint_column("type")
        found = self._sql(
            f"SELECT {kind}, length(checkpoint), CASE WHEN length(checkpoint) <= {MAX_VALUE} THEN checkpoint END "  # noqa: S608 - own names
            "FROM checkpoints WHERE rowid = ?",
            (number,),
        ).fetchone()
        return Stored(_text(found[0]), found[2], found[1] or 0)

    def writes(self, thread: ThreadRow, namespace: str, checkpoint: str) -> Iterator[WriteRow]:
        """What the tasks that ran on top of a checkpoint wrote, task by task."""
        if not {"thread_id", self._id, "channel", "value"} <= self._writes.keys():
            return
        kind = "type" if "type" in self._writes else "NULL"
        order = [name for name in ("task_path", "task_id", "idx") if name in self._writes]
        where, values = f"thread_id IS ? AND {self._id} IS ?", [thread.key, checkpoint]
        if "checkpoint_ns" in self._writes:
            where, values = f"{where} AND checkpoint_ns IS ?", [*values, namespace]
        for number, channel, stored, size, blob in self._sql(
            f"SELECT rowid, channel, {kind}, length(value), CASE WHEN length(value) <= {MAX_VALUE} THEN value END "  # noqa: S608 - own names
            f"FROM writes WHERE {where} ORDER BY {', '.join([*order, 'rowid'])}",
            values,
        ):
            yield WriteRow(number, _text(channel) or "", Stored(_text(stored), blob, size or 0))

    def _checkpoint_column(self, name: str, otherwise: str = "NULL") -> str:
        return name if name in self._checkpoints else otherwise


def _columns(connection: sqlite3.Connection, table: str) -> dict[str, None]:
    """The columns of a table that hold values: views, virtual tables and generated columns run what the file says."""
    found = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone()
    if found is None or not str(found[0]).lstrip().upper().startswith("CREATE TABLE"):
        return {}
    described = connection.execute(f"PRAGMA table_xinfo({table})").fetchall()
    return {name: None for _, name, _, _, _, _, generated in described if not generated}


def _not_langgraph(columns: dict[str, None]) -> str:
    if not columns:
        return "an SQLite database without a table of LangGraph checkpoints"
    names = ", ".join(list(columns)[:_COLUMNS_SHOWN]) + (", …" if len(columns) > _COLUMNS_SHOWN else "")
    return (
        f"not a LangGraph database: its table `checkpoints` has the columns {inert(names, 200)}; "
        "LangGraph's has thread_id, checkpoint_id and checkpoint"
    )


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _mapping(data: object) -> dict[str, Any]:
    if isinstance(data, bytes | str):
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            return {}
        if isinstance(found, dict):
            return found
    return {}
