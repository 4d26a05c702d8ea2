"""The middleware under the rules that DeerFlow had at other times: what it decides is what a replay decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import HumanMessage

from loopscope import LoopDetectionMiddleware, Policy
from loopscope.engine.events import Event
from tests.adapters.scripted import DONE, ScriptedModel, agent, ask, bash, on, turn

Replay = Callable[[Sequence[Event], Policy], list[tuple[object, ...]]]
Decided = Callable[[Sequence[Event]], list[tuple[object, ...]]]


def test_the_runs_of_a_thread_share_a_history(events: list[Event], decided: Decided, replayed: Replay) -> None:
    """deer-flow issue 5343: one `git status` a run, and the fifth run is stopped; another thread is not touched."""
    policy = Policy.load("deerflow-2026-08-22")
    guard = LoopDetectionMiddleware(policy=policy)
    graph = agent([turn(bash()), DONE] * 6, guard)
    ends = []
    for run in range(5):
        state = graph.invoke(ask(f"question {run}"), on("t"), context={"thread_id": "t", "run_id": f"r{run}"})
        ends.append(state["messages"][-1].text)
    assert ends[:4] == ["done"] * 4
    assert "[FORCED STOP]" in ends[4]
    assert guard.consume_stop_reason("r4") == "loop_capped"
    live = decided(events)
    assert live == replayed(events, policy)
    other: Any = graph.invoke(ask("another thread"), on("u"), context={"thread_id": "u", "run_id": "r9"})
    assert other["messages"][-1].text != ends[4]


def test_a_reset_of_the_thread_forgets_all_its_runs(events: list[Event]) -> None:
    """Whichever run they were counted in."""
    del events
    guard = LoopDetectionMiddleware(policy=Policy.load("deerflow-2026-04"))
    graph = agent([turn(bash()), DONE] * 6, guard)
    for run in range(6):
        if run == 4:
            guard.reset("t")
        state = graph.invoke(ask(f"question {run}"), on("t"), context={"thread_id": "t", "run_id": f"r{run}"})
        assert "[FORCED STOP]" not in state["messages"][-1].text


def test_a_warning_is_told_in_the_run_that_brought_it() -> None:
    """The third equal call of a thread is warned before that run's next model call."""
    model = ScriptedModel(script=[turn(bash()), DONE] * 3)
    graph = agent(model, LoopDetectionMiddleware(policy=Policy.load("deerflow-2026-08-22")))
    for run in range(3):
        graph.invoke(ask("go"), on("t"), context={"thread_id": "t", "run_id": f"r{run}"})
    told = [
        isinstance(messages[-1], HumanMessage) and messages[-1].name == "loop_warning" for messages in model.requests
    ]
    assert told == [False, False, False, False, False, True]
