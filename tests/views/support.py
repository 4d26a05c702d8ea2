"""Runs told event by event, and panes as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from loopscope.engine.events import Batch, Call, Event, Header, Result, RunEnd, RunStart, Usage, Warned
from loopscope.engine.policy import Policy
from loopscope.session.session import Session
from loopscope.session.timeline import Origin
from loopscope.views.model import Line, plain
from tests.session.support import session_of

__all__ = ["Story", "looping", "texts"]

Scope = tuple[str | None, str | None]


class Story:
    """Tells a run; every event has its number and a second more than the one before."""

    def __init__(self, policy: Policy | None = None, *, enforced: bool = False, timed: bool = True) -> None:
        recorded = policy.to_dict() if policy is not None else None
        self.events: list[Event | None] = [Header(format="loopscope/1", policy=recorded, enforced=enforced)]
        self.scope: Scope = ("t", "r")
        self.timed = timed
        self._calls = 0

    def _common(self) -> dict[str, Any]:
        seq = len(self.events)
        return {
            "seq": seq,
            "ts": 1000.0 + seq if self.timed else None,
            "thread_id": self.scope[0],
            "run_id": self.scope[1],
        }

    def in_scope(self, thread_id: str | None, run_id: str | None) -> Self:
        """What follows happens there."""
        self.scope = (thread_id, run_id)
        return self

    def start(self, agent: str | None, parent: Scope = (None, None)) -> Self:
        """A run begins."""
        thread_id, run_id = parent
        self.events.append(RunStart(agent=agent, parent_thread_id=thread_id, parent_run_id=run_id, **self._common()))
        return self

    def end(self, status: Any) -> Self:
        """A run is over."""
        self.events.append(RunEnd(status=status, **self._common()))
        return self

    def batch(self, *calls: Call, usage: Usage | None = None, **more: Any) -> Self:
        """An AI message with these calls."""
        self.events.append(Batch(calls=calls, usage=usage, **self._common(), **more))
        return self

    def call(self, name: str | None, args: Any, result: str | None = None, **more: Any) -> Self:
        """A batch of one call, and its result if there is one."""
        self._calls += 1
        call_id = f"c{self._calls}"
        usage = more.pop("usage", None)
        key = more.pop("key", None)
        self.batch(Call(call_id, name, args, key), usage=usage)
        return self if result is None else self.result(call_id, result, **more)

    def result(self, call_id: str | None, content: str, status: Any = "ok", **more: Any) -> Self:
        """What a call gave back."""
        self.events.append(Result(call_id=call_id, content=content, status=status, **self._common(), **more))
        return self

    def warned(self, state: Any, text: str) -> Self:
        """The recording tells what became of a warning."""
        self.events.append(Warned(state=state, text=text, **self._common()))
        return self

    def session(self, policy: Policy | None = None) -> Session:
        """The run as a session, opened as a person finds it."""
        session = session_of(self.events, Origin(policy) if policy is not None else None)
        session.open_at_first_stop()
        return session


def looping(times: int = 6, **more: Any) -> Story:
    """A run that searches for the same thing so many times."""
    story = Story(**more)
    for _ in range(times):
        story.call("search", {"query": "rust tls", "top_k": 5}, "nothing found")
    return story


def texts(lines: Sequence[Line]) -> list[str]:
    """The lines as text, without what pads them at the right."""
    return [plain(line).rstrip() for line in lines]
