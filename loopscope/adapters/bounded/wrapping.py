"""A node with something done before and after it: functions, coroutine functions and runnables alike.

LangGraph reads from a function's signature what to hand to it and where it may go, so a wrapped function keeps its own,
but for the annotation of the state: with that, LangGraph would hand over only the part of the state that it names.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.types import Command

from loopscope.errors import UsageError

__all__ = ["Around", "Visit", "Wrapped", "merged", "wrapped", "wrapping_of"]

_WRAPPED = "__loopscope_wrapped__"
"""The attribute of a wrapped node that tells what is around it."""


class Visit(Protocol):
    """One execution of a node."""

    def result(self, update: Any) -> Any:
        """What the node writes, with what is to be written beside it."""


class Around(Protocol):
    """What is done around a node."""

    def visit(self, state: Any) -> AbstractContextManager[Visit]:
        """Entered before the node, left after it, whatever it raised; what it raised may end there."""


class Wrapped:
    """A node and what is around it; the node can be put in another's place, as a test does.

    Args:
        node: the user's own.
        around: what is done around it.
    """

    def __init__(self, node: Any, around: Around) -> None:
        self.node = node
        self.around = around

    def call(self, state: Any, *args: Any, **named: Any) -> Any:
        """The node, called as a function."""
        update: Any = None
        with self.around.visit(state) as visit:
            update = self.node(state, *args, **named)
        return visit.result(update)

    async def acall(self, state: Any, *args: Any, **named: Any) -> Any:
        """The node, called as a coroutine function."""
        update: Any = None
        with self.around.visit(state) as visit:
            update = await self.node(state, *args, **named)
        return visit.result(update)

    def invoke(self, state: Any, config: RunnableConfig) -> Any:
        """The node, invoked as a runnable."""
        update: Any = None
        with self.around.visit(state) as visit:
            update = self.node.invoke(state, config)
        return visit.result(update)

    async def ainvoke(self, state: Any, config: RunnableConfig) -> Any:
        """As `invoke`."""
        update: Any = None
        with self.around.visit(state) as visit:
            update = await self.node.ainvoke(state, config)
        return visit.result(update)


def wrapped(node: Any, around: Around) -> Any:
    """A node that does the same, with something around it.

    Raises:
        UsageError: if it is neither a function of the state nor a runnable.
    """
    wrapping = Wrapped(node, around)
    if isinstance(node, Runnable):
        made: Any = RunnableLambda(wrapping.invoke, wrapping.ainvoke, name=getattr(node, "name", None))
        object.__setattr__(made, _WRAPPED, wrapping)
        return made
    if not callable(node):
        raise UsageError(f"wrap() takes a node: a function of the state or a runnable; this is {node!r:.80}")
    asynchronous = inspect.iscoroutinefunction(node) or inspect.iscoroutinefunction(type(node).__call__)
    call = _acaller(wrapping) if asynchronous else _caller(wrapping)
    _dress(call, node)
    setattr(call, _WRAPPED, wrapping)
    return call


def _caller(wrapping: Wrapped) -> Callable[..., Any]:
    def call(state: Any, *args: Any, **named: Any) -> Any:
        return wrapping.call(state, *args, **named)

    return call


def _acaller(wrapping: Wrapped) -> Callable[..., Any]:
    async def call(state: Any, *args: Any, **named: Any) -> Any:
        return await wrapping.acall(state, *args, **named)

    return call


def wrapping_of(node: Any) -> Wrapped | None:
    """What is around a node of a graph, if something is."""
    for place in (node, getattr(node, "func", None), getattr(node, "afunc", None)):
        found = getattr(place, _WRAPPED, None)
        if isinstance(found, Wrapped):
            return found
    return None


def _dress(call: Any, node: Any) -> None:
    """Give a wrapper the name, the documentation and the signature of its node, the state's annotation left out."""
    signature = inspect.signature(node)
    if not signature.parameters:
        raise UsageError(f"wrap() takes a node: a function of the state; {node!r:.80} takes nothing")
    first, *rest = signature.parameters.values()
    routine = inspect.isroutine(node)
    named = node if routine else type(node)
    functools.update_wrapper(call, named, assigned=("__module__", "__name__", "__qualname__", "__doc__"), updated=())
    del call.__wrapped__
    if routine:
        # Where names in annotations are looked up.
        call.__wrapped__ = getattr(node, "__func__", node)
    hints = getattr(node if routine else type(node).__call__, "__annotations__", {})
    call.__annotations__ = {name: hint for name, hint in hints.items() if name != first.name}
    call.__signature__ = signature.replace(parameters=[first.replace(annotation=inspect.Parameter.empty), *rest])


def merged(update: Any, more: dict[str, Any]) -> Any:
    """What a node writes, and some fields beside it."""
    if update is None:
        return more
    if isinstance(update, dict):
        return {**update, **more}
    if isinstance(update, (list, tuple)) and any(isinstance(each, Command) for each in update):
        return [*update, Command(update=more)]
    if isinstance(update, Command):
        return [update, Command(update=more)]
    return {**_set_fields(update), **more}


def _set_fields(update: Any) -> dict[str, Any]:
    """What an object that a node returned writes: as LangGraph has it, the fields that are not as they were by default.

    Raises:
        UsageError: if it is no object that a node may return.
    """
    if dataclasses.is_dataclass(update):
        values = ((each, getattr(update, each.name)) for each in dataclasses.fields(update))
        return {each.name: value for each, value in values if value != _default(each)}
    names = getattr(update, "model_fields_set", None)
    if names is None:
        raise UsageError(f"a node returns an update of the state, not {update!r:.80}")
    return {name: getattr(update, name) for name in names}


def _default(each: dataclasses.Field[Any]) -> Any:
    return each.default if each.default_factory is dataclasses.MISSING else each.default_factory()
