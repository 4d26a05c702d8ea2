"""Layer `tool_frequency`: one tool called too often among the newest calls of a scope, whatever its arguments.

The rule of DeerFlow's LoopDetectionMiddleware, second layer (deer-flow pull request 5245 for the order: the whole batch is
accounted before a warning is chosen). A mark keeps a tool from warning twice and is lost when its count falls below its warning.
"""

from __future__ import annotations

from typing import Any

from loopscope.engine.policy import Policy
from loopscope.engine.rules.base import Facts, Finding
from loopscope.engine.rules.window import Window

__all__ = ["ToolFrequency"]


class ToolFrequency:
    """Counts each call's tool in the window of tool names."""

    layer = "tool_frequency"
    __slots__ = ("_hard", "_overrides", "_size", "_warn")

    def __init__(self, policy: Policy) -> None:
        self._warn = policy.tool_freq_warn
        self._hard = policy.tool_freq_hard_limit
        self._overrides = policy.tool_freq_overrides
        self._size = policy.frequency_window

    def new_state(self) -> Window:
        return Window()

    def account(self, state: Window, facts: Facts, *, stopped: bool) -> Finding | None:
        if stopped:
            return None
        candidate: Finding | None = None
        items, counts, marked = state.items, state.counts, state.marked
        for name in facts.names:
            items.append(name)
            counts[name] = counts.get(name, 0) + 1
            while len(items) > self._size:
                self._evict(state, items.popleft())
            count, (warn, hard) = counts[name], self._limits(name)
            if count >= hard:
                return Finding("hard_stop", self.layer, name, count, hard)
            if count < warn:
                marked.discard(name)
            elif candidate is None and name not in marked:
                candidate = Finding("warn", self.layer, name, count, warn, name)
        return candidate

    def _limits(self, name: str) -> tuple[int, int]:
        own = self._overrides.get(name) if self._overrides else None
        return (self._warn, self._hard) if own is None else (own.warn, own.hard_limit)

    def _evict(self, state: Window, name: str) -> None:
        left = state.counts[name] - 1
        if left:
            state.counts[name] = left
        else:
            del state.counts[name]
        if state.marked and left < self._limits(name)[0]:
            state.marked.discard(name)

    def mark(self, state: Window, finding: Finding) -> None:
        """Marked only while the count is still at its warning: later calls of the batch may have pushed it out."""
        name = finding.mark
        if name is not None and state.counts.get(name, 0) >= finding.threshold:
            state.marked.add(name)

    def dump(self, state: Window) -> dict[str, Any]:
        return state.dump()

    def load(self, data: dict[str, Any]) -> Window:
        return Window(**data)
