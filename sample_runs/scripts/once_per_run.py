"""A healthy thread: the same question every morning, and the same command once in each of the five runs.

Each run is a scope of its own, so nothing adds up; counted by thread, the fifth morning would be stopped.
"""

from __future__ import annotations

import sqlite3

from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from sample_runs.stage.model import Script, ScriptedModel, call, say
from sample_runs.stage.sample import Sample
from sample_runs.stage.stage import Stage, ask

__all__ = ["SAMPLE"]

QUESTION = "How many orders are open this morning?"
QUERY = "SELECT COUNT(*) FROM orders WHERE status = 'open'"
MORNINGS = (14, 11, 19, 8, 12)


def script() -> Script:
    """One query and one answer a morning."""
    for _ in MORNINGS:
        messages = yield say("I'll count them.", call("run_sql", query=QUERY))
        yield say(f"{messages[-1].text} orders are open.")


def run(stage: Stage) -> None:
    """The same question five times, in one thread with a checkpointer."""
    orders = sqlite3.connect(":memory:", check_same_thread=False)
    orders.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT)")

    @tool
    def run_sql(query: str) -> str:
        """Run a query on the orders database."""
        return str(orders.execute(query).fetchone()[0])

    agent = create_agent(
        ScriptedModel(script=script()),
        [run_sql],
        middleware=[stage.guard()],
        checkpointer=InMemorySaver(),
        name="assistant",
    )
    for morning, open_orders in enumerate(MORNINGS, 1):
        orders.execute("DELETE FROM orders")
        orders.executemany("INSERT INTO orders (status) VALUES (?)", [("open",)] * open_orders)
        ask(agent, QUESTION, ("open-orders", f"morning-{morning}"))


SAMPLE = Sample(
    name="once-per-run",
    summary="Healthy: the same query once in each of five runs of one thread. Runs are counted apart: no warning.",
    looping=False,
    first_warning=None,
    first_stop=None,
    run=run,
    pause=24 * 3600.0,
)
