"""The text-to-SQL graph of the sample `sql-retry-storm`, as it is and guarded, over a real database."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from loopscope import BoundedLoop
from tests.adapters.scripted import ScriptedModel, Turn, turn

__all__ = ["MISSPELT", "RIGHT", "answered", "database", "guarded", "queries", "sql_tool", "unguarded"]

MISSPELT = "SELECT customer, SUM(total) FROM orders GROUP BY custmer"
RIGHT = "SELECT customer, SUM(total) FROM orders GROUP BY customer"


def database() -> sqlite3.Connection:
    """A small shop, in memory."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute("CREATE TABLE orders (customer TEXT, total REAL)")
    connection.executemany("INSERT INTO orders VALUES (?, ?)", [("C-1041", 1240.5), ("C-1077", 310.0)])
    return connection


def queries(*texts: str, then: str | None = None) -> list[Turn]:
    """The model asks for these, and says `then` in the end; without it, it repeats the last query for ever."""
    asked = [turn(("run_sql", {"query": text})) for text in texts]
    return asked if then is None else [*asked, Turn(text=then)]


def answered(state: dict[str, Any]) -> bool:
    """The last query ran, and the model has answered."""
    ran = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    last = state["messages"][-1]
    return bool(ran) and ran[-1].status == "success" and isinstance(last, AIMessage) and not last.tool_calls


def sql_tool() -> Any:
    """The tool `run_sql`, over a database of its own."""
    orders = database()

    @tool
    def run_sql(query: str) -> str:
        """Run a query on the shop's database."""
        return str(orders.execute(query).fetchall())

    return run_sql


def unguarded(script: Sequence[Turn], **options: Any) -> Any:
    """As the sample has it: what ends a stuck run is the recursion limit."""
    model, run_sql = ScriptedModel(script=script), sql_tool()
    graph: Any = StateGraph(MessagesState)

    def analyst(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    graph.add_node("analyst", analyst)
    graph.add_node("tools", ToolNode([run_sql], handle_tool_errors=True))
    graph.add_edge(START, "analyst")
    graph.add_conditional_edges("analyst", tools_condition)
    graph.add_edge("tools", "analyst")
    return graph.compile(**options)


def guarded(
    model: ScriptedModel, loop: BoundedLoop | None = None, *, asynchronous: bool = False, **options: Any
) -> Any:
    """The same with a bounded loop: its body is a round of model and tools, its exit is an escalation."""
    bounded = loop or BoundedLoop("sql", max_iterations=3, success=answered)
    graph: Any = StateGraph(bounded.extend(MessagesState))

    def asked(state: MessagesState) -> list[Any]:
        return [SystemMessage(bounded.status_message(state)), *state["messages"]]

    def analyst(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(asked(state))]}

    async def aanalyst(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(asked(state))]}

    def after_analyst(state: MessagesState) -> str:
        return "tools" if getattr(state["messages"][-1], "tool_calls", None) else bounded.route(state)

    ways = {"again": "analyst", "done": END, "give_up": "give_up"}
    graph.add_node("analyst", bounded.wrap(aanalyst if asynchronous else analyst))
    graph.add_node("tools", ToolNode([sql_tool()], handle_tool_errors=True))
    graph.add_node("give_up", bounded.give_up)
    graph.add_edge(START, "analyst")
    graph.add_conditional_edges("analyst", after_analyst, {"tools": "tools", **ways})
    graph.add_conditional_edges("tools", bounded.route, ways)
    graph.add_conditional_edges("give_up", bounded.route, {**ways, "give_up": END})
    return graph.compile(**options)
