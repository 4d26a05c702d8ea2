"""The guard of a run that is only watched: the same engine and events, and nothing that reaches the run.

Decisions are events alone, no warning is queued for the model, and nothing is left in the caller's context. What the
engine takes for delivered is assumed, as in the replay of a recording that tells of no deliveries.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
from langchain_core.messages import AIMessage

from loopscope.adapters.guard import Guard
from loopscope.adapters.loops import Loop, Outcome
from loopscope.adapters.publisher import Ending
from loopscope.adapters.scope_id import Invocation, ScopeIds, is_open, scope_at
from loopscope.adapters.tap.known import is_news, keep
from loopscope.adapters.tap.runs import GraphRun, NodeRun
from loopscope.engine.decision import Decision
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, Call, Graph
from loopscope.engine.policy import Policy
from loopscope.recording.bus import bus
from loopscope.recording.gate import Arrival
from loopscope.recording.redaction import Redactor
from loopscope.recording.writer import Recorder

__all__ = ["PutBy", "Shape", "Watched", "Watcher"]

_log = logging.getLogger("loopscope")
_INVOCATIONS = 1_000
"""Invocations that may be going on at once."""
_AT_ONCE = 32
"""Batches that nobody watches, and that are accounted together. More would be a little cheaper, and would hold as many
states of the program that it may have let go of."""
PutBy: TypeAlias = tuple[Batch, tuple[Call, ...], NodeRun | GraphRun | None, AIMessage]
"""Where a message belongs and its calls; the node that returned it, or the outermost graph where a model gave it, or
None where it is known already; the message."""

Shape = Callable[[], tuple[str | None, Graph | None]]
"""Gives the name and the graph of an agent, where they are known."""


def _no_shape() -> tuple[str | None, Graph | None]:
    return None, None


class Watched(Loop):
    """One agent loop that is watched."""

    __slots__ = ("record", "shape")

    def __init__(self, guard: Guard, invocation: Invocation, prefix: str, context: object, thread: object) -> None:
        super().__init__(guard, invocation, prefix, context, thread)
        self.shape: Shape = _no_shape
        self.record: Any = None
        """Where it is marked that the invocation goes on."""


class Watcher(Guard):
    """One engine that watches any number of runs, threads and agents.

    Args:
        policy: the limits.
        recorder: where the events go, besides the process's observers.
        redactor: takes secrets out of what is published.
    """

    enforced = False

    def __init__(self, policy: Policy, recorder: Recorder | None, redactor: Redactor) -> None:
        self._waiting: list[PutBy] = []
        self._has_failed = False
        super().__init__(policy, recorder, redactor, _no_shape, "tap")
        # Callbacks tell of every end, so that invocations pile up only where interrupts are never resumed.
        self.ids = ScopeIds(max(_INVOCATIONS, 2 * policy.max_tracked_threads), self._make, self._lost)

    @property
    def detector(self) -> LoopDetector:
        """The engine, which has seen everything that happened."""
        if self._waiting:
            self.catch_up()
        return self._detector

    @detector.setter
    def detector(self, made: LoopDetector) -> None:
        self._detector = made

    @property
    def watched(self) -> bool:
        """Whether events are made at all; where nobody looks, the engine alone is told."""
        return self.full or bus.active

    def enter(self, runtime: Any, shape: Shape, *, resumed: bool) -> Watched | None:
        """The agent loop of a graph that has begun; None where somebody else tells its events.

        Args:
            runtime: of one of its nodes.
            shape: asked when the loop is first told of.
            resumed: the invocation goes on where an earlier one was interrupted.
        """
        with bus.lock:
            there = scope_at(runtime)
            if isinstance(there, Loop) and there.guard is not self:
                return None
            # A graph within a node may begin anew in an invocation that does not.
            loop = self.ids.find(runtime) if resumed and is_open(runtime) else self.ids.begin(runtime)
        if not isinstance(loop, Watched):
            return None
        loop.shape = shape
        loop.record = self.ids.record(loop)
        return loop

    def show(self, loop: Loop) -> None:
        """Tell that this loop runs, if that was not told yet."""
        self._announce(loop)

    def put_by(self, what: PutBy) -> None:
        """Keep an AI message for later, while nobody watches."""
        waiting = self._waiting
        waiting.append(what)
        if len(waiting) >= _AT_ONCE:
            self.catch_up()

    def catch_up(self) -> None:
        """Account what was put by, all at once: that is much cheaper than each in the midst of a run."""
        with bus.lock:
            waiting, self._waiting = self._waiting, []
            detector = self._detector
            for place, calls, source, message in waiting:
                try:
                    if type(source) is NodeRun:
                        if not is_news(source, message):
                            continue
                    elif type(source) is GraphRun:
                        keep(source, message)
                    if len(calls) == 1:
                        detector.observe_call(place, calls[0])
                    elif calls:
                        detector.observe(msgspec.structs.replace(place, calls=calls))
                except Exception as error:  # noqa: BLE001 - a state may hold objects of any kind
                    self.fault(error)

    def fault(self, error: Exception) -> None:
        """Say in the log, once, that something went wrong: it never reaches the run."""
        if not self._has_failed:
            self._has_failed = True
            _log.warning("the tap failed and may miss something of the run, which goes on: %r", error, exc_info=error)

    def held(self, loop: Loop, calls: tuple[Call, ...], message_id: str | None, node: str | None) -> Arrival:
        """A batch as it stands before the gate."""
        self.full = True
        self._announce(loop)
        return Arrival(loop.key, tuple(map(self._redactor.call, calls)), self, message_id, node)

    def tell(self, loop: Loop, outcome: Outcome) -> None:
        """What a tool gave back, as soon as it does."""
        self.full = True
        self._announce(loop)
        shown = self._redactor.preview(outcome.content)
        with bus.lock:
            self._publisher.result(loop, outcome, shown)
        # What runs beside it, or next, may take the whole process down.
        self.settle(loop)

    def finish(self, loop: Loop, status: Ending, reason: str | None = None) -> None:
        """An agent loop is over."""
        shown = None if reason is None else self._redactor.text(reason.partition("\n")[0][:300])
        with bus.lock:
            if loop.announced:
                self._publisher.end(loop, loop.stopped or status if status == "completed" else status, shown)
            self._leave(loop)
        if self.watched:
            self.settle(loop)

    def _make(self, invocation: Invocation, prefix: str, context: object, thread: object) -> Loop:
        return Watched(self, invocation, prefix, context, thread)

    def _announce(self, loop: Loop) -> None:
        if loop.announced:
            return
        self.catch_up()
        if isinstance(loop.parent, Watched):
            self._announce(loop.parent)
        # Drawn before the lock is taken, since that takes a while.
        self._shape_of(loop)
        with bus.lock:
            super()._announce(loop)

    def _shape_of(self, loop: Loop) -> tuple[str | None, Graph | None]:
        return loop.shape() if isinstance(loop, Watched) else (None, None)

    def _act(self, loop: Loop, decision: Decision, calls: tuple[Call, ...]) -> str | None:  # noqa: ARG002 - it is only watched
        return None
