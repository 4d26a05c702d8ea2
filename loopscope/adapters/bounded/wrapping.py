"""A node with something done before and after it: functions, coroutine functions and runnables alike.

LangGraph reads from a function's signature what to hand to it and where it may go, so a wrapped function keeps its own,
but for the annotation of the state: with that, LangGraph would hand over only the part of the state that it names.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from loopscope.errors import UsageError

__all__ = ["Around", "Visit", "Wrapped", "wrapped", "wrapping_of"]

_WRAPPED = "__loopscope_wrapped__"
"""The attribute of a wrapped node that tells what is around it."""


class Visit(Protocol):
    """One execution of a node."""

    def result(self, update: Any) -> Any:
        """What the node writes, with what is to be written beside it."""
        ...


class Around(Protocol):
    """What is done around a node."""

    def visit(self, state: Any) -> AbstractContextManager[Visit]:
        """Entered before the node, left after it, whatever it raised; what it raised may end there."""
        ...


class Wrapped:
    """A node and what is around it.

    Args:
        node: the user's own.
        around: what is done around it.
    """

    def __init__(self, node: Any, around: Around) -> None:
        self.node = node
        self.around = around
        self.stand_in: Any = None
        """What runs in the node's place, as a test wants it."""

    def call(self, node: Any, state: Any, *args: Any, **named: Any) -> Any:
        """The node, called as a function."""
        update: Any = None
        with self.around.visit(state) as visit:
            update = (self.stand_in or node)(state, *args, **named)
        return visit.result(update)

    async def acall(self, node: Any, state: Any, *args: Any, **named: Any) -> Any:
        """The node, called as a coroutine function."""
        update: Any = None
        with self.around.visit(state) as visit:
            update = await (self.stand_in or node)(state, *args, **named)
        return visit.result(update)

    def invoke(self, node: Any, state: Any, config: RunnableConfig) -> Any:
        """The node, invoked as a runnable."""
        update: Any = None
        with self.around.visit(state) as visit:
            update = (self.stand_in or node).invoke(state, config)
        return visit.result(update)

    async def ainvoke(self, node: Any, state: Any, config: RunnableConfig) -> Any:
        """As `invoke`."""
        update: Any = None
        with self.around.visit(state) as visit:
            update = await (self.stand_in or node).ainvoke(state, config)
        return visit.result(update)


def wrapped(node: Any, around: Around) -> Any:
    """A node that does the same, with something around it.

    Raises:
        UsageError: if it is neither a function of the state nor a runnable.
    """
    wrapping = Wrapped(node, around)
    if isinstance(node, Runnable):
        call: Any = _runnable(node, wrapping)
    elif not callable(node):
        raise UsageError(f"wrap() takes a node: a function of the state or a runnable; this is {node!r:.80}")
    else:
        asynchronous = inspect.iscoroutinefunction(node) or inspect.iscoroutinefunction(type(node).__call__)
        call = _acaller(node, wrapping) if asynchronous else _caller(node, wrapping)
        _dress(call, node)
    setattr(call, _WRAPPED, wrapping)
    return call


def _runnable(node: Runnable[Any, Any], wrapping: Wrapped) -> RunnableLambda[Any, Any]:
    # The node is in the functions' closures, where LangGraph looks for sub-graphs.
    def invoke(state: Any, config: RunnableConfig) -> Any:
        return wrapping.invoke(node, state, config)

    async def ainvoke(state: Any, config: RunnableConfig) -> Any:
        return await wrapping.ainvoke(node, state, config)

    return RunnableLambda(invoke, ainvoke, name=getattr(node, "name", None))


def _caller(node: Any, wrapping: Wrapped) -> Callable[..., Any]:
    def call(state: Any, *args: Any, **named: Any) -> Any:
        return wrapping.call(node, state, *args, **named)

    return call


def _acaller(node: Any, wrapping: Wrapped) -> Callable[..., Any]:
    async def call(state: Any, *args: Any, **named: Any) -> Any:
        return await wrapping.acall(node, state, *args, **named)

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
