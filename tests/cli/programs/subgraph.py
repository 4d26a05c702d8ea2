"""An agent as a node of a graph, and another one that a node calls."""

from __future__ import annotations

from typing import Any

from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from tests.cli.programs.common import Scripted, report, said, search


def agent(searches: int) -> Any:
    """A compiled agent."""
    model = Scripted(searches=searches)
    graph: Any = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode([search]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile()


inner = agent(5)


def call(state: MessagesState) -> dict[str, Any]:
    """Passes on what another agent found out."""
    found = inner.invoke({"messages": state["messages"]})["messages"]
    return {"messages": [*found[len(state["messages"]) :], said("that is all")]}


graph: Any = StateGraph(MessagesState)
graph.add_node("first", agent(2))
graph.add_node("second", call)
graph.add_edge(START, "first")
graph.add_edge("first", "second")
report(graph.compile())
