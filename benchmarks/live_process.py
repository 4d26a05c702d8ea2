"""A process with an engine that listens, to be looked at: `python -m benchmarks.live_process BATCHES RATE`.

It has so many batches behind it when it says `ready`, and then makes events at that rate, until its input ends. Apart
from the benchmark, since what looks and what is looked at must not share a processor's time in one process.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from typing import Any

from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, Call, DecisionMade, Result, RunStart
from loopscope.engine.policy import Policy
from loopscope.link.endpoint import listen
from loopscope.recording.bus import bus
from loopscope.recording.preview import preview

_NEVER = Policy(tool_freq_warn=10**9, tool_freq_hard_limit=10**9)
_SCOPES = 5
_EVENTS = 3
"""Of one batch: itself, its decision, its result."""
_STEP = 0.01
_FOUND = preview("no match")


def main(batches: int, rate: float) -> None:
    """Listen, and make events."""
    listen("stream")
    detector = LoopDetector(_NEVER)
    numbers = itertools.count()
    for number in range(_SCOPES):
        _tell(detector, RunStart(seq=bus.next_seq(), ts=time.time(), thread_id="t", run_id=str(number), agent="stream"))
    for _ in range(batches):
        _batch(detector, next(numbers))
    print("ready", flush=True)
    ended = threading.Event()

    def until_the_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=until_the_end, daemon=True).start()
    start, made = time.perf_counter(), 0
    while not ended.wait(_STEP):
        while rate and made < rate * (time.perf_counter() - start):
            _batch(detector, next(numbers))
            made += _EVENTS
    print(made / (time.perf_counter() - start))


def _batch(detector: LoopDetector, number: int) -> None:
    place: dict[str, Any] = {"ts": time.time(), "thread_id": "t", "run_id": str(number % _SCOPES)}
    call = Call(f"c{number}", "bash", {"command": f"grep -n {number % 40} notes.txt", "timeout": 30})
    with bus.lock:
        batch = Batch(seq=bus.next_seq(), calls=(call,), node="agent", text="Let me look once more.", **place)
        made = detector.observe(batch)[0]
        bus.publish(batch)
        _tell(
            detector,
            DecisionMade(
                seq=bus.next_seq(), batch_seq=batch.seq, hash=made.hash, hash_count=made.hash_count, action=made.action,
                layer=made.layer, tool=made.tool, count=made.count, threshold=made.threshold, **place,
            ),
        )  # fmt: skip
        _tell(detector, Result(seq=bus.next_seq(), call_id=call.id, status="ok", **_FOUND._asdict(), **place))


def _tell(detector: LoopDetector, event: RunStart | DecisionMade | Result) -> None:
    with bus.lock:
        detector.observe(event)
        bus.publish(event)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
