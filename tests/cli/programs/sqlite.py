"""A SQLite checkpointer: two turns on each thread, and the history of one of them."""

from __future__ import annotations

import sqlite3
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from tests.cli.programs.common import Scripted, report, search, show

model = Scripted()
graph: Any = StateGraph(MessagesState)
graph.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
graph.add_node("tools", ToolNode([search]))
graph.add_edge(START, "agent")
graph.add_conditional_edges("agent", tools_condition)
graph.add_edge("tools", "agent")
with sqlite3.connect(":memory:", check_same_thread=False) as connection:
    compiled = graph.compile(checkpointer=SqliteSaver(connection))
    report(compiled)
    report(compiled)
    states = list(compiled.get_state_history({"configurable": {"thread_id": "invoke"}}))
    show([(state.next, len(state.values.get("messages", ()))) for state in states])
