"""Layer `tool_frequency`: one tool called too often among the newest calls of a scope, whatever its arguments.

The rule of DeerFlow's LoopDetectionMiddleware, second layer (deer-flow pull request 5245 for the order: the whole
batch is accounted before a warning is chosen). A mark keeps a tool from warning twice and is lost when its count
falls below its warning. Under the rules of before that, which a policy can ask for, a warning ends the look at the
batch, and only a call of the tool itself takes its mark away.
"""

from __future__ import annotations

from typing import Any

from loopscope.engine.policy import Limits, Policy
from loopscope.engine.rules.base import Facts, Finding, WokenBy
from loopscope.engine.rules.window import Window

__all__ = ["ToolFrequency"]


class ToolFrequency:
    """Counts each call's tool in the window of tool names."""

    layer = "tool_frequency"
    woken_by: WokenBy | None = None
    __slots__ = ("_aware", "_early", "_general", "_overrides", "_size")

    def __init__(self, policy: Policy) -> None:
        self._general = Limits(policy.tool_freq_warn, policy.tool_freq_hard_limit)
        self._overrides = policy.tool_freq_overrides
        self._size = policy.frequency_window
        self._aware = policy.result_aware
        self._early = not policy.severity_first

    def new_state(self) -> Window:
        return Window()

    def account(  # noqa: C901, PLR0912 - the hot path in one piece: a call costs as much as what it would hold
        self, state: Window, facts: Facts, stop: Finding | None
    ) -> Finding | None:
        if stop is not None:
            return None
        candidate: Finding | None = None
        items, counts, size, overrides = state.items, state.counts, self._size, self._overrides
        places = state.places
        position = -1
        for name in facts.names:
            position += 1
            if not name:
                continue
            items.append(name)
            if self._aware:
                places.append((facts.n, position) if position else facts.n)
                while len(places) > size:
                    places.popleft()
            count = counts[name] = counts.get(name, 0) + 1
            while len(items) > size:
                gone = items.popleft()
                left = counts[gone] = counts[gone] - 1
                if not left:
                    del counts[gone]
                if gone in state.marked and not self._early and left < overrides.get(gone, self._general).warn:
                    state.marked.discard(gone)
                count = counts[name]
            own = overrides.get(name, self._general) if overrides else self._general
            if count >= own.hard_limit and (not self._aware or self._idle(state, facts, name, own.hard_limit)):
                return Finding("hard_stop", self.layer, name, count, own.hard_limit)
            if count < own.warn:
                if state.marked:
                    state.marked.discard(name)
            elif candidate is None and name not in state.marked:
                candidate = Finding("warn", self.layer, name, count, own.warn, name)
                if self._early:
                    break
        return candidate

    def _idle(self, state: Window, facts: Facts, name: str, hard_limit: int) -> bool:
        """Whether as many calls of the tool as the limit asks for, this one counted, brought nothing new."""
        trail = facts.trail
        if trail is None or trail.repeated + 1 < hard_limit:
            return False
        newest = zip(reversed(state.items), reversed(state.places), strict=False)
        places = [place for item, place in newest if item == name]
        idle = sum(trail.not_new(place, 0) if isinstance(place, int) else trail.not_new(*place) for place in places)
        return idle + 1 >= hard_limit

    def mark(self, state: Window, finding: Finding) -> None:
        """Marked only while the count is still at its warning: later calls of the batch may have pushed it out."""
        name = finding.mark
        if name is not None and state.counts.get(name, 0) >= finding.threshold:
            state.marked.add(name)

    def dump(self, state: Window) -> dict[str, Any]:
        return state.dump()

    def load(self, data: dict[str, Any]) -> Window:
        return Window(**data)
