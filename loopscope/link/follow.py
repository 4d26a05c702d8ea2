"""A live process as a `Feed`: attached for as long as the process lives, however often the connection drops.

Apart from the client, which is one connection. What was seen is remembered by `seq`, so that after a drop only what is
new comes.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from loopscope.engine.events import ScopeKey
from loopscope.errors import CannotAttachError
from loopscope.link.client import Client, connect
from loopscope.link.discovery import Entry
from loopscope.link.process import is_alive
from loopscope.link.target import resolve
from loopscope.link.wire import Welcome
from loopscope.recording.feed import Connection, Message, Snapshotted, Verb
from loopscope.recording.inert import inert

__all__ = ["Follow", "Trail"]

_FINAL = frozenset({"ended", "version", "token", "disconnected"})
_PAUSES = (0.05, 0.1, 0.2, 0.5)
"""Seconds between attempts; the last one again and again."""


class Trail:
    """How far a viewer has come: what to ask for after a drop."""

    def __init__(self) -> None:
        self.since: int | None = None
        self.session: str | None = None

    def saw(self, message: Message, session: str) -> None:
        """Remember this message; what comes next was not seen."""
        if isinstance(message, Connection):
            return
        seq = getattr(message, "seq", None)
        if seq is not None and (isinstance(message, Snapshotted) or self.session != session or seq > (self.since or 0)):
            self.since, self.session = seq, session


class Follow:
    """A feed of one process. Iterate it on one thread; the rest is safe from any other.

    Args:
        target: a pid, a name, or the path of a socket.
        control: ask for leave to steer.
        name: what recordings call whoever steers.
        timeout: seconds for any one answer.
        patience: seconds to look for a process that lives and does not answer any more.

    Raises:
        CannotAttachError: where there is no such process, or it does not let this viewer in.
    """

    def __init__(
        self,
        target: str | int | os.PathLike[str] | Entry,
        *,
        control: bool = False,
        name: str = "loopscope",
        timeout: float = 5.0,
        patience: float = 10.0,
    ) -> None:
        self._control = control
        self._name = name
        self._timeout = timeout
        self._patience = patience
        self._closed = threading.Event()
        self._client = self._connect(resolve(target))

    @property
    def name(self) -> str:
        """The process's name, safe to draw."""
        return inert(self.welcome.name, 80)

    @property
    def welcome(self) -> Welcome:
        """What the process said of itself when it was reached last."""
        return self._client.welcome

    @property
    def capabilities(self) -> Mapping[str, str]:
        """As `Feed` has it."""
        return self.welcome.capabilities

    def __iter__(self) -> Iterator[Message]:
        """As `Feed` has it, with a `Connection` message whenever the connection drops, is back, or is over for good."""
        trail = Trail()
        while not self._closed.is_set():
            client = self._client
            try:
                client.attach(trail.since, trail.session)
                for message in client:
                    trail.saw(message, client.welcome.session)
                    yield message
            except CannotAttachError:
                pass
            yield from self._after(client)

    def request(self, verb: Verb, scope: ScopeKey | None = None, **arguments: Any) -> Mapping[str, Any]:
        """As `Feed` has it."""
        return self._client.request(verb, scope, **arguments)

    def close(self, *, resume: bool = True) -> None:
        """As `Feed` has it.

        Args:
            resume: whether pauses end with the last viewer that steers.
        """
        self._closed.set()
        self._client.close(resume=resume)

    def _after(self, client: Client) -> Iterator[Message]:
        """What to say of a connection that is over, and another one where there can be one."""
        client.close()
        if self._closed.is_set():
            return
        bye = client.bye
        reason = inert(bye.reason, 300) if bye is not None else "the connection dropped"
        if bye is None or bye.code not in _FINAL:
            yield Connection(state="lost", reason=reason)
            again = self._again(client.entry)
            if again is not None:
                self._client = again
                yield Connection(state="back")
                return
            reason = "the process has ended"
        if not self._closed.is_set():
            self._closed.set()
            yield Connection(state="ended", reason=reason)

    def _again(self, entry: Entry) -> Client | None:
        end = time.monotonic() + self._patience
        attempt = 0
        while time.monotonic() < end:
            try:
                return self._connect(entry)
            except CannotAttachError:
                if not is_alive(entry.pid, entry.start_time):
                    return None
            if self._closed.wait(_PAUSES[min(attempt, len(_PAUSES) - 1)]):
                return None
            attempt += 1
        return None

    def _connect(self, entry: Entry) -> Client:
        return connect(entry, control=self._control, name=self._name, timeout=self._timeout)
