"""Layer `error_streak`: batches in a row in which every call failed.

Decided when the last result of a batch is in, since only then it is known to have failed; parallel calls of one failed
batch are one failure (Cline's and hermes-agent's failure counters count them so).
"""

from __future__ import annotations

from loopscope.engine.policy import Policy
from loopscope.engine.rules.base import Finding, WokenBy
from loopscope.engine.rules.streak import Streak, StreakRule
from loopscope.engine.trail import Brought

__all__ = ["ErrorStreak"]


class ErrorStreak(StreakRule[Streak]):
    """Counts failed batches."""

    layer = "error_streak"
    woken_by: WokenBy | None = "results"
    __slots__ = ()

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy.error_streak, Streak)

    def account_results(self, state: Streak, brought: Brought) -> Finding | None:
        if brought.failures < len(brought.names):
            if state.length:
                self._broken(state)
            return None
        tools = set(brought.names)
        return self._longer(state, tools.pop() if len(tools) == 1 else None)
