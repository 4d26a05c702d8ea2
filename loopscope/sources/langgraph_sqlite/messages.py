"""A message as the reader needs it, out of any form in which states hold messages.

LangChain objects of any version, their JSON forms, and the plain dicts of those who do without LangChain. Apart since
it knows nothing of databases, and a reader of another format with LangChain messages in it needs the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from loopscope.engine.events import Call, Usage
from loopscope.engine.identity import dumps
from loopscope.recording.plain import plain
from loopscope.recording.preview import text_of
from loopscope.sources.langgraph_sqlite.failures import failure
from loopscope.sources.langgraph_sqlite.unpack import Named

__all__ = [
    "Logged",
    "Message",
    "Output",
    "Said",
    "looks_like_message",
    "message_id",
    "read_logged",
    "read_message",
    "signature",
]

_Kind: TypeAlias = Literal["ai", "tool", "other"]
_KINDS: dict[object, _Kind] = {
    **dict.fromkeys(("ai", "assistant", "AIMessage", "AIMessageChunk"), "ai"),
    **dict.fromkeys(
        ("tool", "function", "ToolMessage", "ToolMessageChunk", "FunctionMessage", "FunctionMessageChunk"), "tool"
    ),
    **dict.fromkeys(("human", "user", "HumanMessage", "HumanMessageChunk"), "other"),
    **dict.fromkeys(("system", "developer", "SystemMessage", "SystemMessageChunk"), "other"),
    **dict.fromkeys(("chat", "ChatMessage", "ChatMessageChunk", "remove", "RemoveMessage"), "other"),
}

_MODEL = ("model_name", "model", "model_id", "modelId")
_COST = ("cost_usd", "total_cost_usd", "total_cost", "cost")
_LOGGED_NAMES = ("name", "tool_name", "tool", "function")
_LOGGED_ARGUMENTS = ("args", "arguments", "tool_input", "input", "parameters", "params")
_LOGGED_RESULTS = ("error", "result", "output", "observation", "response")


class Said(Struct, frozen=True):
    """What the model said: an AI message, with or without calls."""

    id: str | None
    calls: tuple[Call, ...]
    text: str
    usage: Usage | None
    model: str | None


class Output(Struct, frozen=True):
    """What a tool gave back."""

    id: str | None
    call_id: str | None
    name: str | None
    text: str
    failed: bool
    error_type: str | None


class Message(Struct, frozen=True):
    """A message that is neither: of a person, of the system, or one that takes another back."""

    id: str | None


class Logged(Struct, frozen=True):
    """An entry of a log of calls that a program keeps in a channel of its own."""

    call: Call
    output: Output | None


def looks_like_message(value: object) -> bool:
    """Whether this is a message in one of the forms that `read_message` takes."""
    return _fields(value) is not None


def message_id(value: object) -> str | None:
    """The id of a message, without reading the rest of it; None if it has none or is none."""
    fields = value.value if isinstance(value, Named) else value
    return _text(fields.get("id")) if isinstance(fields, dict) else None


def read_message(value: object) -> Said | Output | Message | None:
    """The message that a stored value is; None if it is none."""
    found = _fields(value)
    if found is None:
        return None
    kind, fields = found
    if kind == "ai":
        return Said(
            _text(fields.get("id")),
            tuple(_calls(fields)),
            _spoken(fields.get("content")),
            _usage(fields),
            _model(fields),
        )
    if kind == "tool":
        text = text_of(fields.get("content"))
        failed, error_type = failure(text, fields.get("status"))
        call_id, name = _text(fields.get("tool_call_id")), _text(fields.get("name"))
        return Output(_text(fields.get("id")), call_id, name, text, failed, error_type)
    return Message(_text(fields.get("id")))


def read_logged(value: object, otherwise: str) -> Logged | None:
    """The call that an entry of a log tells of; None if it tells of none.

    Args:
        value: a dict with a name, arguments and, where the call is over, what came back.
        otherwise: the call's id where the entry has none, so that its result finds it.
    """
    fields = value.value if isinstance(value, Named) else value
    if not isinstance(fields, dict):
        return None
    name = next((_text(fields[key]) for key in _LOGGED_NAMES if key in fields), None)
    arguments = next((fields[key] for key in _LOGGED_ARGUMENTS if key in fields), None)
    if name is None or not any(key in fields for key in (*_LOGGED_ARGUMENTS, *_LOGGED_RESULTS)):
        return None
    call = Call(_text(fields.get("id")) or _text(fields.get("tool_call_id")) or otherwise, name, plain(arguments))
    result = next((key for key in _LOGGED_RESULTS if fields.get(key) is not None), None)
    if result is None:
        return Logged(call, None)
    text = text_of(fields[result])
    failed, error_type = failure(text, "error" if result == "error" else fields.get("status"))
    return Logged(call, Output(None, call.id, name, text, failed, error_type))


def signature(message: Said | Output | Message | Logged) -> bytes:
    """What makes two messages without ids the same."""
    if isinstance(message, Said):
        parts: object = [message.text, [[call.id, call.name, call.args] for call in message.calls]]
    elif isinstance(message, Logged):
        parts = [message.call.name, message.call.args]
    elif isinstance(message, Output):
        parts = [message.call_id, message.name, message.text, None]
    else:
        parts = None
    return blake2b(dumps(parts).encode(), digest_size=16).digest()


def _fields(value: object) -> tuple[_Kind, dict[Any, Any]] | None:
    """The kind of a message, and its fields."""
    if isinstance(value, Named):
        fields = value.value
        if not isinstance(fields, dict):
            return None
        kind = _kind(fields.get("type")) or _KINDS.get(value.name)
        return None if kind is None else (kind, fields)
    if not isinstance(value, dict):
        return None
    kind = _kind(value.get("role")) or _kind(value.get("type"))
    inner = value.get("data")
    if kind is not None and isinstance(inner, dict) and "content" in inner:
        return kind, inner
    return None if kind is None or not ("content" in value or "tool_calls" in value) else (kind, value)


def _kind(word: object) -> _Kind | None:
    return _KINDS.get(word) if isinstance(word, str) else None


def _calls(fields: dict[Any, Any]) -> Iterable[Call]:
    """The calls of an AI message, in the model's order.

    Where LangChain lists them, they are the ones that it lists: those whose arguments did not parse are not run, and
    the middleware does not see them either. Without such a list, they stand as the provider sent them.
    """
    listed = fields.get("tool_calls")
    if isinstance(listed, list):
        return map(_call, _dicts(listed))
    extra = fields.get("additional_kwargs")
    raw = extra if isinstance(extra, dict) else {}
    found = (
        _dicts(raw.get("tool_calls"))
        or [block for block in _dicts(fields.get("content")) if block.get("type") == "tool_use"]
        or _dicts([raw.get("function_call"), fields.get("function_call")])
    )
    return map(_call, found)


def _call(fields: dict[Any, Any]) -> Call:
    """A call of LangChain (`args`), of OpenAI (`function.arguments`), or of Anthropic (`input`)."""
    function = fields.get("function")
    named = function if isinstance(function, dict) else fields
    arguments = next((named[key] for key in ("args", "arguments", "input") if key in named), None)
    return Call(_text(fields.get("id")), _text(named.get("name")), plain(arguments))


def _dicts(value: object) -> list[dict[Any, Any]]:
    items = value if isinstance(value, list) else []
    bare = [item.value if isinstance(item, Named) else item for item in items]
    return [item for item in bare if isinstance(item, dict)]


def _spoken(content: object) -> str:
    """The text of an AI message; its other blocks are calls, which stand elsewhere, and thoughts."""
    if isinstance(content, list):
        blocks = [block for block in content if isinstance(block, str) or _is_text(block)]
        return text_of(blocks)
    return content if isinstance(content, str) else ""


def _is_text(block: object) -> bool:
    return isinstance(block, dict) and isinstance(block.get("text"), str)


def _usage(fields: dict[Any, Any]) -> Usage | None:
    tokens, told = _mapping(fields.get("usage_metadata")), _mapping(fields.get("response_metadata"))
    places = (tokens, _mapping(told.get("token_usage")), _mapping(told.get("usage")), told)
    cost = next((place[name] for place in places for name in _COST if _is_number(place.get(name))), None)
    if not tokens and cost is None:
        return None
    return Usage(
        _count(tokens.get("input_tokens")), _count(tokens.get("output_tokens")), None if cost is None else float(cost)
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _model(fields: dict[Any, Any]) -> str | None:
    told = _mapping(fields.get("response_metadata"))
    return next((told[name] for name in _MODEL if isinstance(told.get(name), str) and told[name]), None)


def _mapping(value: object) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    """An id or a name. What is neither text nor a number is none."""
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None
