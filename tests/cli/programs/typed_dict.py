"""A TypedDict with Annotated in `__main__`, whose hints are looked up there, and messages made by hand without ids."""

from __future__ import annotations

import operator
import sys
from typing import Annotated, Any, TypedDict, get_type_hints

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import END, START, StateGraph

from tests.cli.programs.common import report, show


class State(TypedDict):
    """Counts and collects."""

    rounds: Annotated[int, operator.add]
    messages: Annotated[list[Any], operator.add]


def agent(state: State) -> dict[str, Any]:
    """Asks by hand."""
    call = {"name": "look", "args": {"at": "it"}, "id": f"look-{id(state) and state['rounds']}-{len(CALLS)}"}
    CALLS.append(call)
    return {"rounds": 1, "messages": [AIMessage("", tool_calls=[call])]}


def tools(state: State) -> dict[str, Any]:
    """Answers by hand; the second time with an error."""
    (call,) = state["messages"][-1].tool_calls
    status = "error" if state["rounds"] == 2 else "success"
    return {"messages": [ToolMessage(f"seen {state['rounds']}", tool_call_id=call["id"], status=status)]}


CALLS: list[Any] = []
graph: Any = StateGraph(State)
graph.add_node(agent)
graph.add_node(tools)
graph.add_edge(START, "agent")
graph.add_edge("agent", "tools")
graph.add_conditional_edges("tools", lambda state: END if state["rounds"] > 2 else "agent")
show([__name__, sys.modules["__main__"].__dict__ is globals(), str(get_type_hints(State, include_extras=True))])
show(sorted(__annotations__))
report(graph.compile(), lambda: {"rounds": 0, "messages": []})
