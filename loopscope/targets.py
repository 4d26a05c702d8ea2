"""What a TARGET names, and how it is opened: the way in that the command line, the library and the screens share.

Apart from those three, which never import each other. Reading a recording loads no session; only `open_session` does.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from loopscope.engine.events import Event, Header
from loopscope.engine.policy import Policy
from loopscope.errors import CannotAttachError, PolicyError, UnreadableInputError, UsageError
from loopscope.recording.inert import inert

if TYPE_CHECKING:
    from loopscope.link.discovery import Entry
    from loopscope.recording.reader import Line, Reader
    from loopscope.session.loading import Loading
    from loopscope.session.session import Session
    from loopscope.settings import Choice, Settings

__all__ = [
    "STDIN",
    "Events",
    "Located",
    "Opening",
    "begin",
    "live_process",
    "open_session",
    "open_target",
    "recorded_policy",
    "start_session",
    "state_folder",
]

STDIN = "-"
"""The target that is read from the standard input."""
_SAMPLE = "sample:"
_RECORDINGS = (b"{", b"\x1f\x8b", b"\xef\xbb\xbf")
"""How a recording begins, after white space: with an object, as gzip, or with a byte order mark."""
_LOOK = 4096


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


def open_target(target: str | os.PathLike[str], *, keep: bool = False, channel: str | None = None) -> Events:
    """Opens a recording, a file of a foreign format, `sample:NAME` or `-` for the standard input.

    Args:
        target: what the user named.
        keep: events can be read again, from a pipe too.
        channel: of a checkpoint file, the channel that holds the messages; None takes every channel that holds some.

    Raises:
        UsageError: if there is no such sample, or a channel is named for what has none.
        UnreadableInputError: if it cannot be opened.
    """
    from loopscope.recording.reader import Reader  # noqa: PLC0415 - what is live has none

    name = os.fspath(target)
    if _may_be_foreign(name) and (reader := _foreign(name, channel, keep=keep)) is not None:
        return Events(name, reader)
    if channel is not None:
        raise UsageError(f"{inert(name)} has no channels, leave out --channel: it is for checkpoint files")
    if name == STDIN:
        return Events("stdin", Reader(sys.stdin.buffer, keep=keep))
    if name.startswith(_SAMPLE):
        from loopscope.samples import sample  # noqa: PLC0415 - as above

        return Events(name, Reader(sample(name.removeprefix(_SAMPLE)).file, keep=keep))
    return Events(name, Reader(name, keep=keep))


def live_process(target: str) -> Entry | None:
    """The live process that this names by pid, name or socket; None where it names something recorded.

    What exists as a recording is that, even where a process has the same name; a script is not.

    Raises:
        CannotAttachError: if it can only be a process, and there is none.
        UnreadableInputError: if it is a script that does not run.
    """
    if target == STDIN or target.startswith(_SAMPLE) or "://" in target:
        return None
    try:
        mode = os.stat(target).st_mode  # noqa: PTH116 - the name is text already
    except (OSError, ValueError):
        mode = 0
    if mode and not stat.S_ISSOCK(mode) and not _is_script(target):
        return None
    from loopscope.link.target import resolve  # noqa: PLC0415 - a recording needs none of it

    try:
        return resolve(target)
    except CannotAttachError as error:
        if stat.S_ISSOCK(mode) or target.isdecimal() or target.endswith(".sock") or "live processes are" in str(error):
            raise
        if mode and target.endswith(".py"):
            name = inert(target, 80)
            raise UnreadableInputError(
                f"{name}: is no recording, and no live process runs it: `loopscope run {name}`"
            ) from None
        if mode or os.sep in target or "." in target:
            return None
        missing = f"no live process {inert(target, 80)}"
        raise CannotAttachError(str(error).replace(missing, f"{missing} and no file of this name")) from None


def _is_script(name: str) -> bool:
    """Whether this is a file that cannot be read as a run: a process has the name of its script, if it has no other."""
    if not _may_be_foreign(name):
        return False
    from loopscope.sources import detect  # noqa: PLC0415 - as below

    return detect(name) is None


def _may_be_foreign(name: str) -> bool:
    """Whether this is a file that does not begin as a recording: what does is never asked of the foreign formats."""
    try:
        # A pipe is not looked into: what is taken from it here would be missing later.
        if name == STDIN or not stat.S_ISREG(os.stat(name).st_mode):  # noqa: PTH116 - the name is text already
            return False
        with open(name, "rb") as file:  # noqa: PTH123 - as above
            start = file.read(_LOOK).lstrip()
    except (OSError, ValueError):
        return False
    return not start.startswith(_RECORDINGS)


def _foreign(name: str, channel: str | None, *, keep: bool) -> Reader | None:
    """Reads a file of a format that can be imported; None where it is of none."""
    from loopscope.sources import detect  # noqa: PLC0415 - a recording needs none of it

    if detect(name) is None:
        return None
    from loopscope.sources.lines import ForeignReader  # noqa: PLC0415 - as above

    return ForeignReader(name, channel, keep=keep)


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


class Opening(NamedTuple):
    """A target about to be decided under the policies that a user asked for."""

    name: str
    reader: Reader
    settings: Settings
    """In force at the first event."""
    base: Policy
    """In force where the recording brings no policy, or does not count."""
    events: Iterator[Located]


def begin(target: str | os.PathLike[str], choice: Choice, *, keep: bool = False, channel: str | None = None) -> Opening:
    """Opens a target and lays what the user asked for over the policies in it.

    Args:
        target: as for `open_target`.
        choice: the policies that the user asked for.
        keep: as for `open_target`.
        channel: as for `open_target`.

    Raises:
        UsageError: if there is no such sample or channel.
        UnreadableInputError: if it cannot be read.
        PolicyError: if the policy that decides breaks a rule; also later, while events are taken.
    """
    name, reader = open_target(target, keep=keep, channel=channel)
    lines = iter(reader)
    first = next(lines, None)
    recorded = _policy_of(first)
    try:
        settings = choice.over(recorded)
    except PolicyError as error:
        raise _at(error, f"{name}:{first.number if first else 1}") from None
    return Opening(
        name, reader, settings, _base(choice, recorded), _overlaid(chain([first] if first else [], lines), choice, name)
    )


def _base(choice: Choice, recorded: Mapping[str, Any] | None) -> Policy:
    """Flags may break a rule with the defaults and none with the recording's policy; then only the latter counts."""
    try:
        return choice.settings.policy
    except PolicyError:
        if recorded is None or choice.fixed:
            raise
        return choice.base.policy


def open_session(target: str | os.PathLike[str], choice: Choice, channel: str | None = None) -> Session:
    """Reads a target to its end into a session, with the cursor on the first stop, else on the last batch.

    Args:
        target: as for `open_target`.
        choice: the policies that the user asked for.
        channel: as for `open_target`.

    Raises:
        UsageError: if there is no such sample or channel.
        UnreadableInputError: if it cannot be read.
        PolicyError: if the policy that decides breaks a rule.
    """
    return start_session(target, choice, channel).finish()


def start_session(target: str | os.PathLike[str], choice: Choice, channel: str | None = None) -> Loading:
    """A session that has yet to read its target; arguments and errors as for `open_session`."""
    from loopscope.recording.reader import Reader  # noqa: PLC0415 - what is live has none
    from loopscope.session.loading import Loading  # noqa: PLC0415 - a replay needs none
    from loopscope.session.session import Session  # noqa: PLC0415 - as above
    from loopscope.session.timeline import Origin  # noqa: PLC0415 - as above

    opening = begin(target, choice, keep=True, channel=channel)
    origin = Origin(opening.base) if choice.fixed else Origin(base=opening.base)
    session = Session(opening.name, opening.reader, origin, opening.settings.origins)
    return Loading(session, opening.events, opening.reader, ahead=type(opening.reader) is Reader)


def _overlaid(lines: Iterable[Line], choice: Choice, name: str) -> Iterator[Located]:
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
            raise _at(error, f"{name}:{line.number}") from None
        yield Located(event, line.offset, line.length)


def _at(error: PolicyError, line: str) -> PolicyError:
    """The same problems: those of the recording's own at its line, those of a flag or a file where they are."""
    from loopscope.settings import RECORDING  # noqa: PLC0415 - what is live brings its own limits

    return PolicyError(
        [problem._replace(where=line) if problem.where == RECORDING else problem for problem in error.problems]
    )
