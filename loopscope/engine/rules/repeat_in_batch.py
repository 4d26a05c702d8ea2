"""Layer `repeat_in_batch`: one call several times in one batch. It warns and never stops.

A model that asks for the same thing three times at once has lost count (opencode issue 47759); running it again is
waste, not danger.
"""

from __future__ import annotations

from typing import Any

from loopscope.engine.policy import Policy
from loopscope.engine.rules.base import Facts, Finding, WokenBy
from loopscope.engine.trail import DISTINCT_KEPT

__all__ = ["RepeatInBatchRule"]


class RepeatInBatchRule:
    """Looks at the calls that occur more than once in a batch."""

    layer = "repeat_in_batch"
    woken_by: WokenBy | None = "repeats"
    __slots__ = ("_warn",)

    def __init__(self, policy: Policy) -> None:
        self._warn = policy.repeat_in_batch.warn or 0

    def new_state(self) -> dict[str, None]:
        return {}

    def account(self, state: dict[str, None], facts: Facts, stop: Finding | None) -> Finding | None:  # noqa: ARG002
        for key, tool, count in facts.repeats:
            if count >= self._warn and key not in state:
                return Finding("warn", self.layer, tool, count, self._warn, key)
        return None

    def mark(self, state: dict[str, None], finding: Finding) -> None:
        state[finding.mark or ""] = None
        while len(state) > DISTINCT_KEPT:
            del state[next(iter(state))]

    def dump(self, state: dict[str, None]) -> dict[str, Any]:
        return {"marked": list(state)}

    def load(self, data: dict[str, Any]) -> dict[str, None]:
        return dict.fromkeys(data["marked"])
