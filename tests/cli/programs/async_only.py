"""Nodes that are coroutines alone: `invoke` and `stream` fail, `ainvoke` does not."""

from __future__ import annotations

import asyncio
from typing import Any

from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from tests.cli.programs.common import Scripted, report, search

model = Scripted()


async def agent(state: MessagesState) -> dict[str, Any]:
    """Asks the model, after others had their turn."""
    await asyncio.sleep(0)
    return {"messages": [await model.ainvoke(state["messages"])]}


graph: Any = StateGraph(MessagesState)
graph.add_node("agent", agent)
graph.add_node("tools", ToolNode([search]))
graph.add_edge(START, "agent")
graph.add_conditional_edges("agent", tools_condition)
graph.add_edge("tools", "agent")
report(graph.compile())
