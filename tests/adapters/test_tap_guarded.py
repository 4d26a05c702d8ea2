"""The tap beside the middleware: whoever has the loop tells of it, and nobody twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph

from loopscope import LoopDetectionMiddleware, tap
from loopscope.engine.events import Batch, DecisionMade, Event, Result, RunEnd, RunStart, Warned
from tests.adapters.scripted import DONE, ScriptedModel, Turn, agent, ask, bash, on, turn
from tests.adapters.tapped import asking, told
from tests.adapters.test_subagents import delegating

Kinds = Callable[..., Any]


def once(events: list[Event], of: Kinds) -> None:
    """Whether every message, result, beginning and end is told once."""
    for found in (
        [event.message_id for event in of(events, Batch)],
        [event.call_id for event in of(events, Result)],
        [event.scope for event in of(events, RunStart)],
        [event.scope for event in of(events, RunEnd)],
        [event.batch_seq for event in of(events, DecisionMade)],
    ):
        assert len(found) == len(set(found))


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_guarded_agent_tells_everything_itself(asynchronous: bool, events: list[Event], of: Kinds) -> None:
    """Its warnings are delivered, its stop is applied, its policy decides; the tap adds nothing."""
    guard, handler = LoopDetectionMiddleware(hard_limit=4), tap()
    graph = agent([turn(bash())], guard, name="guarded")
    config = {"callbacks": [handler], **on("t")}
    end = await graph.ainvoke(ask(), config) if asynchronous else graph.invoke(ask(), config)
    assert "[FORCED STOP]" in str(end["messages"][-1].content)
    once(events, of)
    assert [event.message_id for event in of(events, Batch)] == [m.id for m in end["messages"] if m.type == "ai"]
    assert [event.state for event in of(events, Warned)] == ["queued", "delivered"]
    assert [event.status for event in of(events, RunEnd)] == ["loop_capped"]
    assert not handler._runs


def test_a_guarded_agent_within_a_graph_that_is_only_watched(events: list[Event], of: Kinds) -> None:
    """One run, two tellers: the outer loop is the tap's, the inner one the middleware's and its child."""
    guard = LoopDetectionMiddleware()
    graph: Any = StateGraph(MessagesState)
    graph.add_node("worker", agent([turn(bash())] * 3 + [DONE], guard, name="worker"))
    graph.add_node("closing", lambda _: {"messages": [AIMessage("closed")]})
    graph.add_edge(START, "worker")
    graph.add_edge("worker", "closing")
    graph.compile(name="outer").invoke(ask(), {"callbacks": [tap()], **on("t")})
    once(events, of)
    entries = told(events)
    assert entries[:2] == [("a", "starts", "outer", "-"), ("b", "starts", "worker", "a")]
    assert entries[-3:] == [("b", "ends", "completed"), ("a", "closing"), ("a", "ends", "completed")]
    assert len(of(events, Batch)) == 5


def test_a_watched_agent_within_a_guarded_one(events: list[Event], of: Kinds) -> None:
    """The other way round: the child's run id begins with the base id of the guarded run."""
    inner = asking([turn(bash()), DONE], name="inner")
    outer = agent(
        [turn(("delegate", {"task": "x"})), DONE], LoopDetectionMiddleware(), tools=[delegating(inner)], name="outer"
    )
    outer.invoke(ask(), {"callbacks": [tap()], **on("t")})
    once(events, of)
    outer_start, inner_start = of(events, RunStart)
    assert inner_start.run_id.startswith(f"{outer_start.run_id}/tools:")
    assert (inner_start.agent, inner_start.parent_run_id) == ("inner", outer_start.run_id)
    assert len(of(events, Batch)) == 4


def test_a_model_that_is_asked_before_the_guard_begins(events: list[Event], of: Kinds) -> None:
    """A middleware listed before it may ask one: that is not the agent's message, and makes no second run."""

    class Asking(AgentMiddleware[Any, Any, Any]):
        def before_agent(self, state: Any, runtime: Any) -> None:  # noqa: ARG002
            ScriptedModel(script=[Turn(text="an aside")]).invoke(state["messages"])

    agent([turn(bash()), DONE], Asking(), LoopDetectionMiddleware()).invoke(ask(), {"callbacks": [tap()]})
    once(events, of)
    assert len(of(events, RunStart)) == 1
    assert [event.text for event in of(events, Batch)] == [None, "done"]


def test_a_guard_within_a_middleware_of_the_users_own(events: list[Event], of: Kinds) -> None:
    """It is not seen among the nodes, but begins to tell before there is anything to be told."""

    class Wrapped(AgentMiddleware[Any, Any, Any]):
        guard = LoopDetectionMiddleware()

        def before_agent(self, state: Any, runtime: Any) -> Any:
            return self.guard.before_agent(state, runtime)

        def after_model(self, state: Any, runtime: Any) -> Any:
            return self.guard.after_model(state, runtime)

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return self.guard.wrap_model_call(request, handler)

        def after_agent(self, state: Any, runtime: Any) -> Any:
            return self.guard.after_agent(state, runtime)

    agent([turn(bash())], Wrapped()).invoke(ask(), {"callbacks": [tap()]})
    once(events, of)
    assert [event.status for event in of(events, RunEnd)] == ["loop_capped"]
    assert len(of(events, Batch)) == 5


def test_scopes_are_the_middlewares(events: list[Event], of: Kinds) -> None:
    """For the same runs, watched and guarded: threads, run ids and parents are the same."""
    found = []
    for guards in ((), (LoopDetectionMiddleware(),)):
        inner = agent([turn(bash()), DONE], *guards, name="inner")
        outer = agent([turn(("delegate", {"task": "x"})), DONE], *guards, tools=[delegating(inner)], name="outer")
        for context, config in (
            ({"run_id": "r1", "thread_id": "c"}, on("t")),
            ({"run_id": None}, on("t")),
            ({}, {}),
        ):
            events.clear()
            outer.invoke(ask(), {"callbacks": [tap()], **config}, context=context)
            begun = of(events, RunStart)
            starts = [(s.thread_id, s.run_id, s.parent_thread_id, s.parent_run_id, s.agent) for s in begun]
            base = starts[0][1]
            found.append([tuple(_masked(part, base) for part in start) for start in starts])
    half = len(found) // 2
    assert found[:half] == found[half:]
    assert found[0][0] == ("c", "r1", None, None, "outer")
    assert found[1][0][:2] == ("t", None)


def _masked(part: str | None, base: str | None) -> str | None:
    """Without what differs from run to run: a generated id, and the id of the task that delegates."""
    if part is None or base is None or len(base) < 32:
        return part if part is None else part.partition(":")[0]
    return part.replace(base, "<base>").partition(":")[0]
