"""States as a server tells them, as events: what is new in each, in the run that it belongs to.

Apart from the connection. A state holds the whole conversation, with what a run was given at its beginning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from loopscope.engine.events import Event, ScopeKey
from loopscope.sources.langgraph_sqlite.endings import Ending
from loopscope.sources.langgraph_sqlite.messages import Said
from loopscope.sources.langgraph_sqlite.state import message_lists
from loopscope.sources.langgraph_sqlite.telling import Moment, Teller
from loopscope.sources.langgraph_sqlite.union import Counts, MessageUnion

__all__ = ["Conversation"]

_STOPPED = "[FORCED STOP]"
"""How the text begins that a loop guard leaves where it took the calls out of a message."""


class _Place(NamedTuple):
    id: str
    namespace: str


class _Ran:
    """One run, or a subgraph in it, so far."""

    def __init__(self, key: ScopeKey, agent: str | None, outer: _Ran | None) -> None:
        self.key = key
        self.agent = agent
        self.outer = outer
        self.top: _Ran = self if outer is None else outer.top
        self.newest: Any = None
        self.ts: float | None = None
        self.counts: Counts | None = None
        """Of the messages without ids in its last state; None before the first."""
        self.over = False


class Conversation:
    """The runs of one thread, as far as they were seen.

    Args:
        thread_id: the thread.
        seq: gives each event its number.
        problems: told why a message could not be read.
    """

    def __init__(self, thread_id: str, seq: Iterator[int], problems: list[tuple[int, str]]) -> None:
        self._thread_id = thread_id
        self._tell = Teller(thread_id, seq)
        self._union = MessageUnion(logs=False, report=lambda reason: problems.append((0, reason)))
        self._runs: dict[str, _Ran] = {}

    def begin(self, run_id: str, agent: str | None, ts: float) -> Iterator[Event]:
        """A run is seen; nothing where it was seen before."""
        if run_id not in self._runs:
            ran = self._runs[run_id] = _Ran(ScopeKey(self._thread_id, run_id), agent, None)
            ran.ts = ts
            yield self._tell.start(ran, ts, None)

    def give(self, run_id: str, values: object, ts: float) -> None:
        """What a run was given: what stands in it was said before, or elsewhere."""
        ran = self._runs[run_id]
        ran.ts, ran.counts = ts, self._union.give(_lists(values), "")

    def take(self, run_id: str, namespace: str, values: object, ts: float) -> Iterator[Event]:
        """What is new in a state of this run, or of a subgraph in it; the first one is what it was given."""
        ran = self._runs[run_id]
        if namespace:
            name = f"{run_id}/{namespace}"
            inner = self._runs.get(name)
            if inner is None:
                agent = namespace.rpartition("|")[2].partition(":")[0]
                inner = self._runs[name] = _Ran(ScopeKey(self._thread_id, name), agent, ran)
                yield self._tell.start(inner, ts, None)
            ran = inner
        ran.ts = ts
        if ran.counts is None:
            ran.counts = self._union.give(_lists(values), namespace)
            return
        counts: Counts = Counter()
        found = self._union.new(_lists(values), _Place(run_id, namespace), ran.counts, counts)
        yield from self._tell.messages(Moment(ran, ts, None), found)
        ran.counts = counts

    def end(self, run_id: str, ending: Ending, ts: float) -> Iterator[Event]:
        """A run is over, and with it the subgraphs in it."""
        for name, ran in self._runs.items():
            if not ran.over and (name == run_id or (ran.outer is not None and ran.top.key.run_id == run_id)):
                ran.over, ran.ts = True, ts
                yield self._tell.end(ran, _as_it_says(ran, ending))


def _lists(values: object) -> list[list[Any]]:
    return list(message_lists(values if isinstance(values, dict) else {"messages": values}, None).values())


def _as_it_says(ran: _Ran, ending: Ending) -> Ending:
    """A run that a loop guard ended says so in its last message."""
    if ending.status == "completed" and isinstance(ran.newest, Said) and _STOPPED in ran.newest.text:
        return Ending("loop_capped", ran.newest.text[ran.newest.text.index(_STOPPED) :])
    return ending
