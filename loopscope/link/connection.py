"""One connection to a process that listens: cuts bytes into lines, and holds the other side to its limits.

Whoever is at the other end may be broken or hostile. Too long a line, too slow a one, too many, anything that is no
request: the connection ends with a `bye` that says why, and nothing else happens.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Callable
from typing import Any, Final, cast

from msgspec import Struct

from loopscope.link.hub import Hub
from loopscope.link.limits import Limits
from loopscope.link.refusal import RefusedError
from loopscope.link.verbs import Disconnect, arguments
from loopscope.link.wire import Answer, Bye, Failure, Request, encode, read_hello, read_request
from loopscope.recording.inert import inert

__all__ = ["LONGEST_HELLO", "LONGEST_REQUEST", "Connection"]

LONGEST_HELLO: Final = 4 << 10
LONGEST_REQUEST: Final = 64 << 10
_CHUNK: Final = 64 << 10
_HIGH: Final = 256 << 10
_LOW: Final = 64 << 10
_ANSWERS: Final = 1 << 20
"""Bytes that wait for a viewer that asks and does not read."""
_GOODBYE: Final = 1.0
"""Seconds that a last line may take."""


class Connection(asyncio.Protocol):
    """Greets, asks the hub, answers, and sends the backlog at the pace of the other side.

    Args:
        hub: what to ask.
        number: tells connections apart.
        token: what the hello must have, where the endpoint is open to others than this user.
        closed: called once the connection is gone.
        limits: what the other side has to keep to.
    """

    def __init__(
        self, hub: Hub, number: int, token: str | None, closed: Callable[[Connection], object], limits: Limits
    ) -> None:
        self.number = number
        self.client = ""
        self.controls = False
        self.resume = True
        self.position: int | None = None
        self.welcomed = False
        self.ending = False
        self._hub = hub
        self._token = token
        self._closed = closed
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self._buffer = bytearray()
        self._opening: list[bytes] = []
        self._full = False
        self._line_timer: asyncio.TimerHandle | None = None
        self._stuck_timer: asyncio.TimerHandle | None = None
        self._allowance = float(limits.burst)
        self._refilled = time.monotonic()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait for the hello."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(_HIGH, _LOW)
        self._line_timer = self._loop.call_later(self._limits.line_s, self._too_slow)

    def data_received(self, data: bytes) -> None:
        """Take the lines that are whole; wait for the rest, for a while."""
        if self.ending:
            return
        self._buffer += data
        while (end := self._buffer.find(b"\n")) >= 0:
            line = bytes(self._buffer[:end])
            del self._buffer[: end + 1]
            self._stop_timer()
            self._line(line)
        if self._buffer:
            if len(self._buffer) > self._longest:
                self._too_long()
            elif self._line_timer is None:
                self._line_timer = self._loop.call_later(self._limits.line_s, self._too_slow)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """However it ended, nothing of it stays."""
        self.ending = True
        self.position = None
        self._stop_timer()
        if self._stuck_timer is not None:
            self._stuck_timer.cancel()
        self._closed(self)
        if self.welcomed:
            self._hub.left(self.number)

    def pause_writing(self) -> None:
        """The other side has enough for now."""
        self._full = True
        self._stuck_timer = self._loop.call_later(self._limits.stuck_s, self._stuck)

    def resume_writing(self) -> None:
        """The other side has read."""
        self._full = False
        if self._stuck_timer is not None:
            self._stuck_timer.cancel()
        self.pump()

    def begin(self, position: int, lines: list[bytes]) -> None:
        """As `hub.Viewer` has it."""
        self.position = position
        self._opening = lines
        self._loop.call_soon(self.pump)

    def pump(self) -> None:
        """As `hub.Viewer` has it."""
        if self._opening and not self.ending:
            self._transport.write(b"".join(self._opening))
            self._opening = []
        while self.position is not None and not self._full and not self.ending:
            self.position, lines = self._hub.read(self.position, _CHUNK)
            if not lines:
                return
            self._transport.write(b"".join(lines))

    @property
    def behind(self) -> int:
        """How much of what there is has not left this process: lines and bytes, mixed, and 0 for none."""
        lines = self._hub.behind(self.position) if self.position is not None else 0
        return lines + self._transport.get_write_buffer_size()

    def end(self, code: str, reason: str) -> None:
        """Say why, and close."""
        if self.ending:
            return
        self.ending = True
        self._stop_timer()
        self._buffer.clear()
        self._transport.write(encode(Bye(code=code, reason=reason)))
        self._transport.close()
        self._loop.call_later(_GOODBYE, self._transport.abort)

    @property
    def _longest(self) -> int:
        return LONGEST_REQUEST if self.welcomed else LONGEST_HELLO

    def _line(self, line: bytes) -> None:
        if len(line) > self._longest:
            self._too_long()
        elif not self._may():
            self.end("too-many", f"more than {self._limits.per_second:g} requests a second")
        else:
            try:
                if self.welcomed:
                    self._request(read_request(line))
                else:
                    self._greet(line)
            except RefusedError as error:
                self.end(error.code, str(error))

    def _greet(self, line: bytes) -> None:
        hello = read_hello(line)
        if self._token is not None and not _same(hello.token, self._token):
            raise RefusedError("token", "wrong token: it is in the discovery file of the process")
        welcome = self._hub.welcome(hello)
        self.client = inert(hello.client, 60) or f"viewer {self.number}"
        self.controls = welcome.control
        self.welcomed = True
        self._hub.joined(self.number, self)
        self._transport.write(encode(welcome))

    def _request(self, request: Request) -> None:
        if request.verb == "disconnect":
            asked: Disconnect = self._asked(request)
            self.resume = asked.resume
            self._answer(request, {})
            self.end("disconnected", "as asked")
            return
        try:
            result = self._hub.answer(self, request)
        except RefusedError as error:
            self._send(Answer(id=request.id, ok=False, error=Failure(error.code, inert(str(error), 1_000))))
        except Exception as error:  # noqa: BLE001 - whatever a request hits on, the program must not notice
            failure = Failure("failed", inert(f"{request.verb}: {type(error).__name__}: {error}", 300))
            self._send(Answer(id=request.id, ok=False, error=failure))
        else:
            self._answer(request, result)

    @staticmethod
    def _asked(request: Request) -> Any:
        return arguments(request, Disconnect)

    def _answer(self, request: Request, result: object) -> None:
        self._send(Answer(id=request.id, ok=True, result={} if result is None else result))

    def _send(self, message: Struct) -> None:
        if self._transport.get_write_buffer_size() > _ANSWERS:
            self._buffer.clear()
            self._transport.abort()
        elif not self._transport.is_closing():
            self._transport.write(encode(message))

    def _may(self) -> bool:
        now = time.monotonic()
        limits = self._limits
        self._allowance = min(limits.burst, self._allowance + (now - self._refilled) * limits.per_second)
        self._refilled = now
        self._allowance -= 1
        return self._allowance >= 0

    def _stop_timer(self) -> None:
        if self._line_timer is not None:
            self._line_timer.cancel()
            self._line_timer = None

    def _too_long(self) -> None:
        self.end("too-long", f"a line is longer than {self._longest:,} bytes")

    def _too_slow(self) -> None:
        self.end("too-slow", f"a line took longer than {self._limits.line_s:g} s")

    def _stuck(self) -> None:
        self._transport.abort()


def _same(given: str | None, token: str) -> bool:
    return hmac.compare_digest((given or "").encode("utf-8", "surrogatepass"), token.encode())
