from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphDrained
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Send

from loopscope import BoundedLoop, LoopDetectionMiddleware
from tests.adapters.scripted import DONE, ScriptedModel, Shell, agent, ask, bash, on, turn
from tests.adapters.test_subagents import delegating

BOTH = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])


async def run(graph: Any, value: Any, asynchronous: bool) -> Any:
    """One invocation of thread t, in either world."""
    return await graph.ainvoke(value, on("t")) if asynchronous else graph.invoke(value, on("t"))


def around(inner: Any, loop: BoundedLoop) -> Any:
    """A loop whose body is a guarded agent."""
    graph: Any = StateGraph(loop.extend(MessagesState))
    graph.add_node("worker", loop.wrap(inner))
    graph.add_node("give_up", loop.give_up)
    graph.add_edge(START, "worker")
    graph.add_conditional_edges("worker", loop.route, {"again": "worker", "done": END, "give_up": "give_up"})
    graph.add_edge("give_up", END)
    return graph.compile(checkpointer=InMemorySaver())


def done(state: Any) -> bool:
    """The agent has answered."""
    return bool(state["messages"][-1].content == "done")


@BOTH
async def test_an_agent_that_asks_a_person_is_one_iteration(asynchronous: bool) -> None:
    """Its interrupt goes through the loop, which counts the node once, however often LangGraph executes it."""
    shell = Shell()
    model = ScriptedModel(script=[*[turn(bash())] * 5, DONE])
    inner = agent(model, LoopDetectionMiddleware(on_stop="interrupt"), tools=[shell.tool], name="worker")
    graph = around(inner, BoundedLoop("work", max_iterations=3, success=done))
    asked = await run(graph, ask(), asynchronous)
    assert asked["__interrupt__"][0].value["reason"] == "loop_capped"
    final = await run(graph, Command(resume="try something else"), asynchronous)
    assert (final["messages"][-1].content, final["work_iterations"]) == ("done", 1)
    assert len(shell.ran) == 4


@BOTH
async def test_an_agent_that_drains_ends_the_run_around_it(asynchronous: bool) -> None:
    """It is no failed iteration."""
    inner = agent([turn(bash())], LoopDetectionMiddleware(on_stop="drain"), name="worker")
    with pytest.raises(GraphDrained):
        await run(around(inner, BoundedLoop("work", max_iterations=3)), ask(), asynchronous)


@BOTH
async def test_an_agent_that_is_stopped_is_tried_again_within_the_loops_bounds(asynchronous: bool) -> None:
    """Stripping ends the agent, and the loop's counter ends what is around it."""
    inner = agent([turn(bash())], LoopDetectionMiddleware(hard_limit=3), name="worker")
    loop = BoundedLoop("work", max_iterations=2, success=done, budgets={"model_calls": 50})
    final = await run(around(inner, loop), ask(), asynchronous)
    (asked,) = final["__interrupt__"]
    assert (asked.value["reason"], asked.value["iterations"]) == ("budget", 2)
    assert final["work_spent"]["model_calls"] == 6


@BOTH
async def test_a_sub_agent_in_a_tool_asks_through_its_parent(asynchronous: bool) -> None:
    """The person's answer reaches the agent that asked."""
    inner_model = ScriptedModel(script=[*[turn(bash())] * 3, DONE])
    inner = agent(inner_model, LoopDetectionMiddleware(hard_limit=3, on_stop="interrupt"), name="inner")
    outer = agent([turn(("delegate", {"task": "x"})), DONE], tools=[delegating(inner)], checkpointer=InMemorySaver())
    asked = await run(outer, ask(), asynchronous)
    assert "came 3 times" in asked["__interrupt__"][0].value["text"]
    final = await run(outer, Command(resume="enough"), asynchronous)
    assert final["messages"][-1].content == "done"
    assert str(inner_model.requests[-1][-1].content).endswith("Advice: enough")


def test_nodes_that_are_sent_to_in_parallel_are_counted_each() -> None:
    """They get a part of the state, and what the loop knows is not lost by it. Each edge sees its own node's count."""
    loop = BoundedLoop("work", max_iterations=5, witness=None)
    graph: Any = StateGraph(loop.extend(MessagesState))
    graph.add_node("plan", lambda _: None)
    graph.add_node("work", loop.wrap(lambda part: {"messages": [("ai", part["task"])]}))
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", lambda _: [Send("work", {"task": name}) for name in "abc"], ["work"])
    graph.add_conditional_edges("work", loop.route, {"again": "plan", "done": END, "give_up": END})
    final = graph.compile().invoke({**ask(), "work_began": 1.0, "work_advice": "be quick"})
    assert final["work_iterations"] == 9
    assert (final["work_began"], final["work_advice"]) == (1.0, "be quick")
