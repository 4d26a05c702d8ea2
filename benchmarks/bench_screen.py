"""From the command to the first useful screen of a sample, beside a bare Textual app, in a terminal of 160 x 45."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time

from benchmarks.frame import Figure, in_turns, ratio

_ROUNDS = 8
_SIZE = struct.pack("HHHH", 45, 160, 0, 0)
_PATIENCE = 30.0


def figures() -> list[Figure]:
    """Until the panes hold the distances and the reasons of the stop."""
    ours = ["-m", "loopscope", "attach", "sample:sql-retry-storm"]
    times = in_turns(
        _ROUNDS,
        lambda: _until([sys.executable, *ours], b"DISTANCE TO FIRE", b"WHY STOPPED"),
        lambda: _until([sys.executable, "-m", "benchmarks.bare_textual"], b"first screen"),
    )
    return [ratio("first screen of a sample", times, 1.5, "a bare Textual app")]


def _until(command: list[str], *wanted: bytes) -> float:
    """Seconds until a program in a new terminal has drawn all of these texts.

    Raises:
        TimeoutError: with the end of what it wrote instead.
    """
    start = time.perf_counter()
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execv(command[0], command)  # noqa: S606 - measured
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, _SIZE)
    drawn = b""
    try:
        while not all(text in drawn for text in wanted):
            if time.perf_counter() - start > _PATIENCE:
                raise TimeoutError(f"{command} drew {drawn[-500:]!r}")
            if select.select([terminal], [], [], 0.1)[0]:
                drawn += os.read(terminal, 1 << 16)
        return time.perf_counter() - start
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)
