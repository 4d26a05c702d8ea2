"""Lines on their way from the program to the thread that writes them: bounded, counted, and quick for the program.

Apart from the recorder so that what is shared between threads is in one place. Plain locks of the interpreter are used
as signals: a condition variable of `threading` costs ten times as much, in the middle of somebody's agent.
"""

from __future__ import annotations

import threading
from collections import deque

__all__ = ["Outbox"]


class Outbox:
    """A queue of lines with a limit in bytes. One thread takes them out, any thread puts them in.

    Args:
        capacity: bytes of lines that may be inside, those being written included.
    """

    def __init__(self, capacity: int) -> None:
        self.lock = threading.RLock()
        """Guards everything here. A signal handler may come upon it in its own thread, so it must let that one in."""
        self.closing = False
        """Whether nothing more comes in."""
        self.stalled = False
        """Whether the disk is known not to follow: nobody waits for it until the queue was empty again."""
        self._capacity = capacity
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._in = 0
        self._out = 0
        self._signal = threading.Lock()
        self._signal.acquire()
        self._waiting: list[tuple[int, threading.Lock]] = []

    @property
    def waiting(self) -> int:
        """Lines that are not written yet."""
        return self._in - self._out

    def has_room(self, line: bytes) -> bool:
        """Whether the line fits in."""
        return self._size + len(line) <= self._capacity

    def put(self, line: bytes) -> None:
        """Add a line, whether it fits in or not."""
        with self.lock:
            self._lines.append(line)
            self._size += len(line)
            self._in += 1
            self.wake()

    def wake(self) -> None:
        """Let the thread that takes look again."""
        with self.lock:
            if self._signal.locked():
                self._signal.release()

    def pause(self, seconds: float) -> None:
        """Sleep in the thread that takes, until something happens."""
        self._signal.acquire(timeout=seconds)

    def take(self, most: int) -> list[bytes]:
        """Wait for lines and take some, about `most` bytes; none where the queue is closed and empty."""
        while True:
            with self.lock:
                if self._lines or self.closing:
                    taken: list[bytes] = []
                    while self._lines and most > 0:
                        taken.append(self._lines.popleft())
                        most -= len(taken[-1])
                    return taken
            self._signal.acquire()

    def written(self, lines: list[bytes]) -> None:
        """The lines that were taken are with the operating system: there is room again, and who waited may go on."""
        with self.lock:
            self._size -= sum(map(len, lines))
            self._out += len(lines)
            if self._out == self._in:
                self.stalled = False
            while self._waiting and self._waiting[0][0] <= self._out:
                self._waiting.pop(0)[1].release()

    def stall(self) -> None:
        """The disk does not follow: whoever waits goes on, and nobody waits until the queue was empty again."""
        with self.lock:
            self.stalled = True
            while self._waiting:
                self._waiting.pop()[1].release()

    def settle(self, timeout: float) -> bool:
        """Wait until everything that is inside now is written; whether it is. After one time-out nobody waits."""
        with self.lock:
            if self._out == self._in:
                return True
            if self.stalled:
                return False
            awaited, arrived = self._in, threading.Lock()
            arrived.acquire()
            self._waiting.append((awaited, arrived))
        if not arrived.acquire(timeout=timeout):
            self.stall()
        return self._out >= awaited
