from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.types import Command

from loopscope import BoundedLoop
from tests.adapters.bounded.sql import MISSPELT, RIGHT, answered, guarded, queries, sql_tool, unguarded
from tests.adapters.scripted import ScriptedModel, ask, on

BOTH = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
DIFFERENT = [f"SELECT {column}" for column in ("alpha", "bravo", "charlie", "delta", "echo")]


async def run(graph: Any, value: Any, config: Any, asynchronous: bool) -> Any:
    """One invocation, in either world."""
    return await graph.ainvoke(value, config) if asynchronous else graph.invoke(value, config)


def test_without_a_guard_the_recursion_limit_ends_it_with_an_error() -> None:
    """What the sample shows: twenty rounds, and a stack trace."""
    with pytest.raises(GraphRecursionError):
        unguarded(queries(MISSPELT)).invoke(ask(), {"recursion_limit": 40})


@BOTH
async def test_it_ends_after_three_iterations(asynchronous: bool) -> None:
    """Where each query fails in another way, the counter ends it; the model is asked three times and told of each."""
    model = ScriptedModel(script=queries(*DIFFERENT))
    graph = guarded(model, asynchronous=asynchronous, checkpointer=InMemorySaver())
    final = await run(graph, ask(), on("t"), asynchronous)
    assert len(model.requests) == 3
    (stop,) = final["__interrupt__"]
    assert (stop.value["reason"], stop.value["iterations"]) == ("budget", 3)
    assert set(stop.value) == {"reason", "iterations", "witness", "state"}
    assert [str(request[0].content)[:18] for request in model.requests] == [
        "Attempt 1 of 3.",
        "Attempt 2 of 3. Pr",
        "Attempt 3 of 3. Pr",
    ]
    assert "no such column: bravo" in str(model.requests[2][0].content)


@BOTH
async def test_it_ends_after_two_where_the_error_repeats(asynchronous: bool) -> None:
    """By stagnation, with everything that was tried still in the state."""
    model = ScriptedModel(script=queries(MISSPELT))
    graph = guarded(model, asynchronous=asynchronous, checkpointer=InMemorySaver())
    final = await run(graph, ask("revenue?"), on("t"), asynchronous)
    (stop,) = final["__interrupt__"]
    assert (stop.value["reason"], stop.value["iterations"]) == ("stagnation", 2)
    assert "no such column: custmer" in str(stop.value["witness"])
    assert stop.value["state"]["messages"] == final["messages"]
    assert [message.type for message in final["messages"]] == ["human", "ai", "tool", "ai", "tool"]
    assert graph.get_state(on("t")).next == ("give_up",)


@BOTH
async def test_a_person_who_says_something_lets_it_go_on(asynchronous: bool) -> None:
    """The model is told, has three attempts more, and finishes; the counter counts on."""
    model = ScriptedModel(script=queries(MISSPELT, MISSPELT, RIGHT, then="C-1041 leads"))
    graph = guarded(model, asynchronous=asynchronous, checkpointer=InMemorySaver())
    await run(graph, ask(), on("t"), asynchronous)
    final = await run(graph, Command(resume="the column is customer"), on("t"), asynchronous)
    assert "__interrupt__" not in final
    assert final["messages"][-1].content == "C-1041 leads"
    assert final["sql_iterations"] == 4
    said = str(model.requests[2][0].content)
    assert said.startswith("Attempt 3 of 6. Previous error: ")
    assert said.endswith("Advice: the column is customer")


@pytest.mark.parametrize("answer", [True, {"messages": [HumanMessage("use customer")]}])
def test_a_person_can_also_just_agree_or_write_to_the_state(answer: Any) -> None:
    """The loop has its bounds once more: another two equal errors, and it asks again."""
    model = ScriptedModel(script=queries(MISSPELT))
    graph = guarded(model, checkpointer=InMemorySaver())
    graph.invoke(ask(), on("t"))
    final = graph.invoke(Command(resume=answer), on("t"))
    assert final["__interrupt__"][0].value["reason"] == "stagnation"
    assert final["sql_iterations"] == len(model.requests) == 3
    assert [m.content for m in final["messages"] if m.type == "human"] == ["go"] + (
        ["use customer"] * (answer is not True)
    )


@pytest.mark.parametrize("answer", [False, "stop", " No "])
def test_a_person_can_leave_it_ended(answer: Any) -> None:
    """The run ends without an error, and the state says why."""
    graph = guarded(ScriptedModel(script=queries(MISSPELT)), checkpointer=InMemorySaver())
    graph.invoke(ask(), on("t"))
    final = graph.invoke(Command(resume=answer), on("t"))
    assert final["sql_ended"] == "stagnation"
    assert graph.get_state(on("t")).next == ()


@BOTH
async def test_without_a_checkpointer_it_ends_cleanly(asynchronous: bool) -> None:
    """Nobody can be asked; the state is handed back whole, with the reason and the counters."""
    graph = guarded(ScriptedModel(script=queries(MISSPELT)), asynchronous=asynchronous)
    final = await run(graph, ask(), {}, asynchronous)
    assert "__interrupt__" not in final
    assert (final["sql_ended"], final["sql_iterations"]) == ("stagnation", 2)
    assert "custmer" in str(final["sql_witness"])
    assert isinstance(final["messages"][-1], ToolMessage)


def test_success_ends_it_and_is_not_the_models_to_decide() -> None:
    """The model says it is done after a failure: it is asked again, until the query really ran."""
    model = ScriptedModel(script=[*queries(MISSPELT, then="all done"), *queries(RIGHT, then="C-1041 leads")])
    final = guarded(model, BoundedLoop("sql", max_iterations=9, success=answered)).invoke(ask())
    assert [m.content for m in final["messages"] if isinstance(m, AIMessage) and m.content] == [
        "all done",
        "C-1041 leads",
    ]
    assert final["sql_iterations"] == 4
    assert final.get("sql_ended") is None


def test_a_process_that_is_restarted_has_the_counts_of_before() -> None:
    """They are in the checkpoints: another loop object, another graph and the same store go on where it was."""
    store = InMemorySaver()
    guarded(ScriptedModel(script=queries(*DIFFERENT)), checkpointer=store).invoke(ask(), on("t"))
    again = guarded(ScriptedModel(script=queries(*DIFFERENT)), checkpointer=store)
    final = again.invoke(Command(resume=True), on("t"))
    assert final["__interrupt__"][0].value["iterations"] == 6


def test_a_second_question_of_a_thread_has_fresh_bounds_behind_begin() -> None:
    """`begin` takes back what the first one used up, budgets included."""
    loop = BoundedLoop("sql", max_iterations=3, success=answered, budgets={"model_calls": 9})
    spent = {"sql_iterations": 3, "sql_spent": {"model_calls": 3}, "sql_renewed": 1, "sql_witness": "x"}
    fresh = loop.begin(spent)
    assert (fresh["sql_iterations"], fresh["sql_renewed"], fresh["sql_spent"]) == (-3, -1, {"model_calls": -3})
    assert fresh["sql_witness"] is fresh["sql_checked"] is fresh["sql_ended"] is None
    assert loop.begin({}) == {**dict.fromkeys(loop.fields), "sql_iterations": 0, "sql_renewed": 0, "sql_spent": {}}


def test_the_pages_loop_is_a_whole_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody copies from docs/bounded-loops.md runs, beside a tool and a model of their own."""
    page = (Path(__file__).parents[3] / "docs" / "bounded-loops.md").read_text("utf-8")
    code = page.partition("```python\n")[2].partition("```")[0]
    own: Any = ModuleType("my_app.sql")
    own.run_sql, own.model = sql_tool(), ScriptedModel(script=queries(MISSPELT, RIGHT, then="1550.5 and 310"))
    monkeypatch.setitem(sys.modules, "my_app", ModuleType("my_app"))
    monkeypatch.setitem(sys.modules, "my_app.sql", own)
    space: dict[str, Any] = {}
    exec(compile(code, "bounded-loops.md", "exec"), space)  # noqa: S102 - it is what the test is of
    final = space["graph"].compile().invoke(ask())
    assert (final["sql_iterations"], final.get("sql_ended")) == (3, None)
    assert final["messages"][-1].content == "1550.5 and 310"
