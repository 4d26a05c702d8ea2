"""What the programs share: ids that can be foretold, a model that follows a script, and the ways to run a graph."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from pydantic import BaseModel

_numbers = itertools.count(1)
uuid.uuid4 = lambda: uuid.UUID(int=next(_numbers))  # so that every id of a message is the same in every run


def asked(name: str, **args: Any) -> AIMessage:
    """An AI message with one call."""
    number = next(_numbers)
    return AIMessage("", id=f"ai-{number}", tool_calls=[{"name": name, "args": args, "id": f"call-{number}"}])


def said(text: str) -> AIMessage:
    """An AI message without calls."""
    return AIMessage(text, id=f"ai-{next(_numbers)}")


class Scripted(BaseChatModel):
    """Asks for a search so many times, then is done."""

    searches: int = 3

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> BaseChatModel:  # noqa: ARG002
        """Tools make no difference."""
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:  # noqa: ARG002
        done = sum(isinstance(message, AIMessage) for message in messages) >= self.searches
        message = said("done") if done else asked("search", query="cats")
        return ChatResult(generations=[ChatGeneration(message=message)])


@tool
def search(query: str) -> str:
    """Look something up."""
    return f"nothing about {query}"


def start() -> dict[str, Any]:
    """The input of a run: one message of the user."""
    return {"messages": [HumanMessage("go", id=f"human-{next(_numbers)}")]}


def show(value: object) -> None:
    """Print as JSON, messages by what matters of them."""
    print(json.dumps(value, default=_plain))  # noqa: T201 - it is a program


def report(graph: Any, begin: Callable[[], Any] = start, **more: Any) -> None:
    """Run a graph by invoke, ainvoke and stream, each in a thread of its own, and show how each ended."""
    ways: dict[str, Callable[[Any, Any], Any]] = {
        "invoke": graph.invoke,
        "ainvoke": lambda value, config: asyncio.run(graph.ainvoke(value, config)),
        "stream": lambda value, config: list(graph.stream(value, config, stream_mode="values"))[-1],
    }
    for way, run in ways.items():
        try:
            end = run(begin(), {"configurable": {"thread_id": way}, **more})
        except Exception as error:  # noqa: BLE001 - which one is what is shown
            end = f"{type(error).__name__}: {error}"
        show({"way": way, "end": end})


def _plain(value: object) -> object:
    if isinstance(value, BaseMessage):
        kept: dict[str, object] = {"type": value.type, "id": value.id, "content": value.content}
        if isinstance(value, AIMessage):
            kept["calls"] = [call["id"] for call in value.tool_calls]
        if isinstance(value, ToolMessage):
            kept["answers"] = value.tool_call_id
        return kept
    if isinstance(value, BaseModel) or dataclasses.is_dataclass(value):
        return dict(vars(value))
    return dict(value) if isinstance(value, Mapping) else repr(value)
