"""What a loop's predicates may be: plain functions of the state. Whatever asks a model is refused here, by its type.

Apart from the loop since the reason is a rule of its own: a model that loops is the very thing that is to be stopped,
so it cannot be the judge of whether it does. A call to a model is also neither repeatable nor free, and a predicate is
asked at every turn.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable

from loopscope.errors import PredicateError

__all__ = ["Predicate", "plain"]

Predicate: TypeAlias = Callable[[Any], Any]
"""A plain function of the state: no coroutine, no runnable, no model."""

_WHY = "a model that loops cannot judge whether it does: compare values of the state (docs/bounded-loops.md#predicates)"


def plain(role: str, function: Predicate) -> Predicate:
    """The function itself, if it can be one of a loop's predicates.

    Args:
        role: what it is to be, as its parameter is called.
        function: of one argument, the state.

    Raises:
        PredicateError: if it is no function, must be awaited, does not take the state alone, or holds a model or
            another runnable: as itself, bound, in a partial, as a default, in its closure, or as a global that it uses.
    """
    if hasattr(function, "ainvoke"):
        raise PredicateError(f"{role}= is a {type(function).__name__}, and must be a plain function; {_WHY}")
    if not callable(function):
        raise PredicateError(f"{role}= must be a function of the state, is {function!r:.80}")
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        raise PredicateError(f"{role}= must be awaited, and must be a plain function of the state; {_WHY}")
    for held in _held(function):
        if isinstance(held, (BaseLanguageModel, Runnable)):
            raise PredicateError(f"{role}= uses a {type(held).__name__}; {_WHY}")
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise PredicateError(f"{role}= must take the state and nothing else: {error}") from None
    except ValueError:  # some built-in functions do not tell what they take
        pass
    return function


def _held(function: Any) -> Iterator[object]:
    """What a function can reach by itself."""
    while isinstance(function, functools.partial):
        yield from (*function.args, *function.keywords.values())
        function = function.func
    yield function
    owner = getattr(function, "__self__", None)
    if owner is not None and not inspect.ismodule(owner):
        yield from (owner, *getattr(owner, "__dict__", {}).values())
    if not inspect.isroutine(function):
        yield from getattr(function, "__dict__", {}).values()
        function = type(function).__call__
    function = getattr(function, "__func__", function)
    if inspect.isfunction(function):
        used = inspect.getclosurevars(function)
        yield from (*used.nonlocals.values(), *used.globals.values())
        yield from (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
