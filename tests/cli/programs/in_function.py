"""A graph made in a function, around a state that is defined there, and run in threads that the program starts."""

from __future__ import annotations

import threading
from typing import Annotated, Any

from langgraph.graph import START, StateGraph, add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from typing_extensions import TypedDict

from tests.cli.programs.common import Scripted, report, search


def made(searches: int) -> Any:
    """A graph that nothing else holds."""
    State = TypedDict("State", {"messages": Annotated[list[Any], add_messages]})  # noqa: UP013 - made at run time
    model = Scripted(searches=searches)

    def agent(state: State) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    agent.__annotations__ = {}
    graph: Any = StateGraph(State)
    graph.add_node("agent", agent)
    graph.add_node("tools", ToolNode([search]))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    return graph.compile(name=f"{searches} searches")


for searches in (1, 2):
    thread = threading.Thread(target=lambda searches=searches: report(made(searches)))
    thread.start()
    thread.join()
