"""A permanent failure where a graph's tool or node was, and scripted answers where its models were.

Everything else of the run is real: a failing tool still has its schema, callbacks and error handling, and a failing
node still has what is around it. Nothing of the graph is left changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any, TypeAlias
from unittest.mock import patch
from uuid import uuid4

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool

from loopscope.adapters.bounded.wrapping import wrapping_of
from loopscope.errors import UsageError

__all__ = ["Fail", "Failure", "InjectedFailure", "Turn", "answering", "broken", "failures_of", "graphs_in", "returns"]

Fail: TypeAlias = "str | BaseTool | Callable[..., Any] | Mapping[str, BaseException | str | None]"
Turn: TypeAlias = "AIMessage | str | tuple[str, Mapping[str, Any]] | Sequence[tuple[str, Mapping[str, Any]]]"
"""An answer of a model: a message, a text, a call as (tool, args), or several calls."""
_WORDS = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliett", "kilo", "lima")
_RUNAWAY = 500
"""Failures after which a run is broken off that no recursion limit ends."""


class InjectedFailure(RuntimeError):  # noqa: N818 - it is read in the output of a test: what was injected, no error of ours
    """What a test makes a tool or node raise."""


class returns(str):  # noqa: N801 - reads as `fail={"search": returns("the same page")}`
    """In place of an error: the tool does not fail, and gives back this text for ever."""

    __slots__ = ()


class Runaway(BaseException):
    """The run would go on for ever."""


class Failure:
    """What is raised in one place, each time.

    Args:
        name: of the tool or node.
        error: what is raised; a text stands for an `InjectedFailure`.
        varied: it is another one each time, told apart by a word.
    """

    def __init__(self, name: str, error: BaseException | str | None, *, varied: bool) -> None:
        self.name = name
        self.text = f"{name} fails for ever" if error is None else str(error)
        self.met = 0
        """How often it was raised."""
        self._kind = type(error) if isinstance(error, BaseException) else InjectedFailure
        self._varied = varied
        self._fails = not isinstance(error, returns)

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Raise it, or give it back where it is a text that a tool returns."""
        self.met += 1
        if self.met > _RUNAWAY:
            raise Runaway
        text = self.text
        if self._varied:
            turn, word = divmod(self.met - 1, len(_WORDS))
            text = f"{text} ({' '.join([_WORDS[word]] * (turn + 1))})"
        if not self._fails:
            return text
        try:
            error = self._kind(text)
        except Exception:  # noqa: BLE001 - an exception with parameters of its own
            error = InjectedFailure(f"{self._kind.__name__}: {text}")
        raise error

    async def acall(self, *_: Any, **__: Any) -> Any:
        """As calling it."""
        return self()


def failures_of(fail: Fail, *, varied: bool) -> list[Failure]:
    """What is to fail.

    Raises:
        UsageError: if that names nothing.
    """
    if isinstance(fail, Mapping):
        return [Failure(name, error, varied=varied) for name, error in fail.items()]
    name = fail if isinstance(fail, str) else getattr(fail, "name", None) or getattr(fail, "__name__", None)
    if not isinstance(name, str):
        raise UsageError(f"fail= names a tool or a node, or maps names to errors; this is {fail!r:.80}")
    return [Failure(name, None, varied=varied)]


def graphs_in(graph: Any) -> Iterator[tuple[str, Any]]:
    """The graph and its sub-graphs, each with the path to it."""
    yield "", graph
    yield from graph.get_subgraphs(recurse=True)


@contextmanager
def broken(graph: Any, failures: Sequence[Failure]) -> Iterator[None]:
    """The graph with its failures: each in the node of its name, where there is one, else in the tool of its name."""
    tools: dict[str, Failure] = {}
    with ExitStack() as stack:
        for failure in failures:
            nodes = [inner.nodes[failure.name] for _, inner in graphs_in(graph) if failure.name in inner.nodes]
            if not nodes:
                tools[failure.name] = failure
            for node in nodes:
                stack.enter_context(_broken_node(node.bound, failure))
        if tools:
            stack.enter_context(_broken_tools(tools))
        yield


@contextmanager
def _broken_node(bound: Any, failure: Failure) -> Iterator[None]:
    wrapping = wrapping_of(bound)
    if wrapping is not None:
        wrapping.stand_in = _Raises(failure)
        try:
            yield
        finally:
            wrapping.stand_in = None
        return
    for name, raises in (("invoke", failure), ("ainvoke", failure.acall)):
        object.__setattr__(bound, name, raises)
    try:
        yield
    finally:
        for name in ("invoke", "ainvoke"):
            object.__delattr__(bound, name)


class _Raises:
    """A node of any kind."""

    def __init__(self, failure: Failure) -> None:
        self.invoke = self._failure = failure
        self.ainvoke = failure.acall

    def __call__(self, *_: Any, **__: Any) -> Any:
        return self._failure()


@contextmanager
def _broken_tools(failures: Mapping[str, Failure]) -> Iterator[None]:
    run, arun = BaseTool.run, BaseTool.arun

    def failing_run(tool: BaseTool, *args: Any, **named: Any) -> Any:
        return run(_stand_in(tool, failures), *args, **named)

    async def failing_arun(tool: BaseTool, *args: Any, **named: Any) -> Any:
        return await arun(_stand_in(tool, failures), *args, **named)

    with patch.object(BaseTool, "run", failing_run), patch.object(BaseTool, "arun", failing_arun):
        yield


def _stand_in(tool: BaseTool, failures: Mapping[str, Failure]) -> BaseTool:
    failure = failures.get(tool.name)
    if failure is None:
        return tool
    return _FailingTool(
        name=tool.name,
        description=tool.description,
        args_schema=tool.args_schema,
        handle_tool_error=tool.handle_tool_error,
        handle_validation_error=tool.handle_validation_error,
        callbacks=tool.callbacks,
        tags=tool.tags,
        metadata=tool.metadata,
        failure=failure,
    )


class _FailingTool(BaseTool):
    """A tool that always fails, and is in everything else the one that it stands for."""

    failure: Any

    def _run(self, *_: Any, **__: Any) -> Any:
        return self.failure()

    async def _arun(self, *_: Any, **__: Any) -> Any:
        return self.failure()


@contextmanager
def answering(turns: Sequence[Any] | None) -> Iterator[None]:
    """Every chat model gives these answers, one each request, the last one for ever; None leaves models as they are."""
    if turns is None:
        yield
        return
    if not turns:
        raise UsageError("model= needs at least one answer")
    number = count()

    def answer() -> ChatResult:
        message = _message(turns[min(next(number), len(turns) - 1)])
        return ChatResult(generations=[ChatGeneration(message=message)])

    def generate(model: BaseChatModel, *_: Any, **__: Any) -> ChatResult:  # noqa: ARG001 - whichever it is
        return answer()

    async def agenerate(model: BaseChatModel, *_: Any, **__: Any) -> ChatResult:  # noqa: ARG001 - as above
        return answer()

    # What every way of asking a chat model comes down to, streams included once they are told not to.
    with (
        patch.object(BaseChatModel, "_generate_with_cache", generate),
        patch.object(BaseChatModel, "_agenerate_with_cache", agenerate),
        patch.object(BaseChatModel, "_should_stream", lambda *_, **__: False),
    ):
        yield


def _message(turn: Any) -> AIMessage:
    if isinstance(turn, AIMessage):
        calls = [call | {"id": _new("call")} for call in turn.tool_calls]
        return turn.model_copy(update={"id": _new("ai"), "tool_calls": calls})
    if isinstance(turn, str):
        return AIMessage(turn, id=_new("ai"))
    calls_of: Any = [turn] if isinstance(turn, tuple) else turn
    asked: Any = [{"name": name, "args": dict(args), "id": _new("call")} for name, args in calls_of]
    return AIMessage("", id=_new("ai"), tool_calls=asked)


def _new(kind: str) -> str:
    return f"{kind}-{uuid4()}"
