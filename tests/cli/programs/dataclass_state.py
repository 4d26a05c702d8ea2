"""A state that is a dataclass, without a reducer: every node returns all messages, old and new."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.graph import END, START, StateGraph

from tests.cli.programs.common import asked, report, said


@dataclass
class State:
    """All messages so far."""

    messages: list[Any] = field(default_factory=list)


def agent(state: State) -> dict[str, Any]:
    """Asks three times, then stops."""
    new = asked("look", at="it") if len(state.messages) < 6 else said("enough")
    return {"messages": [*state.messages, new]}


def tools(state: State) -> State:
    """Answers."""
    (call,) = state.messages[-1].tool_calls
    return State([*state.messages, ToolMessage("seen", tool_call_id=call["id"])])


graph: Any = StateGraph(State)
graph.add_node(agent)
graph.add_node(tools)
graph.add_edge(START, "agent")
graph.add_conditional_edges("agent", lambda state: "tools" if state.messages[-1].tool_calls else END)
graph.add_edge("tools", "agent")
report(graph.compile(), State)
