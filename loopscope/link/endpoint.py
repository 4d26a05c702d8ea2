"""`listen`: makes this process one that can be looked at, and steered where it allows that.

Apart from its parts, which it only puts together, takes down in the right order, and makes anew in a forked child.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from loopscope.engine.events import Event, RunEnd
from loopscope.engine.snapshot import Snapshot
from loopscope.errors import CannotAttachError
from loopscope.link.discovery import Entry, new_entry, remove, sweep, write
from loopscope.link.gate import HoldingGate
from loopscope.link.hub import Hub
from loopscope.link.intake import Intake
from loopscope.link.limits import MAX_PAUSE, Limits
from loopscope.link.server import Server
from loopscope.link.shadow import merged
from loopscope.link.sockets import Transport, listen_on, standard_transport
from loopscope.recording.bus import bus
from loopscope.recording.feed import Held, Released
from loopscope.recording.gate import Steerable, gatehouse

__all__ = ["Link", "listen"]

_STANDARD = Limits()


class Link:
    """One endpoint of this process. Closed at exit, by `close`, or at the end of a `with` block."""

    def __init__(
        self,
        name: str | None = None,
        *,
        control: bool = False,
        transport: Transport | None = None,
        max_pause: float = MAX_PAUSE,
        limits: Limits = _STANDARD,
    ) -> None:
        self.name = name or _own_name()
        self._transport: Transport = transport or standard_transport()
        self._limits = limits
        self._closed = False
        self._unsubscribe: Callable[[], None] | None = None
        self._state: Snapshot | None = None
        self._intake = Intake(self._wake)
        self.gate = HoldingGate(self._tell, self._status_changed, max_pause)
        self._open(control=control)

    def _open(self, *, control: bool) -> None:
        listening = listen_on(self._transport)
        sweep(listening.file.parent)
        entry = new_entry(listening.transport, listening.address, self.name, control=control)
        server = Server(listening.socket, entry.token, self._limits)
        try:
            write(entry, listening.file)
            self._serve(entry, server, listening.file)
        except (OSError, RuntimeError) as error:
            server.discard()
            remove(listening.file)
            raise CannotAttachError(f"cannot open an endpoint in {listening.file.parent}: {error}") from None

    def _serve(self, entry: Entry, server: Server, file: Path) -> None:
        """From one moment on, with no event between what the engines know and what is heard."""
        with bus.lock:
            state = self._state or merged(gatehouse.engines(), gatehouse.base)
            hub = Hub(entry, self._intake, self.gate, self._limits, state)
            hub.renamed = self._write
            # The first viewer may be there as soon as the thread is.
            self._hub, self._state = hub, None
            self._server: Server | None = server
            self._file: Path | None = file
            server.start(hub)
            if self._unsubscribe is None:
                self._unsubscribe = bus.subscribe(self._observe)
                gatehouse.attend(self.gate, self._newcomer)

    @property
    def entry(self) -> Entry:
        """How viewers find this process."""
        return self._hub.entry

    @property
    def address(self) -> str:
        """The path of the socket, or `127.0.0.1:PORT`."""
        return self._hub.entry.address

    @property
    def control(self) -> bool:
        """Whether viewers that ask for it may steer."""
        return self._hub.entry.control

    @property
    def viewers(self) -> int:
        """Viewers that are connected."""
        return len(self._hub.viewers)

    def wait_for_viewer(self, timeout: float | None = None) -> bool:
        """Wait on this thread until a viewer has attached; whether one has.

        Args:
            timeout: seconds; None waits for ever.
        """
        return self._hub.attached.wait(timeout)

    def allow_control(self) -> None:
        """Let viewers that attach from now on steer, where they ask for it."""
        self._hub.allow_control()

    def hold_first_batch(self) -> None:
        """Hold the first batch of calls until a viewer has attached, however long that takes."""
        attached = self._hub.attached
        if not attached.is_set():
            self.gate.pause(None, "wait")
        if attached.is_set() and self.gate.status().waiting:
            self.gate.resume(None)

    def close(self) -> None:
        """Hold nothing any more, tell the viewers, and leave no file, socket or thread behind. Once is enough."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        self._hub.steering.let_go("the process")
        with bus.lock:
            if self._unsubscribe is not None:
                self._unsubscribe()
            gatehouse.leave(self.gate)
        if self._server is not None:
            self._server.stop(3.0)
        file, self._file = self._file, None
        if file is not None:
            remove(file)
        _forget(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "control" if self.control else "observe only"
        return f"<Link {self.name!r} at {self.address} ({state})>"

    def _observe(self, event: Event) -> None:
        if self.gate.armed and type(event) is RunEnd:
            self.gate.run_ended(event.scope)
        self._intake.put(event)

    def _newcomer(self, engine: Steerable) -> None:
        self._hub.newcomer(engine)

    def _tell(self, told: Held | Released) -> None:
        self._intake.urge(told)

    def _status_changed(self) -> None:
        if self._server is not None:
            self._hub.status_changed()

    def _wake(self) -> None:
        if self._server is not None:
            self._server.wake()
        elif not self._closed:
            self._revive()

    def _write(self, entry: Entry) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                write(entry, self._file)

    def abandon(self) -> None:
        """In a forked child: let go of what is the parent's. The child opens its own with its first event."""
        server, self._server, self._file = self._server, None, None
        self.gate.forget()
        self._hub.viewers.clear()
        self._intake = Intake(self._wake)
        self._intake.eager = True
        with contextlib.suppress(Exception):
            self._state = merged(gatehouse.engines(), gatehouse.base)
        if server is not None:
            server.abandon()
            _kept.append(server)

    def _revive(self) -> None:
        with bus.lock:
            if self._server is not None:
                return
            try:
                self._open(control=self.control)
            except Exception:  # noqa: BLE001 - a child without a link is still a child
                self.close()
            self._intake.eager = False


_lock = threading.Lock()
_link: Link | None = None
_kept: list[Server] = []
"""Servers of the parent, in a child: collecting their loops as garbage would touch what the parent waits on."""


def listen(
    name: str | None = None,
    control: bool = False,  # noqa: FBT001, FBT002 - the documented signature
    *,
    transport: Transport | None = None,
    max_pause: float = MAX_PAUSE,
    limits: Limits = _STANDARD,
) -> Link:
    """Make this process one that can be attached to.

    A process has one link: a second call gives back the first, and may allow control to it.

    Args:
        name: what viewers call it; by default the name of the program.
        control: let viewers that ask for it pause, step and stop runs and change the policy. Without it they only look.
        transport: `unix` or `tcp`; by default what the platform does best.
        max_pause: seconds that a batch is held at most.
        limits: how much is kept for viewers that come late, and what viewers have to keep to.

    Raises:
        CannotAttachError: where no endpoint can be opened; the message says why.
    """
    global _link  # noqa: PLW0603 - one per process is the point
    with _lock:
        if _link is None:
            _link = Link(name, control=control, transport=transport, max_pause=max_pause, limits=limits)
            atexit.register(_link.close)
        elif control and not _link.control:
            _link.allow_control()
        return _link


def _forget(link: Link) -> None:
    global _link  # noqa: PLW0603 - as above
    if _link is link:
        _link = None


def _own_name() -> str:
    return Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"


def _after_fork() -> None:
    global _lock  # noqa: PLW0603 - another thread of the parent may have held it
    _lock = threading.Lock()
    if _link is not None:
        _link.abandon()


if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows cannot fork
    os.register_at_fork(after_in_child=_after_fork)
