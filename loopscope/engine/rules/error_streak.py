"""Layer `error_streak`: batches in a row in which every call failed.

Decided when the last result of a batch is in, since only then it is known to have failed; parallel calls of one failed
batch are one failure (Cline's and hermes-agent's failure counters count them so).
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, to_builtins

from loopscope.engine.policy import Policy
from loopscope.engine.rules.base import Facts, Finding
from loopscope.engine.trail import Brought

__all__ = ["ErrorStreak"]


class _State(Struct):
    streak: int = 0
    marked: bool = False
    carried: Finding | None = None
    """A stop that was found at a result: it falls on the next batch."""


class ErrorStreak:
    """Counts failed batches."""

    layer = "error_streak"
    woken_by: Literal["repeats", "results"] | None = "results"
    __slots__ = ("_hard", "_warn")

    def __init__(self, policy: Policy) -> None:
        self._warn = policy.error_streak.warn
        self._hard = policy.error_streak.hard_limit

    def new_state(self) -> _State:
        return _State()

    def account(self, state: _State, facts: Facts, stop: Finding | None) -> Finding | None:  # noqa: ARG002 - a Rule
        carried, state.carried = state.carried, None
        return carried

    def account_results(self, state: _State, brought: Brought) -> Finding | None:
        for outcome in brought.outcomes:
            if outcome is None or not outcome.failed:
                state.streak, state.marked = 0, False
                return None
        state.streak += 1
        tools = set(brought.names)
        tool = tools.pop() if len(tools) == 1 else None
        if self._hard is not None and state.streak >= self._hard:
            state.carried = Finding("hard_stop", self.layer, tool, state.streak, self._hard)
            return state.carried
        if self._warn is not None and state.streak >= self._warn and not state.marked:
            return Finding("warn", self.layer, tool, state.streak, self._warn)
        return None

    def mark(self, state: _State, finding: Finding) -> None:  # noqa: ARG002 - a Rule
        state.marked = True

    def dump(self, state: _State) -> dict[str, Any]:
        data: dict[str, Any] = to_builtins(state)
        return data

    def load(self, data: dict[str, Any]) -> _State:
        carried = data["carried"]
        return _State(data["streak"], data["marked"], None if carried is None else Finding(**carried))
