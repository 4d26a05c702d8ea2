"""How a loop stands: a pure function of the graph's state, so that routing, messages and tests all say the same.

An iteration begins with the wrapped node and may end several nodes later, with the tools that it asked for. What the
state holds of a witness is therefore one iteration behind; what it is now is computed here, from both. Where the
wrapped node is the last one of the loop and not the first, nodes before it may have changed what the witness looks at;
so what it was right behind that node is kept as well, and counts where it is what the edge sees.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from loopscope.adapters.bounded.fields import Fields, read
from loopscope.engine.rules.stagnation import progressed
from loopscope.engine.sections import WitnessMode

__all__ = ["Bounds", "Standing", "Verdict", "behind_node", "standing"]

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


def standing(state: Any, bounds: Bounds, *, within: bool = False) -> Standing:
    """How the loop stands in this state.

    Args:
        state: of the graph.
        bounds: of the loop.
        within: an iteration has not come to its end, so that there is no verdict, and predicates that cannot read such
            a state say nothing.
    """
    fields = bounds.fields
    iterations = read(state, fields.iterations, 0)
    allowed = bounds.max_iterations * (1 + read(state, fields.renewed, 0))
    witnessed = _witnessed(state, bounds, iterations, quiet=within)
    spent = dict(read(state, fields.spent, {}))
    began = read(state, fields.began)
    spent["wall_clock_s"] = max(0.0, time.time() - began) if began is not None else 0.0
    verdict: Verdict = "again"
    reason = ""
    if not within:
        verdict, reason = _verdict(state, bounds, iterations, witnessed.stale, spent)
    return Standing(verdict, reason, iterations, allowed, witnessed.stale, witnessed.value, witnessed.best, spent)


class Witnessed(NamedTuple):
    """A witness, and what it says of progress."""

    value: Any
    best: Any
    stale: int
    """Times in a row that it showed none."""


def behind_node(state: Any, bounds: Bounds, before: Any) -> dict[str, Any]:
    """What is kept of a witness right behind the wrapped node.

    Args:
        state: as it will be there, as far as can be told.
        bounds: of the loop.
        before: the state with which the node began.
    """
    last = read(before, bounds.fields.after, {})
    known = Witnessed(last.get("value"), last.get("best"), last.get("stale", 0))
    return _compared(bounds, known, _asked(state, bounds, quiet=True))._asdict()


def _witnessed(state: Any, bounds: Bounds, iterations: int, *, quiet: bool) -> Witnessed:
    fields = bounds.fields
    checked = read(state, fields.checked, {})
    known = Witnessed(read(state, fields.witness), read(state, fields.best), checked.get("stale", 0))
    number = checked.get("iteration", 0)
    if bounds.witness is None or number == iterations:
        return known
    now = _compared(bounds, known if number else Witnessed(None, known.best, 0), _asked(state, bounds, quiet=quiet))
    behind = read(state, fields.after, {})
    if now.value is not None and behind and bool(behind["value"] == now.value):
        # The node is the loop's last one: what came before it in this iteration may have hidden the last value.
        return now._replace(stale=max(now.stale, behind["stale"]))
    return now


def _asked(state: Any, bounds: Bounds, *, quiet: bool) -> Any:
    assert bounds.witness is not None  # noqa: S101 - whoever asks has looked
    try:
        return bounds.witness(state)
    except Exception:
        if quiet:
            return None
        raise


def _compared(bounds: Bounds, known: Witnessed, now: Any) -> Witnessed:
    """What a new value says beside those that are known; None is progress, and nothing is known of it."""
    compared = known.best if bounds.mode == "improves" else known.value
    if now is not None and compared is not None and not progressed(bounds.mode, compared, now):
        return Witnessed(now, known.best, known.stale + 1)
    better = now is not None and (known.best is None or progressed(bounds.mode, known.best, now))
    return Witnessed(now, now if better else known.best, 0)


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
