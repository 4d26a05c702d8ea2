"""The events of a loop: made here, then given to the engine, to the process's observers and to the loop's recordings, in that order.

Every function wants the lock of the bus held, so that `seq`, the engine and the queues of all observers agree on one order.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Literal

from loopscope.adapters.loops import Loop, Outcome, Said
from loopscope.adapters.recorded import Recording
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
)
from loopscope.recording.bus import bus
from loopscope.recording.preview import Preview

__all__ = ["Publisher"]


class Publisher:
    """Makes and hands out the events of one guard.

    Args:
        detector: the guard's engine, which sees every event that changes its state, watched or not.
    """

    def __init__(self, detector: LoopDetector) -> None:
        self._detector = detector

    def start(self, loop: Loop, agent: str | None, graph: Graph | None) -> None:
        """An invocation of this loop begins or goes on."""
        thread_id, run_id = loop.key
        parent = loop.parent_key or ScopeKey(None, None)
        loop.announced = True
        self._hand_out(loop, RunStart(
            seq=bus.next_seq(), ts=time.time(), thread_id=thread_id, run_id=run_id, agent=agent,
            parent_thread_id=parent.thread_id, parent_run_id=parent.run_id, resume_of=loop.resume_of, graph=graph,
        ))  # fmt: skip
        policy = loop.guard.policy
        outer = [recording.policy for recording in loop.recordings]
        outer += [loop.parent.guard.policy] if isinstance(loop.parent, Loop) else []
        if any(other != policy for other in outer):
            self._hand_out(loop, PolicySet(
                seq=bus.next_seq(), ts=time.time(), thread_id=thread_id, run_id=run_id, policy=policy.to_dict(),
            ))  # fmt: skip

    def batch(self, loop: Loop, calls: tuple[Call, ...], said: Said) -> Decision | None:
        """An AI message, and what the engine says of it."""
        thread_id, run_id = loop.key
        batch = Batch(
            seq=bus.next_seq(), ts=time.time(), thread_id=thread_id, run_id=run_id, calls=calls, message_id=said.message_id,
            node=said.node, text=said.text, usage=said.usage, model=said.model,
        )  # fmt: skip
        decisions = self._detector.observe(batch)
        self._hand_out(loop, batch)
        for made in decisions:
            self._hand_out(loop, DecisionMade(
                seq=bus.next_seq(), ts=batch.ts, thread_id=thread_id, run_id=run_id, batch_seq=made.seq, hash=made.hash,
                hash_count=made.hash_count, action=made.action, layer=made.layer, tool=made.tool, count=made.count,
                threshold=made.threshold, at=made.at,
            ))  # fmt: skip
        return decisions[0] if decisions else None

    def result(self, loop: Loop, outcome: Outcome, shown: Preview) -> None:
        """What a tool gave back."""
        thread_id, run_id = loop.key
        self._tell(loop, Result(
            seq=bus.next_seq(), ts=time.time(), thread_id=thread_id, run_id=run_id, call_id=outcome.call_id, name=outcome.name,
            status="error" if outcome.failed else "ok", content=shown.content, size=shown.size, digest=shown.digest,
            error_type=outcome.error_type,
        ))  # fmt: skip

    def warned(self, loop: Loop, state: Literal["queued", "delivered", "dropped", "requeued"], text: str) -> None:
        """What became of a warning."""
        thread_id, run_id = loop.key
        self._tell(loop, Warned(
            seq=bus.next_seq(), ts=time.time(), thread_id=thread_id, run_id=run_id, state=state, text=text,
        ))  # fmt: skip

    def end(
        self,
        loop: Loop,
        status: Literal["completed", "loop_capped", "error", "cancelled", "unknown"],
        reason: str | None,
    ) -> None:
        """This invocation of the loop is over."""
        loop.announced = False
        thread_id, run_id = loop.key
        self._hand_out(loop, RunEnd(
            seq=bus.next_seq(), ts=time.time(), thread_id=thread_id, run_id=run_id, status=status, reason=reason,
        ))  # fmt: skip

    def reset(self, key: ScopeKey, recordings: Iterable[Recording]) -> None:
        """The program made the engine forget this scope."""
        event = Control(
            seq=bus.next_seq(), ts=time.time(), thread_id=key.thread_id, run_id=key.run_id, action="reset", by="program"
        )
        self._detector.observe(event)
        if bus.active:
            bus.publish(event)
        for recording in recordings:
            recording.put(event)

    def _tell(self, loop: Loop, event: Event) -> None:
        self._detector.observe(event)
        if loop.announced:
            self._hand_out(loop, event)

    def _hand_out(self, loop: Loop, event: Event) -> None:
        if bus.active:
            bus.publish(event)
        for recording in loop.recordings:
            recording.put(event)
