"""Whether a replay gives the decisions that were recorded live, event by event."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from loopscope.engine.decision import Decision
from loopscope.engine.events import Batch, DecisionMade, Event, Gap, Header
from loopscope.errors import ReplayDiffersError, UsageError

__all__ = ["Verifier"]

_COMPARED = [name for name in Decision.__struct_fields__ if name in {*DecisionMade.__struct_fields__} - {"seq"}]
"""What a recorded decision and a replayed one both say."""
_WAITING = 10_000
"""Decisions that wait for their recorded twin, which a recorder writes right behind the batch."""
_Key = tuple[int, str]


class Verifier:
    """Takes each event with what the replay decided of it; then `difference` tells the first that is not as recorded.

    A recorded decision must be equal in every field. A warning or stop of the replay must be recorded, unless events
    were lost there: at a `gap`, or at the end of what a crashed process wrote.

    Args:
        name: what messages call the recording.
    """

    exit_code = ReplayDiffersError.exit_code

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: OrderedDict[_Key, Decision] = OrderedDict()
        self._batches: OrderedDict[int, int] = OrderedDict()
        self._newest: _Key | None = None
        self._recorded = 0
        self.difference = ""
        """The first difference in one line; empty while there is none."""

    def take(self, event: Event, decisions: Sequence[Decision]) -> None:
        """One event of the recording."""
        if isinstance(event, DecisionMade):
            self._recorded += 1
            self._compare(event)
        elif isinstance(event, (Header, Gap)):
            self._forgive_newest()
            self._missing()
        elif isinstance(event, Batch):
            self._newest = None
        for decision in decisions:
            self._newest = (self._batch_seq(decision), decision.at)
            self._waiting[self._newest] = decision
        if len(self._waiting) > _WAITING:
            self._unrecorded(self._waiting.popitem(last=False)[1])

    def end(self) -> None:
        """The recording is over.

        Raises:
            UsageError: if it has no decisions to compare with.
        """
        if not self._recorded:
            raise UsageError(f"{self._name} has no recorded decisions to verify; replay it without --verify")
        self._forgive_newest()
        self._missing()

    def _compare(self, recorded: DecisionMade) -> None:
        decision = self._waiting.pop((recorded.batch_seq, recorded.at), None) or self._made_at(recorded.batch_seq)
        if decision is None:
            self._differs(f"the recorded decision for seq {recorded.batch_seq} has no batch")
            return
        for field in _COMPARED:
            was, now = getattr(recorded, field), getattr(decision, field)
            if was != now:
                self._differs(f"batch {decision.batch} (seq {decision.seq}): {field} was {was!r}, replays as {now!r}")
                return

    def _batch_seq(self, decision: Decision) -> int:
        """The `seq` of the batch that was decided; a decision at a result has that of the result."""
        if decision.at == "batch":
            self._batches[decision.batch] = decision.seq
            if len(self._batches) > _WAITING:
                self._batches.popitem(last=False)
        return self._batches.get(decision.batch, decision.seq)

    def _made_at(self, seq: int) -> Decision | None:
        """A decision at a result, where a recorder named the result instead of the batch."""
        found = next((key for key, made in self._waiting.items() if key[1] == "result" and made.seq == seq), None)
        return self._waiting.pop(found) if found is not None else None

    def _forgive_newest(self) -> None:
        """The decision behind the last batch is what a crash loses."""
        if self._newest is not None:
            self._waiting.pop(self._newest, None)

    def _missing(self) -> None:
        for decision in self._waiting.values():
            self._unrecorded(decision)
        self._waiting.clear()

    def _unrecorded(self, decision: Decision) -> None:
        if decision.action != "pass":
            self._differs(f"batch {decision.batch} (seq {decision.seq}): replays as {decision.action}, none recorded")

    def _differs(self, what: str) -> None:
        self.difference = self.difference or f"{self._name}: {what}"
