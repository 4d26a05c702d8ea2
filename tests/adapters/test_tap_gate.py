"""The tap before the gate of a real link: held, stepped, stopped, in threads and on event loops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.errors import GraphDrained

from loopscope import tap
from loopscope.engine.events import Batch, DecisionMade, Event, Result, RunEnd, ScopeKey
from loopscope.link.gate import HoldingGate
from loopscope.recording.bus import bus
from loopscope.recording.feed import Held, Released
from loopscope.recording.gate import Ruling, gatehouse
from tests.adapters.scripted import DONE, ScriptedModel, Shell, agent, ask, bash, on, turn
from tests.adapters.tapped import asking, by_hand, chained, chained_loop, hand_made

Kinds = Callable[..., Any]


class Keeper:
    """A gate that is up, and what it told."""

    def __init__(self) -> None:
        self.told: list[Held | Released] = []
        self.arrived = threading.Semaphore(0)
        self.released = threading.Event()
        self.gate = HoldingGate(self._tell, lambda: None)

    def _tell(self, told: Held | Released) -> None:
        self.told.append(told)
        if isinstance(told, Held):
            self.arrived.release()
        else:
            self.released.set()

    def wait(self) -> Held:
        """The newest batch that is held, once one is."""
        assert self.arrived.acquire(timeout=120)
        return [told for told in self.told if isinstance(told, Held)][-1]

    async def await_(self) -> Held:
        """As `wait`, while other tasks go on."""
        return await asyncio.to_thread(self.wait)


@pytest.fixture
def keeper(events: list[Event]) -> Iterator[Keeper]:
    """A gate at which everything is paused."""
    made = Keeper()
    gatehouse.attend(made.gate, lambda _: None)
    made.gate.pause(None)
    yield made
    made.gate.resume(None)
    gatehouse.leave(made.gate)
    assert events is not None


def test_a_thread_is_held_before_its_tools_run(keeper: Keeper, events: list[Event], of: Kinds) -> None:
    """With the verdict that the batch would get; it is told of when it is let go, and the tools run after that."""
    graph = asking([turn(bash())] * 2 + [DONE])
    running = threading.Thread(target=lambda: graph.invoke(ask(), {"callbacks": [tap()], **on("t")}))
    running.start()
    held = keeper.wait()
    assert (held.thread_id, held.node, held.calls[0].name) == ("t", "agent", "bash")
    assert held.decision is not None
    assert (held.decision.action, held.decision.hash_count) == ("pass", 1)
    assert of(events, Batch) == []
    keeper.gate.step(None)
    assert keeper.wait().decision.hash_count == 2  # type: ignore[union-attr]
    assert len(of(events, Batch)) == len(of(events, Result)) == 1
    keeper.gate.resume(None)
    running.join(120)
    assert [event.status for event in of(events, RunEnd)] == ["completed"]
    assert len(of(events, Batch)) == 3


@pytest.mark.parametrize("hand", [False, True])
async def test_a_task_is_held_and_no_other_one(hand: bool, keeper: Keeper, events: list[Event], of: Kinds) -> None:
    """Under ainvoke the gate is awaited: the loop runs on, and so does another run of the same graph and tap."""
    keeper.gate.resume(None)
    keeper.gate.pause(ScopeKey("t", "held"))

    def node(state: Any) -> Any:
        return {"messages": [hand_made() if len(state["messages"]) == 1 else AIMessage("")]}

    graph = chained_loop(node) if hand else asking(_once_then_done)
    graph = graph.with_config(callbacks=[tap()])
    held_run = asyncio.create_task(graph.ainvoke(ask(), on("t"), context={"run_id": "held"}))
    assert (await keeper.await_()).scope == ScopeKey("t", "held")
    await graph.ainvoke(ask(), on("t"), context={"run_id": "free"})
    assert [event.run_id for event in of(events, RunEnd)] == ["free"]
    keeper.gate.resume(ScopeKey("t", "held"))
    await held_run
    assert [event.run_id for event in of(events, RunEnd)] == ["free", "held"]


def _once_then_done(messages: list[Any]) -> Any:
    return turn(bash()) if len(messages) == 1 else DONE


@pytest.mark.parametrize("threaded", [False, True])
async def test_a_held_run_that_is_cancelled_lets_go(
    threaded: bool, keeper: Keeper, events: list[Event], of: Kinds
) -> None:
    """LangChain shields its callbacks from that, and a thread cannot be cancelled: the tap ends the waiting itself."""
    graph = asking([turn(bash())]) if threaded else agent([turn(bash())])
    running = asyncio.create_task(graph.ainvoke(ask(), {"callbacks": [tap()]}))
    await keeper.await_()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    while keeper.gate.held():
        await asyncio.to_thread(keeper.released.wait, 10)
    assert [event.status for event in of(events, RunEnd)] == ["cancelled"]
    assert of(events, Batch) == []


async def test_a_node_with_little_time_is_kept_alive_while_it_is_held(keeper: Keeper) -> None:
    """Its heart beats, so that LangGraph does not take it for stuck."""
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.types import TimeoutPolicy

    model = ScriptedModel(script=[turn(bash())])

    async def agent(state: Any) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph: Any = StateGraph(MessagesState)
    graph.add_node("agent", agent, timeout=TimeoutPolicy(idle_timeout=2.5, refresh_on="heartbeat"))
    graph.add_edge(START, "agent")
    running = asyncio.create_task(graph.compile().ainvoke(ask(), {"callbacks": [tap()]}))
    await keeper.await_()
    done, _ = await asyncio.wait([running], timeout=4.0)
    assert not done
    keeper.gate.resume(None)
    assert len((await running)["messages"]) == 2


def test_sync_on_the_thread_of_a_loop_never_waits(keeper: Keeper) -> None:
    """Blocking it would block every other run: the batch is shown and goes on."""

    async def main() -> Any:
        return asking([turn(bash()), DONE]).invoke(ask(), {"callbacks": [tap()]})

    assert len(asyncio.run(main())["messages"]) == 4
    assert [type(told) for told in keeper.told] == [Held, Released]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_stop_drains_the_run(asynchronous: bool, keeper: Keeper, events: list[Event], of: Kinds) -> None:
    """The tap cannot take a batch back: LangGraph ends the run before its tools, and says who wanted it."""
    graph = asking([turn(bash())])
    config = {"callbacks": [tap()]}
    invoked = graph.ainvoke(ask(), config) if asynchronous else asyncio.to_thread(graph.invoke, ask(), config)
    running = asyncio.create_task(invoked)
    await keeper.await_()
    keeper.gate.rule(None, Ruling("stop", "alice"))
    with pytest.raises(GraphDrained, match="stopped by alice"):
        await running
    assert (len(of(events, Batch)), len(of(events, Result))) == (1, 0)
    assert [(event.status, event.reason) for event in of(events, RunEnd)] == [("cancelled", "stopped by alice")]


def test_a_policy_that_is_set_is_in_force_from_the_next_batch(events: list[Event], of: Kinds) -> None:
    """As for the middleware: the tap's engine can be steered."""
    from loopscope.engine.events import PolicySet
    from loopscope.engine.policy import Policy

    handler = tap()
    engine = handler._watcher
    assert engine in gatehouse.engines()
    assert (engine.name, engine.enforced) == ("tap", False)
    strict = Policy(warn_threshold=1, hard_limit=1)
    told = PolicySet(seq=bus.next_seq(), ts=None, thread_id=None, run_id=None, policy=strict.to_dict())
    with bus.lock:
        engine.apply(told)
    by_hand([hand_made(), AIMessage("")]).invoke(ask(), {"callbacks": [handler]})
    assert handler.policy == strict
    assert [event.action for event in of(events, DecisionMade)] == ["hard_stop"]


async def test_many_held_runs_leave_another_one_alone(keeper: Keeper, events: list[Event], of: Kinds) -> None:
    """64 are held on one event loop, and a 65th runs to its end among them; then they do, each with its batch."""
    keeper.gate.resume(None)
    handler = tap()
    names = [f"held {number}" for number in range(64)]
    for name in names:
        keeper.gate.pause(ScopeKey(name, name))

    async def run(name: str) -> Any:
        graph = asking(_once_then_done)
        return await graph.ainvoke(ask(), {"callbacks": [handler], **on(name)}, context={"run_id": name})

    running = [asyncio.create_task(run(name)) for name in names]
    for _ in names:
        await keeper.await_()
    assert len(keeper.gate.held()) == len(names)
    assert len((await run("free"))["messages"]) == 4
    assert [event.run_id for event in of(events, RunEnd)] == ["free"]
    assert len(keeper.gate.held()) == len(names)
    keeper.gate.resume(None)
    assert {len(end["messages"]) for end in await asyncio.gather(*running)} == {4}
    assert sorted(event.run_id for event in of(events, Batch) if event.calls) == sorted([*names, "free"])


@pytest.mark.parametrize("again", ["tool", "model"])
async def test_a_node_in_which_the_batch_goes_on_is_held_there(
    again: str, keeper: Keeper, events: list[Event], of: Kinds
) -> None:
    """Its end would be too late: it waits before a tool that the node runs, or before the model's next answer."""
    model, shell = ScriptedModel(script=[turn(bash()), DONE]), Shell()

    def node(state: Any) -> Any:
        message = model.invoke(state["messages"])
        if again == "tool":
            shell.tool.invoke(message.tool_calls[0])
        return {"messages": [message, model.invoke(state["messages"])]}

    running = asyncio.create_task(chained(node).ainvoke(ask(), {"callbacks": [tap()]}))
    held = await keeper.await_()
    assert held.calls[0].name == "bash"
    assert of(events, Batch) == of(events, Result) == []
    keeper.gate.resume(None)
    await running
    assert [len(event.calls) for event in of(events, Batch)] == [1, 0]


async def test_a_batch_of_a_node_that_fails_is_told(keeper: Keeper, events: list[Event], of: Kinds) -> None:
    """It came to be, and nothing in it will run: it is not held."""
    model = ScriptedModel(script=[turn(bash())])

    def node(state: Any) -> Any:
        model.invoke(state["messages"])
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await chained(node).ainvoke(ask(), {"callbacks": [tap()]})
    assert not keeper.gate.held()
    assert [event.calls[0].name for event in of(events, Batch)] == ["bash"]
    assert [event.status for event in of(events, RunEnd)] == ["error"]
