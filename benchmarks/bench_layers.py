"""What all layers cost beside the first two alone, on the same batches with their results."""

from __future__ import annotations

from benchmarks.frame import Figure, in_turns, ratio, timed
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, Call, Event, Result, Usage
from loopscope.engine.policy import PRESETS, Policy
from loopscope.engine.sections import COUNTERS
from loopscope.recording.preview import whole

_BATCHES = 4_000
_ROUNDS = 25
_NEVER = 10**9


def figures() -> list[Figure]:
    """The preset `bounded`, and every layer with every budget, on batches that bring something new each time."""
    events = [event for number in range(_BATCHES) for event in _turn(number)]
    plain = Policy(tool_freq_warn=_NEVER, tool_freq_hard_limit=_NEVER)
    limits = {"tool_freq_warn": _NEVER, "tool_freq_hard_limit": _NEVER}
    budgets = {counter: {"limit": _NEVER} for counter in COUNTERS}
    return [
        _beside("the layers of `bounded`", PRESETS["bounded"].with_(**limits), plain, events),
        _beside("all layers and all nine budgets", PRESETS["progress"].with_(**limits, budget=budgets), plain, events),
    ]


def _turn(number: int) -> tuple[Event, Event]:
    """A batch of one call with what the model reports for it, and what the call brings."""
    call, text = Call(f"call-{number}", "bash", {"command": f"grep -n {number} notes.txt"}), f"line {number}"
    size, digest = whole(text)
    return (
        Batch(
            seq=2 * number, ts=float(number), thread_id="t", run_id="r", calls=(call,), usage=Usage(1_200, 80, 0.004)
        ),
        Result(
            seq=2 * number + 1, ts=number + 0.5, thread_id="t", run_id="r",
            call_id=call.id, name="bash", status="ok", content=text, size=size, digest=digest,
        ),
    )  # fmt: skip


def _beside(what: str, policy: Policy, plain: Policy, events: list[Event]) -> Figure:
    def fold(under: Policy) -> None:
        observe = LoopDetector(under).observe
        for event in events:
            observe(event)

    times = in_turns(_ROUNDS, lambda: timed(lambda: fold(policy)), lambda: timed(lambda: fold(plain)))
    return ratio(f"engine with {what}, per batch and result", times, 2.0, "the first two layers alone", per=_BATCHES)
