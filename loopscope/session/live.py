"""A live run as a session: what a feed tells goes into the same timeline as the lines of a recording.

The first message of a feed is the whole state of the engine; folding what follows gives the very state that the engine
has. Apart from the session, which knows batches and no gate: what is held, paused and connected is kept here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from loopscope.engine.breakpoints import Breakpoint, parse
from loopscope.engine.events import FORMAT, Batch, Event, Header, ScopeKey
from loopscope.errors import PolicyError, UsageError
from loopscope.recording.feed import Connection, Held, Message, Released, Snapshotted, Status
from loopscope.session.halts import condition
from loopscope.session.letters import letter_order
from loopscope.session.session import Session
from loopscope.session.spool import Spool

__all__ = ["LiveSession"]


class LiveSession:
    """A session that grows.

    Args:
        source: what the target is called on the screen.
        enforced: whether decisions are applied to the run, as far as the target tells.
        origins: where each setting came from, by dotted name, where the limits are this viewer's own; None where they
            are those of the process that is looked at.
        what: what is looked at: `process`, `file` or `server`.
        newest: `seq` of the newest event that there was when the target was reached, where it tells.
    """

    def __init__(
        self,
        source: str,
        *,
        enforced: bool = False,
        origins: Mapping[str, str] | None = None,
        what: str = "process",
        newest: int = 0,
    ) -> None:
        self._spool = Spool()
        self.session = Session(source, self._spool)
        self.status = Status()
        """What is in force at the gate."""
        self.held: dict[int, Held] = {}
        """Batches that wait before the gate, by their number there, oldest first."""
        self.state = "live"
        """`starting` (a program that has nothing to show yet), `live`, `lost` (being sought), `ended` or `detached`."""
        self.reason = ""
        """Why it is not live."""
        self.drops = 0
        """How often the connection was lost."""
        self.missed = 0
        """Batches that the engine has decided and that are not shown: its numbers are that much higher."""
        self.what = what
        """What is looked at, in a word."""
        self._told: dict[Breakpoint, Breakpoint] = {}
        """Our name of each breakpoint that the process was told of, by its name there."""
        self._enforced = enforced
        self._origins = origins
        self._newest = newest
        self._first = self._seen = 0
        self._began = False

    def take(self, messages: Iterable[Message]) -> None:
        """Take in what the feed tells, in order. What cannot be folded is noted among the session's problems."""
        for message in messages:
            self._seen = getattr(message, "seq", self._seen)
            if isinstance(message, Snapshotted):
                self._restore(message)
            elif isinstance(message, Held):
                self.held[message.hold] = message
            elif isinstance(message, Released):
                self.held.pop(message.hold, None)
            elif isinstance(message, Status):
                self.status = message
            elif isinstance(message, Connection):
                self._connection(message)
            else:
                self._append(message)

    @property
    def share(self) -> float | None:
        """How much of what there was when the target was reached is taken in, 0 to 1; None once all of it is."""
        if self._seen >= self._newest:
            return None
        return (self._seen - self._first) / (self._newest - self._first)

    def holds(self, scope: ScopeKey | None = None) -> Held | None:
        """The batch that was held first, in this scope or in any."""
        return next((held for held in self.held.values() if scope is None or held.scope == scope), None)

    @property
    def paused(self) -> bool:
        """Whether anything is held, or will be."""
        return bool(self.held or self.status.paused or self.status.scopes)

    def breakpoints_to_tell(self) -> list[Breakpoint]:
        """The session's breakpoints as the process knows batches: by its own numbers, and by hashes without letters."""
        points = [(self._theirs(point), point) for point in self.session.breakpoints]
        self._told = {condition(theirs): condition(ours) for theirs, ours in points}
        return [theirs for theirs, _ in points]

    def breakpoints_told(self) -> dict[Breakpoint, int]:
        """The breakpoints that are in force in the process, as they are called here, and how often each was hit."""
        return {self._ours(state.point): state.hits for state in self.status.breakpoints}

    def breakpoint_name(self, text: str) -> str:
        """The text of a breakpoint of the process, as it is called here."""
        try:
            return str(self._ours(parse(text)))
        except UsageError:
            return text

    def _theirs(self, point: Breakpoint) -> Breakpoint:
        if point.kind == "batch":
            return msgspec.structs.replace(point, at_least=point.at_least + self.missed)
        return msgspec.structs.replace(point, subject=self._digest(point.subject)) if point.kind == "hash" else point

    def _ours(self, point: Breakpoint) -> Breakpoint:
        known = self._told.get(condition(point))
        if known is None and point.kind == "batch":
            known = msgspec.structs.replace(point, at_least=point.at_least - self.missed)
        return msgspec.structs.replace(known or point, enabled=point.enabled, one_shot=point.one_shot)

    def _digest(self, name: str) -> str:
        """The hash of a letter in the scope that is looked at; anything else as it is."""
        timeline, order = self.session.timeline, letter_order(name)
        record = timeline.scopes.get(timeline.scope_of(self.session.cursor)) if self.session.cursor else None
        known = {} if record is None else {place: digest for digest, place in record.letters.items()}
        return timeline.hashes.values[known[order]] if order in known else name

    def leave(self, reason: str) -> None:
        """Nothing more comes, since the viewer left; all that came stays."""
        self.state, self.reason = "detached", reason
        self.held.clear()
        self.status = Status()

    def _append(self, event: Event) -> None:
        if isinstance(event, Batch) and self.held:
            self._forget_hold(event)
        try:
            self.session.append([self._spool.keep(event)])
        except PolicyError as error:
            self.session.problems.append((0, str(error)))

    def _forget_hold(self, batch: Batch) -> None:
        for number, held in list(self.held.items()):
            if held.scope == batch.scope and held.message_id is not None and held.message_id == batch.message_id:
                del self.held[number]

    def _connection(self, message: Connection) -> None:
        self.state = "live" if message.state == "back" else message.state
        self.reason = message.reason
        self.drops += message.state == "lost"
        if self.state != "live":
            self.held.clear()
            self.status = Status()

    def _restore(self, message: Snapshotted) -> None:
        """Whatever was known is replaced; the batches that are shown stay, and are counted on from there."""
        session = self.session
        if not self._began:
            self._began = True
            where = "the process" if self._origins is None else "default"
            session.tell_origins({**dict.fromkeys(_names(message.state.policy), where), **(self._origins or {})})
            header = Header(format=FORMAT, policy=message.state.policy, enforced=self._enforced)
            session.append([self._spool.keep(header)])
            self._first = message.seq
        self.missed = message.state.batches - len(session)
        for run in message.runs:
            self._append(run)
        try:
            session.timeline.restore(message.state)
        except (ValueError, PolicyError) as error:
            session.problems.append((0, str(error)))
        self.status = message.status
        self.held = {held.hold: held for held in message.held}


def _names(values: Mapping[str, Any], prefix: str = "") -> Iterable[str]:
    for name, value in values.items():
        yield prefix + name
        if isinstance(value, Mapping):
            yield from _names(value, f"{prefix}{name}.")
