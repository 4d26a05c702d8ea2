from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, Required, TypedDict

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt

from loopscope import BoundedLoop, LoopDetectionMiddleware
from loopscope.adapters.bounded.found import budgets_in
from loopscope.engine.policy import Policy
from loopscope.engine.sections import Budget
from loopscope.errors import UsageError
from loopscope.testing import STEPS, NotBoundedError, Proof, abounded_run, bounded_run, told
from loopscope.testing.steps import Missing
from tests.adapters.bounded.sql import MISSPELT, answered, guarded, queries, unguarded
from tests.adapters.scripted import DONE, ScriptedModel, agent, ask, bash, turn

BOTH = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
FAIL = {"run_sql": sqlite3.OperationalError("no such column: custmer")}


async def prove(graph: Any, asynchronous: bool, **options: Any) -> Proof:
    """In either world, failing as the sample did."""
    options = {"input": ask("revenue?"), "fail": FAIL} | options
    return await abounded_run(graph, **options) if asynchronous else bounded_run(graph, **options)


def missing(error: pytest.ExceptionInfo[NotBoundedError]) -> list[str]:
    """The names of the steps."""
    return [each.step.name for each in error.value.missing]


@BOTH
@pytest.mark.parametrize("saver", [None, InMemorySaver()], ids=["alone", "checkpointer"])
async def test_the_guarded_sample_is_bounded(asynchronous: bool, saver: Any) -> None:
    """Three different errors, two equal ones; a person is asked where one can answer."""
    model = ScriptedModel(script=queries(MISSPELT))
    graph = guarded(model, asynchronous=asynchronous, checkpointer=saver)
    proof = await prove(graph, asynchronous)
    assert (proof.varied.attempts, proof.same.attempts) == (3, 2)
    assert proof.same.ended == ("finished" if saver is None else "interrupted")
    if saver is not None:
        assert proof.same.interrupts[0]["reason"] == "stagnation"
    assert "no such column: custmer (bravo)" in str(proof.varied.state["messages"])


@BOTH
async def test_the_unguarded_sample_is_not(asynchronous: bool) -> None:
    """Four steps are missing, each with what was seen and how to take it."""
    with pytest.raises(NotBoundedError) as caught:
        await prove(unguarded(queries(MISSPELT)), asynchronous, within=3)
    assert missing(caught) == ["counter", "witness", "escalation", "trace"]
    text = str(caught.value)
    assert text.startswith("4 of 7 steps of a bounded loop are missing (docs/bounded-loops.md)\n")
    assert "  step 2 of 7, counter: " in text
    assert "each another one, and only the recursion limit ended it; 3 are allowed" in text
    assert "GraphRecursionError" in text
    assert text.count("    fix: ") == 4


def test_what_was_broken_is_whole_again() -> None:
    """The next run of the same graph meets no failure."""
    model = ScriptedModel(script=queries("SELECT 1", then="one"))
    graph = guarded(model)
    with pytest.raises(AssertionError):
        bounded_run(graph, ask(), fail={"analyst": "down"}, within=1)
    bounded_run(graph, ask(), fail="run_sql", model=[("run_sql", {"query": MISSPELT})])
    assert graph.invoke(ask())["messages"][-1].content == "one"


def loop_of(node: Callable[[Any], Any], loop: BoundedLoop, *, escalates: Any = None) -> Any:
    """A graph of one node, repeated."""
    graph: Any = StateGraph(loop.extend(MessagesState))
    graph.add_node("work", loop.wrap(node))
    graph.add_node("give_up", escalates or loop.give_up)
    graph.add_edge(START, "work")
    graph.add_conditional_edges("work", loop.route, {"again": "work", "done": END, "give_up": "give_up"})
    return graph.compile()


@BOTH
async def test_a_node_can_be_what_fails(asynchronous: bool) -> None:
    """One that a loop wraps fails within the wrapping."""
    graph = loop_of(lambda _: None, BoundedLoop("work", max_iterations=4))
    proof = await prove(graph, asynchronous, fail={"work": KeyError("orders")})
    assert (proof.varied.attempts, proof.same.attempts) == (4, 2)
    assert proof.same.state["messages"] == [HumanMessage("revenue?", id=proof.same.state["messages"][0].id)]


@BOTH
async def test_a_node_that_nothing_catches_ends_in_a_stack_trace(asynchronous: bool) -> None:
    """Which is a missing escalation."""
    with pytest.raises(NotBoundedError) as caught:
        await prove(unguarded(queries(MISSPELT)), asynchronous, fail="analyst")
    assert missing(caught) == ["escalation"]
    assert "stack trace: InjectedFailure: analyst fails for ever" in str(caught.value)
    assert "nothing caught the failure itself" in str(caught.value)


@pytest.mark.parametrize(
    ("loop", "step", "seen"),
    [
        (BoundedLoop("work", max_iterations=9, witness=None), "witness", "the same failure came 9 times"),
        (BoundedLoop("work", max_iterations=9), "counter", "the run met 9 failures before it ended by itself; 4 are"),
    ],
)
def test_each_bound_is_asked_for(loop: BoundedLoop, step: str, seen: str) -> None:
    """Without a witness, the same failure comes as often as any; with a counter that is too high, all do."""
    within = 9 if step == "witness" else 4
    with pytest.raises(NotBoundedError) as caught:
        bounded_run(loop_of(lambda _: None, loop), ask(), fail="work", within=within)
    assert missing(caught) == [step]
    assert seen in str(caught.value)


def test_a_run_that_just_ends_has_no_escalation() -> None:
    """And nobody but the model said that it was done."""
    with pytest.raises(NotBoundedError) as caught:
        bounded_run(unguarded(queries(MISSPELT, then="I could not")), ask(), fail="run_sql")
    assert missing(caught) == ["success", "escalation"]
    assert "nothing but the model decides that" in str(caught.value)


def test_a_state_that_is_lost_is_no_good_escalation() -> None:
    """Neither the input nor the failure may be gone."""
    from langchain_core.messages import RemoveMessage
    from langgraph.graph.message import REMOVE_ALL_MESSAGES

    loop = BoundedLoop("work", max_iterations=3)

    def forgets(_: Any) -> dict[str, Any]:
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES)], "work_error": None, "work_witness": None}

    graph = loop_of(lambda _: None, loop, escalates=forgets)
    with pytest.raises(NotBoundedError) as caught:
        bounded_run(graph, ask(), fail="work", through="give_up")
    assert set(missing(caught)) == {"escalation"}
    assert "the state" in str(caught.value)


def test_a_model_that_is_not_told_is_found_out() -> None:
    """It is asked again and again with the question alone."""
    loop = BoundedLoop("work", max_iterations=3)
    model = ScriptedModel(script=queries(MISSPELT))

    def work(_: Any) -> Any:
        model.invoke([HumanMessage("revenue?")])
        raise_it()

    def raise_it() -> None:
        raise AssertionError

    graph: Any = StateGraph(loop.extend(MessagesState))
    graph.add_node("ask", loop.charge(lambda _: {"messages": [model.invoke([HumanMessage("revenue?")])]}))
    graph.add_node("work", loop.wrap(lambda _: None))
    graph.add_node("give_up", loop.give_up)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "work")
    graph.add_conditional_edges("work", loop.route, {"again": "ask", "done": END, "give_up": "give_up"})
    with pytest.raises(NotBoundedError) as caught:
        bounded_run(graph.compile(), ask(), fail="work")
    assert missing(caught) == ["message"]


def test_an_escalation_of_ones_own() -> None:
    """A node that asks a person is one; so is a node that is named."""
    loop = BoundedLoop("work", max_iterations=3)
    asks = loop_of(lambda _: None, loop, escalates=lambda _: interrupt("help"))
    assert bounded_run(asks, ask(), fail="work").same.interrupts == ("help",)
    falls_back = loop_of(lambda _: None, loop, escalates=lambda _: {"messages": [("ai", "sorry")]})
    with pytest.raises(NotBoundedError) as caught:
        bounded_run(falls_back, ask(), fail="work")
    assert missing(caught) == ["success", "escalation"]
    assert bounded_run(falls_back, ask(), fail="work", through="give_up").same.ended == "finished"


class Counted(TypedDict, total=False):
    """A state with a counter of the user's own."""

    tries: Required[int]
    error: Required[str]
    last: Required[str]


def test_a_loop_that_is_bounded_by_hand_is_bounded() -> None:
    """Nothing of ours need be in the graph."""

    def work(state: Counted) -> dict[str, Any]:
        try:
            step(state)
        except RuntimeError as error:
            return {"tries": state.get("tries", 0) + 1, "last": state.get("error", ""), "error": str(error)}
        return {"tries": 0}

    def step(_: Counted) -> None:
        inner.invoke({"command": "make"})

    def onward(state: Counted) -> str:
        return "help" if state["tries"] >= 3 or state["error"] == state["last"] else "work"

    from langchain_core.tools import tool

    @tool
    def inner(command: str) -> str:
        """Run a command."""
        return command

    graph: Any = StateGraph(Counted)
    graph.add_node("work", work)
    graph.add_node("help", lambda _: interrupt("help"))
    graph.add_edge(START, "work")
    graph.add_conditional_edges("work", onward)
    proof = bounded_run(graph.compile(), {}, fail=inner, within=3)
    assert (proof.varied.attempts, proof.same.attempts) == (3, 2)


@pytest.mark.parametrize("on_stop", ["strip", "interrupt", "drain"])
@BOTH
async def test_an_agent_with_the_middleware(on_stop: Any, asynchronous: bool) -> None:
    """Its stop is an escalation of each kind; it counts calls, so a command that varies is another bound's to end."""
    from langchain.agents.middleware import wrap_tool_call
    from langchain_core.messages import ToolMessage

    @wrap_tool_call
    async def aanswer_errors(request: Any, handler: Any) -> Any:
        try:
            return await handler(request)
        except Exception as error:  # noqa: BLE001 - told to the model
            return ToolMessage(str(error), tool_call_id=request.tool_call["id"], status="error")

    @wrap_tool_call
    def answer_errors(request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except Exception as error:  # noqa: BLE001 - told to the model
            return ToolMessage(str(error), tool_call_id=request.tool_call["id"], status="error")

    policy = Policy.parse(
        {"stagnation": {"witness": "last_error", "hard_limit": 1}, "budget": {"iterations": {"limit": 5}}}
    )
    guard = LoopDetectionMiddleware(policy=policy, on_stop=on_stop)
    script = [turn(bash(f"make {word}")) for word in "abcdefgh"]
    handler = aanswer_errors if asynchronous else answer_errors
    graph = agent(script, handler, guard, checkpointer=InMemorySaver())
    with pytest.raises(NotBoundedError) as caught:
        await prove(graph, asynchronous, fail="bash", within=5)
    assert missing(caught) == ["trace"]


def test_models_are_replaced_by_answers() -> None:
    """Messages, texts, one call, several calls; the last one for ever; each with an id of its own."""
    from langchain_core.messages import AIMessage

    model = ScriptedModel(script=[DONE])
    both = [("bash", {"command": "c"}), ("bash", {"command": "d"})]
    said: list[Any] = [AIMessage("a"), ("bash", {"command": "b"}), both, "e"]
    graph = agent(model)
    from loopscope.testing.injecting import answering

    with answering(said):
        got = [model.invoke("x"), *[model.invoke("x") for _ in range(4)], next(iter(model.stream("x")))]
    assert model.requests == []
    assert [message.text for message in got] == ["a", "", "", "e", "e", "e"]
    assert [len(getattr(message, "tool_calls", ())) for message in got] == [0, 1, 2, 0, 0, 0]
    assert len({message.id for message in got}) == 6
    assert graph.invoke(ask())["messages"][-1].content == "done"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"fail": 3}, "fail= names a tool or a node"),
        ({"fail": "run_sql", "model": []}, "model= needs at least one answer"),
        ({"fail": "run_sql", "within": 0}, "within= must be a whole number from 1"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], told: str) -> None:
    """With the parameter's name."""
    with pytest.raises(UsageError, match=told):
        bounded_run(unguarded(queries(MISSPELT)), ask(), **options)
    with pytest.raises(UsageError, match="compile"):
        bounded_run(StateGraph(MessagesState), ask(), fail="x")


def test_a_failure_that_is_never_met_proves_nothing() -> None:
    """The message says what ran."""
    with pytest.raises(AssertionError, match=r"run_sqll was never called.*analyst, .*run_sql"):
        bounded_run(unguarded(queries("SELECT 1", then="one")), ask(), fail="run_sqll")


def test_there_are_seven_steps() -> None:
    """In order, each with a fix."""
    assert [(step.number, name) for name, step in STEPS.items()] == [
        (1, "success"), (2, "counter"), (3, "witness"), (4, "escalation"), (5, "message"), (6, "budget"), (7, "trace"),
    ]  # fmt: skip
    assert all(step.fix and step.what for step in STEPS.values())


def test_answered_is_false_for_the_failing_graph() -> None:
    """What the loop of these tests calls success never holds while the tool fails."""
    proof = bounded_run(guarded(ScriptedModel(script=queries(MISSPELT))), ask(), fail=FAIL)
    assert not answered(dict(proof.varied.state))


def test_a_budget_is_asked_for_or_told() -> None:
    """Two short runs cannot show one: what nothing in the graph shows is told, and with `budget=True` asserted."""
    bare = guarded(ScriptedModel(script=queries(MISSPELT)))
    proof = bounded_run(bare, ask(), fail=FAIL)
    assert [each.step.name for each in proof.unproven] == ["budget"]
    with pytest.raises(NotBoundedError) as caught:
        bounded_run(bare, ask(), fail=FAIL, budget=True)
    assert missing(caught) == ["budget"]
    assert "  step 6 of 7, budget: nothing in the graph shows one" in str(caught.value)
    with pytest.raises(NotBoundedError) as caught:
        bounded_run(unguarded(queries(MISSPELT)), ask(), fail=FAIL, within=3)
    assert "  not asserted: step 6 of 7, budget: nothing in the graph shows one" in str(caught.value)
    loop = BoundedLoop("sql", max_iterations=3, success=answered, budgets={"total_tokens": 90_000})
    proof = bounded_run(guarded(ScriptedModel(script=queries(MISSPELT)), loop), ask(), fail=FAIL, budget=True)
    assert proof.unproven == ()


def test_budgets_of_a_guard_are_seen() -> None:
    """The middleware has them in its policy; without them nothing is seen."""
    priced = LoopDetectionMiddleware(policy=Policy(budget={"total_tokens": Budget(9000)}))
    assert budgets_in(agent([DONE], priced))
    assert not budgets_in(agent([DONE], LoopDetectionMiddleware()))


def test_what_is_unproven_is_told_below_the_results() -> None:
    """The step, how to take it, and the tests, of which some are named; once."""
    list(told.lines())
    told.remember([Missing(STEPS["budget"], "nothing in the graph shows one")])
    lines = list(told.lines())
    assert lines[0] == "not asserted: step 6 of 7, budget: nothing in the graph shows one"
    assert lines[1].endswith("; budget=True asserts it")
    assert lines[2].endswith("test_bounded_run.py::test_what_is_unproven_is_told_below_the_results")
    assert list(told.lines()) == []
