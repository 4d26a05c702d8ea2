"""Surgery on LangChain messages: an AI message without its tool calls, and the one message that carries warnings.

Apart from the middleware since it knows how providers repeat tool calls in other places of a message: where one copy
is left, the next request to that provider fails, as it has calls without results. Nothing that is handed in is ever
changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)

__all__ = ["WARNING_NAME", "newest_ai", "stopped", "warning_message", "without_calls"]

WARNING_NAME = "loop_warning"
"""Name of the human message that carries warnings."""
_CALL_BLOCKS = frozenset({
    "tool_call", "tool_call_chunk", "invalid_tool_call",  # LangChain's own
    "tool_use", "input_json_delta",  # Anthropic, and its streaming
    "function_call", "custom_tool_call",  # OpenAI Responses, Google
    "toolUse", "functionCall",  # Bedrock Converse and Gemini as they come
})  # fmt: skip
_RAW_CALLS = ("tool_calls", "function_call")
_FINISH = {
    ("finish_reason", "tool_calls"): "stop",
    ("finish_reason", "function_call"): "stop",
    ("stop_reason", "tool_use"): "end_turn",
    ("stopReason", "tool_use"): "end_turn",
}

M = TypeVar("M", bound=AIMessage)


def newest_ai(messages: Sequence[AnyMessage]) -> tuple[AIMessage | None, Sequence[AnyMessage]]:
    """The AI message of the model's turn that is just over, and the tool messages behind it.

    Structured output puts its tool message behind the AI message in the same turn. None where anything else came since.
    """
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, AIMessage):
            return message, messages[index + 1 :]
        if not isinstance(message, ToolMessage):
            break
    return None, ()


def without_calls(message: M, text: str) -> M:
    """A copy of the message, of the same class and id, that calls no tool and says `text` at its end."""
    changes: dict[str, Any] = {"content": _append(message.content, text), "tool_calls": [], "invalid_tool_calls": []}
    if isinstance(message, AIMessageChunk):
        changes["tool_call_chunks"] = []
    raw = message.additional_kwargs
    if any(name in raw for name in _RAW_CALLS):
        changes["additional_kwargs"] = {name: value for name, value in raw.items() if name not in _RAW_CALLS}
    told = message.response_metadata
    finish = {place: _FINISH[place, told[place]] for place, reason in _FINISH if told.get(place) == reason}
    if finish:
        changes["response_metadata"] = {**told, **finish}
    return message.model_copy(update=changes)


def stopped(message: AIMessage, behind: Sequence[AnyMessage], text: str) -> list[BaseMessage]:
    """What a stop writes to the messages: the AI message replaced, its own tool messages behind it removed."""
    calls = {call.get("id") for call in (*message.tool_calls, *message.invalid_tool_calls)}
    gone = [
        RemoveMessage(id=other.id)
        for other in behind
        if isinstance(other, ToolMessage) and other.tool_call_id in calls and other.id is not None
    ]
    return [*gone, without_calls(message, text)]


def warning_message(texts: Sequence[str]) -> HumanMessage:
    """One message for all texts that wait. It is made for one request and never stored."""
    return HumanMessage(content="\n\n".join(texts), name=WARNING_NAME)


def _append(content: Any, text: str) -> Any:
    if content is None:
        return text
    if isinstance(content, list):
        kept = [block for block in content if not _is_call(block)]
        return [*kept, {"type": "text", "text": f"\n\n{text}"}]
    return f"{content}\n\n{text}"


def _is_call(block: object) -> bool:
    if not isinstance(block, dict):
        return False
    kind = block.get("type")
    if kind is None:
        return any(name in block for name in ("toolUse", "functionCall"))
    return kind in _CALL_BLOCKS or (kind == "non_standard" and _is_call(block.get("value")))
