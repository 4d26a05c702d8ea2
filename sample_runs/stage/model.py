"""A chat model that says what a script tells it: everything else of a sample is real.

A script is a generator of answers. It is sent the messages of each request, so that it can react to a tool's result or
to a warning as a model would. Ids are counted, and tokens and cost follow from the texts, so that a run can be made
again exactly.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeAlias

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field, PrivateAttr

__all__ = ["Answer", "Call", "Script", "ScriptedModel", "call", "say"]

_OVERHEAD = 420
"""Input tokens of a system prompt and the descriptions of some tools."""
_PER_CALL = 18
"""Output tokens of a tool call's frame."""
_CHARACTERS = 4
"""Characters of a token, by rule of thumb."""
_INPUT_PRICE = 3.0
_OUTPUT_PRICE = 15.0
"""US dollars for a million tokens, as a larger model costs."""


class Call(NamedTuple):
    """A tool call that the model asks for."""

    tool: str
    args: dict[str, Any]


class Answer(NamedTuple):
    """One answer of the model."""

    text: str
    calls: tuple[Call, ...]


Script: TypeAlias = Generator[Answer, list[BaseMessage], None]


def call(tool: str, /, **args: Any) -> Call:
    """A call of a tool."""
    return Call(tool, args)


def say(text: str, *calls: Call) -> Answer:
    """An answer with a text and any number of calls, which run in parallel."""
    return Answer(text, calls)


class ScriptedModel(BaseChatModel):
    """Answers by a script, one answer a request."""

    script: Any
    """The generator."""
    prefix: str = ""
    """Tells the ids of one agent's model from another's."""
    before: Callable[[], object] = Field(default=lambda: None)
    """Called before each answer: here a sub-agent waits for its turn."""
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)
    _answers: int = PrivateAttr(default=0)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> BaseChatModel:  # noqa: ARG002
        """Tools make no difference to a script."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - a script has no use for it
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - as above
        **kwargs: Any,  # noqa: ARG002 - as above
    ) -> ChatResult:
        self.before()
        with self._lock:
            answer: Answer = self.script.send(messages) if self._answers else next(self.script)
            self._answers += 1
            message = _message(answer, f"{self.prefix}{self._answers}", messages)
        return ChatResult(generations=[ChatGeneration(message=message)])


def _message(answer: Answer, number: str, request: list[BaseMessage]) -> AIMessage:
    asked = [
        {"name": call.tool, "args": call.args, "id": f"call-{number}" + (f".{place}" if place > 1 else "")}
        for place, call in enumerate(answer.calls, 1)
    ]
    read = _OVERHEAD + sum(len(message.text) + len(_asked(message)) for message in request) // _CHARACTERS
    written = (len(answer.text) + len(json.dumps([call.args for call in answer.calls]))) // _CHARACTERS
    written += _PER_CALL * len(asked)
    cost = round((read * _INPUT_PRICE + written * _OUTPUT_PRICE) / 1_000_000, 6)
    return AIMessage(
        content=answer.text,
        id=f"msg-{number}",
        tool_calls=asked,
        usage_metadata={"input_tokens": read, "output_tokens": written, "total_tokens": read + written},
        response_metadata={
            "model_name": "scripted",
            "finish_reason": "tool_calls" if asked else "stop",
            "cost_usd": cost,
        },
    )


def _asked(message: BaseMessage) -> str:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return json.dumps([call["args"] for call in calls]) if calls else ""
