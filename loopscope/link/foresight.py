"""What the engine would say of a batch that stands before the gate, asked of a copy of its state.

Apart from the gate, which only waits. The engine itself sees the batch when it is released, under the policy of that
moment.
"""

from __future__ import annotations

import time

from loopscope.engine.breakpoints import Moment
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch
from loopscope.recording.bus import bus
from loopscope.recording.gate import Arrival

__all__ = ["foretell"]


def foretell(arrival: Arrival) -> Moment | None:
    """The decision that this batch would get, and its scope's state then; None where it cannot be told."""
    if arrival.engine is None:
        return None
    try:
        detector = arrival.engine.detector
        with bus.lock:
            state = detector.snapshot()
        twin = LoopDetector(detector.policy, assume_delivery=state.assume_delivery, follow_policy=False)
        twin.restore(state)
        thread_id, run_id = arrival.scope
        made = twin.observe(Batch(seq=0, ts=time.time(), thread_id=thread_id, run_id=run_id, calls=arrival.calls))
    except Exception:  # noqa: BLE001 - it is only shown; the batch is decided by the engine itself
        return None
    names = [call.name for call in arrival.calls if call.name]
    return Moment(made[0], arrival.calls, names, twin.scope(arrival.scope), letter="") if made else None
