"""The graph that the server of the tests runs: one search after another, A B A B and so on, as its input says."""

from __future__ import annotations

import time
from typing import Annotated, Any, NotRequired, TypedDict
from uuid import uuid4

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt


class State(TypedDict):
    messages: Annotated[list[Any], add_messages]
    batches: NotRequired[int]
    pause: NotRequired[float]
    fails: NotRequired[bool]
    asks: NotRequired[bool]


def model(state: State) -> Any:
    """What a model would say."""
    done = 0
    for message in reversed(state["messages"]):
        if message.type == "human":
            break
        done += message.type == "ai"
    if done >= state.get("batches", 3):
        return {"messages": [AIMessage("done", id=str(uuid4()))]}
    call = {"name": "search", "args": {"query": "AB"[done % 2]}, "id": str(uuid4())}
    return {"messages": [AIMessage("", id=str(uuid4()), tool_calls=[call])]}


def tools(state: State) -> Any:
    """The tool."""
    if state.get("asks"):
        interrupt("may I?")
    if state.get("fails"):
        raise OSError("down")
    time.sleep(state.get("pause", 0))
    calls = state["messages"][-1].tool_calls
    return {"messages": [ToolMessage(f"found {call['args']['query']}", tool_call_id=call["id"]) for call in calls]}


builder = StateGraph(State)
builder.add_node("model", model)
builder.add_node("tools", tools)
builder.add_edge(START, "model")
builder.add_conditional_edges("model", lambda s: "tools" if s["messages"][-1].tool_calls else END, ["tools", END])
builder.add_edge("tools", "model")
graph = builder.compile()
