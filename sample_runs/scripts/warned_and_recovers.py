"""The mistake of sql-retry-storm, but with the middleware: the model is told that it repeats itself.

It is warned after the third equal query, looks at the schema, corrects the column's name and answers.
"""

from __future__ import annotations

import sqlite3

from langchain.agents import create_agent
from langchain_core.messages import BaseMessage
from langchain_core.tools import ToolException, tool

from sample_runs.stage.model import Script, ScriptedModel, call, say
from sample_runs.stage.sample import Found, Sample
from sample_runs.stage.stage import Stage, ask

__all__ = ["SAMPLE"]

QUESTION = "Which three products sold best last week?"
SCHEMA = "SELECT sql FROM sqlite_master WHERE name = 'sales'"
WRONG = "SELECT product, SUM(qty) AS sold FROM sales WHERE week = 47 GROUP BY product ORDER BY sold DESC LIMIT 3"
RIGHT = WRONG.replace("qty", "quantity")


def script() -> Script:
    """Repeats itself until it is told so."""
    messages = yield say("I'll sum up last week's sales by product.", call("run_sql", query=WRONG))
    while not warned(messages):
        messages = yield say("The query failed, I'll run it again.", call("run_sql", query=WRONG))
    yield say("You are right, that cannot work. Let me look at the table first.", call("run_sql", query=SCHEMA))
    yield say("The column is called quantity.", call("run_sql", query=RIGHT))
    yield say("Last week's best sellers were the desk lamp (41), the notebook (38) and the ink set (17).")


def warned(messages: list[BaseMessage]) -> bool:
    """Whether the newest request holds a warning."""
    return any(message.name == "loop_warning" for message in messages)


def database() -> sqlite3.Connection:
    """A week's sales, in memory."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute("CREATE TABLE sales (id INTEGER PRIMARY KEY, product TEXT, quantity INTEGER, week INTEGER)")
    rows = [("desk lamp", 41), ("notebook", 38), ("ink set", 17), ("globe", 3)]
    connection.executemany("INSERT INTO sales (product, quantity, week) VALUES (?, ?, 47)", rows)
    return connection


def run(stage: Stage) -> None:
    """Ask once."""
    sales = database()

    @tool
    def run_sql(query: str) -> str:
        """Run a query on the sales database."""
        try:
            return str(sales.execute(query).fetchall())
        except sqlite3.Error as error:
            raise ToolException(f"{type(error).__name__}: {error}") from error

    run_sql.handle_tool_error = True
    agent = create_agent(ScriptedModel(script=script()), [run_sql], middleware=[stage.guard()], name="analyst")
    ask(agent, QUESTION, ("best-sellers", "run-1"))


SAMPLE = Sample(
    name="warned-and-recovers",
    summary="Three equal queries, a warning, and the model takes it: it reads the schema and answers.",
    looping=False,
    first_warning=Found(3, "identical_call_set"),
    first_stop=None,
    run=run,
    seconds={"run_sql": 0.35},
)
