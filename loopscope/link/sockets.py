"""Makes the socket that a process listens on: in the private folder, or on the loopback with a token.

Apart from the thread that serves it, since whoever calls `listen` should hear at once when there can be none.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import socket
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from loopscope.errors import CannotAttachError
from loopscope.link.folder import open_folder

__all__ = ["Listening", "Transport", "listen_on", "standard_transport"]

Transport: TypeAlias = Literal["unix", "tcp"]
_TRIES = 20
_BACKLOG = 100


class Listening(NamedTuple):
    """A socket that listens, and where."""

    socket: socket.socket
    transport: Transport
    address: str
    file: Path
    """Where to put the discovery file: beside the socket, with its name."""


def standard_transport() -> Transport:
    """What this platform does best."""
    return "unix" if hasattr(socket, "AF_UNIX") and os.name == "posix" else "tcp"


def listen_on(transport: Transport) -> Listening:
    """A new socket under a name that nobody has.

    Raises:
        CannotAttachError: where there can be none; the message says why.
    """
    folder = open_folder()
    for _ in range(_TRIES):
        file = folder / f"{os.getpid()}-{secrets.token_hex(3)}.json"
        if file.exists():
            continue
        try:
            return _unix(file) if transport == "unix" else _tcp(file)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and transport == "unix":
                continue
            raise CannotAttachError(f"cannot listen in {folder}: {error.strerror or error}") from None
    raise CannotAttachError(f"cannot listen in {folder}: no free name")


def _unix(file: Path) -> Listening:
    path = file.with_suffix(".sock")
    made = socket.socket(socket.AF_UNIX)
    try:
        made.bind(str(path))
        path.chmod(0o600)
        made.listen(_BACKLOG)
    except BaseException:
        made.close()
        raise
    return Listening(made, "unix", str(path), file)


def _tcp(file: Path) -> Listening:
    made = socket.socket(socket.AF_INET)
    try:
        with contextlib.suppress(AttributeError):
            made.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)  # type: ignore[attr-defined]  # Windows
        made.bind(("127.0.0.1", 0))
        made.listen(_BACKLOG)
    except BaseException:
        made.close()
        raise
    return Listening(made, "tcp", f"127.0.0.1:{made.getsockname()[1]}", file)
