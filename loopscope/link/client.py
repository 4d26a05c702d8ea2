"""The viewer's side of a link, blocking: connect, iterate what comes, ask for acts of control from any thread.

Apart from `follow`, which reconnects. Whichever thread needs something reads the socket for all of them, so that a
program with one thread and a debugger with several both work, and no thread is started.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

import msgspec

from loopscope.engine.events import ScopeKey
from loopscope.errors import CannotAttachError
from loopscope.link.discovery import Entry, dial
from loopscope.link.lines import Lines
from loopscope.link.refusal import RefusedError
from loopscope.link.target import greeting, resolve
from loopscope.link.wire import Answer, Bye, Incoming, Request, Welcome, encode, read_from_agent
from loopscope.recording.feed import Message, Place
from loopscope.recording.inert import inert

__all__ = ["Client", "connect"]

_CHUNK = 1 << 16


def connect(
    target: str | int | os.PathLike[str] | Entry,
    *,
    control: bool = False,
    name: str = "loopscope",
    timeout: float = 5.0,
) -> Client:
    """A connection to a live process, greeted and not yet attached.

    Args:
        target: a pid, a name, or the path of a socket.
        control: ask for leave to steer; `Client.welcome.control` says whether it was given.
        name: what recordings call whoever steers.
        timeout: seconds for any one answer.

    Raises:
        CannotAttachError: where there is no such process, or it does not let this viewer in.
    """
    entry = resolve(target)
    client = Client(entry, dial(entry, timeout), timeout)
    try:
        client.greet(name, control=control)
    except BaseException:
        client.close()
        raise
    return client


class Client:
    """One connection. Iterate it on one thread; everything else is safe from any thread."""

    def __init__(self, entry: Entry, connection: socket.socket, timeout: float) -> None:
        self.entry = entry
        self.welcome: Welcome
        """What the process says of itself; there once it was greeted."""
        self.bye: Bye | None = None
        """What the process said last, where it said anything."""
        connection.settimeout(timeout)
        self._connection = connection
        self._timeout = timeout
        self._selector = selectors.DefaultSelector()
        self._selector.register(connection, selectors.EVENT_READ)
        self._lines = Lines()
        self._state = threading.Condition()
        self._sending = threading.Lock()
        self._reading = False
        self._over = False
        self._inbox: deque[Incoming] = deque()
        self._answers: dict[int, Answer | None] = {}
        self._ids = itertools.count(1)

    def greet(self, name: str, *, control: bool) -> None:
        """Say hello, and wait for the answer.

        Raises:
            CannotAttachError: where the process does not let us in.
        """
        self._send(greeting(self.entry, name, control=control))
        message = self._next(self._timeout)
        if isinstance(message, Welcome) and self.entry.session in ("", message.session):
            self.welcome = message
            return
        name = inert(self.entry.name, 80)
        if isinstance(message, Welcome):
            raise CannotAttachError(f"{name}: another process answers there now; `loopscope ps` lists what there is")
        bye = message if isinstance(message, Bye) else self.bye
        raise CannotAttachError(f"{name}: {inert(bye.reason, 300) if bye else 'does not answer as loopscope does'}")

    def attach(self, since: int | None = None, session: str | None = None) -> Mapping[str, Any]:
        """Begin to get events: all that are kept, or those after one that this viewer has.

        Args:
            since: `seq` of the newest event that it has.
            session: `welcome.session` of the connection that it had it from.
        """
        return self.call("attach", since=since, session=session)

    def request(self, verb: str, scope: ScopeKey | None = None, **arguments: Any) -> Mapping[str, Any]:
        """As `loopscope.recording.feed.Feed` has it."""
        if scope is not None:
            arguments["scope"] = Place(*scope)
        return self.call(verb, **arguments)

    def call(self, verb: str, **arguments: Any) -> Mapping[str, Any]:
        """Ask, and wait for the answer.

        Raises:
            RefusedError: where the process does not do it; the message says why.
            CannotAttachError: where it does not answer.
        """
        number = next(self._ids)
        given = {name: value for name, value in arguments.items() if value is not None}
        with self._state:
            self._answers[number] = None
        try:
            self._send(encode(Request(id=number, verb=verb, arguments=msgspec.Raw(msgspec.json.encode(given)))))
            self._wait(lambda: self._answers[number] is not None, self._timeout)
        finally:
            with self._state:
                answer = self._answers.pop(number, None)
        if answer is None:
            raise CannotAttachError(f"{inert(self.entry.name, 80)}: {self._why_over()}")
        if answer.error is not None:
            raise RefusedError(inert(answer.error.code, 40), inert(answer.error.message, 1_000))
        return answer.result if isinstance(answer.result, dict) else {}

    def __iter__(self) -> Iterator[Message]:
        """Every message until the connection ends; `bye` then says why, where the process said it."""
        while (message := self._next(None)) is not None:
            if not isinstance(message, (Welcome, Answer, Bye)):
                yield message

    def close(self, *, resume: bool = True) -> None:
        """Leave. The process goes on.

        Args:
            resume: whether pauses end with the last viewer that steers. False: they stay for the longest pause.
        """
        if not resume and not self._over:
            with contextlib.suppress(CannotAttachError, RefusedError):
                self.call("disconnect", resume=False)
        self._over = True
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        with self._state:
            self._state.notify_all()
            if not self._reading:
                self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _why_over(self) -> str:
        return inert(self.bye.reason, 300) if self.bye is not None else "does not answer"

    def _send(self, line: bytes) -> None:
        try:
            with self._sending:
                self._connection.sendall(line)
        except OSError as error:
            raise CannotAttachError(f"{inert(self.entry.name, 80)}: {error.strerror or 'does not answer'}") from None

    def _next(self, timeout: float | None) -> Incoming | None:
        """The next message that is no answer; None where there will be none, or none in time."""
        self._wait(lambda: bool(self._inbox), timeout)
        with self._state:
            return self._inbox.popleft() if self._inbox else None

    def _wait(self, ready: Callable[[], bool], timeout: float | None) -> None:
        """Until it is so, or the connection is over, or the time."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if end is None else end - time.monotonic()
            with self._state:
                if ready() or self._over or (left is not None and left <= 0):
                    return
                if self._reading:
                    self._state.wait(left)
                    continue
                self._reading = True
            self._read(left)

    def _read(self, timeout: float | None) -> None:
        """Read once, for all threads."""
        lines: list[bytes] | None = None
        try:
            if self._selector.select(timeout):
                data = self._connection.recv(_CHUNK)
                lines = self._lines.cut(data) if data else None
            else:
                lines = []
        except (OSError, ValueError):
            lines = None
        finally:
            with self._state:
                self._reading = False
                self._take_in(lines)
                self._state.notify_all()

    def _take_in(self, lines: list[bytes] | None) -> None:
        if lines is None:
            self._over = True
            self._release()
            return
        for line in lines:
            try:
                message = read_from_agent(line)
            except ValueError:
                continue
            if isinstance(message, Answer):
                if message.id in self._answers:
                    self._answers[message.id] = message
            elif isinstance(message, Bye):
                self.bye = message
                self._inbox.append(message)
            elif message is not None:
                self._inbox.append(message)

    def _release(self) -> None:
        self._selector.close()
        self._connection.close()
