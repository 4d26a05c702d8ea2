"""What the tap tells of runs that are interrupted and resumed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt

from loopscope import tap
from loopscope.engine.events import Batch, DecisionMade, Result, RunStart
from tests.adapters.scripted import DONE, ScriptedModel, Turn, agent, ask, bash, on, turn
from tests.adapters.tapped import asking, chained_loop, told

Kinds = Callable[..., Any]


@tool
def approve(what: str) -> str:
    """Ask a person."""
    return str(interrupt(what))


async def run(graph: Any, value: Any, config: Any, *, asynchronous: bool) -> Any:
    """One invocation, in either world."""
    return await graph.ainvoke(value, config) if asynchronous else graph.invoke(value, config)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("named", [False, True])
async def test_a_tool_that_asks_a_person(asynchronous: bool, named: bool, events: list[Any]) -> None:
    """The run goes on under the id that it had; the batch is told once, its result when there is one."""
    graph = asking([turn(("approve", {"what": "x"})), DONE], approve, checkpointer=InMemorySaver())
    config = {"callbacks": [tap()], **on("t")}
    more = {"context": {"run_id": "r"}} if named else {}
    graph = graph.with_config(config)
    first = graph.ainvoke if asynchronous else graph.invoke
    values: tuple[Any, ...] = (ask(), Command(resume="yes"))
    for value in values:
        done = first(value, **more)
        _ = await done if asynchronous else done
    entries = told(events)
    call = entries[1][2]
    assert entries == [
        ("a", "starts", None, "-"), ("a", "agent", call), ("a", "pass", 1),
        ("a", "resumes", None, "-"), ("a", "ok", call), ("a", "agent"), ("a", "ends", "completed"),
    ]  # fmt: skip
    assert {event.run_id for event in events} == ({"r"} if named else {events[0].run_id})


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_graph_that_stands_still_before_its_tools(asynchronous: bool, events: list[Any]) -> None:
    """`interrupt_before`: stepped by invocations without input, it is one run."""
    graph = asking([turn(bash())] * 2 + [DONE], checkpointer=InMemorySaver(), interrupt_before=["tools"])
    config = {"callbacks": [tap()], **on("t")}
    for value in (ask(), None, None):
        await run(graph, value, config, asynchronous=asynchronous)
    shape = [(entry[0], entry[1]) for entry in told(events)]
    assert shape == [
        ("a", "starts"), ("a", "agent"), ("a", "pass"),
        ("a", "resumes"), ("a", "ok"), ("a", "agent"), ("a", "pass"),
        ("a", "resumes"), ("a", "ok"), ("a", "agent"), ("a", "ends"),
    ]  # fmt: skip


def test_an_interrupt_within_a_sub_agent(events: list[Any]) -> None:
    """Both loops go on, and another delegation in the resumed run begins anew."""
    script = [turn(("approve", {"what": "x"})), Turn(text="inner done")]
    inner = agent([*script, *script], tools=[approve], name="inner")
    graph: Any = StateGraph(MessagesState)
    graph.add_node("first", inner)
    graph.add_node("second", agent([DONE], name="second"))
    graph.add_edge(START, "first")
    graph.add_edge("first", "second")
    compiled = graph.compile(checkpointer=InMemorySaver(), name="outer")
    config = {"callbacks": [tap()], **on("t")}
    compiled.invoke(ask(), config)
    compiled.invoke(Command(resume="yes"), config)
    entries = told(events)
    call = entries[2][2]
    assert entries == [
        ("a", "starts", "outer", "-"), ("b", "starts", "inner", "a"), ("b", "model", call), ("b", "pass", 1),
        ("a", "resumes", "outer", "-"), ("b", "resumes", "inner", "a"), ("b", "ok", call), ("b", "model"),
        ("b", "ends", "completed"),
        ("c", "starts", "second", "a"), ("c", "model"), ("c", "ends", "completed"),
        ("a", "ends", "completed"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("failing", "expected"), [("interrupt", ["git status", "git status", "other"]), ("error", ["git status", "other"])]
)
def test_a_node_that_is_executed_again(failing: str, expected: list[str], events: list[Any], of: Kinds) -> None:
    """A model that is asked again by the same task, and says the same, counts once; its results find their batch.

    With interrupts the second and the fourth answer are to executions of the same task as the one before; with
    retries the first three are.
    """
    script = [turn(bash())] * 3 + [turn(bash("other")), DONE]
    if failing == "error":
        script.insert(4, turn(bash("other")))
    model, attempts = ScriptedModel(script=script), itertools.count()

    def agent_node(state: Any) -> Any:
        answer = model.invoke(state["messages"])
        if failing == "interrupt" and answer.tool_calls:
            interrupt("sure?")
        elif failing == "error" and next(attempts) in {0, 1, 3}:
            raise ConnectionError(failing)
        return {"messages": [answer]}

    retry = RetryPolicy(initial_interval=0.001, max_attempts=3)
    graph = chained_loop(agent_node, checkpointer=InMemorySaver(), retry=retry)
    config = {"callbacks": [tap()], **on("t")}
    graph.invoke(ask(), config)
    while graph.get_state(config).next:
        graph.invoke(Command(resume="yes"), config)
    batches = [batch for batch in of(events, Batch) if batch.calls]
    assert [batch.calls[0].args["command"] for batch in batches] == expected
    answered = [batches[0].calls[0].id, batches[-1].calls[0].id]
    assert [result.call_id for result in of(events, Result)] == answered


def test_a_tool_node_that_is_executed_again_tells_each_result_once(events: list[Any], of: Kinds) -> None:
    """One of two calls waits for a person: the other one runs twice, as LangGraph has it, and is told of once."""

    @tool
    def look() -> str:
        """Look."""
        return "seen"

    script = [turn(("look", {}), ("approve", {"what": "x"})), DONE]
    graph = asking(script, look, approve, checkpointer=InMemorySaver())
    config = {"callbacks": [tap()], **on("t")}
    graph.invoke(ask(), config)
    graph.invoke(Command(resume="yes"), config)
    assert sorted(result.content for result in of(events, Result)) == ["seen", "yes"]


def test_a_resume_in_another_process_counts_anew(events: list[Any], of: Kinds) -> None:
    """Nothing is known there of what ran before: it says that it goes on, under a new id."""
    graph = asking([turn(("approve", {"what": "x"})), DONE], approve, checkpointer=InMemorySaver())
    graph.invoke(ask(), on("t"))
    graph.invoke(Command(resume="yes"), {"callbacks": [tap()], **on("t")})
    (start,) = of(events, RunStart)
    assert start.resume_of == start.run_id
    assert [entry[1] for entry in told(events)] == ["resumes", "ok", "agent", "ends"]


def test_a_fork_from_an_earlier_checkpoint_counts_anew(events: list[Any], of: Kinds) -> None:
    """It has nothing to do with the run that went on from there before."""
    graph = asking([turn(bash())] * 2 + [DONE] + [turn(bash())] * 2 + [DONE], checkpointer=InMemorySaver())
    config = {"callbacks": [tap()], **on("t")}
    graph.invoke(ask(), config)
    earlier = next(state for state in graph.get_state_history(on("t")) if state.next == ("tools",))
    graph.invoke(None, {**earlier.config, "callbacks": config["callbacks"]})
    assert len({start.run_id for start in of(events, RunStart)}) == 2
    assert [event.hash_count for event in of(events, DecisionMade)] == [1, 2, 1, 2]
