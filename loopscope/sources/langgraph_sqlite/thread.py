"""The walk over the checkpoints of one thread, from which the events of its runs come.

Apart from reading one checkpoint and from telling messages apart: here is in which order, in which run and at what time
things happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from typing import Any

from loopscope.engine.events import Event
from loopscope.sources.langgraph_sqlite.endings import ERROR, INTERRUPT, Ending, ending
from loopscope.sources.langgraph_sqlite.rows import Rows, Written
from loopscope.sources.langgraph_sqlite.segment import Past, Segment, place, resumes
from loopscope.sources.langgraph_sqlite.state import START, State, given, is_own, items, message_lists
from loopscope.sources.langgraph_sqlite.telling import Moment, Teller
from loopscope.sources.langgraph_sqlite.tree import Node, plant
from loopscope.sources.langgraph_sqlite.union import Counts, MessageUnion

__all__ = ["Walk"]

_MESSAGES = "messages"
"""The channel of LangGraph's own message states: its last message is the conversation's."""
_OUTCOMES = frozenset({ERROR, INTERRUPT})
_TASK_RESULT = "__return__"
"""What a task of the functional API gave back: its graph has no channel that keeps it."""


class Walk:
    """The events of one thread.

    Args:
        rows: its checkpoints and writes.
        channel: the channel that holds the messages; None for all that hold some.
        seq: gives each event its number.
    """

    def __init__(self, rows: Rows, channel: str | None, seq: Iterator[int]) -> None:
        self._rows = rows
        self._channel = channel
        self._tell = Teller(rows.thread_id, seq)
        self._union = MessageUnion(logs=channel is not None, report=rows.report)
        self._past: dict[Node, Past] = {}
        self._running: dict[Segment, None] = {}
        self.channels: dict[str, bool] = {}
        """The channels of the graphs' authors, and whether they hold messages."""

    def events(self) -> Iterator[Event]:
        """Everything that happened in the thread, in order."""
        for node in plant(self._rows.checkpoints()):
            yield from self._told(node)
        for segment in list(self._running):
            yield from self._end(segment)

    def _told(self, node: Node) -> Iterator[Event]:
        """What one checkpoint tells."""
        state = self._rows.state(node)
        if state is None:
            self._pass_over(node)
        else:
            yield from self._checkpoint(node, state)

    def _pass_over(self, node: Node) -> None:
        """Later checkpoints repeat what this one would have told, and go on from what is known before it."""
        past = self._past_of(node)
        if node.parent is not None:
            node.segment = node.parent.segment
        if past is not None and node.children:
            self._past[node] = past
        self._leave(node)

    def _checkpoint(self, node: Node, state: State) -> Iterator[Event]:
        past = self._past_of(node)
        segment = node.segment = yield from self._segment(node, state, past)
        moment = Moment(segment, state.ts, _node_that_ran(state, past))
        lists = message_lists(state.values, self._channel)
        for name in state.channels:
            self.channels[name] = self.channels.get(name, False) or name in lists
        counts: Counts = Counter()
        before = past.counts if past is not None else Counter()
        found = self._union.new(lists.values(), node, before, counts)
        yield from self._tell.messages(moment, found)
        unstored = _unstored(state, past)
        if node.parent is not None and unstored:
            yield from self._written(
                moment, (write for write in self._rows.writes(node.parent) if write.channel in unstored)
            )
        if START in state.values:
            counts += self._union.give(given(state.values), node.namespace)
            yield from self._written(
                moment, (write for write in self._rows.writes(node) if write.channel == _TASK_RESULT)
            )
        segment.advance(node, state, lists.get(_MESSAGES) or next(reversed(lists.values()), []), counts)
        self._keep(node, Past(state, counts))
        if not node.children:
            yield from self._leaf(segment)

    def _leaf(self, segment: Segment) -> Iterator[Event]:
        """Nothing in the file goes on from here."""
        yield from self._end(segment)

    def _segment(self, node: Node, state: State, past: Past | None) -> Generator[Event, None, Segment]:
        """The invocation that a checkpoint belongs to."""
        found = place(node, state, past)
        if past is not None:
            past.continued = True
        if found.same is not None:
            if resumes(node, state, past):
                yield from self._resumed(found.same, state.ts)
            return found.same
        if found.over is not None:
            yield from self._end(found.over)
        segment = Segment(self._rows.thread_id, node, found.resumed)
        self._running[segment] = None
        yield self._tell.start(segment, state.ts, found.resumed)
        return segment

    def _resumed(self, segment: Segment, ts: float | None) -> Iterator[Event]:
        """A run that waited for a person was not over; one that failed was, until it was tried again."""
        before = _ending(segment, self._rows.writes(segment.last))
        if segment in self._running and before.status in {"error", "cancelled"}:
            yield self._tell.end(segment, before)
        self._running[segment] = None
        segment.resume()
        yield self._tell.start(segment, ts, segment)

    def _end(self, segment: Segment) -> Iterator[Event]:
        if segment not in self._running:
            return
        del self._running[segment]
        for inner in [running for running in self._running if running.outer is segment]:
            yield from self._end(inner)
        writes = list(self._rows.writes(segment.last))
        if not segment.finished:
            # What was written in a step that never came to its end stands nowhere else.
            moment = Moment(segment, segment.ts, None)
            yield from self._written(moment, (write for write in writes if not is_own(write.channel)))
        yield self._tell.end(segment, _ending(segment, writes))
        segment.forget()

    def _written(self, moment: Moment[Segment], writes: Iterable[Written]) -> Iterator[Event]:
        """The messages among what was written on top of a checkpoint."""
        for channel, value in writes:
            if self._channel not in {None, channel}:
                continue
            held = items(value) or [value]
            before = moment.segment.counts_within(held)
            for event in self._tell.messages(moment, self._union.written(held, moment.segment.last, before)):
                self.channels[channel] = True
                yield event

    def _past_of(self, node: Node) -> Past | None:
        return self._past.get(node.parent) if node.parent is not None else None

    def _keep(self, node: Node, past: Past) -> None:
        """What a subgraph has told, the graph around it is about to repeat."""
        if node.children:
            self._past[node] = past
        outer = self._past.get(node.outer) if node.outer is not None else None
        if outer is not None:
            outer.counts |= past.counts
        self._leave(node)

    def _leave(self, node: Node) -> None:
        """Forget a parent that has no more children to come."""
        if node.parent is not None:
            node.parent.children -= 1
            if not node.parent.children:
                self._past.pop(node.parent, None)


def _ending(segment: Segment, writes: Iterable[Written]) -> Ending:
    outcomes: dict[str, list[Any]] = {}
    for channel, value in writes:
        if channel in _OUTCOMES:
            outcomes.setdefault(channel, []).append(value)
    return ending(segment.tail, outcomes)


def _node_that_ran(state: State, past: Past | None) -> str | None:
    """The graph's node between two checkpoints; None if it is not known or was not one alone."""
    if past is None:
        return None
    ran = [name for name, seen in state.seen.items() if seen != past.seen.get(name) and not str(name).startswith("__")]
    return str(ran[0]) if len(ran) == 1 else None


def _unstored(state: State, past: Past | None) -> set[str]:
    """The channels that changed and of which a checkpoint holds nothing: only what was written tells how."""
    if past is None:
        return set()
    return {
        name for name in state.channels - state.values.keys() if state.versions.get(name) != past.versions.get(name)
    }
