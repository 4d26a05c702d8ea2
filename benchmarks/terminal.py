"""A program in a terminal of 160 x 45, and how long it takes from a key to what that makes it draw."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path
from typing import Self

__all__ = ["PATIENCE", "Terminal"]

PATIENCE = 120.0
"""Seconds that are waited for anything."""
_SIZE = struct.pack("HHHH", 45, 160, 0, 0)
_QUIET = 0.03


class Terminal:
    """A program of this Python in a terminal of its own."""

    def __init__(self, arguments: list[str]) -> None:
        self._start = time.perf_counter()
        self.drawn = b""
        self.held = 0.0
        """Seconds of the last press in which the program waited for a core: on a busy machine they are not its own."""
        self.busy = 0.0
        """Seconds of the last press in which its first thread, which draws, ran."""
        self._child, self._terminal = pty.fork()
        if self._child == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 - measured
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, _SIZE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)
        os.close(self._terminal)

    @property
    def age(self) -> float:
        """Seconds since it was started."""
        return time.perf_counter() - self._start

    @property
    def peak(self) -> float:
        """The most memory that it has had, in MB."""
        status = Path(f"/proc/{self._child}/status").read_text("ascii", "replace")
        return int(status.partition("VmHWM:")[2].split()[0]) / 1000

    def wait(self, *texts: bytes) -> None:
        """Until all of these are drawn, at any time."""
        while not all(text in self.drawn for text in texts):
            if self.age > PATIENCE:
                raise TimeoutError(repr(self.drawn[-500:]))
            self._read(0.1)

    def press(self, key: int | bytes, quiet: float = _QUIET) -> float:
        """Seconds from a key to the last of what it made the program draw.

        Args:
            key: its byte, or all of its bytes.
            quiet: seconds without a change after which nothing more is expected.
        """
        while self._read(0.0):
            pass
        before, self.held, self.busy = self._spent(), 0.0, 0.0
        start = last = time.perf_counter()
        os.write(self._terminal, key if isinstance(key, bytes) else bytes([key]))
        patience = 1.0
        while self._read(patience):
            last, patience = time.perf_counter(), quiet
            now = self._spent()
            self.held, self.busy = now[0] - before[0], now[1] - before[1]
        return last - start

    def _spent(self) -> tuple[float, float]:
        """Seconds that its threads were ready to run and had no core, and that the first one ran; 0 if nobody counts.

        All threads count: one that has no core may keep Python from running another one.
        """
        waited = ran = 0
        for task in Path(f"/proc/{self._child}/task").glob("*/schedstat"):
            try:
                busy, ready, _ = map(int, task.read_text("ascii").split())
            except (OSError, ValueError):
                continue
            waited += ready
            ran += busy if task.parent.name == str(self._child) else 0
        return waited / 1e9, ran / 1e9

    def press_for(self, key: bytes, text: re.Pattern[bytes]) -> float:
        """Seconds from a key until this is drawn, whatever else is drawn all the time."""
        while self._read(0.0):
            pass
        mark, start = len(self.drawn), time.perf_counter()
        os.write(self._terminal, key)
        while not text.search(self.drawn, mark):
            if time.perf_counter() - start > PATIENCE:
                raise TimeoutError(repr(self.drawn[-500:]))
            self._read(0.1)
        return time.perf_counter() - start

    def _read(self, patience: float) -> bool:
        if not select.select([self._terminal], [], [], patience)[0]:
            return False
        self.drawn += os.read(self._terminal, 1 << 16)
        return True
