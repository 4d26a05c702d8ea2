"""A decision: what the engine says of one batch.

The fields are those of a line of `loopscope replay --json`; apart from the detector so that those who only read
decisions need not know how they are made.
"""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from loopscope.engine.events import Action, ScopeKey

__all__ = ["Decision"]


class Decision(Struct, frozen=True, gc=False, tag_field="kind", tag="decision"):
    """One verdict, with the count and the limit that made it."""

    batch: int
    """Number of the batch over the whole recording, from 1."""
    seq: int
    """`seq` of the event that was decided."""
    thread_id: str | None
    run_id: str | None
    hash: str
    hash_count: int
    """Occurrences of this hash in the window, this one included."""
    action: Action = "pass"
    layer: str | None = None
    """The layer that warns or stops; None for `pass`."""
    tool: str | None = None
    count: int | float | None = None
    threshold: int | float | None = None
    at: Literal["batch", "result"] = "batch"
    counter: str | UnsetType = UNSET
    """The counter of a budget; not there for other layers."""

    @property
    def scope(self) -> ScopeKey:
        """The agent loop that was decided."""
        return ScopeKey(self.thread_id, self.run_id)
