from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from loopscope import LoopDetectionMiddleware, Policy
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, DecisionMade, Event
from loopscope.recording.bus import bus
from tests.adapters.scripted import DONE, ScriptedModel, Turn, agent, ask, bash, on, turn

Replay = Callable[[Sequence[Event], Policy], list[tuple[object, ...]]]
Decided = Callable[[Sequence[Event]], list[tuple[object, ...]]]
THREADS, RUNS = 64, 3
LIMITS: dict[str, Any] = {"warn_threshold": 2, "hard_limit": 3, "tool_freq_warn": 4, "tool_freq_hard_limit": 7}


def by_thread(messages: list[BaseMessage]) -> Turn:
    """Each thread loops in a way of its own: the user's message seeds it."""
    turns = [index for index, message in enumerate(messages) if isinstance(message, HumanMessage) and not message.name]
    number = sum(isinstance(message, AIMessage) for message in messages[turns[-1] :])
    choice = random.Random(f"{messages[turns[-1]].content} {number}")  # noqa: S311 - a script, no secret
    if number >= 5:
        return DONE
    return turn(*[bash(choice.choice("aab")) for _ in range(choice.randint(1, 2))])


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "checkpointer"), [(100, InMemorySaver()), (7, None)])
def test_threads_and_runs_interleaved_through_one_graph_equal_the_engine(
    limit: int, checkpointer: Any, events: list[Event], decided: Decided, replayed: Replay
) -> None:
    """64 threads of three runs each, eight at once: the live decisions are the engine's over the recorded order."""
    guard = LoopDetectionMiddleware(max_tracked_threads=limit, **LIMITS)
    graph = agent(by_thread, guard, checkpointer=checkpointer)
    begin = threading.Barrier(8)

    def work(worker: int) -> None:
        begin.wait()
        for run in range(RUNS):
            for thread in range(worker, THREADS, 8):
                graph.invoke(ask(f"thread {thread} run {run}"), on(f"t{thread}"), context=_context(thread, run))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    live = decided(events)
    assert live == replayed(events, guard.policy)
    sequence = [event.seq for event in events]  # type: ignore[union-attr]  # no header is published
    assert sequence == sorted(set(sequence))
    assert len({(event.thread_id, event.run_id) for event in events if isinstance(event, Batch)}) == THREADS * RUNS
    assert {"pass", "warn", "hard_stop"} == {row[5] for row in live}
    assert len(guard._guard.detector.scopes) == limit


def _context(thread: int, run: int) -> dict[str, Any] | None:
    """A third of the threads name their runs."""
    return {"run_id": f"run {run} of {thread}"} if thread % 3 == 0 else None


@pytest.mark.slow
async def test_tasks_interleaved_on_one_loop_equal_each_run_alone(events: list[Event]) -> None:
    """Scopes are independent: each of 64 concurrent runs is decided as it would be by itself."""
    guard = LoopDetectionMiddleware(**LIMITS)
    graph = agent(by_thread, guard)
    await asyncio.gather(*(graph.ainvoke(ask(f"thread {n} run 0"), on(f"t{n}")) for n in range(THREADS)))
    alone: dict[object, LoopDetector] = {}
    live = {event.batch_seq: event.action for event in events if isinstance(event, DecisionMade)}
    for event in events:
        if isinstance(event, Batch) and event.calls:
            detector = alone.setdefault(event.scope, LoopDetector(guard.policy))
            assert detector.observe(event)[0].action == live[event.seq]
    assert len(alone) == THREADS


def test_runs_without_a_thread_do_not_share_a_scope() -> None:
    """Concurrent runs that name nothing at all are told apart by the invocation they are in."""
    guard = LoopDetectionMiddleware()
    model = ScriptedModel(script=lambda messages: turn(bash()) if len(messages) < 8 else DONE)
    graph = agent(model, guard)
    with ThreadPoolExecutor(8) as pool:
        finals = list(pool.map(lambda _: graph.invoke(ask()), range(40)))
    assert not any("FORCED STOP" in str(final["messages"][-1].content) for final in finals)


def test_unwatched_and_watched_runs_are_decided_alike() -> None:
    """Observers see what happens; they do not change it."""

    def stops(watched: bool) -> list[int]:
        guard = LoopDetectionMiddleware(**LIMITS)
        graph = agent(by_thread, guard)
        unsubscribe = bus.subscribe(lambda _: None) if watched else lambda: None
        lengths = [len(graph.invoke(ask(f"thread {n} run 0"))["messages"]) for n in range(20)]
        unsubscribe()
        return lengths

    assert stops(watched=True) == stops(watched=False)


def test_an_observer_that_joins_in_the_middle_is_told_where_it_is() -> None:
    """The first thing that it hears of a running loop is its `run_start`; the counts go on."""
    heard: list[Event] = []
    stop: list[Callable[[], None]] = []

    def script(messages: list[BaseMessage]) -> Turn:
        if len(messages) == 5:
            stop.append(bus.subscribe(heard.append))
        return turn(bash())

    agent(script, LoopDetectionMiddleware()).invoke(ask(), on("t"))
    stop[0]()
    assert [type(event).__name__ for event in heard[:3]] == ["RunStart", "Batch", "DecisionMade"]
    assert [event.hash_count for event in heard if isinstance(event, DecisionMade)] == [3, 4, 5]


def test_an_observer_that_fails_disturbs_nobody(events: list[Event]) -> None:
    """It is not called again; the run and all others go on."""

    def broken(event: Event) -> None:
        raise OSError(event)

    bus.subscribe(broken)
    final = agent([turn(bash())], LoopDetectionMiddleware()).invoke(ask())
    assert "FORCED STOP" in str(final["messages"][-1].content)
    assert len([event for event in events if isinstance(event, Batch)]) == 5
