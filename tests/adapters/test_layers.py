from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import ToolMessage

from loopscope import LoopDetectionMiddleware, Policy
from loopscope.engine.events import DecisionMade, Event, RunEnd, Warned
from tests.adapters.scripted import DONE, ScriptedModel, Shell, agent, ask, bash, turn
from tests.adapters.test_subagents import delegating, repeating
from tests.adapters.test_warnings import warnings_in

Kinds = Callable[..., Any]


@pytest.fixture(params=[True, False])
def watched(request: pytest.FixtureRequest) -> bool:
    """Whether somebody listens: it must make no difference to the verdicts."""
    if request.param:
        request.getfixturevalue("events")
    return bool(request.param)


def test_a_layer_that_looks_at_results_warns_in_the_very_next_request(watched: bool) -> None:
    """Three different calls failed: what was decided at the last result is told with it."""
    model = ScriptedModel(script=[turn(("bash", {"wrong": letter})) for letter in "abc"] + [DONE])
    policy = Policy.parse({"error_streak": {"warn": 3}})
    agent(model, LoopDetectionMiddleware(policy=policy)).invoke(ask())
    assert [len(warnings_in(request)) for request in model.requests] == [0, 0, 0, 1]
    assert watched in (True, False)


def test_a_stop_that_was_found_at_a_result_rejects_the_next_batch(watched: bool) -> None:
    """Before its tools run, with the same layer."""
    policy = Policy.parse({"stagnation": {"witness": "results", "mode": "changes", "warn": 1, "hard_limit": 2}})
    script = [turn(bash("same"), text=str(n)) for n in range(9)]
    shell = Shell(lambda _: "nothing new")
    final = agent(script, LoopDetectionMiddleware(policy=policy), tools=[shell.tool]).invoke(ask())
    assert len(shell.ran) == 3
    assert "no progress" in str(final["messages"][-1].content)
    assert watched in (True, False)


def test_a_budget_is_shared_with_sub_agents(watched: bool) -> None:
    """What is delegated is charged to the one that delegates."""
    guard = LoopDetectionMiddleware(policy=Policy.parse({"budget": {"tool_calls": {"limit": 6}}}))
    inner = agent(repeating(2), guard, name="inner")
    script = [turn(("delegate", {"task": str(n)})) for n in range(9)]
    context = {"run_id": "r"}
    final = agent(script, guard, tools=[delegating(inner)]).invoke(ask(), context=context)
    assert "[FORCED STOP]" in str(final["messages"][-1].content)
    assert sum(isinstance(message, ToolMessage) for message in final["messages"]) == 2
    assert context["stop_reason"] == "budget_capped"
    assert guard.consume_stop_reason("r") == "budget_capped"
    assert watched in (True, False)


def test_decisions_at_results_are_recorded_and_replay(
    events: list[Event], of: Kinds, decided: Callable[..., Any], replayed: Callable[[Sequence[Event], Policy], Any]
) -> None:
    """As further decisions, with the result's seq."""
    policy = Policy.parse({"warn_threshold": 5, "stagnation": {"witness": "results", "warn": 1, "hard_limit": 2}})
    agent([turn(bash("same"))], LoopDetectionMiddleware(policy=policy)).invoke(ask())
    assert [decision.at for decision in of(events, DecisionMade)].count("result") == 2
    assert decided(events) == replayed(events, policy)
    assert [event.state for event in of(events, Warned)] == ["queued", "delivered"]
    assert [end.status for end in of(events, RunEnd)] == ["stagnated"]
