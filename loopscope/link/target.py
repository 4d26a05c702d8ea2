"""Which process a person means: by pid, by name, or by the path of its socket; and which ones there are."""

from __future__ import annotations

import contextlib
import difflib
import os
import socket
import time
from pathlib import Path

import msgspec
from msgspec import Struct

from loopscope.errors import CannotAttachError
from loopscope.link.discovery import Entry, dial, entries
from loopscope.link.wire import NEWEST, OLDEST, Bye, Hello, Welcome, encode, read_from_agent
from loopscope.recording.inert import inert

__all__ = ["Live", "discover", "greeting", "resolve"]

_LONGEST_WELCOME = 1 << 20


class Live(Struct, frozen=True):
    """One process that can be attached to."""

    entry: Entry
    welcome: Welcome | None
    """What it says of itself now; None where it did not answer in time."""
    problem: str = ""
    """Why it cannot be attached to, where it said so."""


def greeting(entry: Entry, client: str, *, control: bool) -> bytes:
    """The first line that a viewer sends."""
    return encode(Hello(version=NEWEST, oldest=OLDEST, token=entry.token, client=client, control=control))


def discover(timeout: float = 0.5) -> list[Live]:
    """The processes of this user that listen, newest first. What dead ones left behind is removed.

    Args:
        timeout: seconds for all of them to answer; one that hangs is listed without its state.
    """
    asked: list[tuple[Entry, socket.socket]] = []
    for entry in entries():
        with contextlib.suppress(CannotAttachError):
            connection = dial(entry, timeout)
            with contextlib.suppress(OSError):
                connection.sendall(greeting(entry, "loopscope ps", control=False))
            asked.append((entry, connection))
    end = time.monotonic() + timeout
    found = [(entry, _answer(connection, end)) for entry, connection in asked]
    return [
        Live(entry, answer if isinstance(answer, Welcome) else None, answer.reason if isinstance(answer, Bye) else "")
        for entry, answer in found
        if not (isinstance(answer, Welcome) and answer.session != entry.session)
    ]


def resolve(target: str | int | os.PathLike[str] | Entry) -> Entry:
    """The process that is meant.

    Args:
        target: a pid, a name, or the path of a socket.

    Raises:
        CannotAttachError: where there is none, or more than one.
    """
    if isinstance(target, Entry):
        return target
    text = os.fspath(target) if isinstance(target, os.PathLike) else str(target)
    known = entries()
    if os.sep in text or text.endswith(".sock"):
        path = os.path.abspath(text)  # noqa: PTH100 - a link stays the path that it is
        return next((entry for entry in known if entry.address in (path, text)), None) or _unlisted(path)
    chosen = [entry for entry in known if text in (str(entry.pid), entry.name)]
    if len(chosen) == 1:
        return chosen[0]
    if not chosen:
        names = difflib.get_close_matches(text, [entry.name for entry in known], n=1)
        hint = f", did you mean {names[0]}?" if names else "; `loopscope ps` lists what there is"
        raise CannotAttachError(f"no live process {inert(text, 80)}{hint}")
    pids = ", ".join(str(entry.pid) for entry in chosen)
    raise CannotAttachError(f"{len(chosen)} live processes are {inert(text, 80)}: name one by its pid ({pids})")


def _unlisted(path: str) -> Entry:
    """A socket without a discovery file, as one that was passed into a container has none."""
    return Entry(
        pid=0, start_time=None, session="", transport="unix", address=path, name=Path(path).name, argv0="",
        python="", started=0.0, control=True,
    )  # fmt: skip


def _answer(connection: socket.socket, end: float) -> Welcome | Bye | None:
    data = b""
    with contextlib.suppress(OSError, ValueError, msgspec.MsgspecError), connection:
        while b"\n" not in data and len(data) < _LONGEST_WELCOME:
            connection.settimeout(max(0.01, end - time.monotonic()))
            piece = connection.recv(1 << 16)
            if not piece:
                break
            data += piece
        answer = read_from_agent(data.partition(b"\n")[0])
        return answer if isinstance(answer, (Welcome, Bye)) else None
    return None
