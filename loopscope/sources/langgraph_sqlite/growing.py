"""A checkpoint file that a program is writing, as a feed: what is added to it, step by step.

Apart from reading a whole file, whose end is known. Here nothing says that a run is over but its own last
checkpoint or a stored error, and only what was added is decoded.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Event, ScopeKey
from loopscope.engine.policy import DEFAULT, Policy
from loopscope.errors import UnreadableInputError, UsageError
from loopscope.recording.feed import Connection, Message, Snapshotted, Verb
from loopscope.recording.inert import inert
from loopscope.sources.langgraph_sqlite.endings import ERROR
from loopscope.sources.langgraph_sqlite.readonly import in_use
from loopscope.sources.langgraph_sqlite.rows import Rows
from loopscope.sources.langgraph_sqlite.segment import Past, Segment
from loopscope.sources.langgraph_sqlite.state import message_lists
from loopscope.sources.langgraph_sqlite.store import BEFORE_ALL, CheckpointRow, Store
from loopscope.sources.langgraph_sqlite.thread import Walk
from loopscope.sources.langgraph_sqlite.tree import Forest, Node

__all__ = ["GrowingFile"]

_WHY_NOT = "a checkpoint file can only be read: to steer its program, let it call loopscope.listen(control=True)"
_REST, _LONGEST = 0.05, 2.0
"""Seconds between two looks, at least and at most: a look that takes long is followed by a rest as long."""
_PATIENCE = 5.0
"""Seconds for which a file that cannot be read any more is looked for."""
_EARLY = 1.0
"""Seconds for which a checkpoint waits for one that it builds on: savers write those of a graph and of its subgraphs
at the same time."""
_TICK = 100_000_000
"""Nanoseconds within which two changes of a file may have one time."""


class GrowingFile:
    """A feed of one checkpoint file; it is read-only, and ends when the file is gone.

    Args:
        path: the file. Nothing in it changes.
        channel: as for `events`.
        policy: what decides; the defaults where it is None.
        problems: filled as for `events`.

    Raises:
        UnreadableInputError: it is no such file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        channel: str | None = None,
        policy: Policy | None = None,
        problems: list[tuple[int, str]] | None = None,
    ) -> None:
        self._path = Path(path)
        self._channel = channel
        self._policy = policy or DEFAULT
        self._problems = [] if problems is None else problems
        self._closed = threading.Event()
        self._seq = itertools.count(1)
        self._walks: dict[Any, _GrowingWalk] = {}
        self._seen: dict[Any, tuple[int, int]] = {}
        self._mark: _Mark | None = None
        with in_use(self._path) as connection:
            Store(connection, os.fspath(path))
        self._inode = self._path.stat().st_ino

    @property
    def name(self) -> str:
        """The file's name, safe to draw."""
        return inert(os.fspath(self._path))

    @property
    def capabilities(self) -> Mapping[str, str]:
        """As `Feed` has it: it does none of it."""
        return dict.fromkeys(get_args(Verb), _WHY_NOT)

    def __iter__(self) -> Iterator[Message]:
        """As `Feed` has it."""
        yield Snapshotted(seq=0, state=LoopDetector(self._policy).snapshot())
        lost: float | None = None
        while not self._closed.is_set():
            began = time.monotonic()
            try:
                yield from self._added()
            except (OSError, UnreadableInputError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                if lost is None:
                    lost = began
                    yield Connection(state="lost", reason=inert(reason, 300))
                elif began - lost > _PATIENCE:
                    yield Connection(state="ended", reason=inert(f"the file cannot be read any more: {reason}", 300))
                    return
            else:
                if lost is not None:
                    yield Connection(state="back")
                lost = None
            self._closed.wait(min(max(_REST, time.monotonic() - began), _LONGEST))

    def request(self, verb: Verb, scope: ScopeKey | None = None, **arguments: Any) -> Mapping[str, Any]:  # noqa: ARG002 - as `Feed` has it
        """As `Feed` has it.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"cannot {verb}: {_WHY_NOT}")

    def close(self) -> None:
        """As `Feed` has it."""
        self._closed.set()

    def _added(self) -> Iterator[Event]:
        """What was added since the last time; nothing is opened where nothing was."""
        mark = _marked(self._path)
        if mark == self._mark:
            return
        if mark.inode != self._inode:
            raise UnreadableInputError("another file is in its place")
        with in_use(self._path) as connection:
            store = Store(connection, os.fspath(self._path))
            newest = store.newest()
            for thread in store.threads():
                walk = self._walks.get(thread.key)
                if newest[thread.key] != self._seen.get(thread.key) or (walk is not None and walk.expects_more):
                    if walk is None:
                        rows = Rows(store, thread, lambda row, reason: self._problems.append((row, reason)))
                        walk = self._walks[thread.key] = _GrowingWalk(rows, self._channel, self._seq)
                    yield from walk.more(store, newest[thread.key][0])
            self._seen = newest
        settled = time.time_ns() - mark.changed > _TICK and not any(walk.expects_more for walk in self._walks.values())
        self._mark = mark if settled else None


class _Mark(NamedTuple):
    """What changes whenever a database does."""

    inode: int
    size: int
    log: int
    """Bytes of the write-ahead log."""
    changed: int
    """Nanoseconds."""


def _marked(path: Path) -> _Mark:
    """Cheaper than SQLite's `data_version`, and unlike it without a connection that stays open."""
    real = path.resolve()
    found = real.stat()
    try:
        log = real.with_name(real.name + "-wal").stat()
    except FileNotFoundError:
        return _Mark(found.st_ino, found.st_size, 0, found.st_mtime_ns)
    return _Mark(found.st_ino, found.st_size, log.st_size, max(found.st_mtime_ns, log.st_mtime_ns))


class _GrowingWalk(Walk):
    """A walk that goes on where it stopped."""

    def __init__(self, rows: Rows, channel: str | None, seq: Iterator[int]) -> None:
        super().__init__(rows, channel, seq)
        self._forest = Forest()
        self._waiting: list[Node] = []
        self._newest = BEFORE_ALL
        self._early: dict[int, tuple[CheckpointRow, float]] = {}

    @property
    def expects_more(self) -> bool:
        """Whether something was written of which an earlier part is still to come."""
        return bool(self._early)

    def more(self, store: Store, newest: int) -> Iterator[Event]:
        """What was added.

        Args:
            store: the file as it is now.
            newest: the row of the thread's newest checkpoint.
        """
        self._rows.reopen(store)
        if newest < self._newest:
            # Rows were removed, and their numbers may be used again.
            self._newest = BEFORE_ALL
        nodes = [*self._waiting, *self._forest.grow(self._placed(self._rows.checkpoints(self._newest)))]
        self._newest = newest
        self._waiting = []
        for node in nodes:
            if node.source == "update" and not node.children:
                # What a person changed belongs to the run that it begins, if the graph goes on from there.
                self._waiting.append(node)
                continue
            yield from self._told(node)
        for segment in list(self._running):
            if segment.finished or any(write.channel == ERROR for write in self._rows.writes(segment.last)):
                yield from self._end(segment)

    def _placed(self, rows: Iterator[CheckpointRow]) -> list[CheckpointRow]:
        """The rows that can be told of: what they build on is there, or will hardly come any more."""
        now = time.monotonic()
        found = {**self._early, **{row.number: (row, now) for row in rows}}
        lacking = self._forest.without_place([row for row, since in found.values() if now - since < _EARLY])
        self._early = {number: found[number] for number in lacking}
        return [row for number, (row, _) in found.items() if number not in lacking]

    def _leaf(self, segment: Segment) -> Iterator[Event]:  # noqa: ARG002 - as a walk through a whole file has it
        """It may go on."""
        yield from ()

    def _keep(self, node: Node, past: Past) -> None:
        """As of a whole file; and what is the newest now is what others will build on."""
        self._past[node] = past
        super()._keep(node, past)

    def _past_of(self, node: Node) -> Past | None:
        """As of a whole file; of a checkpoint that others built on already it is read again: this is a branch."""
        past = super()._past_of(node)
        state = self._rows.state(node.parent) if past is None and node.parent is not None else None
        if state is None:
            return past
        past = Past(state, self._union.counts(message_lists(state.values, self._channel).values()) or Counter())
        past.continued = True
        return past
