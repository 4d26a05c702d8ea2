"""A real chat model that says what a script tells it, and small agents around it."""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import BaseTool, tool
from pydantic import Field, PrivateAttr

Ask: TypeAlias = "tuple[str, dict[str, Any]]"


@dataclass(frozen=True)
class Turn:
    """One answer of the model: calls, text, or an error in place of an answer."""

    calls: Sequence[Ask] = ()
    text: str = ""
    error: BaseException | None = None
    message: dict[str, Any] = field(default_factory=dict)
    """Further fields of the AI message."""
    wait: Callable[[], Awaitable[object]] | None = None
    """Awaited before an asynchronous answer."""


def turn(*calls: Ask, text: str = "", **message: Any) -> Turn:
    """An answer with these calls."""
    return Turn(calls, text, message=message)


def bash(command: str = "git status") -> Ask:
    """A call of the tool `bash`."""
    return ("bash", {"command": command})


DONE = Turn(text="done")
Script: TypeAlias = "Sequence[Turn] | Callable[[list[BaseMessage]], Turn]"


class ScriptedModel(BaseChatModel):
    """Answers by a list, whose last turn is repeated for ever, or by a function of the messages.

    As with a real provider every answer has an id of its own, usage, a model's name and a finish reason, and can be
    streamed in pieces.
    """

    script: Any
    requests: list[list[BaseMessage]] = Field(default_factory=list)
    """The messages of every request, in order."""
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> BaseChatModel:  # noqa: ARG002
        """Tools make no difference to a script."""
        return self

    def _turn(self, messages: list[BaseMessage]) -> Turn:
        with self._lock:
            number = len(self.requests)
            self.requests.append(list(messages))
        if callable(self.script):
            return self.script(messages)  # type: ignore[no-any-return]
        return self.script[min(number, len(self.script) - 1)]  # type: ignore[no-any-return]

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **kwargs: Any,  # noqa: ARG002
    ) -> ChatResult:
        return _result(self._turn(messages))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **kwargs: Any,  # noqa: ARG002
    ) -> ChatResult:
        said = self._turn(messages)
        if said.wait is not None:
            await said.wait()
        return _result(said)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ARG002
    ) -> Iterator[ChatGenerationChunk]:
        for piece in _pieces(self._turn(messages)):
            if run_manager is not None:
                run_manager.on_llm_new_token(str(piece.message.content), chunk=piece)
            yield piece

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ARG002
    ) -> AsyncIterator[ChatGenerationChunk]:
        said = self._turn(messages)
        if said.wait is not None:
            await said.wait()
        for piece in _pieces(said):
            if run_manager is not None:
                await run_manager.on_llm_new_token(str(piece.message.content), chunk=piece)
            yield piece


def _result(said: Turn) -> ChatResult:
    if said.error is not None:
        raise type(said.error)(*said.error.args)  # a new one each time, without the frames of the one before
    fields: dict[str, Any] = {
        "content": said.text,
        "id": f"ai-{uuid.uuid4()}",
        "tool_calls": [{"name": name, "args": args, "id": f"call-{uuid.uuid4()}"} for name, args in said.calls],
        "usage_metadata": {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110},
        "response_metadata": {"model_name": "scripted-1", "finish_reason": "tool_calls" if said.calls else "stop"},
    }
    return ChatResult(generations=[ChatGeneration(message=AIMessage(**(fields | said.message)))])


def _pieces(said: Turn) -> Iterator[ChatGenerationChunk]:
    whole = _result(said).generations[0].message
    assert isinstance(whole, AIMessage)
    yield ChatGenerationChunk(message=AIMessageChunk(content=whole.content, id=whole.id))
    for index, call in enumerate(whole.tool_calls):
        text = json.dumps(call["args"])
        for part, (name, call_id) in ((text[:3], (call["name"], call["id"])), (text[3:], (None, None))):
            chunk = tool_call_chunk(name=name, args=part, id=call_id, index=index)
            yield ChatGenerationChunk(message=AIMessageChunk(content="", id=whole.id, tool_call_chunks=[chunk]))
    last = AIMessageChunk(
        content="", id=whole.id, usage_metadata=whole.usage_metadata, response_metadata=whole.response_metadata,
        chunk_position="last",
    )  # fmt: skip
    yield ChatGenerationChunk(message=last)


class Shell:
    """A tool `bash` that remembers what it was made to run."""

    def __init__(self, answer: Callable[[str], str] = "ran {}".format) -> None:
        self.ran: list[str] = []

        @tool
        def bash(command: str) -> str:
            """Run a command."""
            self.ran.append(command)
            return answer(command)

        self.tool: BaseTool = bash


def agent(script: Script | BaseChatModel, *middleware: AgentMiddleware[Any, Any, Any], **options: Any) -> Any:
    """A compiled agent; its tools are a `Shell`'s unless given."""
    model = script if isinstance(script, BaseChatModel) else ScriptedModel(script=script)
    options.setdefault("tools", [Shell().tool])
    return create_agent(model, middleware=list(middleware), **options)


def ask(text: str = "go") -> dict[str, Any]:
    """The input of a graph: one message of the user."""
    return {"messages": [HumanMessage(text)]}


def on(thread_id: str, **more: Any) -> dict[str, Any]:
    """The config of a graph for one thread."""
    return {"configurable": {"thread_id": thread_id}, **more}
