"""Layer `identical_call_set`: the same batch again and again within the newest `window_size` batches of a scope.

The rule of DeerFlow's LoopDetectionMiddleware, first layer. A mark keeps a hash from warning twice; it is lost when
the hash has left the window, so a loop that comes back warns again.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from loopscope.engine.policy import Policy
from loopscope.engine.rules.base import Facts, Finding, WokenBy
from loopscope.engine.rules.window import Window

__all__ = ["IdenticalCallSet"]


class IdenticalCallSet:
    """Counts the batch's hash in the window of hashes."""

    layer = "identical_call_set"
    woken_by: WokenBy | None = None
    __slots__ = ("_aware", "_hard", "_size", "_warn")

    def __init__(self, policy: Policy) -> None:
        self._warn = policy.warn_threshold
        self._hard = policy.hard_limit
        self._size = policy.window_size
        self._aware = policy.result_aware

    def new_state(self) -> Window:
        return Window()

    def account(self, state: Window, facts: Facts, stop: Finding | None) -> Finding | None:  # noqa: ARG002 - a Rule
        items, counts, digest = state.items, state.counts, facts.hash
        items.append(digest)
        count = counts[digest] = counts.get(digest, 0) + 1
        while len(items) > self._size:
            gone = items.popleft()
            left = counts[gone] = counts[gone] - 1
            if not left:
                del counts[gone]
                if state.marked:
                    state.marked.discard(gone)
            count = counts[digest]
        if count < self._warn:
            return None
        if count >= self._hard and (not self._aware or self._idle(state, facts)):
            return Finding("hard_stop", self.layer, None, count, self._hard)
        return None if digest in state.marked else Finding("warn", self.layer, None, count, self._warn, digest)

    def _idle(self, state: Window, facts: Facts) -> bool:
        """Whether as many occurrences as the limit asks for, this one counted, brought nothing new."""
        trail = facts.trail
        if trail is None or trail.repeated + 1 < self._hard:
            return False
        newest = islice(reversed(trail.batches.values()), len(state.items) - 1)
        stale = sum(brought.stale for brought in newest if brought.hash == facts.hash)
        return stale + 1 >= self._hard

    def mark(self, state: Window, finding: Finding) -> None:
        state.marked.add(finding.mark or "")

    def dump(self, state: Window) -> dict[str, Any]:
        return state.dump()

    def load(self, data: dict[str, Any]) -> Window:
        return Window(**data)
