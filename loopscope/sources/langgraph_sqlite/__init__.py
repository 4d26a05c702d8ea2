"""LangGraph's SQLite checkpoints as events: `docs/checkpoints.md` tells what is read and how it becomes batches.

A package of its own, one file a job, because the format has more traps than fields: `readonly` opens the file and
`store` knows its tables, `unpack` decodes values, `messages` and `failures` read messages, `tree`, `segment` and
`union` tell what happened once from what is stored many times, `endings` how it ended, `thread` walks through it all,
and `growing` goes on with what is added.
"""

from __future__ import annotations

import difflib
import itertools
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from loopscope.engine.events import FORMAT, Event, Header
from loopscope.errors import UnreadableInputError, UsageError
from loopscope.recording.inert import inert
from loopscope.sources.langgraph_sqlite.readonly import is_sqlite, opened
from loopscope.sources.langgraph_sqlite.rows import Rows
from loopscope.sources.langgraph_sqlite.state import message_lists
from loopscope.sources.langgraph_sqlite.store import Store
from loopscope.sources.langgraph_sqlite.thread import Walk
from loopscope.sources.langgraph_sqlite.tree import Node

if TYPE_CHECKING:
    from loopscope.engine.policy import Policy
    from loopscope.recording.feed import Feed

__all__ = ["NAME", "channels", "events", "follow", "matches"]

NAME = "langgraph-sqlite"
"""What the format is called, also as the producer of an imported recording."""
_MESSAGES = "messages"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def matches(path: str | os.PathLike[str]) -> bool:
    """Whether a file can only be meant as one of these: it is an SQLite database."""
    return is_sqlite(path)


def channels(path: str | os.PathLike[str]) -> dict[str, bool]:
    """The channels of the graphs that wrote a file, and whether they hold messages.

    Raises:
        UnreadableInputError: it is no such file.
    """
    with opened(path) as connection:
        return _channels(Store(connection, os.fspath(path)))


def events(
    path: str | os.PathLike[str], channel: str | None = None, problems: list[tuple[int, str]] | None = None
) -> Iterator[Event]:
    """Everything that happened in a file's threads, thread by thread, behind a header.

    Args:
        path: the database. It and its folder stay as they are.
        channel: the channel that holds the messages; None takes every channel that holds some.
        problems: filled with the row's number and the reason for each row that is left out; 0 for the file as a whole.

    Raises:
        UnreadableInputError: it is no such file, or nothing in it can be read.
        UsageError: no graph in it has this channel.
    """
    name = os.fspath(path)
    found: list[tuple[int, str]] = [] if problems is None else problems
    with opened(path) as connection:
        store = Store(connection, name)
        if channel is not None:
            _check_channel(name, channel, _channels(store))
        told = _all(store, channel, found)
        first = next(told, None)
        if first is None:
            raise UnreadableInputError(inert(f"{name}: no checkpoint that can be read{_why(found)}"))
        yield Header(format=FORMAT, producer=NAME, created=_written(first))
        yield first
        yield from told


def follow(
    path: str | os.PathLike[str],
    channel: str | None = None,
    policy: Policy | None = None,
    problems: list[tuple[int, str]] | None = None,
) -> Feed:
    """As `events`, and then what is added to the file; arguments and errors as for `sources.follow`."""
    from loopscope.sources.langgraph_sqlite.growing import GrowingFile  # noqa: PLC0415 - most files are read once

    if channel is not None:
        _check_channel(os.fspath(path), channel, channels(path))
    return GrowingFile(path, channel, policy, problems)


def _all(store: Store, channel: str | None, problems: list[tuple[int, str]]) -> Iterator[Event]:
    seq = itertools.count(1)
    seen: dict[str, bool] = {}
    for thread in store.threads():
        walk = Walk(Rows(store, thread, lambda row, reason: problems.append((row, reason))), channel, seq)
        yield from walk.events()
        for name, messages in walk.channels.items():
            seen[name] = seen.get(name, False) or messages
    if channel is None and seen and not any(seen.values()) and _MESSAGES not in seen:
        problems.append(
            (0, f"no channel holds messages; name one of {_listed(seen)} with --channel if one of them does")
        )


def _channels(store: Store) -> dict[str, bool]:
    """As the newest checkpoints tell, which know the versions of all channels that there have been."""
    found: dict[str, bool] = {}
    for thread in store.threads():
        rows = Rows(store, thread, lambda _row, _reason: None)
        newest = {row.namespace: row for row in rows.checkpoints()}
        for row in newest.values():
            state = rows.state(Node(row))
            if state is None:
                continue
            held = message_lists(state.values, None)
            for name in state.channels:
                found[name] = found.get(name, False) or name in held
    return found


def _why(problems: list[tuple[int, str]]) -> str:
    """The first reason of all."""
    row, reason = next(iter(problems), (0, ""))
    return f": {f'row {row}: ' if row else ''}{reason[:200]}" if reason else ""


def _check_channel(name: str, channel: str, known: dict[str, bool]) -> None:
    if channel in known:
        return
    near = difflib.get_close_matches(channel, known, 1)
    hint = f"; did you mean {inert(near[0], 60)}?" if near else f"; there are {_listed(known)}" if known else ""
    raise UsageError(f"{inert(name)}: no channel {inert(channel, 60)}{hint}")


def _listed(names: dict[str, bool]) -> str:
    return inert(", ".join(sorted(names)), 200)


def _written(event: Event) -> str | None:
    ts = None if isinstance(event, Header) else event.ts
    try:
        return None if ts is None else (_EPOCH + timedelta(seconds=ts)).isoformat()
    except OverflowError:
        return None
