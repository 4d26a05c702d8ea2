"""The witnesses that need nothing of the program, and what the last failure of a state was.

They read the messages since the model's last turn, as the engine's layer `stagnation` reads the results of a batch, and
compare the same: tool and digest, or tool and normalised error text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage

from loopscope.adapters.bounded.fields import Fields, read
from loopscope.adapters.facts import since_last_ai
from loopscope.engine.trail import normalised_error
from loopscope.recording.preview import digest, text_of

__all__ = ["BUILT_IN", "built_in", "error_in"]

BUILT_IN = ("last_error", "results")
_LONGEST = 500
"""Characters of an error that a model is told."""
_ERROR_KEYS = ("error", "last_error")
"""Where graphs without messages often keep what went wrong."""


def built_in(name: str, fields: Fields) -> Callable[[Any], Any]:
    """The witness of this name, for the loop with these fields."""
    return (lambda state: _last_error(state, fields)) if name == "last_error" else _results


def error_in(state: Any, fields: Fields) -> str | None:
    """What went wrong last: in the wrapped node, in the tools since the model's last turn, or as the state says."""
    raised = read(state, fields.error)
    if raised:
        return str(raised)[:_LONGEST]
    failed = [text_of(message.content) for message in _answers(state) if message.status == "error"]
    told = [read(state, key) for key in _ERROR_KEYS]
    texts = failed or [each for each in told if isinstance(each, str)][:1]
    return "; ".join(texts)[:_LONGEST] or None


def _last_error(state: Any, fields: Fields) -> list[list[str]] | None:
    raised = read(state, fields.error)
    if raised:
        return [["", normalised_error(str(raised))]]
    failed = [message for message in _answers(state) if message.status == "error"]
    if failed:
        return [[message.name or "", normalised_error(text_of(message.content))] for message in failed]
    told = error_in(state, fields)
    return [["", normalised_error(told)]] if told else None


def _results(state: Any) -> list[list[str]] | None:
    return [[message.name or "", digest(text_of(message.content))] for message in _answers(state)] or None


def _answers(state: Any) -> list[ToolMessage]:
    """The newest answers of tools: of the model's last turn, or of the one before while that waits for its own."""
    messages = read(state, "messages", ())
    if not isinstance(messages, (list, tuple)):
        return []
    if messages and isinstance(messages[-1], AIMessage) and messages[-1].tool_calls:
        messages = messages[:-1]
    return since_last_ai(messages)
