"""What a node writes, with fields beside it, and the state as it will be: LangGraph's own rules, for one node.

Apart from the wrapping since a node may give back a mapping, a command, several of both, or an object of the state's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from langgraph.types import Command
from typing_extensions import get_type_hints

from loopscope.errors import UsageError

__all__ = ["merged", "reducers_of", "writes_of", "written_to"]


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


def writes_of(update: Any) -> dict[str, Any]:
    """The fields of the state that an update writes, as far as that can be told."""
    if isinstance(update, Mapping):
        return dict(update)
    if isinstance(update, Command):
        return writes_of(update.update) if update.graph is None else {}
    if isinstance(update, (list, tuple)):
        pairs = all(isinstance(each, tuple) and len(each) == 2 for each in update)  # noqa: PLR2004 - a field and its value
        return dict(update) if pairs else {name: value for each in update for name, value in writes_of(each).items()}
    return {} if update is None else _set_fields(update)


def written_to(state: Any, writes: Mapping[str, Any], reducers: Mapping[str, Callable[[Any, Any], Any]]) -> Any:
    """The state with these writes, by its reducers where they are known; a state that is an object as a mapping."""
    then = dict(state) if isinstance(state, Mapping) else {**getattr(state, "__dict__", {})}
    for name, value in writes.items():
        reducer, before = reducers.get(name), then.get(name)
        then[name] = value
        if reducer is not None and before is not None:
            # It is a foresight: the graph itself will tell whoever wrote what cannot be reduced.
            with suppress(Exception):
                then[name] = reducer(before, value)
    return then


def reducers_of(schema: type[Any]) -> dict[str, Callable[[Any, Any], Any]]:
    """The reducers that a state declares."""
    found: dict[str, Callable[[Any, Any], Any]] = {}
    for name, hint in get_type_hints(schema, include_extras=True).items():
        last = getattr(hint, "__metadata__", (None,))[-1]
        if callable(last):
            found[name] = last
    return found


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
