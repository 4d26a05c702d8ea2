"""A live process without a screen, or on the one that `attach` opens: its events as JSON Lines or as a recording."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

import click

if TYPE_CHECKING:
    from loopscope.engine.events import Event, ScopeKey
    from loopscope.link.discovery import Entry
    from loopscope.link.follow import Follow
    from loopscope.recording.feed import Feed, Message, Snapshotted, Verb
    from loopscope.recording.writer import Recorder
    from loopscope.session.live import LiveSession
    from loopscope.settings import Choice

__all__ = ["Recorded", "Wish", "print_events", "watch", "watch_file", "watch_server"]


_AT_ONCE = 0.005
"""Seconds of work for which a past is taken in before the screen opens: all of most, the beginning of others."""
_PATIENCE = 0.1
"""Seconds for that where the process is slow to tell it."""


class Wish(NamedTuple):
    """What the command line asks for."""

    control: bool
    record: str | None
    as_json: bool
    theme: str | None
    ascii_only: bool
    no_color: bool


class _Around:
    """A feed in front of another one: what is not its own is the other one's."""

    _feed: Feed

    @property
    def name(self) -> str:
        """As the feed's."""
        return self._feed.name

    @property
    def capabilities(self) -> Mapping[str, str]:
        """As the feed's."""
        return self._feed.capabilities

    def request(self, verb: Verb, scope: ScopeKey | None = None, **arguments: Any) -> Mapping[str, Any]:
        """As the feed's."""
        return self._feed.request(verb, scope, **arguments)

    def close(self) -> None:
        """As the feed's."""
        self._feed.close()


class Recorded(_Around):
    """A feed that is written down as it is read, with secrets masked: not every target masks its own.

    Args:
        feed: what is followed.
        path: the recording; an existing one gets a new segment.
        enforced: whether decisions are applied there.

    Raises:
        UsageError: where the file cannot be written.
    """

    def __init__(self, feed: Feed, path: str, *, enforced: bool = False) -> None:
        from loopscope.recording.appending import Appending
        from loopscope.recording.redaction import Redactor

        Appending(path).close()  # told before anything is shown
        self._path = path
        self._feed = feed
        self._enforced = enforced
        self._redactor = Redactor()
        self._recorder: Recorder | None = None

    def __iter__(self) -> Iterator[Message]:
        """The messages of the feed."""
        from loopscope.recording.feed import Snapshotted

        try:
            for message in self._feed:
                if isinstance(message, Snapshotted):
                    self._begin(message)
                elif self._recorder is not None and _is_event(message):
                    self._recorder.put(self._redactor.event(cast("Event", message)))
                    # A backlog may come faster than a disk writes.
                    self._recorder.settle(5.0)
                yield message
        finally:
            self._end()

    def _begin(self, message: Snapshotted) -> None:
        """A state begins a recording; a later one stands behind a gap that is told of already."""
        from loopscope.engine.events import PolicySet
        from loopscope.recording.writer import Recorder

        if self._recorder is not None:
            return
        self._recorder = Recorder(self._path, policy=message.state.policy, enforced=self._enforced)
        for run in message.runs:
            self._recorder.put(run)
        for thread_id, run_id, policy in message.state.scope_policies:
            self._recorder.put(
                PolicySet(seq=message.seq, ts=None, thread_id=thread_id, run_id=run_id, policy=policy)
            )  # fmt: skip

    def close(self) -> None:
        """As the feed's: the recording ends with what was read."""
        self._feed.close()

    def _end(self) -> None:
        """Write what is left, and tell what could not be written."""
        from loopscope.cli.output import tell

        recorder, self._recorder = self._recorder, None
        if recorder is not None and not recorder.close():
            tell(f"{self._path}: {recorder.lost} events could not be written")


class Begun(_Around):
    """A feed whose beginning is taken in before there is a screen, so that the first picture has the past in it.

    Args:
        feed: what is followed.
        live: the session that takes it in; what comes after the past that it knows of is not waited for.
    """

    def __init__(self, feed: Feed, live: LiveSession) -> None:
        self._feed = feed
        self._rest = iter(feed)
        worked, waited = time.process_time() + _AT_ONCE, time.monotonic() + _PATIENCE
        for message in self._rest:
            live.take([message])
            if live.share is None or time.process_time() > worked or time.monotonic() > waited:
                break
        if len(live.session):
            live.session.seek(len(live.session))

    def __iter__(self) -> Iterator[Message]:
        """The messages that are left."""
        return self._rest


def watch(process: Entry, wish: Wish) -> None:
    """Follow a live process until it ends, or until the user leaves.

    Raises:
        CannotAttachError: where it does not let us in, or not steer.
        UsageError: where the recording cannot be written.
    """
    from loopscope.cli.uncollected import uncollected
    from loopscope.errors import CannotAttachError

    with uncollected():
        from loopscope.link.follow import Follow
        from loopscope.session.live import LiveSession

        feed = Follow(process, control=wish.control, name="loopscope attach")
    try:
        if wish.control and not feed.welcome.control:
            raise CannotAttachError(f"{feed.name}: {feed.capabilities['pause']}")
        enforced = any(engine.enforced for engine in feed.welcome.engines)
        live = LiveSession(feed.name, enforced=enforced, newest=feed.welcome.seq)
        if not _show(feed, live, wish, enforced=enforced):
            _print_view(feed, live, wish)
    finally:
        feed.close()


def watch_file(path: str, choice: Choice, channel: str | None, wish: Wish) -> bool:
    """Follow a checkpoint file that its program is writing, until it is gone or the user leaves.

    Returns:
        Whether there was anything to show it on: without a screen it is read as any other file.

    Raises:
        UsageError: where it cannot be steered, has no such channel, or the recording cannot be written.
        UnreadableInputError: it is no such file.
        PolicyError: if the policy breaks a rule.
    """
    from loopscope.errors import UsageError
    from loopscope.session.live import LiveSession
    from loopscope.sources import follow

    settings = choice.over(None)
    live = LiveSession("", origins=settings.origins, what="file")
    feed = follow(path, channel, settings.policy, live.session.problems)
    live.session.source = feed.name
    if wish.control:
        raise UsageError(f"{feed.name}: {feed.capabilities['pause']}")
    try:
        return _show(feed, live, wish, enforced=False)
    finally:
        feed.close()


def watch_server(target: str, choice: Choice, wish: Wish) -> None:
    """Follow the runs of a LangGraph server, until it is gone or the user leaves.

    Raises:
        CannotAttachError: where no server answers.
        UsageError: where there is nothing to show it on, or the recording cannot be written.
        PolicyError: if the policy breaks a rule.
    """
    from loopscope.cli.terminal import why_no_screen
    from loopscope.errors import UsageError
    from loopscope.session.live import LiveSession
    from loopscope.sources.langgraph_server import follow

    settings = choice.over(None)
    feed = follow(target, settings.policy, control=wish.control, name="loopscope attach")
    try:
        if not _show(feed, LiveSession(feed.name, origins=settings.origins, what="server"), wish, enforced=False):
            raise UsageError(f"{feed.name}: {why_no_screen()}; --json prints what comes, --record FILE writes it")
    finally:
        feed.close()


def _show(feed: Feed, live: LiveSession, wish: Wish, *, enforced: bool) -> bool:
    """Everything that comes, as the user wants to see it; False where there is no screen and nothing else was asked."""
    from loopscope.cli.terminal import why_no_screen

    source: Feed = feed if wish.record is None else Recorded(feed, wish.record, enforced=enforced)
    if wish.as_json:
        _print(source)
    elif not why_no_screen():
        from loopscope_widgets.terminal import run

        if live.share is not None:
            source = Begun(source, live)
        run(live.session, feed=source, live=live, theme=wish.theme, ascii=wish.ascii_only, no_color=wish.no_color)
    elif wish.record is not None:
        for message in source:
            _tell_end(message)
    else:
        return False
    return True


def _print_view(feed: Follow, live: LiveSession, wish: Wish) -> None:
    """The debugger's view of what has happened so far, as text."""
    from loopscope.cli.output import can_draw, tell
    from loopscope.cli.terminal import why_no_screen
    from loopscope.views import live as view
    from loopscope.views.text import WIDTH, render

    tell(f"{why_no_screen()}: this is the view as text, as it is now")
    for message in feed:
        live.take([message])
        if live.share is None:
            break
    live.session.open_at_first_stop()
    ascii_only = wish.ascii_only or not can_draw(sys.stdout.encoding)
    click.echo(render(live.session, ascii_only=ascii_only, bar=view.bar(live, WIDTH)), nl=False)


def _tell_end(message: Message) -> None:
    from loopscope.cli.output import tell
    from loopscope.recording.feed import Connection

    if isinstance(message, Connection) and message.state != "back":
        tell(message.reason)


def _is_event(message: Message) -> bool:
    from loopscope.engine.events import Event

    return isinstance(message, get_args(Event))


def _print(feed: Feed) -> None:
    """Each event, and what becomes of held batches, at once; the whole states between them are of no use in a pipe."""
    from loopscope.recording.codec import encode
    from loopscope.recording.feed import Snapshotted

    out = sys.stdout.buffer
    for message in feed:
        if not isinstance(message, Snapshotted):
            out.write(_ascii(encode(cast("Event", message))))
            out.flush()


def print_events(target: str, channel: str | None) -> None:
    """The events of something recorded.

    Raises:
        UsageError: if there is no such sample or channel.
        UnreadableInputError: if it cannot be read.
    """
    from loopscope.cli.output import report
    from loopscope.recording.codec import encode
    from loopscope.targets import open_target

    name, reader = open_target(target, channel=channel)
    with reader:
        for line in reader:
            if line.event is not None:
                click.echo(_ascii(encode(line.event)), nl=False)
        report(name, reader.problems, reader.skipped)


def _ascii(line: bytes) -> bytes:
    """The line with a newline, in ASCII, so that nothing in it can act on a terminal."""
    import json

    if line.isascii():
        return line + b"\n"
    return json.dumps(json.loads(line), separators=(",", ":")).encode() + b"\n"
