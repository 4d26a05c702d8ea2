"""What a viewer gets from anything alive: events, and the messages between them that tell where the run stands.

One protocol for a process, a server and a growing file, so that the debugger knows no target by its kind. The messages
have `kind` as events have, with other names: a stream of both is a recording, since readers pass over kinds that they
do not know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct

from loopscope.engine.breakpoints import Breakpoint
from loopscope.engine.decision import Decision
from loopscope.engine.events import Call, Event, RunStart, ScopeKey
from loopscope.engine.snapshot import Snapshot
from loopscope.recording.gate import Verdict

__all__ = [
    "BreakpointState",
    "Connection",
    "Feed",
    "Held",
    "Message",
    "Place",
    "Released",
    "Snapshotted",
    "Status",
    "Verb",
]

Verb: TypeAlias = Literal["pause", "continue", "next", "passOnce", "setPolicy", "setBreakpoints", "stop", "reset"]
"""What a viewer can ask of a target that lets itself be controlled."""


class Place(Struct, frozen=True):
    """A scope on the wire."""

    thread_id: str | None
    run_id: str | None

    @property
    def key(self) -> ScopeKey:
        """The scope that is meant."""
        return ScopeKey(self.thread_id, self.run_id)


class Held(Struct, frozen=True, kw_only=True, tag_field="kind", tag="held"):
    """A batch stands before the gate. Told again, under the same number, when the verdict that it would get changes."""

    hold: int
    ts: float
    """Since when, Unix seconds."""
    thread_id: str | None
    run_id: str | None
    calls: tuple[Call, ...]
    """Long arguments are cut here; the `batch` event has them whole."""
    message_id: str | None = None
    node: str | None = None
    decision: Decision | None = None
    """What the engine would say of it now; None where it cannot be told."""
    reason: Literal["pause", "next", "breakpoint", "wait"]
    breakpoint: str | None = None
    """Which one, in its text form."""
    until: float | None = None
    """When the gate opens by itself, Unix seconds; None where it waits for the first viewer."""

    @property
    def scope(self) -> ScopeKey:
        """The agent loop that waits."""
        return ScopeKey(self.thread_id, self.run_id)


class Released(Struct, frozen=True, kw_only=True, tag_field="kind", tag="released"):
    """A held batch goes on; its `batch` event comes next in its scope, unless the run was cancelled."""

    hold: int
    ts: float
    verdict: Verdict
    by: str | None = None


class BreakpointState(Struct, frozen=True):
    """A breakpoint as it was set, and how often it was hit."""

    point: Breakpoint
    hits: int = 0


class Status(Struct, frozen=True, kw_only=True, tag_field="kind", tag="status"):
    """What is in force at the gate, whole, whenever any of it changes."""

    paused: bool = False
    """Every scope is paused, but for those in `running`."""
    scopes: tuple[Place, ...] = ()
    """Scopes that are paused one by one."""
    running: tuple[Place, ...] = ()
    breakpoints: tuple[BreakpointState, ...] = ()
    viewers: int = 0
    controllers: int = 0
    """Viewers that may steer."""
    waiting: bool = False
    """The first batch waits for the first viewer."""

    def pauses(self, scope: ScopeKey) -> bool:
        """Whether the next batch of this scope will be held."""
        place = Place(*scope)
        return place in self.scopes or (self.paused and place not in self.running)


class Snapshotted(Struct, frozen=True, kw_only=True, tag_field="kind", tag="snapshot"):
    """The whole state after the event `seq`: whatever a viewer knew before is to be replaced by it."""

    seq: int
    state: Snapshot
    runs: tuple[RunStart, ...] = ()
    """How the runs began that go on, with the `seq` that they had."""
    status: Status = Status()
    held: tuple[Held, ...] = ()


class Connection(Struct, frozen=True, kw_only=True, tag_field="kind", tag="connection"):
    """What became of the connection; made by the viewer's own side."""

    state: Literal["lost", "back", "ended"]
    """`lost`: it dropped and is being sought; `back`: found again; `ended`: the target is gone, or will not have us."""
    reason: str = ""


Message: TypeAlias = Event | Snapshotted | Held | Released | Status | Connection


class Feed(Protocol):
    """Anything alive that a debugger can look at. Iterate it on one thread; the rest is safe from any other."""

    @property
    def name(self) -> str:
        """What to call it on a screen."""
        ...

    @property
    def capabilities(self) -> Mapping[str, str]:
        """For each verb nothing where this target does it for this viewer, else why not, in words for a person."""
        ...

    def __iter__(self) -> Iterator[Message]:
        """Every message from the oldest one kept, until the target ends or `close` is called; it blocks."""
        ...

    def request(self, verb: Verb, scope: ScopeKey | None = None, **arguments: Any) -> Mapping[str, Any]:
        """Ask for an act of control, in one scope or (None) in all, and wait for the answer.

        Raises:
            UsageError: where the target refuses; the message says why.
            CannotAttachError: where it does not answer.
        """
        ...

    def close(self) -> None:
        """Stop looking; the target goes on."""
        ...
