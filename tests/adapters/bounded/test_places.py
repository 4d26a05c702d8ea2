from __future__ import annotations

import types
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from loopscope import BoundedLoop
from loopscope.adapters.bounded.updates import reducers_of, writes_of, written_to
from tests.adapters.bounded.sql import MISSPELT, queries, sql_tool
from tests.adapters.scripted import ScriptedModel, ask, on

DIFFERENT = [f"SELECT {column}" for column in ("alpha", "bravo", "charlie", "delta", "echo")]


def newest_error(state: Any) -> str | None:
    """The text of the last message if it is a failed tool's: it cannot read a state whose last message is another's."""
    last = state["messages"][-1]
    assert isinstance(last, ToolMessage)
    return str(last.content) if last.status == "error" else None


def length(state: Any) -> int:
    """Grows with every message."""
    return len(state["messages"])


def graph_of(script: Any, loop: BoundedLoop, place: str, *, mixed: bool = False) -> Any:
    """The loop of the sample, counted at one of its nodes."""
    model = ScriptedModel(script=script)

    def analyst(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    def check(_: MessagesState) -> None:
        """Stands between the two."""

    def around(name: str, node: Any) -> Any:
        return loop.wrap(node) if name == place else node

    schema: Any = _mixed(loop) if mixed else loop.extend(MessagesState)
    graph: Any = StateGraph(schema)
    graph.add_node("analyst", around("analyst", analyst))
    graph.add_node("check", around("check", check))
    graph.add_node("tools", around("tools", ToolNode([sql_tool()], handle_tool_errors=True)))
    graph.add_node("give_up", loop.give_up)
    graph.add_edge(START, "analyst")
    graph.add_edge("analyst", "check")
    graph.add_edge("check", "tools")
    graph.add_conditional_edges("tools", loop.route, {"again": "analyst", "done": END, "give_up": "give_up"})
    graph.add_conditional_edges("give_up", loop.route, {"again": "analyst", "done": END, "give_up": END})
    return graph.compile(checkpointer=InMemorySaver())


def _mixed(loop: BoundedLoop) -> Any:
    return types.new_class("Mixed", (MessagesState, loop.State), {}, lambda _: None)


@pytest.mark.parametrize("mixed", [False, True], ids=["extended", "mixed-in"])
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("witness", "place"),
    [
        ("last_error", "analyst"), ("last_error", "check"), ("last_error", "tools"),
        ("results", "analyst"), ("results", "check"), ("results", "tools"),
        (newest_error, "analyst"), (newest_error, "tools"),
    ],
)  # fmt: skip
async def test_a_loop_may_be_counted_at_its_first_node_or_its_last(
    witness: Any, place: str, asynchronous: bool, mixed: bool
) -> None:
    """Two equal errors end it, different ones its counter; in between it may be too where the witness is built in."""
    for script, expected in ((queries(MISSPELT), ("stagnation", 2)), (queries(*DIFFERENT), ("budget", 3))):
        loop = BoundedLoop("sql", max_iterations=3, witness=witness)
        graph = graph_of(script, loop, place, mixed=mixed)
        final = await graph.ainvoke(ask(), on("t")) if asynchronous else graph.invoke(ask(), on("t"))
        (asked,) = final["__interrupt__"]
        assert (asked.value["reason"], asked.value["iterations"]) == expected


@pytest.mark.parametrize("place", ["analyst", "check", "tools"])
def test_progress_is_progress_wherever_it_is_counted(place: str) -> None:
    """A witness that always moves never ends it, and neither does a value that stood still only in between."""
    loop = BoundedLoop("sql", max_iterations=4, witness=length, mode="increases")
    final = graph_of(queries(MISSPELT), loop, place).invoke(ask(), on("t"))
    assert final["__interrupt__"][0].value["reason"] == "budget"


@pytest.mark.parametrize(("place", "more"), [("analyst", 1), ("tools", 1)])
def test_a_person_grants_the_same_wherever_it_is_counted(place: str, more: int) -> None:
    """The next equal error ends it again."""
    loop = BoundedLoop("sql", max_iterations=3, witness=newest_error)
    graph = graph_of(queries(MISSPELT), loop, place)
    graph.invoke(ask(), on("t"))
    final = graph.invoke(Command(resume=True), on("t"))
    assert final["__interrupt__"][0].value["iterations"] == 2 + more


def test_what_a_node_writes_is_foreseen_by_the_states_own_reducers() -> None:
    """Of mappings, commands, several of them, pairs; hand-offs write elsewhere; what cannot be reduced is replaced."""
    reducers = {"log": lambda old, new: old + new}
    assert writes_of([Command(update={"a": 1}), {"b": 2}]) == {"a": 1, "b": 2}
    assert writes_of([("a", 1)]) == {"a": 1}
    assert writes_of(Command(update={"a": 1}, graph=Command.PARENT)) == writes_of(None) == {}
    assert written_to({"log": [1], "x": 0}, {"log": [2], "x": 3}, reducers) == {"log": [1, 2], "x": 3}
    assert written_to({"log": [1]}, {"log": "no list"}, reducers)["log"] == "no list"
    assert set(reducers_of(MessagesState)) == {"messages"}
