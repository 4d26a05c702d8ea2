"""What a function of the user's mentions and compares, read off its code without running it.

That is a hint and no proof: whatever is concluded from it is told as inferred.
"""

from __future__ import annotations

import dis
import functools
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

__all__ = ["Mentions", "Place", "mentions", "name_of", "place_of"]

_DEEPEST = 3
"""Functions that call functions, of the same module, that are looked into."""


class Mentions(NamedTuple):
    """What a function and those that it calls in its module mention."""

    names: frozenset[str]
    """Attributes, globals and text constants."""
    compares: bool
    """Something is compared."""


class Place(NamedTuple):
    """Where a function is written."""

    file: str
    """Relative to the working directory."""
    line: int


def mentions(function: Any) -> Mentions:
    """What a function mentions; nothing where it has no code of Python."""
    names: set[str] = set()
    compares = False
    for code in _codes(function):
        names.update(code.co_names, code.co_freevars)
        names.update(each for each in code.co_consts if isinstance(each, str))
        compares = compares or any(step.opname in ("COMPARE_OP", "CONTAINS_OP") for step in dis.get_instructions(code))
    return Mentions(frozenset(names), compares)


def place_of(function: Any) -> Place | None:
    """Where a function is written, if that is within the working directory and no installed package."""
    plain = _plain(function)
    if plain is None:
        return None
    file = Path(plain.__code__.co_filename)
    try:
        shown = file.resolve().relative_to(Path.cwd().resolve())
    except ValueError:
        return None
    if "site-packages" in shown.parts:
        return None
    return Place(shown.as_posix(), plain.__code__.co_firstlineno)


def name_of(function: Any) -> str:
    """What a function is called."""
    plain = _plain(function)
    return plain.__qualname__.rpartition("<locals>.")[2] if plain is not None else type(function).__name__


def _codes(function: Any) -> Iterator[CodeType]:
    seen: set[CodeType] = set()
    waiting = [(function, 0)]
    while waiting:
        each, depth = waiting.pop()
        plain = _plain(each)
        if plain is None or plain.__code__ in seen:
            continue
        for code in _nested(plain.__code__):
            seen.add(code)
            yield code
        if depth < _DEEPEST:
            waiting += [(called, depth + 1) for called in _called(plain)]


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _nested(each)


def _called(function: FunctionType) -> Iterator[Any]:
    """Functions of the same module that a function refers to."""
    used = inspect.getclosurevars(function)
    for each in (*used.globals.values(), *used.nonlocals.values()):
        plain = _plain(each)
        if plain is not None and plain.__module__ == function.__module__:
            yield plain


def _plain(function: Any) -> FunctionType | None:
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function) if callable(function) else function
    function = getattr(function, "__func__", function)
    if not isinstance(function, FunctionType):
        function = getattr(type(function), "__call__", None)  # noqa: B004 - the method itself
    return function if isinstance(function, FunctionType) else None
