"""`Send` to many workers at once, whose results are joined, and `Command` to go on."""

from __future__ import annotations

from typing import Any, Literal

from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Send

from tests.cli.programs.common import asked, report, said, search


def plan(state: MessagesState) -> Command[Literal["tools"]]:
    """One message with three calls, whatever there is."""
    assert state["messages"]
    calls = [asked("search", query=query).tool_calls[0] for query in ("cats", "dogs", "cats")]
    message = asked("search", query="birds")
    message.tool_calls = calls
    return Command(update={"messages": [message]}, goto=[Send("tools", {"messages": [message]})])


def spread(state: MessagesState) -> list[Send]:
    """A worker for each result."""
    return [Send("worker", {"messages": [], "number": number}) for number in range(len(state["messages"]) - 2)]


def worker(state: dict[str, Any]) -> Command[Any]:
    """A message of its own."""
    return Command(update=[("messages", [said(f"worker {state['number']}")])], goto="join")


def join(state: MessagesState) -> dict[str, Any]:
    """All of it in one number."""
    return {"messages": [("assistant", f"{len(state['messages'])} messages")]}


graph: Any = StateGraph(MessagesState)
graph.add_node("plan", plan)
graph.add_node("tools", ToolNode([search]))
graph.add_node("worker", worker)
graph.add_node("join", join)
graph.add_edge(START, "plan")
graph.add_conditional_edges("tools", spread, ["worker"])
graph.add_edge("join", END)
report(graph.compile(), max_concurrency=1)
