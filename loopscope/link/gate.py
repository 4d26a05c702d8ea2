"""The gate of a process that listens: holds batches before they are decided, each in its own thread or task.

Apart from the steering, which decides what is held and tells the recording; here is only the waiting. A held thread
waits for an event of its own and a held task for a future of its own, so that no number of held runs slows another one
down.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Final

import msgspec

from loopscope.engine.breakpoints import Breakpoint, Moment, hits
from loopscope.engine.events import ScopeKey
from loopscope.link.foresight import foretell
from loopscope.link.hold import Hold
from loopscope.link.limits import MAX_PAUSE
from loopscope.link.pauses import REMEMBERED, Pauses, Why
from loopscope.recording.feed import BreakpointState, Held, Place, Released, Status
from loopscope.recording.gate import JUDGE, Arrival, Ruling

__all__ = ["HoldingGate", "blocking_allowed"]

_may_block: ContextVar[bool] = ContextVar("loopscope_may_block", default=False)
_ON_A_LOOP: Final = "it runs on the thread of an event loop, which must not wait"


class HoldingGate:
    """Holds and releases. Every method may be called from any thread.

    Args:
        tell: given each `Held` and `Released`, in order; must be quick.
        changed: called when what `status` says has changed.
        max_pause: seconds that a batch is held at most.
    """

    def __init__(
        self, tell: Callable[[Held | Released], object], changed: Callable[[], object], max_pause: float = MAX_PAUSE
    ) -> None:
        self.max_pause = max_pause
        self.expired: Callable[[Hold], object] = lambda hold: self.release(hold, JUDGE)
        """Called, on the thread that waits, when a batch was held for the longest time; it must release it."""
        self._tell = tell
        self._changed = changed
        self._numbers = 0
        self.forget()

    def forget(self) -> None:
        """Begin anew: in a forked child, none of those who wait here exist."""
        self._lock = threading.Lock()
        self._pauses = Pauses()
        self._holds: dict[int, Hold] = {}
        self._breakpoints: tuple[BreakpointState, ...] = ()
        self._stops: dict[ScopeKey, str] = {}
        self.armed = False

    def admit(self, arrival: Arrival) -> Ruling:
        """Wait on this thread until the batch may go on. See `loopscope.recording.gate.Gate`."""
        hold = self._arrive(arrival)
        if isinstance(hold, Ruling):
            return hold
        if _on_a_loop() and not _may_block.get():
            return self.release(hold, JUDGE, _ON_A_LOOP)
        woken = threading.Event()
        self._wake_by(hold, woken.set)
        try:
            while hold.ruling is None:
                if not woken.wait(hold.patience()):
                    self._tick(hold)
        finally:
            self._let_go(hold)
        return _ruled(hold)

    async def aadmit(self, arrival: Arrival) -> Ruling:
        """Wait in this task until the batch may go on. See `loopscope.recording.gate.Gate`."""
        hold = self._arrive(arrival)
        if isinstance(hold, Ruling):
            return hold
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[None] = loop.create_future()
        self._wake_by(hold, lambda: loop.call_soon_threadsafe(_finish, woken))
        try:
            while hold.ruling is None:
                done, _ = await asyncio.wait((woken,), timeout=hold.patience())
                if not done:
                    self._tick(hold)
        finally:
            self._let_go(hold)
        return _ruled(hold)

    def pause(self, scope: ScopeKey | None, why: Why = "pause") -> None:
        """Hold what arrives from now on."""
        with self._lock:
            self._pauses.pause(scope, why)
            self._settle()

    def resume(self, scope: ScopeKey | None, by: str | None = None) -> None:
        """Hold nothing more, and let go on what is held, also by a breakpoint."""
        with self._lock:
            self._pauses.resume(scope)
            self._settle()
            for hold in self._waiting(scope):
                self._release(hold, JUDGE, by)

    def step(self, scope: ScopeKey | None, by: str | None = None) -> None:
        """Let one batch through: the one held longest, else the next to arrive. What comes after it is held."""
        with self._lock:
            if scope is not None or self._pauses.everywhere is None:
                self._pauses.pause(scope, "next")
            waiting = self._waiting(scope)
            if waiting:
                self._release(waiting[0], JUDGE, by)
            else:
                self._pauses.owe(scope)
            self._settle()

    def rule(self, scope: ScopeKey | None, ruling: Ruling) -> int:
        """Give a ruling to everything that is held in this scope, or anywhere. How many that were."""
        with self._lock:
            waiting = self._waiting(scope)
            for hold in waiting:
                self._release(hold, ruling, ruling.by)
            return len(waiting)

    def stop_next(self, scope: ScopeKey, by: str) -> None:
        """Stop this scope at its next batch, unless its run ends before."""
        with self._lock:
            self._stops[scope] = by
            while len(self._stops) > REMEMBERED:
                self._stops.pop(next(iter(self._stops)))
            self._settle()

    def run_ended(self, scope: ScopeKey) -> None:
        """A run is over: a stop that it was to get must not hit a later run of the same scope."""
        with self._lock:
            if self._stops.pop(scope, None) is not None:
                self._settle()

    def break_at(self, breakpoints: Sequence[Breakpoint]) -> None:
        """Put these breakpoints in place of all others; one that was there before keeps its hits."""
        with self._lock:
            before = {state.point: state.hits for state in self._breakpoints}
            self._breakpoints = tuple(BreakpointState(point, before.get(point, 0)) for point in breakpoints)
            self._settle()

    def release(self, hold: Hold, ruling: Ruling, by: str | None = None) -> Ruling:
        """Let one batch go on, unless it does already. What was ruled."""
        with self._lock:
            self._release(hold, ruling, by)
        return hold.ruling or ruling

    def refresh(self) -> None:
        """Tell anew what the held batches would get, since a policy or a scope has changed."""
        for hold in list(self._holds.values()):
            moment = foretell(hold.arrival)
            decision = moment.decision if moment is not None else None
            with self._lock:
                if hold.ruling is None and decision != hold.decision:
                    hold.decision = decision
                    self._tell(hold.told())

    def held(self, scope: ScopeKey | None = None) -> list[Hold]:
        """What stands before the gate, longest first."""
        with self._lock:
            return self._waiting(scope)

    def status(self) -> Status:
        """What is in force; viewers are counted elsewhere."""
        with self._lock:
            pauses = self._pauses
            return Status(
                paused=pauses.everywhere is not None,
                scopes=tuple(Place(*scope) for scope in pauses.scopes),
                running=tuple(Place(*scope) for scope in pauses.running),
                breakpoints=self._breakpoints,
                waiting=pauses.everywhere == "wait",
            )

    def _arrive(self, arrival: Arrival) -> Ruling | Hold:
        if not self.armed:
            return JUDGE
        moment = foretell(arrival) if self._breakpoints else None
        with self._lock:
            by = self._stops.pop(arrival.scope, None)
            if by is not None:
                self._settle()
                return Ruling("stop", by)
            point = self._first_hit(moment)
            why = self._pauses.why(arrival.scope)
            if point is None and why is None:
                return JUDGE
            self._numbers += 1
            hold = Hold(self._numbers, arrival, why, point, self.max_pause)
            self._holds[hold.number] = hold
        moment = moment or foretell(arrival)
        hold.decision = moment.decision if moment is not None else None
        with self._lock:
            if hold.ruling is None:
                self._tell(hold.told())
        return hold

    def _first_hit(self, moment: Moment | None) -> Breakpoint | None:
        """The breakpoint that holds this batch; one that is good for one hit is used up by it."""
        found = next((state for state in self._breakpoints if moment is not None and _hits(state.point, moment)), None)
        if found is None:
            return None
        point = found.point
        left = msgspec.structs.replace(point, enabled=False) if point.one_shot else point
        after = BreakpointState(left, found.hits + 1)
        self._breakpoints = tuple(after if state is found else state for state in self._breakpoints)
        self._settle()
        return point

    def _waiting(self, scope: ScopeKey | None) -> list[Hold]:
        return [hold for hold in self._holds.values() if scope is None or hold.arrival.scope == scope]

    def _wake_by(self, hold: Hold, wake: Callable[[], object]) -> None:
        with self._lock:
            hold.wake = wake
            if hold.ruling is not None:
                wake()

    def _release(self, hold: Hold, ruling: Ruling, by: str | None) -> None:
        if hold.ruling is not None:
            return
        hold.ruling = ruling
        self._holds.pop(hold.number, None)
        self._tell(Released(hold=hold.number, ts=time.time(), verdict=ruling.verdict, by=by))
        if hold.wake is not None:
            with contextlib.suppress(RuntimeError):  # its event loop was closed meanwhile
                hold.wake()

    def _tick(self, hold: Hold) -> None:
        if hold.arrival.heartbeat is not None:
            with contextlib.suppress(Exception):
                hold.arrival.heartbeat()
        if time.monotonic() >= hold.deadline:
            with contextlib.suppress(Exception):
                self.expired(hold)
            self.release(hold, JUDGE, "the longest pause is over")

    def _let_go(self, hold: Hold) -> None:
        """Whoever waited is gone; where nobody released it, it was cancelled or interrupted."""
        self.release(hold, JUDGE, "the run was cancelled")

    def _settle(self) -> None:
        breaks = any(state.point.enabled for state in self._breakpoints)
        self.armed = bool(self._pauses or self._stops or breaks)
        self._changed()


def _hits(point: Breakpoint, moment: Moment) -> bool:
    try:
        return hits(point, moment)
    except Exception:  # noqa: BLE001 - arguments may be of any type; what cannot be told is not hit
        return False


def _ruled(hold: Hold) -> Ruling:
    return JUDGE if hold.ruling is None else hold.ruling


@contextlib.contextmanager
def blocking_allowed() -> Iterator[None]:
    """In here a batch may be held on the thread of a loop, too: on a notebook's, which its cell keeps busy anyway."""
    before = _may_block.set(True)
    try:
        yield
    finally:
        _may_block.reset(before)


def _on_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
