"""Where adapters and a live link meet: the gate before the decision, and the engines that can be steered.

Apart from both, as the bus is, so that an adapter loads nothing of a debugger: it asks `gatehouse.gate`, which is None
until somebody listens. Protocols and one registry; the gate itself is `loopscope.link`'s.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Call, Control, Event, PolicySet, ScopeKey
from loopscope.engine.policy import Policy
from loopscope.recording.bus import bus

__all__ = [
    "JUDGE",
    "Arrival",
    "Gate",
    "Gatehouse",
    "Recording",
    "Ruling",
    "Steerable",
    "Verdict",
    "gatehouse",
]

Verdict: TypeAlias = Literal["judge", "pass", "stop"]
"""What becomes of a batch: `judge` (the policy decides), `pass` (it runs, even if the policy would stop it), `stop`."""


class Ruling(Struct, frozen=True):
    """What the gate says of a batch. The engine accounts the batch whatever it says: only the effect differs."""

    verdict: Verdict
    by: str | None = None
    """Who asked for it, where it is not `judge`."""


JUDGE = Ruling("judge")


class Recording(Protocol):
    """What keeps the events of an engine, besides the observers of the bus."""

    def put(self, event: Event) -> None:
        """Queue an event."""
        ...


class Steerable(Protocol):
    """One engine of the process as a link steers it. Everything here is called with the lock of the bus held."""

    @property
    def name(self) -> str:
        """What a person calls it, for example the class of the middleware."""
        ...

    @property
    def enforced(self) -> bool:
        """Whether its decisions are applied to the run."""
        ...

    @property
    def detector(self) -> LoopDetector:
        """Its state."""
        ...

    @property
    def policy(self) -> Policy:
        """What decides where a scope has no policy of its own; a new scope begins with it."""
        ...

    def open_scopes(self) -> Iterable[ScopeKey]:
        """The agent loops that have begun and not ended."""
        ...

    def recordings(self, scope: ScopeKey | None) -> Iterable[Recording]:
        """What keeps the events of this scope, or (None) of any: each is given an event that concerns it once."""
        ...

    def apply(self, event: Control | PolicySet) -> None:
        """Bring the engine to what the event says. It is published, and put into the recordings, by the caller."""
        ...

    def rebase(self, policy: Policy) -> None:
        """Begin new scopes with this policy; those that are known were given it one by one."""
        ...


class Arrival(NamedTuple):
    """A batch with calls that stands before the gate; not yet accounted, not yet published."""

    scope: ScopeKey
    calls: tuple[Call, ...]
    """As they will be published: secrets are taken out."""
    engine: Steerable | None = None
    """What will decide it."""
    message_id: str | None = None
    node: str | None = None
    heartbeat: Callable[[], object] | None = None
    """Called while the batch is held, on the thread or in the task that waits; what it raises is ignored."""
    every: float = 1.0
    """Seconds between two heartbeats, at most."""


class Gate(Protocol):
    """Holds batches before they are decided. Ask it without any lock held."""

    @property
    def armed(self) -> bool:
        """Whether any batch may be held, passed or stopped; while it is False nothing need be asked."""
        ...

    def admit(self, arrival: Arrival) -> Ruling:
        """Wait, on this thread, until the batch may go on. On the thread of a running event loop it never waits."""
        ...

    async def aadmit(self, arrival: Arrival) -> Ruling:
        """Wait, in this task alone, until the batch may go on."""
        ...


class Gatehouse:
    """The gate of the process, and what stands behind it."""

    def __init__(self) -> None:
        self.gate: Gate | None = None
        """None while nobody listens: no batch is ever held."""
        self.base: Policy | None = None
        """The policy that whoever reads the bus takes for everybody's: the first engine's, or one set for all since.

        A scope that is decided under another one must be told of by a `policy` event when it begins.
        """
        self._engines: dict[int, weakref.ref[Steerable]] = {}
        self._registered = 0
        self._newcomer: Callable[[Steerable], object] | None = None

    def register(self, engine: Steerable) -> None:
        """Make an engine known, from its making until it is garbage."""
        with bus.lock:
            self._registered += 1
            alive = {number: known for number, known in self._engines.items() if known() is not None}
            self._engines = alive | {self._registered: weakref.ref(engine)}
            if self.base is None:
                self.base = engine.policy
            newcomer = self._newcomer
            if newcomer is not None:
                with contextlib.suppress(Exception):
                    newcomer(engine)

    def engines(self) -> list[Steerable]:
        """The engines of the process, oldest first."""
        return [engine for _, engine in self.numbered()]

    def numbered(self) -> list[tuple[int, Steerable]]:
        """The engines with the numbers that they have for as long as the process lives, from 1."""
        return [(number, engine) for number, known in self._engines.items() if (engine := known()) is not None]

    def attend(self, gate: Gate, newcomer: Callable[[Steerable], object]) -> None:
        """Put up a gate, and hear of every engine that is registered from now on (with the lock of the bus held)."""
        self.gate, self._newcomer = gate, newcomer

    def leave(self, gate: Gate) -> None:
        """Take this gate down, unless another one was put up since."""
        if self.gate is gate:
            self.gate = self._newcomer = None


gatehouse = Gatehouse()
"""The one gatehouse of this process."""
