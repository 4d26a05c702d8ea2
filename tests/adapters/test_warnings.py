from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, ModelRetryMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from loopscope import LoopDetectionMiddleware
from loopscope.engine.events import Event, Warned
from tests.adapters.scripted import DONE, ScriptedModel, Shell, Turn, agent, ask, bash, on, turn


def warnings_in(messages: Sequence[BaseMessage]) -> list[str]:
    return [str(message.content) for message in messages if message.name == "loop_warning"]


async def run(graph: Any, how: str, *, config: dict[str, Any] | None = None) -> dict[str, Any]:
    """One turn of the user by invoke, ainvoke, stream or astream; the final state."""
    if how == "invoke":
        return await asyncio.to_thread(graph.invoke, ask(), config)
    if how == "ainvoke":
        return await graph.ainvoke(ask(), config)  # type: ignore[no-any-return]
    modes = ["values", "messages", "updates"]
    if how == "stream":
        parts = await asyncio.to_thread(lambda: list(graph.stream(ask(), config, stream_mode=modes)))
    else:
        parts = [part async for part in graph.astream(ask(), config, stream_mode=modes)]
    return [value for mode, value in parts if mode == "values"][-1]  # type: ignore[no-any-return]


HOW = pytest.mark.parametrize("how", ["invoke", "ainvoke", "stream", "astream"])


@HOW
async def test_a_warning_is_in_the_next_request_only_after_the_tool_results_and_never_in_the_state(how: str) -> None:
    """The third equal batch warns the fourth request, in one message at its very end, and nothing else."""
    model = ScriptedModel(script=[turn(bash()), turn(bash()), turn(bash()), DONE])
    final = await run(agent(model, LoopDetectionMiddleware()), how)
    assert [warnings_in(request) for request in model.requests[:3]] == [[], [], []]
    *before, last = model.requests[3]
    assert isinstance(last, HumanMessage)
    assert last.name == "loop_warning"
    assert str(last.content).startswith("[LOOP DETECTED]")
    assert isinstance(before[-1], ToolMessage)
    assert warnings_in(before) == []
    assert warnings_in(final["messages"]) == []


async def test_a_warning_is_never_in_a_checkpoint() -> None:
    """Not even the checkpoints between the nodes hold it."""
    graph = agent(
        [turn(bash())] * 3 + [turn(bash("ls")), DONE], LoopDetectionMiddleware(), checkpointer=InMemorySaver()
    )
    await graph.ainvoke(ask(), on("t"))
    history = [state async for state in graph.aget_state_history(on("t"))]
    assert len(history) > 10
    assert not any(warnings_in(state.values.get("messages", ())) for state in history)


@HOW
async def test_a_warning_is_delivered_once(how: str) -> None:
    """The request after the warned one has no warning."""
    model = ScriptedModel(script=[turn(bash())] * 3 + [turn(bash("ls")), DONE])
    await run(agent(model, LoopDetectionMiddleware()), how)
    assert [len(warnings_in(request)) for request in model.requests] == [0, 0, 0, 1, 0]


async def test_two_waiting_warnings_go_in_one_message() -> None:
    """What waits is joined by a blank line, oldest first."""
    model = ScriptedModel(script=[turn(bash("a")), turn(bash("a")), DONE])
    await agent(model, HoldBack(2), eager()).ainvoke(ask())
    (text,) = warnings_in(model.requests[2])
    first, second = text.split("\n\n")
    assert "same tool calls" in first
    assert "3 times" in second


def eager() -> LoopDetectionMiddleware:
    """Warns at the second equal batch, and at the second call of a tool if it has not warned just then."""
    return LoopDetectionMiddleware(warn_threshold=2, hard_limit=9, tool_freq_warn=2, tool_freq_hard_limit=9)


class HoldBack(AgentMiddleware[Any, Any, Any]):
    """Answers one request by itself in place of the model, so that what waits goes on waiting."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.left = number

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """Count down."""
        self.left -= 1
        if self.left == -1:
            return AIMessage("", tool_calls=[{"name": "bash", "args": {"command": "b"}, "id": "held"}])
        return await handler(request)


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_warning_comes_back_after_a_failed_call(asynchronous: bool) -> None:
    """Where the model call raises, the warning waits again and is in the next request that is tried."""
    model = ScriptedModel(script=[*[turn(bash())] * 3, Turn(error=ConnectionError("reset by peer")), DONE])
    graph = agent(model, LoopDetectionMiddleware(), checkpointer=InMemorySaver())
    with pytest.raises(ConnectionError):
        await graph.ainvoke(ask(), on("t")) if asynchronous else graph.invoke(ask(), on("t"))
    await graph.ainvoke(None, on("t")) if asynchronous else graph.invoke(None, on("t"))
    assert [len(warnings_in(request)) for request in model.requests] == [0, 0, 0, 1, 1]


async def test_a_warning_comes_back_after_a_cancelled_call(events: list[Event], of: Callable[..., Any]) -> None:
    """A request that is cancelled while the model works has not delivered anything."""
    reached = asyncio.Event()

    async def stuck() -> None:
        reached.set()
        await asyncio.Event().wait()

    model = ScriptedModel(script=[*[turn(bash())] * 3, Turn(wait=stuck), DONE])
    graph = agent(model, LoopDetectionMiddleware(), checkpointer=InMemorySaver())
    task = asyncio.create_task(graph.ainvoke(ask(), on("t")))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await graph.ainvoke(None, on("t"))
    assert [len(warnings_in(request)) for request in model.requests] == [0, 0, 0, 1, 1]
    assert [event.state for event in of(events, Warned)] == ["queued", "delivered", "requeued", "delivered"]


async def test_returned_warnings_are_told_before_newer_ones() -> None:
    """What comes back goes to the front of the queue."""
    model = ScriptedModel(script=[turn(bash("a")), turn(bash("a")), Turn(error=ValueError("down")), DONE])
    graph = agent(model, HoldBack(3), eager(), checkpointer=InMemorySaver())
    with pytest.raises(ValueError, match="down"):
        await graph.ainvoke(ask(), on("t"))
    await graph.ainvoke(None, on("t"))
    (text,) = warnings_in(model.requests[3])
    first, second = text.split("\n\n")
    assert "same tool calls" in first
    assert "3 times" in second


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_retried_request_has_the_warning_again(asynchronous: bool) -> None:
    """A retry in another middleware tells the model what the failed attempt could not."""
    model = ScriptedModel(script=[*[turn(bash())] * 3, Turn(error=ValueError("down")), DONE])
    retry = ModelRetryMiddleware(max_retries=1, initial_delay=0, jitter=False)
    graph = agent(model, retry, LoopDetectionMiddleware())
    await graph.ainvoke(ask()) if asynchronous else graph.invoke(ask())
    assert [len(warnings_in(request)) for request in model.requests] == [0, 0, 0, 1, 1]


async def test_a_warning_that_nobody_was_told_is_dropped_when_the_agent_ends(
    events: list[Event], of: Callable[..., Any]
) -> None:
    """A tool that ends the agent leaves no warning for the next turn of the user."""
    shell = Shell()
    shell.tool.return_direct = True
    model = ScriptedModel(script=[turn(bash(), bash(), text="x"), DONE])
    guard = LoopDetectionMiddleware(tool_freq_warn=2)
    graph = agent(model, guard, tools=[shell.tool], checkpointer=InMemorySaver())
    await graph.ainvoke(ask(), on("t"), context={"run_id": "one"})
    await graph.ainvoke(ask(), on("t"), context={"run_id": "one"})
    assert [event.state for event in of(events, Warned)] == ["queued", "dropped"]
    assert [warnings_in(request) for request in model.requests] == [[], []]


async def test_a_warning_text_tells_tool_and_count() -> None:
    """The model learns what it did and how often."""
    model = ScriptedModel(script=[turn(bash())] * 3 + [DONE])
    await agent(model, LoopDetectionMiddleware()).ainvoke(ask())
    (text,) = warnings_in(model.requests[3])
    assert "bash" in text
    assert "3 times" in text
