from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphDrained, GraphRecursionError
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState
from langgraph.types import Command

from loopscope import LoopDetectionMiddleware, Policy, tap
from loopscope.adapters.guard import Guard
from loopscope.engine.events import Batch, DecisionMade, Event, RunEnd, RunStart, ScopeKey
from tests.adapters.scripted import DONE, ScriptedModel, agent, ask, bash, on, turn
from tests.adapters.test_subagents import delegating, repeating

Kinds = Callable[..., Any]
SHARED = Policy.parse({"budget": {"tool_calls": {"limit": 8}}})
"""What the whole of a run may spend. One agent's turn makes two calls, so no agent comes near it."""
HERE = "r"
ABOVE = ScopeKey("t", "r")


def hand_over(other: str) -> BaseTool:
    """The tool that makes another agent of the swarm the next one."""

    @tool(f"to_{other}")
    def handing(
        state: Annotated[dict[str, Any], InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]
    ) -> Command[str]:
        """Hand the task to another agent."""
        told = ToolMessage(f"over to {other}", name=f"to_{other}", tool_call_id=tool_call_id)
        return Command(goto=other, graph=Command.PARENT, update={"messages": [state["messages"][-1], told]})

    return handing


def swarm(guards: dict[str, LoopDetectionMiddleware], **options: Any) -> tuple[Any, list[str]]:
    """Two agents that look something up and hand the task to each other, and whose turn it was."""
    graph: Any = StateGraph(MessagesState)
    turns: list[str] = []

    def looks_then_hands(name: str, other: str) -> Any:
        def script(messages: list[Any]) -> Any:
            results = [message for message in messages if isinstance(message, ToolMessage)]
            if results and results[-1].name == "look":
                return turn((f"to_{other}", {}))
            turns.append(name)
            return turn(("look", {"query": f"{name} {len(turns)}"}))

        return script

    @tool
    def look(query: str) -> str:
        """Look something up."""
        return f"nothing on {query}"

    for name, other in (("billing", "shipping"), ("shipping", "billing")):
        own = [guards[name]] if name in guards else []
        made = agent(looks_then_hands(name, other), *own, tools=[look, hand_over(other)], name=name)
        graph.add_node(name, made, destinations=(other,))
    graph.add_edge(START, "billing")
    return graph.compile(**options), turns


def spent(guard: Guard, key: ScopeKey) -> int:
    """Tool calls that were charged to a scope."""
    account = guard.detector.account(key)
    return 0 if account is None else account.tool_calls


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_two_agents_each_below_its_own_cap_are_stopped_by_the_shared_one(
    asynchronous: bool, events: list[Event], of: Kinds
) -> None:
    """Each turn is a fresh scope with two calls of eight; their parent's account is what is spent, at the eighth."""
    guard = LoopDetectionMiddleware(policy=SHARED)
    graph, turns = swarm({"billing": guard, "shipping": guard})
    context, config = {"run_id": HERE}, on("t", recursion_limit=60)
    if asynchronous:
        final = await graph.ainvoke(ask(), config, context=context)
    else:
        final = graph.invoke(ask(), config, context=context)
    assert turns == ["billing", "shipping"] * 2
    assert "tool calls stands at 8" in str(final["messages"][-1].content)
    stops = [decision for decision in of(events, DecisionMade) if decision.action == "hard_stop"]
    assert [(stop.layer, stop.counter, stop.count, stop.threshold) for stop in stops] == [
        ("budget", "tool_calls", 8, 8)
    ]
    starts = of(events, RunStart)
    assert [start.agent for start in starts] == ["billing", "shipping"] * 2
    assert {(start.parent_thread_id, start.parent_run_id) for start in starts} == {ABOVE}
    by_scope = [sum(len(e.calls) for e in of(events, Batch) if e.scope == start.scope) for start in starts]
    assert by_scope == [2, 2, 2, 2]
    assert spent(guard._guard, ABOVE) == 8


def test_a_drain_stops_whoever_would_go_on_around_the_agents() -> None:
    """Where a graph hands the task on, and not the agents, stripping calls ends one turn only; a drain ends the run."""
    guard = LoopDetectionMiddleware(policy=SHARED, on_stop="drain")
    graph: Any = StateGraph(MessagesState)
    for name, other in (("writer", "critic"), ("critic", "writer")):
        graph.add_node(name, agent(repeating_turn, guard, name=name))
        graph.add_edge(name, other)
    graph.add_edge(START, "writer")
    with pytest.raises(GraphDrained, match="tool calls stands at 8"):
        graph.compile(checkpointer=InMemorySaver()).invoke(ask(), on("t", recursion_limit=60))


def repeating_turn(messages: list[Any]) -> Any:
    """Two calls, then an answer."""
    made = 0
    for message in reversed(messages):
        if (message.type == "ai" and not message.tool_calls) or message.type == "human":
            break
        made += message.type == "ai"
    return DONE if made == 2 else turn(bash(f"step {len(messages)}"))


def test_the_tap_charges_a_swarm_to_the_run_it_belongs_to(events: list[Event], of: Kinds) -> None:
    """Unguarded and only watched: the same parent, the same account, and the same batch would have been stopped."""
    watcher = tap(policy=SHARED)
    graph, turns = swarm({})
    with suppress(GraphRecursionError):
        graph.invoke(ask(), on("t", recursion_limit=6, callbacks=[watcher]), context={"run_id": HERE})
    stops = [decision for decision in of(events, DecisionMade) if decision.action == "hard_stop"]
    assert (stops[0].counter, stops[0].count) == ("tool_calls", 8)
    starts = [start for start in of(events, RunStart) if start.run_id != HERE]
    assert [start.agent for start in starts][:4] == turns[:4] == ["billing", "shipping"] * 2
    assert {(start.parent_thread_id, start.parent_run_id) for start in starts} == {ABOVE}


def by_tool(inner: Any) -> Any:
    """An agent that delegates with a tool."""
    return agent([turn(("delegate", {"task": "x"})), DONE], tools=[delegating(inner)], name="outer")


def by_sub_graph(inner: Any) -> Any:
    """A graph whose node the agent is."""
    graph: Any = StateGraph(MessagesState)
    graph.add_node("inner", inner)
    graph.add_edge(START, "inner")
    return graph.compile(name="outer")


def by_hand_off(inner: Any) -> Any:
    """A graph whose first node asks a model, and goes on to the agent."""
    model, graph = ScriptedModel(script=[turn(("to_inner", {}))]), StateGraph(MessagesState)

    def front(state: Any) -> Command[Any]:
        said = model.invoke(state["messages"])
        told = ToolMessage("over to inner", tool_call_id=said.tool_calls[0]["id"] or "", name="to_inner")
        return Command(goto="inner", update={"messages": [said, told]})

    graph.add_node("front", front, destinations=("inner",))
    graph.add_node("inner", inner)
    graph.add_edge(START, "front")
    return graph.compile(name="outer")


@pytest.mark.parametrize("eyes", ["middleware", "tap", "both"])
@pytest.mark.parametrize("way", [by_tool, by_sub_graph, by_hand_off])
def test_a_sub_agent_has_a_parent_however_it_was_started(
    way: Callable[[Any], Any], eyes: str, events: list[Event], of: Kinds
) -> None:
    """By tool, sub-graph or hand-off, from the middleware and from the tap alike, and it is charged to that parent."""
    guard = LoopDetectionMiddleware(policy=SHARED)
    watcher = tap(policy=SHARED)
    inner = agent(repeating(3), *([guard] if eyes != "tap" else []), name="inner")
    callbacks = [watcher] if eyes != "middleware" else []
    way(inner).invoke(ask(), on("t", callbacks=callbacks), context={"run_id": HERE})
    (start,) = [start for start in of(events, RunStart) if start.agent == "inner"]
    assert ScopeKey(start.parent_thread_id, start.parent_run_id) == ABOVE
    assert str(start.run_id).startswith("r/")
    ends = [end.status for end in of(events, RunEnd) if end.run_id == start.run_id]
    assert ends == ["completed"]
    engine = guard._guard if eyes != "tap" else watcher._watcher
    own = sum(len(batch.calls) for batch in of(events, Batch) if batch.scope == start.scope)
    above = sum(len(batch.calls) for batch in of(events, Batch) if batch.scope == ABOVE)
    assert own >= 2
    assert spent(engine, start.scope) == own
    assert spent(engine, ABOVE) == own + (above if eyes == "tap" else 0)
