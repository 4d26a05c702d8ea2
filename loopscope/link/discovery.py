"""How a viewer finds processes: each one that listens has a file beside its socket, readable by its user alone.

The file names the endpoint, never the other way round: what a process calls itself is text to be shown, and no part of
any path.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import sys
import time
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from loopscope.errors import CannotAttachError
from loopscope.link.folder import folders
from loopscope.link.process import is_alive, own_uid, peer_uid, start_time
from loopscope.recording.inert import inert

__all__ = ["Entry", "dial", "entries", "new_entry", "remove", "sweep", "write"]

_SUFFIX = ".json"
_LONGEST = 1 << 16
_SETTLED = 60.0
"""Seconds after which a file that belongs to nobody is no longer one that is just being made."""
_QUEUE = 0.01
"""Seconds between two attempts at a socket where too many wait."""
_PROBE = 0.2


class Entry(Struct, frozen=True, kw_only=True):
    """One discovery file."""

    v: int = 1
    pid: int
    start_time: int | None
    """Of the process, in clock ticks; guards against a pid that is used again."""
    session: str
    """Names the endpoint; what answers there must give the same."""
    transport: Literal["unix", "tcp"]
    address: str
    """The path of the socket, or `127.0.0.1:PORT`."""
    token: str | None = None
    """64 hex digits, where the transport is tcp: whoever can read this file may attach."""
    name: str
    argv0: str
    python: str
    started: float
    """When it began to listen, Unix seconds."""
    control: bool
    graphs: tuple[str, ...] = ()
    path: str = ""
    """Of the file itself; not in it."""


_decoder = msgspec.json.Decoder(Entry)


def new_entry(transport: Literal["unix", "tcp"], address: str, name: str, *, control: bool) -> Entry:
    """The entry of this process."""
    import secrets  # noqa: PLC0415 - who looks needs none

    pid = os.getpid()
    return Entry(
        pid=pid,
        start_time=start_time(pid),
        session=secrets.token_hex(8),
        transport=transport,
        address=address,
        token=secrets.token_hex(32) if transport == "tcp" else None,
        name=inert(name, 80),
        argv0=inert(sys.argv[0] if sys.argv else "", 200),
        python=".".join(map(str, sys.version_info[:3])),
        started=time.time(),
        control=control,
    )


def write(entry: Entry, path: Path) -> None:
    """Put the entry into its file, in one step."""
    import secrets  # noqa: PLC0415 - as above

    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)
    try:
        with os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
            file.write(msgspec.json.encode(msgspec.structs.replace(entry, path="")))
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def entries() -> list[Entry]:
    """The processes of this user that can be attached to, newest first. What is left of dead ones is removed."""
    found: list[Entry] = []
    for folder in folders():
        sweep(folder)
        found += [entry for path in _files(folder) if (entry := _read(path)) is not None]
    return sorted(found, key=lambda entry: entry.started, reverse=True)


def sweep(folder: Path) -> None:
    """Remove what dead processes left in a folder that is known to be private. A live endpoint is never touched."""
    for path in _files(folder):
        entry = _read(path)
        if _age(path) > _SETTLED if entry is None else _is_dead(entry):
            remove(path)
    for pattern in ("*.sock", "*.tmp"):
        for path in folder.glob(pattern):
            orphan = not path.with_suffix(_SUFFIX).exists() and _age(path) > _SETTLED
            if orphan and not (pattern == "*.sock" and _listens(str(path))):
                _unlink(path)


def remove(path: Path) -> None:
    """Remove a discovery file and the socket that has its name."""
    _unlink(path)
    _unlink(path.with_suffix(".sock"))


def dial(entry: Entry, timeout: float) -> socket.socket:
    """A connection to this endpoint, whose other end is this user's.

    Raises:
        CannotAttachError: where nothing listens there, or somebody else does.
    """
    try:
        if entry.transport == "unix":
            connection = _dial_unix(entry.address, timeout)
        else:
            host, _, port = entry.address.rpartition(":")
            if host != "127.0.0.1":
                raise CannotAttachError(f"{inert(entry.address, 80)}: is not on this machine's loopback")
            connection = socket.create_connection((host, int(port)), timeout)
    except (OSError, ValueError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CannotAttachError(f"{inert(entry.name or entry.address, 120)}: does not answer ({reason})") from None
    return connection


def _dial_unix(path: str, timeout: float) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(timeout)
        end = time.monotonic() + timeout
        while True:
            try:
                connection.connect(path)
                break
            except BlockingIOError:
                # It listens, and as many as fit wait to be let in: a flood passes.
                if time.monotonic() >= end:
                    raise
                time.sleep(_QUEUE)
        _check_peer(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_peer(connection: socket.socket, path: str) -> None:
    uid = peer_uid(connection)
    if uid is not None and uid != own_uid():
        raise CannotAttachError(f"{inert(path, 200)}: belongs to user {uid}")


def _files(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return [path for path in folder.iterdir() if path.suffix == _SUFFIX]
    return []


def _read(path: Path) -> Entry | None:
    """The entry in a file that nobody else could have written; None where there is none."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_uid != (own_uid() or 0) or found.st_size > _LONGEST:
                return None
            entry = _decoder.decode(file.read(_LONGEST))
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError):
        return None
    # Seen through a mount, the folder may have another path here than where the process listens.
    address = str(path.with_suffix(".sock")) if entry.transport == "unix" else entry.address
    return msgspec.structs.replace(entry, path=str(path), address=address)


def _is_dead(entry: Entry) -> bool:
    """A socket that is refused is dead, whoever asks; a pid may only be unknown in this namespace."""
    if entry.transport == "unix":
        return not _listens(entry.address)
    if is_alive(entry.pid, entry.start_time):
        return False
    try:
        dial(entry, _PROBE).close()
    except CannotAttachError:
        return True
    return False


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except (OSError, ValueError):
            return True
    return True


def _age(path: Path) -> float:
    try:
        return time.time() - path.lstat().st_mtime
    except OSError:
        return 0.0


def _unlink(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
