"""A loop without end: LangGraph's own limit ends the program, with the traceback of an error that nobody caught."""

from __future__ import annotations

from typing import Any

from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from tests.cli.programs.common import Scripted, search, start

model = Scripted(searches=100)
graph: Any = StateGraph(MessagesState)
graph.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
graph.add_node("tools", ToolNode([search]))
graph.add_edge(START, "agent")
graph.add_conditional_edges("agent", tools_condition)
graph.add_edge("tools", "agent")
try:
    graph.compile().invoke(start(), {"recursion_limit": 9})
finally:
    print("it ends")  # noqa: T201 - it is a program
