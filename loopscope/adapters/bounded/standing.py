"""How a loop stands: a pure function of the graph's state, so that routing, messages and tests all say the same.

An iteration begins with the wrapped node and may end several nodes later, with the tools that it asked for. What the
state holds of a witness is therefore one iteration behind; what it is now is computed here, from both.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from loopscope.adapters.bounded.fields import Fields, read
from loopscope.engine.rules.stagnation import progressed
from loopscope.engine.sections import WitnessMode

__all__ = ["Bounds", "Standing", "Verdict", "standing"]

Verdict: TypeAlias = Literal["again", "done", "give_up"]


class Bounds(NamedTuple):
    """What bounds a loop."""

    fields: Fields
    max_iterations: int
    witness: Callable[[Any], Any] | None
    mode: WitnessMode
    patience: int
    """Iterations in a row without progress that end the loop."""
    success: Callable[[Any], Any] | None
    budgets: Mapping[str, float]
    """The limit of each counter."""


class Standing(NamedTuple):
    """How a loop stands."""

    verdict: Verdict
    reason: str
    """Why it is over: `success`, `stagnation`, `budget`, `budget: COUNTER`; nothing where it goes on."""
    iterations: int
    """Begun so far."""
    allowed: int
    """Iterations that it may have."""
    stale: int
    """Iterations in a row that showed no progress."""
    witness: Any
    """Of the newest iteration; None before the first."""
    best: Any
    spent: Mapping[str, float]
    """By counter, with `wall_clock_s`."""


def standing(state: Any, bounds: Bounds) -> Standing:
    """How the loop stands in this state."""
    fields = bounds.fields
    iterations = read(state, fields.iterations, 0)
    allowed = bounds.max_iterations * (1 + read(state, fields.renewed, 0))
    witness, best, stale = _witnessed(state, bounds, iterations)
    spent = dict(read(state, fields.spent, {}))
    began = read(state, fields.began)
    spent["wall_clock_s"] = max(0.0, time.time() - began) if began is not None else 0.0
    verdict, reason = _verdict(state, bounds, iterations, stale, spent)
    return Standing(verdict, reason, iterations, allowed, stale, witness, best, spent)


def _witnessed(state: Any, bounds: Bounds, iterations: int) -> tuple[Any, Any, int]:
    fields = bounds.fields
    last, best = read(state, fields.witness), read(state, fields.best)
    checked = read(state, fields.checked, {})
    number, stale = checked.get("iteration", 0), checked.get("stale", 0)
    if bounds.witness is None or number == iterations:
        return last, best, stale
    now = bounds.witness(state)
    compared = best if bounds.mode == "improves" else last
    if now is None or not number or compared is None or progressed(bounds.mode, compared, now):
        return now, now if now is not None and _beats(bounds.mode, now, best) else best, 0
    return now, best, stale + 1


def _beats(mode: WitnessMode, now: Any, best: Any) -> bool:
    """Whether this is the best so far; where values only differ, the newest is."""
    return best is None or progressed(mode, best, now)


def _verdict(
    state: Any, bounds: Bounds, iterations: int, stale: int, spent: Mapping[str, float]
) -> tuple[Verdict, str]:
    if bounds.success is not None and bounds.success(state):
        return "done", "success"
    if stale >= bounds.patience:
        return "give_up", "stagnation"
    granted = 1 + read(state, bounds.fields.renewed, 0)
    if iterations >= bounds.max_iterations * granted:
        return "give_up", "budget"
    for counter, limit in bounds.budgets.items():
        times = 1 if counter == "wall_clock_s" else granted
        if spent.get(counter, 0) >= limit * times:
            return "give_up", f"budget: {counter}"
    return "again", ""
