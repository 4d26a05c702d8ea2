"""What the recorded run itself did with its batches, whatever the engine here says of them.

Apart from the timeline, whose verdicts are those of the policy that is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopscope.engine.decision import Decision
from loopscope.engine.events import DecisionMade, Header
from loopscope.session.columns import BatchColumns

__all__ = ["Lived"]


class Lived:
    """Which batches were stopped live."""

    __slots__ = ("_stopped", "_told", "enforced")

    def __init__(self) -> None:
        self.enforced = False
        """Decisions are applied to the run, by the newest header."""
        self._told = False
        """The recording has decisions."""
        self._stopped: set[int] = set()

    def begin(self, header: Header) -> None:
        """A recording, or a further segment of one, begins."""
        self.enforced = header.enforced

    def take(self, event: DecisionMade, numbers: Sequence[int], rows: BatchColumns) -> None:
        """A recorded decision: it follows its batch, which is the newest one of its scope."""
        self._told = True
        stopped = event.action == "hard_stop" and event.at == "batch"
        if stopped and numbers and rows.seq[numbers[-1] - 1] == event.batch_seq:
            self._stopped.add(numbers[-1])

    def removed(self, number: int, decision: Decision) -> bool:
        """Whether a batch without results was stopped; `decision` counts where the recording has no decisions."""
        if not self.enforced:
            return False
        return number in self._stopped if self._told else decision.action == "hard_stop"
