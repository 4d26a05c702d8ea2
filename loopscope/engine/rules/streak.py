"""A count of batches in a row, and the two limits on it: what the layers that decide at results share.

Apart from those layers, which say what counts as one more. It warns once per stretch; a stop that is found at a result
falls on the scope's next batch too (SPEC §9).
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from msgspec import to_builtins

from loopscope.engine.rules.base import Facts, Finding
from loopscope.engine.sections import Pair

__all__ = ["Streak", "StreakRule"]


class Streak:
    """How long the stretch is, and what was said of it."""

    __slots__ = ("carried", "length", "marked")

    def __init__(self) -> None:
        self.length = 0
        self.marked = False
        self.carried: Finding | None = None
        """A stop that was found at a result: it falls on the next batch."""


S = TypeVar("S", bound=Streak)


class StreakRule(Generic[S]):
    """The part of a rule that knows its two limits."""

    layer = ""
    __slots__ = ("_hard", "_state", "_warn")

    def __init__(self, limits: Pair, state: type[S]) -> None:
        self._warn, self._hard = limits.warn, limits.hard_limit
        self._state = state

    def new_state(self) -> S:
        return self._state()

    def account(self, state: S, facts: Facts, stop: Finding | None) -> Finding | None:  # noqa: ARG002 - a Rule
        carried, state.carried = state.carried, None
        return carried

    def mark(self, state: S, finding: Finding) -> None:  # noqa: ARG002 - a Rule
        state.marked = True

    def _broken(self, state: S) -> None:
        state.length, state.marked = 0, False

    def _longer(self, state: S, tool: str | None = None) -> Finding | None:
        state.length += 1
        if self._hard is not None and state.length >= self._hard:
            state.carried = Finding("hard_stop", self.layer, tool, state.length, self._hard)
            return state.carried
        if self._warn is not None and state.length >= self._warn and not state.marked:
            return Finding("warn", self.layer, tool, state.length, self._warn)
        return None

    def dump(self, state: S) -> dict[str, Any]:
        return {"length": state.length, "marked": state.marked, "carried": to_builtins(state.carried)}

    def load(self, data: dict[str, Any]) -> S:
        state, carried = self._state(), data["carried"]
        state.length, state.marked = data["length"], data["marked"]
        state.carried = None if carried is None else Finding(**carried)
        return state
