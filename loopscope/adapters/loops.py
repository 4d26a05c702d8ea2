"""One agent loop as the guard keeps it, and what an adapter tells of it: what was said, what became of the calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from loopscope.adapters.scope_id import Invocation, Scope
from loopscope.adapters.stop_reasons import StopReason
from loopscope.engine.events import Batch, Call, Usage

if TYPE_CHECKING:
    from loopscope.adapters.guard import Guard
    from loopscope.recording.gate import Ruling
    from loopscope.recording.writer import Recorder

__all__ = ["Loop", "Outcome", "Said", "StopWord"]


StopWord: TypeAlias = Literal["loop_capped", "budget_capped", "stagnated", "escalated", "cancelled"]
"""Why a run was stopped; `escalated` where its own loop gave up, `cancelled` where a person did it."""


_ONE_CALL = (Call(None, None, None),)


class Said(NamedTuple):
    """What an AI message holds beside its calls."""

    message_id: str | None = None
    node: str | None = None
    """The node of the agent's graph that called the model."""
    text: str | None = None
    usage: Usage | None = None
    model: str | None = None


class Outcome(NamedTuple):
    """What became of one call."""

    message_id: str | None
    """Tells two results of one call id apart; None where the framework gives messages no id."""
    call_id: str | None
    name: str | None
    failed: bool
    content: object
    error_type: str | None = None
    duration_s: float | None = None
    """Seconds that the tool took; None where it was not seen to run."""


class Loop(Scope):
    """One agent loop within one invocation."""

    __slots__ = (
        "announced",
        "children",
        "failure",
        "guard",
        "note",
        "place",
        "recorders",
        "reported",
        "ruling",
        "stopped",
        "waiting",
    )

    def __init__(self, guard: Guard, invocation: Invocation, prefix: str, context: object, thread: object) -> None:
        super().__init__(invocation, prefix, context, thread)
        self.guard = guard
        self.announced = False
        """Its `run_start` was published, its `run_end` was not."""
        self.stopped: StopWord | None = None
        """Why its newest batch was rejected, if it was."""
        self.note: StopReason | None = None
        """What its caller is told of that."""
        self.waiting = True
        """Warnings may wait for its next model call; nobody has looked yet."""
        self.failure: str | None = None
        """The error of its newest model call, which a retry further out may yet make good."""
        self.reported: set[str | None] = set()
        """The results since the newest AI message that were published."""
        self.ruling: Ruling | None = None
        """What the gate said of the batch that is decided next."""
        self.children: dict[str, Loop] = {}
        """The loops that it delegated to and that have not ended."""
        self.recorders: tuple[Recorder, ...] = ()
        self.place: Batch
        """A batch that only says where it is, for decisions that nobody keeps; there once the key is known."""

    def entered(self) -> None:
        """A recording of a loop is one of everything that it delegates, whoever guards that."""
        thread_id, run_id = self.key
        self.place = Batch(seq=0, ts=None, thread_id=thread_id, run_id=run_id, calls=_ONE_CALL)
        outer = self.parent.recorders if isinstance(self.parent, Loop) else ()
        own = self.guard.recorder
        self.recorders = outer if own is None or own in outer else (*outer, own)
        if self.recorders:
            self.guard.full = True
