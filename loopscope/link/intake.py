"""The way from the threads of the program to the thread of the link: a queue that costs the program next to nothing.

Apart from both ends. While nobody looks, events are only queued, and the link's thread sleeps until there are many;
while somebody does, it is woken once for as many events as arrive before it runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from loopscope.engine.events import Event
from loopscope.recording.feed import Held, Released

__all__ = ["Intake", "Item", "Job"]

Job: TypeAlias = Callable[[], object]
"""Something to do on the link's thread, in its place among the events."""
Item: TypeAlias = Event | Held | Released | Job
_LAZY = 128
"""Events that wait while nobody looks."""
_MOST = 100_000
"""Events that wait at most; what comes then is counted and lost."""


class Intake:
    """Puts are safe from any thread; one thread takes.

    Args:
        wake: called, on the thread that puts, when something should be taken.
    """

    __slots__ = ("_awake", "_queue", "_wake", "eager", "lost")

    def __init__(self, wake: Callable[[], object]) -> None:
        self._queue: deque[Item] = deque()
        self._wake = wake
        self._awake = False
        self.eager = False
        """Whether somebody looks, so that nothing may wait."""
        self.lost = 0

    def put(self, item: Event) -> None:
        """Queue an event."""
        queue = self._queue
        if len(queue) >= _MOST:
            self.lost += 1
        else:
            queue.append(item)
        if not self._awake and (self.eager or len(queue) >= _LAZY):
            self._awake = True
            self._wake()

    def urge(self, item: Held | Released | Job) -> None:
        """Queue something that cannot wait."""
        self._queue.append(item)
        if not self._awake:
            self._awake = True
            self._wake()

    def take(self, most: int | None = None) -> list[Item]:
        """What waits, oldest first; `most` of it, or all."""
        self._awake = False
        taken: list[Item] = []
        queue = self._queue
        while queue and (most is None or len(taken) < most):
            taken.append(queue.popleft())
        return taken

    def __len__(self) -> int:
        return len(self._queue)

    def take_lost(self) -> int:
        """How many events were lost since the last time."""
        lost, self.lost = self.lost, 0
        return lost
