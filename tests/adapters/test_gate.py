from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from loopscope import LoopDetectionMiddleware, Policy
from loopscope.engine.events import Batch, Control, DecisionMade, Event, PolicySet, RunEnd, ScopeKey
from loopscope.link.gate import HoldingGate
from loopscope.recording.bus import bus
from loopscope.recording.feed import Held
from loopscope.recording.gate import Ruling, gatehouse
from tests.adapters.scripted import DONE, Shell, Turn, agent, ask, bash, on, turn
from tests.adapters.test_recordings import recorded
from tests.adapters.test_resume import Confirmed

Kinds = Callable[..., Any]


class Desk:
    """The gate of this process, and what it holds."""

    def __init__(self) -> None:
        self.held: list[Held] = []
        self.arrived = threading.Semaphore(0)
        self.gate = HoldingGate(self.tell, lambda: None)
        gatehouse.attend(self.gate, lambda _: None)

    def tell(self, message: object) -> None:
        """Note what is held."""
        if isinstance(message, Held):
            self.held.append(message)
            self.arrived.release()

    def wait(self) -> Held:
        """Until the next batch is held."""
        assert self.arrived.acquire(timeout=120)
        return self.held[-1]


@pytest.fixture
def desk(events: list[Event]) -> Iterator[Desk]:  # noqa: ARG001 - a gate stands where somebody listens
    """Somebody who can hold batches."""
    desk = Desk()
    yield desk
    desk.gate.resume(None)
    gatehouse.leave(desk.gate)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_held_batch_is_neither_decided_nor_run(
    asynchronous: bool, desk: Desk, events: list[Event], of: Kinds
) -> None:
    """It is announced with what it asks for; let go, it goes on as if nothing had been."""
    shell = Shell()
    graph = agent([turn(bash()), DONE], LoopDetectionMiddleware(), tools=[shell.tool])
    desk.gate.pause(None)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(
            lambda: asyncio.run(graph.ainvoke(ask(), on("t"))) if asynchronous else graph.invoke(ask(), on("t"))
        )
        held = desk.wait()
        assert [call.name for call in held.calls] == ["bash"]
        assert held.thread_id == "t"
        assert (of(events, Batch), shell.ran) == ([], [])
        desk.gate.resume(None)
        assert run.result(120)["messages"][-1].content == "done"
    assert shell.ran == ["git status"]
    assert len(of(events, DecisionMade)) == 1


def test_a_batch_can_be_passed_where_the_policy_would_stop_it(desk: Desk, events: list[Event], of: Kinds) -> None:
    """The engine accounts it as it is; only the effect differs."""
    shell, guard = Shell(), LoopDetectionMiddleware(warn_threshold=1, hard_limit=1)
    graph = agent([turn(bash()), DONE], guard, tools=[shell.tool])
    desk.gate.pause(None)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(graph.invoke, ask(), on("t"), context={"run_id": "r"})
        desk.wait()
        desk.gate.rule(None, Ruling("pass", "me"))
        desk.gate.resume(None)
        run.result(120)
    assert shell.ran == ["git status"]
    assert [decision.action for decision in of(events, DecisionMade)] == ["hard_stop"]
    assert [end.status for end in of(events, RunEnd)] == ["completed"]
    assert guard.consume_stop_reason("r") is None


def test_a_batch_can_be_stopped_where_the_policy_would_pass_it(desk: Desk, events: list[Event], of: Kinds) -> None:
    """As a hard stop: no tool runs, and the message says who it was."""
    shell, guard = Shell(), LoopDetectionMiddleware()
    graph = agent([turn(bash()), DONE], guard, tools=[shell.tool])
    desk.gate.pause(None)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(graph.invoke, ask(), on("t"), context={"run_id": "r"})
        desk.wait()
        desk.gate.rule(None, Ruling("stop", "me"))
        final = run.result(120)
    assert shell.ran == []
    assert "stopped by me" in str(final["messages"][-1].content)
    assert [decision.action for decision in of(events, DecisionMade)] == ["pass"]
    assert [end.status for end in of(events, RunEnd)] == ["cancelled"]
    assert guard.consume_stop_reason("r") == "cancelled"


async def test_a_held_task_holds_no_other(desk: Desk) -> None:
    """Under a running loop the gate is awaited."""
    guard = LoopDetectionMiddleware()
    graph = agent(lambda ms: turn(bash()) if len(ms) < 2 else DONE, guard)
    desk.gate.pause(ScopeKey("one", "r"))
    one = asyncio.create_task(graph.ainvoke(ask(), on("one"), context={"run_id": "r"}))
    await asyncio.to_thread(desk.wait)
    two = await graph.ainvoke(ask(), on("two"))
    assert two["messages"][-1].content == "done"
    assert not one.done()
    desk.gate.resume(None)
    assert (await one)["messages"][-1].content == "done"


async def test_a_held_task_can_be_cancelled(desk: Desk, events: list[Event], of: Kinds) -> None:
    """The batch was never decided."""
    graph = agent([turn(bash())], LoopDetectionMiddleware())
    desk.gate.pause(None)
    task = asyncio.create_task(graph.ainvoke(ask()))
    await asyncio.to_thread(desk.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert of(events, DecisionMade) == []


def test_batches_without_calls_and_decided_ones_are_not_held(desk: Desk) -> None:
    """An answer passes; a node that is executed again was ruled on before."""
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command

    graph = agent([turn(bash()), Turn(text="done")], Confirmed(), checkpointer=InMemorySaver())
    desk.gate.pause(None)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(graph.invoke, ask(), on("t"))
        desk.wait()
        desk.gate.step(None)
        run.result(120)
        state = graph.invoke(Command(resume="yes"), on("t"))
    assert state["messages"][-1].content == "done"
    assert len(desk.held) == 1


def test_a_policy_that_is_set_is_in_force_and_recorded(tmp_path: Path, desk: Desk) -> None:
    """For all: the running scope and those that begin later, in the engine and in the file."""
    path = tmp_path / "steered.jsonl"
    guard = LoopDetectionMiddleware(record=path)
    steered = guard._guard
    shell = Shell()
    graph = agent([turn(bash())], guard, tools=[shell.tool])
    desk.gate.pause(None)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(graph.invoke, ask(), on("t"), context={"run_id": "r"})
        desk.wait()
        strict = Policy(warn_threshold=1, hard_limit=2)
        with bus.lock:
            assert list(steered.open_scopes()) == [ScopeKey("t", "r")]
            assert list(steered.recordings(ScopeKey("t", "r"))) == list(steered.recordings(None)) == [steered.recorder]
            told = PolicySet(seq=bus.next_seq(), ts=None, thread_id=None, run_id=None, policy=strict.to_dict())
            steered.apply(told)
            for recording in steered.recordings(None):
                recording.put(told)
        desk.gate.resume(None)
        run.result(120)
    assert len(shell.ran) == 1
    assert guard.policy == strict
    with bus.lock:
        steered.apply(PolicySet(seq=bus.next_seq(), ts=None, thread_id="t", run_id="r", policy=Policy().to_dict()))
        assert steered.detector.policy_of(ScopeKey("t", "r")) == Policy()
        steered.apply(Control(seq=bus.next_seq(), ts=None, thread_id="t", run_id="r", action="reset"))
        assert steered.detector.scope(ScopeKey("t", "r")) is None
    guard.close()
    actions = [event.action for event in recorded(path) if isinstance(event, DecisionMade)]
    assert actions == ["warn", "hard_stop"]


def test_every_middleware_is_known_by_the_name_of_its_class() -> None:
    """So that a person can tell several apart."""
    known = {id(engine): engine.name for engine in gatehouse.engines()}
    guard = Confirmed()
    (new,) = [engine for engine in gatehouse.engines() if id(engine) not in known]
    assert (new.name, new.enforced, new.policy) == ("Confirmed", True, guard.policy)
