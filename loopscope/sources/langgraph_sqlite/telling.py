"""Messages as events: which run a result belongs to, and the fields of each event.

Apart from finding the messages, which is the walk's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from loopscope.engine.events import Batch, Event, Result, RunEnd, RunStart, ScopeKey
from loopscope.recording.preview import PREVIEW, preview
from loopscope.sources.langgraph_sqlite.endings import Ending
from loopscope.sources.langgraph_sqlite.messages import Logged, Output, Said
from loopscope.sources.langgraph_sqlite.union import Found

__all__ = ["Moment", "Ran", "Teller"]


class Ran(Protocol):
    """One invocation of one graph."""

    newest: Any
    """The last message."""

    @property
    def key(self) -> ScopeKey:
        """Its scope."""
        ...

    @property
    def agent(self) -> str | None:
        """Its name, where it has one."""
        ...

    @property
    def ts(self) -> float | None:
        """Of what was seen of it last, Unix seconds."""
        ...

    @property
    def outer(self) -> Ran | None:
        """The invocation of the enclosing graph."""
        ...

    @property
    def top(self) -> Ran:
        """The invocation that all this happened inside of."""
        ...


Where = TypeVar("Where", bound=Ran)


class Moment(NamedTuple, Generic[Where]):
    """When and where something was first seen."""

    segment: Where
    ts: float | None
    node: str | None
    """The node of the graph that ran, where it was one alone."""


class Teller:
    """Makes the events of one thread.

    Args:
        thread_id: the thread.
        seq: gives each event its number.
    """

    def __init__(self, thread_id: str | None, seq: Iterator[int]) -> None:
        self._thread_id = thread_id
        self._seq = seq
        self._callers: dict[str, Ran] = {}

    def start(self, segment: Ran, ts: float | None, resumed: Ran | None) -> RunStart:
        """An invocation begins, or goes on."""
        outer = segment.outer
        return RunStart(
            seq=next(self._seq),
            ts=ts,
            thread_id=self._thread_id,
            run_id=segment.key.run_id,
            agent=segment.agent,
            parent_thread_id=self._thread_id if outer is not None else None,
            parent_run_id=outer.key.run_id if outer is not None else None,
            resume_of=resumed.key.run_id if resumed is not None else None,
        )

    def end(self, segment: Ran, ending: Ending) -> RunEnd:
        """An invocation is over."""
        return RunEnd(
            seq=next(self._seq),
            ts=segment.ts,
            thread_id=self._thread_id,
            run_id=segment.key.run_id,
            status=ending.status,
            reason=ending.reason,
        )

    def messages(self, moment: Moment[Any], found: Iterable[Found]) -> Iterator[Event]:
        """What was said and what came back. Entries that a log got in one checkpoint are one batch."""
        logged: list[Logged] = []
        for message in found:
            moment.segment.newest = message
            if isinstance(message, Said):
                yield self._batch(moment, message)
            elif isinstance(message, Output):
                yield self._result(moment, message)
            else:
                logged.append(message)
        if logged:
            yield self._batch(moment, Said(None, tuple(entry.call for entry in logged), "", None, None))
        for entry in logged:
            if entry.output is not None:
                yield self._result(moment, entry.output)

    def _batch(self, moment: Moment[Any], said: Said) -> Batch:
        self._callers.update((call.id, moment.segment) for call in said.calls if call.id is not None)
        return Batch(
            seq=next(self._seq),
            ts=moment.ts,
            thread_id=self._thread_id,
            run_id=moment.segment.key.run_id,
            calls=said.calls,
            message_id=said.id,
            node=moment.node,
            text=said.text[:PREVIEW] or None,
            usage=said.usage,
            model=said.model,
        )

    def _result(self, moment: Moment[Any], output: Output) -> Result:
        kept = preview(output.text)
        return Result(
            seq=next(self._seq),
            ts=moment.ts,
            thread_id=self._thread_id,
            run_id=self._caller(moment.segment, output.call_id).key.run_id,
            call_id=output.call_id,
            name=output.name,
            status="error" if output.failed else "ok",
            content=kept.content,
            size=kept.size,
            digest=kept.digest,
            error_type=output.error_type,
        )

    def _caller(self, segment: Ran, call_id: str | None) -> Ran:
        """Whose call a result answers: a subgraph may run its graph's calls, and the graph its subgraph's."""
        caller = self._callers.get(call_id, segment) if call_id is not None else segment
        return caller if caller.top is segment.top else segment
