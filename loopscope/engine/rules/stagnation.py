"""Layer `stagnation`: iterations in a row in which a witness shows no progress.

A witness is a value that code compares, never a model. Two are built in, what the batch's results were and what its
failures said; others come from the program as `witness` events. Decided when an iteration's results and its value are
in.
"""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from loopscope.engine.policy import Policy
from loopscope.engine.rules.base import Facts, Finding, WokenBy
from loopscope.engine.rules.streak import Streak, StreakRule
from loopscope.engine.sections import BUILT_IN_WITNESSES
from loopscope.engine.trail import Brought, Outcome

__all__ = ["StagnationRule", "progressed"]


class _State(Streak):
    __slots__ = ("_value", "known", "offered", "only", "waiting")

    def __init__(self) -> None:
        super().__init__()
        self.only: Outcome | None = None
        """The last iteration's one result, where that is the value: written out only when somebody asks."""
        self._value: Any = None
        self.known = False
        self.offered: list[Any] = []
        """A value from the program whose iteration is not complete yet: none or one."""
        self.waiting = False
        """An iteration is complete, and the program has not told its value yet."""

    @property
    def value(self) -> Any:
        """The last iteration's value; the best one so far for `improves`."""
        return self._value if self.only is None else [[self.only.tool, self.only.digest]]

    @value.setter
    def value(self, value: Any) -> None:
        self._value, self.only = value, None


class StagnationRule(StreakRule[_State]):
    """Counts iterations without progress."""

    layer = "stagnation"
    __slots__ = ("_by_results", "_mode", "_witness", "woken_by")

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy.stagnation.limits, _State)
        self._witness = policy.stagnation.witness
        self._by_results = self._witness == "results"
        self._mode = policy.stagnation.mode
        own = self._witness not in BUILT_IN_WITNESSES
        self.woken_by: WokenBy | None = None if own else "results"

    def account(self, state: _State, facts: Facts, stop: Finding | None) -> Finding | None:
        state.waiting = False
        state.offered.clear()
        return super().account(state, facts, stop)

    def account_results(self, state: _State, brought: Brought) -> Finding | None:
        if self._by_results:
            came, only = brought.came, state.only
            if only is None or not isinstance(came, Outcome) or came.digest == only.digest:
                return self._compare(state, brought)
            state.only = came
            if state.length:
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

    def _compare(self, state: _State, brought: Brought) -> Finding | None:
        """As `account_results` by the results, whatever they are."""
        value = [[outcome.tool, outcome.digest] for outcome in brought.outcomes if outcome is not None]
        if state.value == value:
            return self._longer(state)
        state.value, state.known = value, True
        if isinstance(brought.came, Outcome):
            state.only = brought.came
        self._broken(state)
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

    def dump(self, state: _State) -> dict[str, Any]:
        own = {"value": state.value, "known": state.known, "offered": list(state.offered), "waiting": state.waiting}
        return {**super().dump(state), **to_builtins(own)}

    def load(self, data: dict[str, Any]) -> _State:
        state = super().load(data)
        state.value, state.known, state.waiting = data["value"], data["known"], data.get("waiting", False)
        state.offered = list(data["offered"])
        return state


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
