"""The events of a loop: made here, given to the engine, then to the process's observers and the loop's recordings.

Every function wants the lock of the bus held, so that `seq`, the engine and the queues of all observers agree on one
order.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, TypedDict

from loopscope.adapters.loops import Loop, Outcome, Said, StopWord
from loopscope.engine.decision import Decision
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import (
    Batch,
    Call,
    Control,
    DecisionMade,
    Event,
    Graph,
    PolicySet,
    Result,
    RunEnd,
    RunStart,
    ScopeKey,
    Warned,
    Witness,
)
from loopscope.recording.bus import bus
from loopscope.recording.gate import gatehouse
from loopscope.recording.preview import Preview
from loopscope.recording.writer import Recorder

__all__ = ["Ending", "Publisher"]

Ending: TypeAlias = StopWord | Literal["completed", "error", "unknown"]
"""How an agent loop ended, as far as its hooks can tell."""


class Publisher:
    """Makes and hands out the events of one guard.

    Args:
        detector: the guard's engine, which sees every event that changes its state, watched or not.
    """

    def __init__(self, detector: LoopDetector) -> None:
        self._detector = detector

    def start(self, loop: Loop, agent: str | None, graph: Graph | None) -> None:
        """An invocation of this loop begins or goes on."""
        parent = loop.parent_key or ScopeKey(None, None)
        loop.announced = True
        self._tell(
            loop,
            RunStart(
                **_stamp(loop.key),
                agent=agent,
                parent_thread_id=parent.thread_id,
                parent_run_id=parent.run_id,
                resume_of=loop.resume_of,
                graph=graph,
            ),
        )
        policy = self._detector.policy_of(loop.key)
        told = PolicySet(**_stamp(loop.key), policy=policy.to_dict())
        if bus.active and policy != gatehouse.base:
            bus.publish(told)
        for recorder in loop.recorders:
            if recorder.policy != told.policy:
                recorder.put(told)

    def batch(self, loop: Loop, calls: tuple[Call, ...], said: Said) -> Decision | None:
        """An AI message; what the engine says of it."""
        decisions = self._tell(
            loop,
            Batch(
                **_stamp(loop.key),
                calls=calls,
                message_id=said.message_id,
                node=said.node,
                text=said.text,
                usage=said.usage,
                model=said.model,
            ),
        )
        return decisions[0] if decisions else None

    def result(self, loop: Loop, outcome: Outcome, shown: Preview) -> tuple[Decision, ...]:
        """What a tool gave back; what the engine says of it."""
        return self._tell(
            loop,
            Result(
                **_stamp(loop.key),
                call_id=outcome.call_id,
                name=outcome.name,
                status="error" if outcome.failed else "ok",
                content=shown.content,
                size=shown.size,
                digest=shown.digest,
                error_type=outcome.error_type,
                duration_s=outcome.duration_s,
            ),
        )

    def warned(self, loop: Loop, state: Literal["delivered", "dropped", "requeued"], text: str) -> None:
        """What became of a warning."""
        self._tell(loop, Warned(**_stamp(loop.key), state=state, text=text))

    def witness(self, loop: Loop, values: dict[str, Any]) -> bool:
        """What must show progress, as it is now; whether anything was decided by it."""
        return bool(self._tell(loop, Witness(**_stamp(loop.key), values=values)))

    def end(self, loop: Loop, status: Ending, reason: str | None = None) -> None:
        """This invocation of the loop is over."""
        self._tell(loop, RunEnd(**_stamp(loop.key), status=status, reason=reason))
        loop.announced = False

    def reset(self, key: ScopeKey, recorders: Iterable[Recorder]) -> None:
        """The program made the engine forget this scope."""
        event = Control(**_stamp(key), action="reset", by="program")
        self._detector.observe(event)
        if bus.active:
            bus.publish(event)
        for recorder in recorders:
            recorder.put(event)

    def _tell(self, loop: Loop, event: Event) -> tuple[Decision, ...]:
        """Give the event to the engine, then, with what it brings, to whoever listens."""
        if not (bus.active or loop.recorders):
            return self._detector.observe(event)
        before = self._detector.pending(loop.key)
        decisions = self._detector.observe(event)
        if loop.announced:
            self._hand_out(loop, event)
            for decision in decisions:
                self._hand_out(loop, _recorded(decision))
            if loop.guard.enforced and any(decision.action == "warn" for decision in decisions):
                for text in self._detector.pending(loop.key):
                    if text not in before:
                        self._hand_out(loop, Warned(**_stamp(loop.key), state="queued", text=text))
        return decisions

    def _hand_out(self, loop: Loop, event: Event) -> None:
        if bus.active:
            bus.publish(event)
        for recorder in loop.recorders:
            recorder.put(event)


class _Stamp(TypedDict):
    """What every event has."""

    seq: int
    ts: float
    thread_id: str | None
    run_id: str | None


def _stamp(key: ScopeKey) -> _Stamp:
    thread_id, run_id = key
    return {"seq": bus.next_seq(), "ts": time.time(), "thread_id": thread_id, "run_id": run_id}


_SHARED = sorted({*DecisionMade.__struct_fields__} & {*Decision.__struct_fields__} - {"seq", "thread_id", "run_id"})


def _recorded(decision: Decision) -> DecisionMade:
    fields = {name: getattr(decision, name) for name in _SHARED}
    return DecisionMade(**_stamp(decision.scope), batch_seq=decision.seq, **fields)
