"""The messages in what a node was given and in what it returned, whatever the shape of the graph's state.

A node may return a mapping, a model or a dataclass, a `Command` or a list of them, or bare messages; each message may
be written as LangChain's own object or as the plain data that its reducers take.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, convert_to_messages
from langgraph.types import Command, Overwrite
from pydantic import BaseModel

__all__ = ["TOLD", "Told", "lists_in", "messages_in", "not_in", "result_in", "sole_message"]

Told: TypeAlias = AIMessage | ToolMessage
TOLD = frozenset({AIMessage, ToolMessage})
"""Looked at before `isinstance`, which takes long to say no of a pydantic class."""
_SPEAKERS = frozenset({"ai", "assistant", "tool"})


def sole_message(output: object) -> Told | None:
    """The message in the usual output of a node, which is a list of it alone in one channel; None for any other."""
    if type(output) is dict and len(output) == 1:
        (value,) = output.values()
        if type(value) is list and len(value) == 1 and type(value[0]) in TOLD:
            only: Told = value[0]
            return only
    return None


def messages_in(output: object) -> list[Told]:
    """The AI and tool messages in the output of a node, in its order; messages in plain data are read as such."""
    return list(_in_output(output))


def lists_in(state: object) -> Iterable[tuple[str, Sequence[Any]]]:
    """The channels of a node's input that hold lists, by name."""
    if isinstance(state, list):
        return (("", state),)
    return [(name, value) for name, value in _fields(state).items() if isinstance(value, list)]


def not_in(state: object, messages: Sequence[Told]) -> list[Told]:
    """Those of the messages that a node was not given: neither they themselves nor others with their ids."""
    left = list(messages)
    for value in (state, *_fields(state).values()):
        for item in value if isinstance(value, (list, tuple)) else (value,):
            name = getattr(item, "id", None)
            for each in left:
                if each is item or (each.id == name and name is not None):
                    left = [other for other in left if other is not each]
                    break
    return left


def result_in(output: object, call_id: str | None) -> ToolMessage | None:
    """The message among a tool's output that answers this call; None where it does not say anything."""
    if isinstance(output, ToolMessage):
        return output
    found = [each for each in messages_in(output) if isinstance(each, ToolMessage)] if output is not None else []
    return next((message for message in found if message.tool_call_id == call_id), None)


def _in_output(output: object) -> Iterator[Told]:
    if isinstance(output, Command):
        yield from _in_update(output.update)
    elif isinstance(output, (list, tuple)) and not _is_message(output):
        for item in output:
            if isinstance(item, Command):
                yield from _in_update(item.update)
            elif isinstance(item, Mapping) and not _is_message(item):
                yield from _in_fields(item)
            else:
                yield from _read(item)
    elif isinstance(output, BaseMessage) or _is_message(output):
        yield from _read(output)
    else:
        yield from _in_fields(output)


def _in_update(update: object) -> Iterator[Told]:
    if isinstance(update, (list, tuple)) and all(_is_pair(item) for item in update):
        for _, value in update:
            yield from _in_channel(value)
    elif not isinstance(update, Command):
        yield from _in_output(update)


def _is_pair(item: object) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) and not _is_message(item)  # noqa: PLR2004


def _in_fields(state: object) -> Iterator[Told]:
    for value in _fields(state).values():
        yield from _in_channel(value)


def _fields(state: object) -> Mapping[str, Any]:
    if type(state) is dict or isinstance(state, Mapping):
        return state
    if isinstance(state, BaseModel) or dataclasses.is_dataclass(state):
        return vars(state) if hasattr(state, "__dict__") else {}
    return {}


def _in_channel(value: object) -> Iterator[Told]:
    if isinstance(value, Overwrite):
        value = value.value
    if isinstance(value, (list, tuple)) and not _is_message(value):
        # Long lists of something else are not gone through.
        if value and (_may_be(value[0]) or _may_be(value[-1])):
            for item in value:
                yield from _read(item)
    else:
        yield from _read(value)


def _may_be(item: object) -> bool:
    return type(item) in TOLD or isinstance(item, BaseMessage) or _is_message(item)


def _read(item: object) -> Iterator[Told]:
    if isinstance(item, (AIMessage, ToolMessage)):
        yield item
    elif _is_message(item):
        try:
            made = convert_to_messages([item])[0]  # type: ignore[list-item]  # one of the shapes that it takes
        except Exception:  # noqa: BLE001 - plain data that only looks like a message
            return
        if isinstance(made, (AIMessage, ToolMessage)):
            yield made


def _is_message(item: object) -> bool:
    """Whether this is a model's or a tool's message in plain data: `("ai", text)`, or a dict with role and content."""
    if isinstance(item, tuple):
        said = len(item) == 2 and isinstance(item[0], str) and isinstance(item[1], str)  # noqa: PLR2004
        return said and item[0] in {"ai", "assistant"}
    if isinstance(item, dict) and "content" in item:
        speaker = item.get("role", item.get("type"))
        return isinstance(speaker, str) and speaker in _SPEAKERS
    return False
