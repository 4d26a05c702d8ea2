"""What the engine costs for a batch, beside the floor of any guard that hashes as DeerFlow does."""

from __future__ import annotations

import hashlib
import json

from benchmarks.frame import Figure, in_turns, ratio, timed
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, Call
from loopscope.engine.policy import Policy

_BATCHES = 4_000
_ROUNDS = 25
_NEVER = Policy(tool_freq_warn=10**9, tool_freq_hard_limit=10**9)


def figures() -> list[Figure]:
    """The engine on distinct batches of one call, with no warning and no stop."""
    arguments = [{"command": f"grep -n {number} notes.txt"} for number in range(_BATCHES)]
    batches = [
        Batch(seq=seq, ts=float(seq), thread_id="t", run_id="r", calls=(Call(f"call-{seq}", "bash", args),))
        for seq, args in enumerate(arguments)
    ]

    def floor() -> None:
        for args in arguments:
            key = json.dumps(args, sort_keys=True, default=str)
            whole = json.dumps([key], sort_keys=True, default=str)
            hashlib.md5(whole.encode(), usedforsecurity=False).hexdigest()

    def engine() -> None:
        observe = LoopDetector(_NEVER).observe
        for batch in batches:
            observe(batch)

    times = in_turns(_ROUNDS, lambda: timed(engine), lambda: timed(floor))
    yardstick = "2 x json.dumps(sort_keys=True, default=str) and an MD5"
    return [ratio("engine, per distinct batch of one call", times, 0.7, yardstick, per=_BATCHES)]
