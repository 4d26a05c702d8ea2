"""One run of a graph as a test sees it: its end, its state, and the trace that a tracer of LangChain gets of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, Literal, NamedTuple, TypeAlias
from uuid import uuid4

from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run
from langgraph.errors import GraphDrained, GraphRecursionError

from loopscope.testing.injecting import Runaway

__all__ = ["Ended", "Outcome", "Watch"]

Ended: TypeAlias = Literal["finished", "interrupted", "drained", "recursion_limit", "raised"]


class Outcome(NamedTuple):
    """What became of a run."""

    attempts: int
    """How often the failure was met."""
    ended: Ended
    error: BaseException | None
    """What the caller got in place of a state."""
    state: Mapping[str, Any]
    """The last state that the graph had."""
    interrupts: tuple[Any, ...]
    """What a person was asked."""
    trace: tuple[Run, ...]
    """Every run of the trace, parents first."""


class Watch(BaseTracer):
    """Runs a graph once, or is told how it ran, and keeps its trace.

    Args:
        graph: compiled.
        config: the test's own.
        limit: the recursion limit, where the config has none.
    """

    run_inline = True

    def __init__(self, config: Mapping[str, Any] | None, limit: int) -> None:
        super().__init__()
        self.state: Mapping[str, Any] = {}
        self._roots: list[Run] = []
        self._interrupts: tuple[Any, ...] = ()
        own = dict(config or {})
        callbacks = own.get("callbacks") or []
        handlers = list(callbacks) if isinstance(callbacks, (list, tuple)) else list(callbacks.handlers)
        place = {**own.get("configurable", {}), "thread_id": f"bounded-run-{uuid4()}"}
        self.config: Any = {
            "recursion_limit": limit,
            **own,
            "configurable": place,
            "callbacks": [*handlers, self],
        }

    def run(self, graph: Any, value: Any, context: Any) -> BaseException | None:
        """Run it to its end; what it raised."""
        try:
            for part in graph.stream(deepcopy(value), self.config, context=context, stream_mode=["values", "updates"]):
                self._take(*part)
        except (Exception, Runaway) as error:  # noqa: BLE001 - told, not handled
            return error
        return None

    async def arun(self, graph: Any, value: Any, context: Any) -> BaseException | None:
        """As `run`."""
        stream = graph.astream(deepcopy(value), self.config, context=context, stream_mode=["values", "updates"])
        try:
            async for part in stream:
                self._take(*part)
        except (Exception, Runaway) as error:  # noqa: BLE001 - told, not handled
            return error
        return None

    def outcome(self, attempts: int, error: BaseException | None) -> Outcome:
        """What became of it."""
        ended: Ended = "interrupted" if self._interrupts else "finished"
        if isinstance(error, (GraphRecursionError, Runaway)):
            ended = "recursion_limit"
        elif error is not None:
            ended = "drained" if isinstance(error, GraphDrained) else "raised"
        trace = tuple(each for root in self._roots for each in _walk(root))
        return Outcome(attempts, ended, error, self.state, self._interrupts, trace)

    def _take(self, mode: str, part: Any) -> None:
        if mode == "values" and isinstance(part, Mapping):
            self.state = part
        elif mode == "values":
            self.state = dict(vars(part))
        elif isinstance(part, Mapping) and "__interrupt__" in part:
            self._interrupts += tuple(each.value for each in part["__interrupt__"])

    def _persist_run(self, run: Run) -> None:
        self._roots.append(run)


def _walk(run: Run) -> Iterator[Run]:
    yield run
    for child in run.child_runs:
        yield from _walk(child)
