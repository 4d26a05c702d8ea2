"""What a TARGET names, and how it is opened: the way in that the command line, the library and the screens share.

Apart from those three, which never import each other. Reading a recording loads no session; only `open_session` does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from loopscope.engine.events import Event, Header
from loopscope.errors import PolicyError, Problem
from loopscope.recording.reader import Line, Reader
from loopscope.samples import sample

if TYPE_CHECKING:
    from loopscope.session.session import Session
    from loopscope.settings import Choice

__all__ = ["STDIN", "Events", "Located", "open_session", "open_target", "overlaid", "recorded_policy", "state_folder"]

STDIN = "-"
"""The target that is read from the standard input."""
_SAMPLE = "sample:"


def state_folder() -> Path:
    """The one folder where loopscope keeps something for this user; it may not exist yet."""
    from platformdirs import user_state_path  # noqa: PLC0415 - most commands never ask

    return user_state_path("loopscope", appauthor=False)


class Located(NamedTuple):
    """A known event, and where its line stands."""

    event: Event
    offset: int
    length: int


class Events(NamedTuple):
    """An opened target: what to call it, and its events."""

    name: str
    reader: Reader


def open_target(target: str | os.PathLike[str], *, keep: bool = False) -> Events:
    """Opens a recording, `sample:NAME` or `-` for the standard input.

    Args:
        target: what the user named.
        keep: events can be read again, from a pipe too.

    Raises:
        UsageError: if there is no such sample.
        UnreadableInputError: if it cannot be opened.
    """
    name = os.fspath(target)
    if name == STDIN:
        return Events("stdin", Reader(sys.stdin.buffer, keep=keep))
    if name.startswith(_SAMPLE):
        return Events(name, Reader(sample(name.removeprefix(_SAMPLE)).file, keep=keep))
    return Events(name, Reader(name, keep=keep))


def recorded_policy(target: str | os.PathLike[str]) -> Mapping[str, Any] | None:
    """The policy that the recording begins with; None where it has none.

    Raises:
        UsageError: if there is no such sample.
        UnreadableInputError: if it cannot be read.
    """
    with open_target(target).reader as reader:
        return _policy_of(next(iter(reader), None))


def _policy_of(line: Line | None) -> Mapping[str, Any] | None:
    return line.event.policy if line is not None and isinstance(line.event, Header) else None


def open_session(target: str | os.PathLike[str], choice: Choice) -> Session:
    """Reads a target to its end into a session, with the cursor on the first stop, else on the last batch.

    Args:
        target: as for `open_target`.
        choice: the policies that the user asked for.

    Raises:
        UsageError: if there is no such sample.
        UnreadableInputError: if it cannot be read.
        PolicyError: if the policy that decides breaks a rule.
    """
    from loopscope.session.session import Session  # noqa: PLC0415 - a replay needs none
    from loopscope.session.timeline import Origin  # noqa: PLC0415 - as above

    name, reader = open_target(target, keep=True)
    lines = iter(reader)
    first = next(lines, None)
    settings = choice.over(_policy_of(first))
    origin = Origin(settings.policy) if choice.fixed else Origin(base=choice.settings.policy)
    session = Session(name, reader, origin, settings.origins)
    session.append(overlaid(chain([first] if first else [], lines), choice, name))
    session.problems.extend(reader.problems)
    session.open_at_first_stop()
    return session


def overlaid(lines: Iterable[Line], choice: Choice, name: str) -> Iterator[Located]:
    """The events that this version knows, with the overrides laid over the policies in them.

    Raises:
        PolicyError: with the line whose policy, so changed, breaks a rule.
    """
    for line in lines:
        if line.event is None:
            continue
        try:
            event = choice.rewrite(line.event)
        except PolicyError as error:
            raise PolicyError([_placed(problem, f"{name}:{line.number}") for problem in error.problems]) from None
        yield Located(event, line.offset, line.length)


def _placed(problem: Problem, line: str) -> Problem:
    """A problem of the recording's own is at its line, one of a flag at the flag."""
    return problem if problem.where.startswith("--") else problem._replace(where=line)
