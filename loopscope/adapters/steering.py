"""How a live link steers the guard: the side of the guard that `loopscope.recording.gate` asks for.

Apart from the guard's own work, which is the same whether anybody steers or not. Everything here is called with the
lock of the bus held.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from loopscope.adapters.loops import Loop
from loopscope.engine.events import Control, PolicySet, ScopeKey
from loopscope.engine.identity import Identity
from loopscope.engine.policy import Policy
from loopscope.recording.gate import Recording

if TYPE_CHECKING:
    from loopscope.adapters.scope_id import ScopeIds
    from loopscope.engine.detector import LoopDetector
    from loopscope.recording.redaction import Redactor
    from loopscope.recording.writer import Recorder

__all__ = ["Steered"]


class Steered:
    """What a link can see and set; mixed into the guard, which has the attributes."""

    if TYPE_CHECKING:
        detector: LoopDetector
        ids: ScopeIds[Loop]
        policy: Policy
        recorder: Recorder | None
        _redactor: Redactor

    enforced = True
    """The guard's decisions are applied."""

    def open_scopes(self) -> Iterable[ScopeKey]:
        """The agent loops that have begun and not ended."""
        return [loop.key for loop in self.ids.open_scopes()]

    def recordings(self, scope: ScopeKey | None) -> Iterable[Recording]:
        """What keeps the events of this scope, or (None) of any."""
        found: dict[Recording, None] = {}
        if self.recorder is not None:
            found[self.recorder] = None
        for loop in self.ids.open_scopes():
            if scope in (None, loop.key):
                found.update(dict.fromkeys(loop.recorders))
        return list(found)

    def apply(self, event: Control | PolicySet) -> None:
        """Bring the engine to what the event says; the caller publishes it."""
        if isinstance(event, Control):
            self.detector.observe(event)
            return
        policy = Policy.recorded(event.policy)
        if event.thread_id is None and event.run_id is None:
            self.rebase(policy)
        else:
            self.detector.adopt(policy, event.scope)

    def rebase(self, policy: Policy) -> None:
        """Decide under this policy wherever a scope has none of its own."""
        self.policy = policy
        self.detector.adopt(policy)
        self._redactor.key_of = Identity(policy).key
