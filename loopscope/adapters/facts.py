"""What a recording keeps of LangChain messages: calls, usage, model and text of the model's, errors of the tools'.

Only reading, and never failing: every provider fills `response_metadata` in its own way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from loopscope.engine.events import Call, Usage

__all__ = ["calls_of", "error_type_of", "model_of", "since_last_ai", "text_of", "usage_of"]

_MODEL = ("model_name", "model", "model_id", "modelId")
_COST = ("cost_usd", "total_cost_usd", "total_cost", "cost")
_ERROR = re.compile(
    r"\s*(?:Error:|Error (?:invoking|executing) tool .{0,4000}? with error:)?\s*"
    r"(?:[a-z_]\w*\.)*(?P<type>[A-Z]\w*(?:Error|Exception|Warning|Interrupt|Timeout|Exit))\s*[(:]",
    re.DOTALL,
)

_REFUSED = re.compile(r"Error invoking tool .* with error:", re.DOTALL)
"""How LangGraph's tool node begins its answer to arguments that the tool's schema refuses."""


def calls_of(message: AIMessage) -> tuple[Call, ...]:
    """The tool calls of the message, in the model's order."""
    return tuple([Call(call.get("id"), call["name"], call["args"]) for call in message.tool_calls])


def usage_of(message: AIMessage) -> Usage | None:
    """Tokens, and the cost in US dollars where the provider tells one; None where it tells nothing."""
    told = message.response_metadata
    tokens: Mapping[str, Any] = message.usage_metadata or {}
    cost = _cost((tokens, told.get("token_usage"), told.get("usage"), told))
    if not tokens and cost is None:
        return None
    return Usage(_whole(tokens.get("input_tokens")), _whole(tokens.get("output_tokens")), cost)


def model_of(message: AIMessage) -> str | None:
    """The name of the model that answered, where the provider tells it."""
    told = message.response_metadata
    return next((told[name] for name in _MODEL if isinstance(told.get(name), str) and told[name]), None)


def text_of(message: AIMessage) -> str | None:
    """What the model said beside its calls; None where it said nothing."""
    try:
        return str(message.text) or None
    except Exception:  # noqa: BLE001 - content of a shape that LangChain itself cannot read
        return None


def error_type_of(message: ToolMessage, text: str) -> str | None:
    """The class of the error that a failed tool raised, where its text begins by naming it."""
    if message.status != "error":
        return None
    if isinstance(message.artifact, BaseException):
        return type(message.artifact).__name__
    head = text[:5_000]
    found = _ERROR.match(head)
    if found:
        return found["type"]
    return "ToolInvocationError" if _REFUSED.match(head) else None


def since_last_ai(messages: Sequence[BaseMessage]) -> list[ToolMessage]:
    """The tool messages since the last AI message, oldest first."""
    found: list[ToolMessage] = []
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            break
        if isinstance(message, ToolMessage):
            found.append(message)
    return found[::-1]


def _cost(places: Iterable[object]) -> float | None:
    for place in places:
        if isinstance(place, Mapping):
            for name in _COST:
                value = place.get(name)
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    return float(value)
    return None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None
