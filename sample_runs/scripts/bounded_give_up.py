"""The text-to-SQL agent of `sql-retry-storm` with its loop bounded: after the same error twice it gives up.

`BoundedLoop` allows three attempts; the second equal error is no progress, so the loop leaves through its `give_up`
node, and the run ends as escalated with its state whole. Without a checkpointer no person is waited for. The agent is
only watched: what ends it is in the graph.
"""

from __future__ import annotations

from collections.abc import Hashable

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from loopscope.adapters.bounded.loop import BoundedLoop
from sample_runs.scripts.sql_retry_storm import QUERY, QUESTION, database
from sample_runs.stage.model import Script, ScriptedModel, call, say
from sample_runs.stage.sample import Sample
from sample_runs.stage.stage import Stage

__all__ = ["SAMPLE"]


def script() -> Script:
    """The same query for ever."""
    yield say("I'll add up the order totals by customer.", call("run_sql", query=QUERY))
    while True:
        yield say("The query failed. Let me run it again.", call("run_sql", query=QUERY))


def answered(state: MessagesState) -> bool:
    """The last query ran, and the model said what it found."""
    ran = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    last = state["messages"][-1]
    return bool(ran) and ran[-1].status == "success" and isinstance(last, AIMessage) and not last.tool_calls


def run(stage: Stage) -> None:
    """Ask once; the loop ends by itself."""
    orders = database()

    @tool
    def run_sql(query: str) -> str:
        """Run a query on the shop's database."""
        return str(orders.execute(query).fetchall())

    loop = BoundedLoop("sql", max_iterations=3, success=answered, budgets={"total_tokens": 20_000})
    model = ScriptedModel(script=script()).bind_tools([run_sql])

    def analyst(state: MessagesState) -> dict[str, list[BaseMessage]]:
        return {"messages": [model.invoke([SystemMessage(loop.status_message(state)), *state["messages"]])]}

    def after_analyst(state: MessagesState) -> str:
        last = state["messages"][-1]
        return "tools" if isinstance(last, AIMessage) and last.tool_calls else loop.route(state)

    ways: dict[Hashable, str] = {"again": "analyst", "done": END, "give_up": "give_up"}
    graph = StateGraph(loop.extend(MessagesState))
    graph.add_node("analyst", loop.wrap(analyst))
    graph.add_node("tools", ToolNode([run_sql], handle_tool_errors=True))
    graph.add_node("give_up", loop.give_up)
    graph.add_edge(START, "analyst")
    graph.add_conditional_edges("analyst", after_analyst, {"tools": "tools", **ways})
    graph.add_conditional_edges("tools", loop.route, ways)
    graph.add_conditional_edges("give_up", loop.route, {**ways, "give_up": END})
    stage.tap(graph.compile(), QUESTION, ("revenue-question", "run-1"))


SAMPLE = Sample(
    name="bounded-give-up",
    summary="The text-to-SQL agent with its loop bounded: when one error comes twice it gives up, and stops by itself.",
    looping=False,
    first_warning=None,
    first_stop=None,
    run=run,
    seconds={"run_sql": 0.35},
)
