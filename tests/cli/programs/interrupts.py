"""A tool that asks a person, and a node that does; each run is resumed until it ends."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt

from tests.cli.programs.common import Scripted, show, start


@tool
def search(query: str) -> str:
    """Ask a person."""
    return f"{interrupt(query)} about {query}"


def sign(state: MessagesState) -> dict[str, Any]:
    """Does nothing, once a person has agreed."""
    interrupt({"messages": len(state["messages"])})
    return {}


model = Scripted(searches=2)
graph: Any = StateGraph(MessagesState)
graph.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
graph.add_node("sign", sign)
graph.add_node("tools", ToolNode([search]))
graph.add_edge(START, "agent")
graph.add_conditional_edges("agent", tools_condition, {"tools": "sign", "__end__": "__end__"})
graph.add_edge("sign", "tools")
graph.add_edge("tools", "agent")
compiled = graph.compile(checkpointer=InMemorySaver())
config: Any = {"configurable": {"thread_id": "t"}}
compiled.invoke(start(), config)
while compiled.get_state(config).next:
    asked = compiled.get_state(config).interrupts[0].value
    show(asked)
    list(compiled.stream(Command(resume=f"yes to {asked}"), config))
show({"way": "resume", "end": compiled.get_state(config).values})
