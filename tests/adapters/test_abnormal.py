from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.runtime import RunControl

from loopscope import LoopDetectionMiddleware
from loopscope.engine.events import Batch, DecisionMade, Event, Result, RunEnd, RunStart
from tests.adapters.scripted import DONE, ScriptedModel, Turn, agent, ask, bash, on, turn

Kinds = Callable[..., Any]


class Control(RunControl):
    """A run's control that can be watched."""


def held(controls: list[weakref.ref[Control]]) -> int:
    """How many of these are still alive."""
    gc.collect()
    return sum(control() is not None for control in controls)


def broken_tool() -> Any:
    @tool
    def bash(command: str) -> str:
        """Run a command."""
        raise OSError(28, "no space left", command)

    return bash


def test_an_error_in_a_tool_ends_the_run_and_a_resume_goes_on(events: list[Event], of: Kinds) -> None:
    """The error is the caller's; going on from the checkpoint is the same run."""
    graph = agent([turn(bash())], LoopDetectionMiddleware(), tools=[broken_tool()], checkpointer=InMemorySaver())
    with pytest.raises(OSError, match="no space"):
        graph.invoke(ask(), on("t"))
    with pytest.raises(OSError, match="no space"):
        graph.invoke(None, on("t"))
    (batch,) = of(events, Batch)
    assert batch.calls
    with pytest.raises(OSError, match="no space"):
        graph.invoke(ask(), on("t"))
    assert of(events, Batch)[1].run_id != batch.run_id


def test_an_error_that_the_tool_node_hands_to_the_model_is_a_result(events: list[Event], of: Kinds) -> None:
    """Its class is told where the text names it."""
    script = [turn(("bash", {"wrong": 1}), ("no_such_tool", {})), DONE]
    agent(script, LoopDetectionMiddleware()).invoke(ask())
    refused, unknown = of(events, Result)
    assert (refused.status, refused.error_type, refused.name) == ("error", "ToolInvocationError", "bash")
    assert (unknown.status, unknown.error_type, unknown.name) == ("error", None, "no_such_tool")
    assert refused.call_id == of(events, Batch)[0].calls[0].id


def test_the_recursion_limit_leaves_a_run_that_a_new_turn_does_not_inherit(events: list[Event], of: Kinds) -> None:
    """LangGraph ends it without a word to any hook; the next turn starts with fresh counts."""
    graph = agent([turn(bash())], LoopDetectionMiddleware(), checkpointer=InMemorySaver())
    for _ in range(2):
        with pytest.raises(GraphRecursionError):
            graph.invoke(ask(), on("t", recursion_limit=8))
    assert [decision.hash_count for decision in of(events, DecisionMade)] == [1, 2, 1, 2]


def test_the_end_of_a_failed_run_is_told_when_its_thread_begins_another(events: list[Event], of: Kinds) -> None:
    """Until then a retry around the model might still have made it good."""
    guard = LoopDetectionMiddleware()
    graph = agent([Turn(error=ValueError("bad request")), DONE], guard, checkpointer=InMemorySaver())
    with pytest.raises(ValueError, match="bad request"):
        graph.invoke(ask(), on("t"))
    assert of(events, RunEnd) == []
    graph.invoke(ask(), on("t"))
    assert [(end.status, end.reason) for end in of(events, RunEnd)] == [
        ("error", "ValueError: bad request"),
        ("completed", None),
    ]
    assert of(events, RunEnd)[0].run_id == of(events, RunStart)[0].run_id


async def test_a_cancelled_run_is_told_at_once(events: list[Event], of: Kinds) -> None:
    """While the model works the hook is there to see it."""
    reached = asyncio.Event()

    async def stuck() -> None:
        reached.set()
        await asyncio.Event().wait()

    graph = agent([turn(bash()), Turn(wait=stuck)], LoopDetectionMiddleware())
    task = asyncio.create_task(graph.ainvoke(ask(), on("t")))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [end.status for end in of(events, RunEnd)] == ["cancelled"]


async def test_a_run_that_is_cancelled_in_a_tool_disturbs_no_other() -> None:
    """Its scope stays behind, bounded; the next run is counted by itself."""
    reached = asyncio.Event()

    @tool
    async def bash(command: str) -> str:
        """Run a command."""
        if command == "sleep":
            reached.set()
            await asyncio.Event().wait()
        return command

    guard = LoopDetectionMiddleware()
    graph = agent([turn(("bash", {"command": "sleep"})), turn(("bash", {"command": "x"})), DONE], guard, tools=[bash])
    task = asyncio.create_task(graph.ainvoke(ask()))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    final = await graph.ainvoke(ask())
    assert final["messages"][-1].content == "done"


def test_an_abandoned_stream_is_no_trouble() -> None:
    """A consumer that stops in the middle leaves a run that nothing waits for."""
    guard = LoopDetectionMiddleware()
    graph = agent([turn(bash())], guard)
    for _ in graph.stream(ask(), stream_mode="updates"):
        break
    assert "FORCED STOP" in str(graph.invoke(ask())["messages"][-1].content)


def test_a_run_is_let_go_when_its_agent_ends() -> None:
    """Nothing keeps its control object, so that addresses that come again are never taken for it."""
    controls: list[weakref.ref[Control]] = []
    guard = LoopDetectionMiddleware()
    graph = agent([turn(bash()), DONE], guard)
    for _ in range(3):
        control = Control()
        controls.append(weakref.ref(control))
        graph.invoke(ask(), control=control)
        del control
    assert held(controls) == 0


def test_runs_that_never_end_are_held_up_to_twice_the_limit() -> None:
    """Their control objects are held strongly, so there must be a bound; the newest stay."""
    controls: list[weakref.ref[Control]] = []
    guard = LoopDetectionMiddleware(max_tracked_threads=3)
    graph = agent([Turn(error=ValueError("down"))], guard)
    for _ in range(20):
        control = Control()
        controls.append(weakref.ref(control))
        with pytest.raises(ValueError, match="down"):
            graph.invoke(ask(), control=control)
        del control
    assert held(controls) == 6
    assert held(controls[-6:]) == 6


def test_a_middleware_that_is_gone_holds_nothing() -> None:
    """An agent that is made for one call and dropped takes its runs with it."""
    controls: list[weakref.ref[Control]] = []
    for _ in range(3):
        control = Control()
        controls.append(weakref.ref(control))
        with pytest.raises(ValueError, match="down"):
            agent([Turn(error=ValueError("down"))], LoopDetectionMiddleware()).invoke(ask(), control=control)
        del control
    assert held(controls) == 0


def test_runs_beyond_the_bound_that_still_run_keep_their_thread_and_stay_apart() -> None:
    """A run that was given up while it ran goes on under its own base id, where its thread is named."""
    guard = LoopDetectionMiddleware(max_tracked_threads=1)
    inner: list[Any] = []

    def script(messages: list[Any]) -> Turn:
        if len(inner) < 4 and len(messages) == 3:
            inner.append(None)
            graph.invoke(ask(), on(f"other {len(inner)}"), control=RunControl())
        return turn(bash())

    graph: Any = agent(script, guard)
    final = graph.invoke(ask(), on("t"))
    assert "FORCED STOP" in str(final["messages"][-1].content)
    assert len(guard._guard.ids._seen) <= 2


def test_a_failed_model_call_is_told_without_its_secrets(events: list[Event], of: Kinds) -> None:
    """An error text may quote the request's headers."""
    guard = LoopDetectionMiddleware()
    model = ScriptedModel(
        script=[Turn(error=ValueError("Authorization: Bearer sk-proj-abcdefghijklmnopqrstuvwxyz012345"))]
    )
    with pytest.raises(ValueError, match="Bearer"):
        agent(model, guard).invoke(ask())
    guard.close()
    (end,) = of(events, RunEnd)
    assert end.status == "error"
    assert "abcdefghijklmnop" not in str(end.reason)
