"""The viewer's side of a link for programs with an event loop: as `client`, awaited.

One task reads; answers go to whoever waits for them, everything else to whoever iterates.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from collections.abc import AsyncIterator, Mapping
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

__all__ = ["AsyncClient", "aconnect"]

_CHUNK = 1 << 16
_ENOUGH = 10_000
"""Messages that wait for whoever iterates before no more are read."""


async def aconnect(
    target: str | int | os.PathLike[str] | Entry,
    *,
    control: bool = False,
    name: str = "loopscope",
    timeout: float = 5.0,  # noqa: ASYNC109 - of every later answer too
) -> AsyncClient:
    """As `client.connect`.

    Raises:
        CannotAttachError: where there is no such process, or it does not let this viewer in.
    """
    entry = await asyncio.to_thread(resolve, target)
    connection = await asyncio.to_thread(dial, entry, timeout)
    reader, writer = await asyncio.open_connection(sock=connection)
    client = AsyncClient(entry, reader, writer, timeout)
    try:
        await client.greet(name, control=control)
    except BaseException:
        await client.close()
        raise
    return client


class AsyncClient:
    """One connection, for one event loop."""

    def __init__(
        self, entry: Entry, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, timeout: float
    ) -> None:
        self.entry = entry
        self.welcome: Welcome
        """What the process says of itself; there once it was greeted."""
        self.bye: Bye | None = None
        """What the process said last, where it said anything."""
        self._reader = reader
        self._writer = writer
        self._timeout = timeout
        self._inbox: asyncio.Queue[Incoming | None] = asyncio.Queue()
        self._answers: dict[int, asyncio.Future[Answer | None]] = {}
        self._ids = itertools.count(1)
        self._task = asyncio.create_task(self._read())

    async def greet(self, name: str, *, control: bool) -> None:
        """As `Client.greet`.

        Raises:
            CannotAttachError: where the process does not let us in.
        """
        self._writer.write(greeting(self.entry, name, control=control))
        message: Incoming | None = None
        with contextlib.suppress(TimeoutError):
            message = await asyncio.wait_for(self._inbox.get(), self._timeout)
        if isinstance(message, Welcome) and self.entry.session in ("", message.session):
            self.welcome = message
            return
        reason = inert(message.reason, 300) if isinstance(message, Bye) else "does not answer as loopscope does"
        raise CannotAttachError(f"{inert(self.entry.name, 80)}: {reason}")

    async def attach(self, since: int | None = None, session: str | None = None) -> Mapping[str, Any]:
        """As `Client.attach`."""
        return await self.call("attach", since=since, session=session)

    async def request(self, verb: str, scope: ScopeKey | None = None, **arguments: Any) -> Mapping[str, Any]:
        """As `Client.request`."""
        if scope is not None:
            arguments["scope"] = Place(*scope)
        return await self.call(verb, **arguments)

    async def call(self, verb: str, **arguments: Any) -> Mapping[str, Any]:
        """As `Client.call`.

        Raises:
            RefusedError: where the process does not do it; the message says why.
            CannotAttachError: where it does not answer.
        """
        number = next(self._ids)
        given = {name: value for name, value in arguments.items() if value is not None}
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        made: Answer | None = None
        try:
            self._writer.write(encode(Request(id=number, verb=verb, arguments=msgspec.Raw(msgspec.json.encode(given)))))
            if not self._task.done():
                made = await asyncio.wait_for(answer, self._timeout)
        except TimeoutError:
            pass
        finally:
            self._answers.pop(number, None)
        if made is None:
            reason = inert(self.bye.reason, 300) if self.bye is not None else "does not answer"
            raise CannotAttachError(f"{inert(self.entry.name, 80)}: {reason}")
        if made.error is not None:
            raise RefusedError(inert(made.error.code, 40), inert(made.error.message, 1_000))
        return made.result if isinstance(made.result, dict) else {}

    async def __aiter__(self) -> AsyncIterator[Message]:
        """Every message until the connection ends."""
        while (message := await self._inbox.get()) is not None:
            if not isinstance(message, (Welcome, Answer, Bye)):
                yield message

    async def close(self, *, resume: bool = True) -> None:
        """As `Client.close`."""
        if not resume:
            with contextlib.suppress(CannotAttachError, RefusedError):
                await self.call("disconnect", resume=False)
        self._task.cancel()
        self._writer.close()
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await self._task
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _read(self) -> None:
        lines = Lines()
        try:
            while data := await self._reader.read(_CHUNK):
                for line in lines.cut(data):
                    self._take_in(line)
                while self._inbox.qsize() > _ENOUGH and not self._answers:  # noqa: ASYNC110 - a queue has no such event
                    await asyncio.sleep(0.01)
        except (OSError, ValueError):
            pass
        finally:
            self._inbox.put_nowait(None)
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_result(None)

    def _take_in(self, line: bytes) -> None:
        try:
            message = read_from_agent(line)
        except ValueError:
            return
        if isinstance(message, Answer):
            answer = self._answers.get(message.id)
            if answer is not None and not answer.done():
                answer.set_result(message)
        elif message is not None:
            if isinstance(message, Bye):
                self.bye = message
            self._inbox.put_nowait(message)
