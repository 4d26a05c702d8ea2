"""Who is who: a process by its pid and start time, since pids are used again, and the user behind a socket."""

from __future__ import annotations

import contextlib
import os
import platform
import socket
import struct
import sys
from pathlib import Path

__all__ = ["is_alive", "own_uid", "peer_uid", "start_time"]

_LOCAL_PEERCRED = 1
"""Darwin's <sys/un.h>; Python's socket module does not name it."""
_XUCRED = 76
_XUCRED_VERSION = 0


def own_uid() -> int | None:
    """The effective user; None on a platform without users of this kind."""
    return os.geteuid() if hasattr(os, "geteuid") else None


def start_time(pid: int) -> int | None:
    """When a process was started, in clock ticks since the machine was; None where /proc does not tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return int(stat[stat.rindex(b")") + 2 :].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def is_alive(pid: int, started: int | None) -> bool:
    """Whether this very process still runs, as far as can be told: False is certain within one namespace of pids."""
    if started is not None and (now := start_time(pid)) is not None:
        return now == started
    if sys.platform == "win32":
        return True  # there, os.kill with signal 0 is not harmless
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError, ValueError):
        return False
    except OSError:
        return True
    return True


def peer_uid(connection: socket.socket) -> int | None:
    """The user at the other end of a Unix socket, as the kernel tells it; None where it tells nothing."""
    system = platform.system()
    with contextlib.suppress(OSError, struct.error):
        if system == "Linux":
            told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII"))
            return int(struct.unpack("iII", told)[1])
        if system == "Darwin":
            version, uid = struct.unpack_from("II", connection.getsockopt(0, _LOCAL_PEERCRED, _XUCRED))
            return int(uid) if version == _XUCRED_VERSION else None
    return None
