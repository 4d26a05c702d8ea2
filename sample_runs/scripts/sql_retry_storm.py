"""A text-to-SQL agent as it is often built, without a guard, sends the same misspelt query again and again.

It is a plain StateGraph; what ends it is LangGraph's recursion limit. Nothing of the error message ("no such column")
makes the model look at the schema. The agent is only watched.
"""

from __future__ import annotations

import sqlite3

from langchain_core.messages import BaseMessage
from langchain_core.tools import tool
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from sample_runs.stage.model import Script, ScriptedModel, call, say
from sample_runs.stage.sample import Found, Sample
from sample_runs.stage.stage import Stage

__all__ = ["SAMPLE"]

QUESTION = "What was our revenue by customer in the EMEA region?"
QUERY = (
    "SELECT customer, SUM(total) AS revenue FROM orders WHERE region = 'EMEA' GROUP BY custmer ORDER BY revenue DESC"
)
REMARKS = (
    "I'll add up the order totals by customer.",
    "The query failed. Let me run it again.",
    "Let me retry the query.",
    "That did not work, trying once more.",
    "The database returned an error. I'll try the query again.",
)
ROUNDS = 20


def script() -> Script:
    """The same query for ever."""
    while True:
        for remark in REMARKS:
            yield say(remark, call("run_sql", query=QUERY))


def database() -> sqlite3.Connection:
    """A small shop, in memory."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, region TEXT, total REAL)")
    rows = [("C-1041", "EMEA", 1240.5), ("C-1077", "AMER", 310.0), ("C-1093", "EMEA", 86.25)]
    connection.executemany("INSERT INTO orders (customer, region, total) VALUES (?, ?, ?)", rows)
    return connection


def run(stage: Stage) -> None:
    """Ask once; two steps of the graph a round."""
    orders = database()

    @tool
    def run_sql(query: str) -> str:
        """Run a query on the shop's database."""
        return str(orders.execute(query).fetchall())

    model = ScriptedModel(script=script()).bind_tools([run_sql])
    graph = StateGraph(MessagesState)

    def analyst(state: MessagesState) -> dict[str, list[BaseMessage]]:
        return {"messages": [model.invoke(state["messages"])]}

    graph.add_node("analyst", analyst)
    graph.add_node("tools", ToolNode([run_sql], handle_tool_errors=True))
    graph.add_edge(START, "analyst")
    graph.add_conditional_edges("analyst", tools_condition)
    graph.add_edge("tools", "analyst")
    try:
        stage.watch(graph.compile(), QUESTION, "analyst", ("revenue-question", "run-1"), recursion_limit=2 * ROUNDS)
    except GraphRecursionError:
        return
    raise AssertionError("the run ended before its limit")


SAMPLE = Sample(
    name="sql-retry-storm",
    summary="A text-to-SQL agent sends one misspelt query twenty times, until the recursion limit ends the run.",
    looping=True,
    first_warning=Found(3, "identical_call_set"),
    first_stop=Found(5, "identical_call_set"),
    run=run,
    seconds={"run_sql": 0.35},
)
