"""Foreign formats as loopscope events: one sibling here for each, found out by what a file holds, never by its name.

Each reader has a `NAME`, `matches(path)` and `events(path, channel, problems)`. They know their format's fields and
traps and nothing of the detector; they run no code that a file names and change nothing on disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from loopscope.engine.events import Batch, Event, Header, RunEnd, RunStart
from loopscope.errors import UnreadableInputError, UsageError

if TYPE_CHECKING:
    from types import ModuleType

    from loopscope.engine.policy import Policy
    from loopscope.recording.feed import Feed

__all__ = ["ThreadSummary", "detect", "events", "follow", "threads"]


class ThreadSummary(NamedTuple):
    """One conversation in a file."""

    thread_id: str | None
    runs: int
    """Invocations, those of sub-agents and resumed ones too."""
    batches: int
    """AI messages with calls."""
    started: float | None
    ended: float | None
    """Unix seconds."""
    status: str | None
    """How the run ended that was over last."""


def detect(path: str | os.PathLike[str]) -> str | None:
    """The name of the foreign format that a file is in; None for a recording, or anything else that is not known."""
    reader = _reader(path)
    return None if reader is None else str(reader.NAME)


def events(
    path: str | os.PathLike[str], channel: str | None = None, problems: list[tuple[int, str]] | None = None
) -> Iterator[Event]:
    """The events of a foreign file, a header first.

    Args:
        path: the file.
        channel: the part of a program's state that holds its messages; None leaves it to the reader.
        problems: filled with the place and the reason of everything that is left out.

    Raises:
        UnreadableInputError: it is of no known format, or nothing in it can be read.
        UsageError: it has no such channel.
    """
    reader = _reader(path)
    if reader is None:
        raise UnreadableInputError(f"{os.fspath(path)}: no format that can be imported")
    found: Iterator[Event] = reader.events(path, channel, problems)
    return found


def follow(
    path: str | os.PathLike[str],
    channel: str | None = None,
    policy: Policy | None = None,
    problems: list[tuple[int, str]] | None = None,
) -> Feed:
    """What is in a file and what is added to it, as its program writes it. Nothing in it changes.

    Args:
        path: the file.
        channel: as for `events`.
        policy: what decides; the defaults where it is None.
        problems: as for `events`.

    Raises:
        UnreadableInputError: it cannot be read.
        UsageError: it is of no format that grows, or has no such channel.
    """
    if not os.path.exists(path):  # noqa: PTH110 - the name is text already
        raise UnreadableInputError(f"{os.fspath(path)}: No such file or directory")
    reader = _reader(path)
    if reader is None:
        raise UsageError(f"{os.fspath(path)}: only LangGraph checkpoint files can be followed; others are read whole")
    found: Feed = reader.follow(path, channel, policy, problems)
    return found


def threads(path: str | os.PathLike[str], channel: str | None = None) -> list[ThreadSummary]:
    """The conversations in a foreign file, in the order in which they began.

    Raises:
        UnreadableInputError: it is of no known format, or nothing in it can be read.
        UsageError: it has no such channel.
    """
    found: dict[str | None, ThreadSummary] = {}
    for event in events(path, channel):
        if isinstance(event, Header):
            continue
        before = found.get(event.thread_id) or ThreadSummary(event.thread_id, 0, 0, event.ts, None, None)
        found[event.thread_id] = before._replace(
            runs=before.runs + isinstance(event, RunStart),
            batches=before.batches + (isinstance(event, Batch) and bool(event.calls)),
            ended=event.ts if event.ts is not None else before.ended,
            status=event.status if isinstance(event, RunEnd) else before.status,
        )
    return list(found.values())


def _reader(path: str | os.PathLike[str]) -> ModuleType | None:
    from loopscope.sources import langgraph_sqlite  # noqa: PLC0415 - a recording needs none of it

    return next((reader for reader in (langgraph_sqlite,) if reader.matches(path)), None)
