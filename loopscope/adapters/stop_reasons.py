"""Why runs were stopped, until somebody reads it.

Apart from what the engine remembers: a reason belongs to the program that runs the agent, and no recording needs it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple, Self

__all__ = ["StopReason", "StopReasons"]


class StopReason(str):
    """A stop reason that knows its run, so that a caller who named no run can ask for it."""

    __slots__ = ("run_id", "tried")
    run_id: str | None
    tried: tuple[Any, ...]
    """What was tried before the stop, oldest first: each with its `calls`, how many `times`, and the last `result`."""

    def __new__(cls, reason: str, run_id: str | None) -> Self:  # noqa: D102 - a constructor
        made = super().__new__(cls, reason)
        made.run_id = run_id
        made.tried = ()
        return made


class _Reason(NamedTuple):
    reason: StopReason
    thread_id: str | None


class StopReasons:
    """Why runs were stopped, until somebody reads it."""

    __slots__ = ("_limit", "_reasons")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._reasons: OrderedDict[str | None, _Reason] = OrderedDict()

    def put(self, run_id: str | None, reason: str, thread_id: str | None) -> None:
        """Keep the reason of this run; the oldest of too many is forgotten."""
        known = reason if isinstance(reason, StopReason) else StopReason(reason, run_id)
        self._reasons[run_id] = _Reason(known, thread_id)
        self._reasons.move_to_end(run_id)
        while len(self._reasons) > self._limit:
            self._reasons.popitem(last=False)

    def take(self, run_id: str | None) -> StopReason | None:
        """The reason of this run, once."""
        found = self._reasons.pop(run_id, None)
        return found.reason if found is not None else None

    def forget(self, thread_id: str | None = None) -> None:
        """Forget all reasons, or those of one thread."""
        for run_id in [run for run, known in self._reasons.items() if thread_id in (None, known.thread_id)]:
            del self._reasons[run_id]
