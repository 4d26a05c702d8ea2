"""Sessions over events in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopscope.engine.events import Event
from loopscope.errors import UnreadableInputError
from loopscope.session.session import Session
from loopscope.session.timeline import Origin


class Line(NamedTuple):
    """An event whose place is its position in the list."""

    event: Event | None
    offset: int
    length: int


class Memory:
    """A store of events in a list; None stands for a line that is gone from its file."""

    def __init__(self, events: Sequence[Event | None]) -> None:
        self.events = list(events)
        self.reads = 0

    def read_at(self, offset: int, length: int) -> Event | None:
        """The event at this position."""
        self.reads += 1
        assert length == 1
        if self.events[offset] is None:
            raise UnreadableInputError("memory: was changed")
        return self.events[offset]


def session_of(events: Sequence[Event | None], origin: Origin | None = None) -> Session:
    """A session that has taken in these events."""
    session = Session("memory", Memory(events), origin)
    session.append([Line(event, position, 1) for position, event in enumerate(events)])
    return session
