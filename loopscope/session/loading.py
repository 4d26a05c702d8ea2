"""A recording that is read while somebody looks at it: one thread reads ahead, another takes in what is there.

Only `take` changes the session, so whoever draws it calls that too, between two frames. What costs more than a frame
(the identity of an argument of many megabytes) is done by the thread that reads.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from threading import Condition
from typing import NamedTuple, Protocol

from loopscope.engine.events import Batch
from loopscope.engine.identity import Identified
from loopscope.errors import PolicyError
from loopscope.session.session import Lane, Session
from loopscope.session.timeline import Located

__all__ = ["Loading", "Reading"]

HEAVY = 500_000
"""Bytes of a line from which on its identity is worth another thread's time."""
AHEAD = 4_000
"""Events that are read ahead of what is taken in."""
AHEAD_BYTES = 16_000_000
_LOOK = 64
"""Events between two looks at the clock."""


class Reading(Protocol):
    """What knows of the lines."""

    @property
    def share(self) -> float | None:
        """How much of the input is read, 0 to 1; None where nobody knows how long it is."""
        ...

    @property
    def problems(self) -> Sequence[tuple[int, str]]:
        """What could not be read: line number and reason."""
        ...


class _Waiting(NamedTuple):
    line: Located
    identified: Identified | None


class Loading:
    """A session, and the events that it has yet to take in.

    The cursor goes to the first stop as soon as there is one and to the end until then, unless somebody moves it.

    Args:
        session: has taken in nothing yet.
        lines: its events, in order.
        reading: tells how far they are read.
        ahead: they may be read in another thread than they began in; a database's may not.
    """

    def __init__(self, session: Session, lines: Iterator[Located], reading: Reading, *, ahead: bool = True) -> None:
        self.session = session
        self.done = False
        """Everything is taken in."""
        self.error: Exception | None = None
        """Why the rest cannot be taken in."""
        self._lines = lines
        self._reading = reading
        self._ahead = ahead
        self._change = Condition()
        self._waiting: deque[_Waiting] = deque()
        self._given = self._taken = 0
        """Bytes of the lines that were read, and taken in."""
        self._ended = False
        self._left = False
        self._failed: Exception | None = None
        self._place: tuple[int, Lane | None] = (0, None)

    @property
    def share(self) -> float | None:
        """How much is read, 0 to 1; None where nobody knows how much there is."""
        return self._reading.share

    def finish(self) -> Session:
        """Read and take in all of it, in this thread.

        Raises:
            UnreadableInputError: if reading fails.
            PolicyError: if a policy in it breaks a rule.
        """
        self.session.append(self._lines)
        return self._over()

    def begin(self, seconds: float) -> bool:
        """Read and take in what this time is enough for, in this thread; whether that was all.

        Raises:
            UnreadableInputError: if reading fails.
            PolicyError: if a policy in it breaks a rule.
        """
        if not self._ahead:
            self.finish()
            return True
        end = time.monotonic() + seconds
        append = self.session.timeline.append
        for count, line in enumerate(self._lines, 1):
            append(line)
            if line.length > HEAVY or (count % _LOOK == 0 and time.monotonic() >= end):
                self._put_cursor()
                return False
        self._over()
        return True

    def read(self, told: Callable[[], None]) -> None:
        """Read ahead, in a thread of its own, until the end or until `leave`.

        Args:
            told: called when there is something to take in, and at the end.
        """
        try:
            for line in self._lines:
                heavy = line.length > HEAVY and isinstance(line.event, Batch) and bool(line.event.calls)
                if not self._room(wholly=heavy):
                    return
                identified = self._identify(line) if heavy else None
                self._put(_Waiting(line, identified), told)
        except Exception as error:  # noqa: BLE001 - whoever takes in tells of it
            self._failed = error
        with self._change:
            self._ended = True
        told()

    def leave(self) -> None:
        """Read no more: nobody looks any longer. Safe from any thread."""
        with self._change:
            self._left = True
            self._change.notify_all()

    def take(self, seconds: float) -> bool:
        """Take in what waits, as far as this time goes; whether there is more that waits. Errors are in `error`."""
        end = time.monotonic() + seconds
        try:
            while self._waiting and time.monotonic() < end:
                line, identified = self._waiting[0]
                self.session.timeline.append(line, identified)
                # Only now: where nothing waits, all is taken in.
                self._waiting.popleft()
                self._taken += line.length
        except PolicyError as error:
            self.error = error
            self.leave()
            return False
        with self._change:
            more = bool(self._waiting)
            over = self._ended and not more
            self._change.notify_all()
        self._put_cursor()
        if over and self._failed is not None:
            self.error = self._failed
        elif over and not self.done:
            self._over()
        return more

    def _room(self, *, wholly: bool) -> bool:
        """Wait until there is room to read ahead, or until all is taken in; False where nobody looks any longer."""

        def free() -> bool:
            if self._left:
                return True
            if wholly:
                return not self._waiting
            return len(self._waiting) < AHEAD and self._given - self._taken < AHEAD_BYTES

        with self._change:
            self._change.wait_for(free)
            return not self._left

    def _identify(self, line: Located) -> Identified | None:
        """Nothing waits to be taken in, so the policies are those that decide this batch."""
        return self.session.timeline.detector.identify(line.event) if isinstance(line.event, Batch) else None

    def _put(self, waiting: _Waiting, told: Callable[[], None]) -> None:
        with self._change:
            first = not self._waiting
            self._waiting.append(waiting)
            self._given += waiting.line.length
        if first:
            told()

    def _over(self) -> Session:
        session = self.session
        self.done = True
        session.problems.extend(self._reading.problems)
        self._put_cursor()
        return session

    def _put_cursor(self) -> None:
        """To the first stop, else to the end, as long as it is where it was put last."""
        session = self.session
        if (session.cursor, session.lane) == self._place:
            session.open_at_first_stop()
            self._place = (session.cursor, session.lane)
