"""A state that is a Pydantic model, which copies and checks what it is given."""

from __future__ import annotations

from typing import Annotated, Any

from langchain_core.messages import AnyMessage
from langgraph.graph import START, StateGraph, add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic import BaseModel, Field

from tests.cli.programs.common import Scripted, report, search, start


class State(BaseModel):
    """Messages and a number that must not be negative."""

    messages: Annotated[list[AnyMessage], add_messages] = Field(default_factory=list)
    left: int = Field(default=3, ge=0)


def agent(state: State) -> State:
    """Returns the whole state."""
    return State(messages=[*state.messages, model.invoke(state.messages)], left=state.left - 1)


model = Scripted(searches=3)
graph: Any = StateGraph(State)
graph.add_node("agent", agent)
graph.add_node("tools", ToolNode([search]))
graph.add_edge(START, "agent")
graph.add_conditional_edges("agent", tools_condition)
graph.add_edge("tools", "agent")
report(graph.compile(), lambda: State(messages=start()["messages"], left=4))
report(graph.compile(), lambda: {**start(), "left": 2})
