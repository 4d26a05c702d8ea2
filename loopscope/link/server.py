"""The thread of the link: an event loop of its own, which accepts connections and wakes when the program has events.

Apart from the program's own loops and threads, which are never asked to do any of this. All descriptors are known here,
so that a forked child can close its copies without touching what the parent uses.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import selectors
import socket
import threading
import time
from typing import Any, Final

from loopscope.link.connection import Connection
from loopscope.link.hub import Hub
from loopscope.link.limits import Limits
from loopscope.link.process import own_uid, peer_uid

__all__ = ["Server"]

_ACCEPTS_AT_ONCE: Final = 200.0
_FAREWELL: Final = 1.0
"""Seconds in which viewers may read the last events of a process that ends."""
_STANDSTILL: Final = 0.2
_log = logging.getLogger("loopscope")


class Server:
    """Serves one listening socket in a daemon thread.

    Args:
        listener: bound and listening.
        token: what viewers must show; None where the socket is this user's alone.
        limits: what viewers have to keep to.
    """

    def __init__(self, listener: socket.socket, token: str | None, limits: Limits) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._token = token
        self._limits = limits
        self._selector = selectors.DefaultSelector()
        self._loop = asyncio.SelectorEventLoop(self._selector)
        self._loop.set_exception_handler(_quietly)
        self._sockets: dict[int, socket.socket] = {}
        self._connections: dict[int, Connection] = {}
        self._numbers = itertools.count(1)
        self._hub: Hub | None = None
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="loopscope-link", daemon=True)

    def start(self, hub: Hub) -> None:
        """Begin to accept."""
        self._hub = hub
        self._thread.start()

    def wake(self) -> None:
        """Something waits to be taken in. Callable from any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self._loop.call_soon_threadsafe(self._drain)

    def stop(self, timeout: float) -> None:
        """Let viewers read what is left, say bye, and end the thread; for so many seconds at most."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stopped.set)
        if threading.current_thread() is not self._thread and self._thread.is_alive():
            self._thread.join(timeout)

    def discard(self) -> None:
        """Give back what a server has that was never started."""
        self._listener.close()
        self._loop.close()

    def abandon(self) -> None:
        """In a forked child: close the descriptors that it got, and touch nothing that it shares with its parent."""
        for known in (self._listener, *self._sockets.values()):
            known.close()
        self._selector.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except Exception:  # noqa: BLE001 - whatever is wrong here, the program goes on
            _log.exception("the live link ended; the program goes on")
        finally:
            self._listener.close()
            for connection in self._sockets.values():
                connection.close()
            with contextlib.suppress(Exception):
                self._loop.close()

    async def _serve(self) -> None:
        accepting = asyncio.create_task(self._accept())
        self._drain()
        await self._stopped.wait()
        accepting.cancel()
        await self._say_bye()

    async def _accept(self) -> None:
        allowance, refilled = _ACCEPTS_AT_ONCE, time.monotonic()
        while True:
            try:
                connection, _ = await self._loop.sock_accept(self._listener)
            except OSError:
                await asyncio.sleep(0.2)  # out of descriptors, most likely
                continue
            now = time.monotonic()
            allowance = min(_ACCEPTS_AT_ONCE, allowance + (now - refilled) * self._limits.accepts) - 1
            refilled = now
            await self._take(connection)
            if allowance < 0:
                await asyncio.sleep(1 / self._limits.accepts)

    async def _take(self, connection: socket.socket) -> None:
        if self._token is None and (uid := peer_uid(connection)) is not None and uid != own_uid():
            connection.close()
            return
        number = next(self._numbers)
        self._sockets[number] = connection
        self._make_room()
        try:
            await self._loop.connect_accepted_socket(lambda: self._connection(number), connection)
        except OSError:
            self._sockets.pop(number, None)
            connection.close()

    def _make_room(self) -> None:
        greeting = [each for each in self._connections.values() if not (each.welcomed or each.ending)]
        if len(greeting) >= self._limits.greeting:
            greeting[0].end("too-many", "too many connections that say nothing")

    def _connection(self, number: int) -> Connection:
        assert self._hub is not None  # noqa: S101 - start() was called, or nothing would be accepted
        made = self._connections[number] = Connection(self._hub, number, self._token, self._closed, self._limits)
        return made

    def _closed(self, connection: Connection) -> None:
        self._connections.pop(connection.number, None)
        self._sockets.pop(connection.number, None)

    def _drain(self) -> None:
        try:
            if self._hub is not None and self._hub.drain():
                self._loop.call_soon(self._drain)
        except Exception:  # noqa: BLE001 - what cannot be sent is lost to viewers; the next event may be sent again
            _log.exception("the live link could not send an event")

    async def _let_read(self, end: float) -> None:
        """Wait while viewers still read what they have not got; one that has stopped to read is not waited for."""
        moved, before = time.monotonic(), -1
        while time.monotonic() < min(end, moved + _STANDSTILL):
            behind = sum(each.behind for each in self._connections.values())
            if not behind:
                return
            if behind != before:
                moved, before = time.monotonic(), behind
            await asyncio.sleep(0.005)

    async def _say_bye(self) -> None:
        self._drain()
        end = time.monotonic() + _FAREWELL
        await self._let_read(end)
        for connection in list(self._connections.values()):
            connection.end("ended", "the process has ended its link")
        while self._connections and time.monotonic() < end + 0.2:  # noqa: ASYNC110 - asks seldom, and not for long
            await asyncio.sleep(0.005)


def _quietly(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    _log.debug("live link: %s", context.get("message"), exc_info=context.get("exception"))
