"""Layer `stagnation`: iterations in a row in which a witness shows no progress.

A witness is a value that code compares, never a model. Two are built in, what the batch's results were and what its
failures said; others come from the program as `witness` events. Decided when an iteration's results and its value are
in.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import field

from loopscope.engine.policy import Policy
from loopscope.engine.rules.base import Facts, Finding
from loopscope.engine.rules.streak import Streak, StreakRule
from loopscope.engine.sections import BUILT_IN_WITNESSES
from loopscope.engine.trail import Brought

__all__ = ["StagnationRule", "progressed"]


class _State(Streak):
    value: Any = None
    """The last iteration's value; the best one so far for `improves`."""
    known: bool = False
    offered: list[Any] = field(default_factory=list)
    """A value from the program whose iteration is not complete yet: none or one."""
    waiting: bool = False
    """An iteration is complete, and the program has not told its value yet."""


class StagnationRule(StreakRule[_State]):
    """Counts iterations without progress."""

    layer = "stagnation"
    __slots__ = ("_mode", "_witness", "woken_by")

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy.stagnation.limits, _State)
        self._witness = policy.stagnation.witness
        self._mode = policy.stagnation.mode
        own = self._witness not in BUILT_IN_WITNESSES
        self.woken_by: Literal["repeats", "results"] | None = None if own else "results"

    def account(self, state: _State, facts: Facts, stop: Finding | None) -> Finding | None:
        state.waiting = False
        state.offered.clear()
        return super().account(state, facts, stop)

    def account_results(self, state: _State, brought: Brought) -> Finding | None:
        if self._witness == "results":
            outcomes = brought.outcomes
            if len(outcomes) == 1 and (only := outcomes[0]) is not None:
                value = [[only.tool, only.digest]]
            else:
                value = [[o.tool, o.digest] for o in outcomes if o is not None]
            if state.value == value:
                return self._longer(state)
            state.value = value
            if state.length or not state.known:
                state.known = True
                self._broken(state)
            return None
        if self._witness == "last_error":
            failures = [[o.tool, o.error] for o in brought.outcomes if o is not None and o.failed]
            if not failures:
                self._broken(state)
                return None
            return self._next(state, failures, "changes")
        if state.offered:
            return self._next(state, state.offered.pop(), self._mode)
        state.waiting = True
        return None

    def account_witness(self, state: _State, values: dict[str, Any], *, complete: bool) -> Finding | None:
        """A value from the program; `complete` tells that the newest iteration's results are all in."""
        if self._witness not in values or self._witness in BUILT_IN_WITNESSES:
            return None
        if state.waiting and complete:
            state.waiting = False
            return self._next(state, values[self._witness], self._mode)
        state.offered = [values[self._witness]]
        return None

    def _next(self, state: _State, value: Any, mode: str) -> Finding | None:
        moved = not state.known or progressed(mode, state.value, value)
        if moved or mode != "improves":
            state.value = value
        state.known = True
        if moved:
            self._broken(state)
            return None
        return self._longer(state)

    def load(self, data: dict[str, Any]) -> _State:
        return super().load(data | {"offered": list(data["offered"])})


def progressed(mode: str, before: Any, now: Any) -> bool:
    """Whether a value shows progress; one that cannot be compared does, if it differs: no run is stopped for a type."""
    try:
        if mode in ("increases", "improves"):
            return bool(now > before)
        if mode == "decreases":
            return bool(now < before)
        if mode == "shrinks":
            return set(now) < set(before)
    except TypeError:
        return bool(now != before)
    return bool(now != before)
