"""What a program that is run beside the debugger has written: its newest lines, however much it writes, safe to draw.

Apart from the session, which knows events alone. The program may write anything, on another thread than the one that
draws: bytes that are no UTF-8, escape sequences, a gigabyte without a newline.
"""

from __future__ import annotations

import codecs
import threading
from collections import deque
from itertools import islice

from loopscope.recording.inert import inert

__all__ = ["Output"]

_LINES = 5_000
_KEPT = 1 << 20
"""Characters that are kept of all lines together."""
_LONGEST = 2_000
"""Characters that are kept of one line, from its beginning."""


class Output:
    """Lines, oldest first. Safe from any thread."""

    def __init__(self) -> None:
        self.bytes = 0
        """How much was written in all; it changes with whatever comes."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._lock = threading.Lock()
        self._lines: deque[str] = deque()
        self._kept = 0
        self._closed = 0
        """Lines that were written whole."""
        self._open = ""
        """The last line, to which no newline has come."""

    @property
    def dropped(self) -> int:
        """Lines that are not kept any more, since there were too many after them."""
        with self._lock:
            return self._closed - len(self._lines)

    def __len__(self) -> int:
        """Lines that are kept."""
        return len(self._lines) + bool(self._open)

    def feed(self, data: bytes) -> None:
        """Take in what the program wrote next."""
        with self._lock:
            self.bytes += len(data)
            first, *others = self._decoder.decode(data).split("\n")
            self._closed += len(others)
            self._begin(self._open + first)
            if len(others) > _LINES:
                self._lines.clear()
                self._kept = 0
                self._begin(others[-_LINES - 1])
                del others[:-_LINES]
            for line in others:
                self._lines.append(self._open)
                self._kept += len(self._open)
                self._begin(line)
            while len(self._lines) > _LINES or self._kept > _KEPT:
                self._kept -= len(self._lines.popleft())

    def lines(self, first: int, count: int) -> list[str]:
        """Some of the lines that are kept, each as one line of visible characters.

        Args:
            first: from 0, the oldest one that is kept.
            count: how many, at most.
        """
        with self._lock:
            found = list(islice(self._lines, first, first + count))
            if len(found) < count and self._open and first <= len(self._lines):
                found.append(self._open)
        return [inert(line.rstrip("\r").expandtabs(8), _LONGEST) for line in found]

    def _begin(self, line: str) -> None:
        """The line that is written to now, as a terminal shows it where the program went back to its beginning."""
        self._open = line[line.rstrip("\r").rfind("\r") + 1 :][:_LONGEST]
