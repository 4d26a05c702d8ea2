"""One batch that stands before the gate: since when, why, for how long at most, and how to wake whoever waits with it.

Apart from the gate, which makes and releases them; a hold has no lock of its own and is changed under the gate's alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from loopscope.engine.breakpoints import Breakpoint
from loopscope.engine.decision import Decision
from loopscope.link.pauses import Why
from loopscope.recording.feed import Held
from loopscope.recording.gate import Arrival, Ruling

__all__ = ["Hold"]

_LONG: Final = 3_600.0
_FOR_EVER: Final = 100 * 365 * 86_400.0


class Hold:
    """One batch that stands before the gate."""

    __slots__ = ("arrival", "breakpoint", "deadline", "decision", "number", "ruling", "since", "until", "wake", "why")

    def __init__(
        self, number: int, arrival: Arrival, why: Why | None, point: Breakpoint | None, longest: float
    ) -> None:
        self.number = number
        self.arrival = arrival
        self.why: Why | None = why if point is None else None
        """None where a breakpoint holds it."""
        self.breakpoint = point
        self.decision: Decision | None = None
        self.ruling: Ruling | None = None
        """Set once, when it is released."""
        self.since = time.time()
        bounded = self.why != "wait"
        self.until = self.since + longest if bounded else None
        self.deadline = time.monotonic() + (longest if bounded else _FOR_EVER)
        self.wake: Callable[[], object] | None = None

    def patience(self) -> float:
        """Seconds to wait before something has to be done."""
        every = self.arrival.every if self.arrival.heartbeat is not None else _LONG
        return max(0.0, min(every, self.deadline - time.monotonic()))

    def told(self) -> Held:
        """What viewers are told of it."""
        thread_id, run_id = self.arrival.scope
        return Held(
            hold=self.number, ts=self.since, thread_id=thread_id, run_id=run_id, calls=self.arrival.calls,
            message_id=self.arrival.message_id, node=self.arrival.node, decision=self.decision,
            reason="breakpoint" if self.why is None else self.why,
            breakpoint=None if self.breakpoint is None else str(self.breakpoint), until=self.until,
        )  # fmt: skip
