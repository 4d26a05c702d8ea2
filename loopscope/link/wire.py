"""The protocol's own messages: how two sides greet each other, what is asked and what is answered.

`docs/link.md` tells it in full. One JSON object a line, told apart by `kind`; events and the messages of
`loopscope.recording.feed` travel beside these. Pure: no sockets here, so that server, client and tests share one
definition.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import msgspec
from msgspec import Struct

from loopscope.engine.events import Event
from loopscope.link.refusal import RefusedError
from loopscope.recording import codec
from loopscope.recording.feed import Held, Message, Released, Snapshotted, Status
from loopscope.recording.inert import inert

__all__ = [
    "NEWEST",
    "OLDEST",
    "Answer",
    "Bye",
    "EngineInfo",
    "Failure",
    "Hello",
    "Incoming",
    "Request",
    "Summary",
    "Welcome",
    "encode",
    "negotiate",
    "read_from_agent",
    "read_hello",
    "read_request",
]

OLDEST = 1
NEWEST = 1
"""Versions of the protocol that this loopscope speaks."""


class Hello(Struct, frozen=True, kw_only=True, tag_field="kind", tag="hello"):
    """First line from the viewer."""

    version: int
    """Newest version that it speaks."""
    oldest: int = 1
    """Oldest version that it speaks."""
    token: str | None = None
    """Where the endpoint is a TCP port: the token of the discovery file."""
    client: str = ""
    """What to call it in recordings."""
    control: bool = False
    """Whether it wants to steer."""


class Request(Struct, frozen=True, kw_only=True, tag_field="kind", tag="request"):
    """Anything that a viewer asks."""

    id: int
    """Chosen by the viewer, given back with the answer."""
    verb: str
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class Failure(Struct, frozen=True):
    """Why a request was refused."""

    code: str
    message: str


class Answer(Struct, frozen=True, kw_only=True, tag_field="kind", tag="answer"):
    """One for each request."""

    id: int
    ok: bool
    result: Any = None
    error: Failure | None = None


class EngineInfo(Struct, frozen=True, kw_only=True):
    """One engine of the process."""

    number: int
    """What `setPolicy` calls it."""
    name: str
    enforced: bool
    policy: dict[str, Any]


class Summary(Struct, frozen=True, kw_only=True):
    """How the process is, in a line of a list."""

    batches: int = 0
    scopes: int = 0
    worst: str = "pass"
    """The worst decision so far."""
    held: int = 0
    viewers: int = 0


class Welcome(Struct, frozen=True, kw_only=True, tag_field="kind", tag="welcome"):
    """Answer to a hello that is let in."""

    version: int
    """What both sides speak from here on."""
    session: str
    """Names this endpoint of this process for its life: a `since` means something only within one session."""
    pid: int
    name: str
    python: str
    loopscope: str
    started: float
    """When the process began to listen, Unix seconds."""
    control: bool
    """Whether this viewer may steer."""
    capabilities: dict[str, str]
    """Each verb with nothing, or with the reason why this viewer cannot have it."""
    graphs: tuple[str, ...] = ()
    engines: tuple[EngineInfo, ...] = ()
    seq: int = 0
    """The newest event."""
    summary: Summary = Summary()


class Bye(Struct, frozen=True, kw_only=True, tag_field="kind", tag="bye"):
    """Last line of either side."""

    code: str
    """`ended`, `disconnected`, `version`, `token`, `malformed`, `too-long`, `too-slow`, `too-many`."""
    reason: str


Incoming: TypeAlias = Message | Welcome | Answer | Bye
"""Anything that an agent sends."""


class _Kind(Struct):
    kind: str


_hello = msgspec.json.Decoder(Hello)
_request = msgspec.json.Decoder(Request)
_link = msgspec.json.Decoder(Snapshotted | Held | Released | Status | Welcome | Answer | Bye)
_kind = msgspec.json.Decoder(_Kind)
_LINK_KINDS = frozenset({"snapshot", "held", "released", "status", "welcome", "answer", "bye"})
_WRONG = (msgspec.MsgspecError, ValueError, RecursionError)


def encode(message: Struct) -> bytes:
    """A message as one line, with its newline. Never raises an Exception."""
    return codec.encode(cast("Event", message)) + b"\n"


def read_hello(line: bytes) -> Hello:
    """The first line of a viewer.

    Raises:
        RefusedError: where it is anything else.
    """
    return cast("Hello", _read(_hello, line, "a hello"))


def read_request(line: bytes) -> Request:
    """A later line of a viewer.

    Raises:
        RefusedError: where it is anything else.
    """
    return cast("Request", _read(_request, line, "a request"))


def _read(decoder: msgspec.json.Decoder[Any], line: bytes, what: str) -> Struct:
    try:
        return cast("Struct", decoder.decode(line))
    except _WRONG as error:
        raise RefusedError("malformed", inert(f"not {what}: {error}", 200)) from None


def read_from_agent(line: bytes) -> Incoming | None:
    """A line of an agent; None where its kind is unknown, as a later version may send it.

    Raises:
        ValueError: where it breaks the protocol.
    """
    try:
        if _kind.decode(line).kind in _LINK_KINDS:
            return cast("Incoming", _link.decode(line))
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None
    return codec.decode(line)


def negotiate(hello: Hello) -> int:
    """The version that both sides speak.

    Raises:
        RefusedError: where there is none; the message says which side to upgrade.
    """
    if hello.version < OLDEST:
        raise RefusedError(
            "version",
            f"this viewer speaks version {hello.version} of the link at most, the process {OLDEST} at least: "
            "upgrade loopscope where you typed `attach`",
        )
    if hello.oldest > NEWEST:
        raise RefusedError(
            "version",
            f"this viewer speaks version {hello.oldest} of the link at least, the process {NEWEST} at most: "
            "upgrade loopscope in the environment of the agent",
        )
    return min(hello.version, NEWEST)
