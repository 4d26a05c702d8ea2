"""Compiled LangChain agents behind a link: what a viewer counts is what the middleware counts."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from loopscope.adapters.langchain import LoopDetectionMiddleware
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, DecisionMade, ScopeKey
from loopscope.engine.policy import Policy
from loopscope.link.client import connect
from loopscope.link.endpoint import Link, listen
from loopscope.recording.bus import bus
from loopscope.recording.feed import Held, Message
from loopscope.recording.reader import read
from tests.adapters.scripted import DONE, Turn, agent, ask, bash, on, turn
from tests.link.support import State, same_state, until


def detector(middleware: LoopDetectionMiddleware) -> LoopDetector:
    """The engine of a middleware."""
    return middleware._guard.detector


def caught_up(state: State, client: Any, link: Link) -> None:
    """Take in everything that was published so far."""
    newest = connect(link.entry)
    mark = newest.welcome.seq
    newest.close()
    if state.seq < mark:
        state.follow(client, lambda _message: state.seq >= mark)


def looping(length: int) -> list[Turn]:
    """The same command so often, and other ones between."""
    return [turn(bash(f"echo {n}") if n % 4 == 3 else bash()) for n in range(length)] + [DONE]


@pytest.mark.parametrize("early", [True, False], ids=["watched", "unwatched before"])
def test_a_late_viewer_counts_as_the_middleware_does(link: Link, pool: ThreadPoolExecutor, early: bool) -> None:
    """Many runs in many threads, stops and warnings; whether the viewer saw them begin or not."""
    if not early:
        link.close()
    middleware = LoopDetectionMiddleware(hard_limit=4)
    graph = agent(looping(6), middleware)
    runs = [pool.submit(graph.invoke, ask(), on(f"t{n}")) for n in range(8)]
    for run in runs:
        run.result(60)
    opened = listen()
    with connect(opened.entry) as client:
        state = State()
        client.attach()
        caught_up(state, client, opened)
        assert same_state(state.detector, detector(middleware))
        pool.submit(graph.invoke, ask(), on("later")).result(60)
        caught_up(state, client, opened)
        assert same_state(state.detector, detector(middleware))
        assert state.detector.batches == detector(middleware).batches > 0
    opened.close()


def test_two_middlewares_with_limits_of_their_own_are_one_state(link: Link) -> None:
    """Each scope is decided under its own policy, in the viewer too."""
    strict, mild = LoopDetectionMiddleware(hard_limit=3, warn_threshold=2), LoopDetectionMiddleware(hard_limit=9)
    with connect(link.entry) as client:
        state = State()
        client.attach()
        for middleware, thread in ((strict, "strict"), (mild, "mild")):
            agent(looping(8), middleware).invoke(ask(), on(thread))
        caught_up(state, client, link)
        live = [(event.batch_seq, event.action) for event in state.messages if isinstance(event, DecisionMade)]
        assert live == [(made.seq, made.action) for made in state.decisions]
        assert {action for _, action in live} == {"pass", "warn", "hard_stop"}


def test_a_hard_stop_is_averted_from_another_thread(link: Link, pool: ThreadPoolExecutor, tmp_path: Path) -> None:
    """Held before it is decided, seen as a stop to come; the limit is raised, the run goes on, and it replays."""
    path = tmp_path / "run.jsonl"
    middleware = LoopDetectionMiddleware(hard_limit=3, warn_threshold=2, record=path)
    graph = agent([turn(bash())] * 4 + [DONE], middleware)
    with connect(link.entry, control=True) as client:
        state = State()
        client.attach()
        client.call("setBreakpoints", breakpoints=[{"kind": "stop"}])
        run = pool.submit(graph.invoke, ask(), on("t", run_id=None))
        held = state.follow(client, lambda message: isinstance(message, Held))
        assert isinstance(held, Held)
        assert held.decision is not None
        assert (held.decision.action, held.decision.count) == ("hard_stop", 3)
        client.request("setPolicy", held.scope, changes={"hard_limit": 9})
        client.call("continue")
        result = run.result(60)
    assert result["messages"][-1].content == "done"
    middleware.close()
    events = [line.event for line in read(path) if line.event is not None]
    replay = LoopDetector()
    again = [made.action for event in events for made in replay.observe(event)]
    assert again == [event.action for event in events if isinstance(event, DecisionMade)]
    assert "hard_stop" not in again
    assert {type(event).__name__ for event in events} >= {"PolicySet", "Control"}


def test_passing_once_and_stopping_reach_the_run(link: Link, pool: ThreadPoolExecutor) -> None:
    """A batch that would be stopped runs; a run that would go on ends."""
    middleware = LoopDetectionMiddleware(hard_limit=2, warn_threshold=1)
    graph = agent([turn(bash()), turn(bash()), turn(bash("other")), DONE], middleware)
    with connect(link.entry, control=True) as client:
        state = State()
        client.attach()
        client.call("pause")
        run = pool.submit(graph.invoke, ask(), on("t"))
        for verb in ("next", "passOnce", "stop"):
            held = state.follow(client, lambda message: isinstance(message, Held))
            assert isinstance(held, Held)
            client.request(verb, held.scope)
        result = run.result(60)
    texts = [message.content for message in result["messages"]]
    assert texts.count("ran git status") == 2
    assert "ran other" not in texts
    assert "[FORCED STOP]" in texts[-1]


@pytest.mark.slow
async def test_held_runs_of_one_loop_leave_the_others_alone(link: Link) -> None:
    """Under ainvoke the gate is awaited: 64 runs are held, a 65th ends, and no thread is used up."""
    middleware = LoopDetectionMiddleware(max_tracked_threads=200)
    graph = agent(_two_turns, middleware)
    with connect(link.entry, control=True) as client:
        await asyncio.to_thread(client.call, "pause")
        held = [asyncio.create_task(graph.ainvoke(ask(), on(f"t{n}"))) for n in range(64)]
        while len(link.gate.held()) < 64:  # noqa: ASYNC110 - what is awaited has no event
            await asyncio.sleep(0.01)
        free = asyncio.create_task(graph.ainvoke(ask(), on("free")))
        while len(link.gate.held()) < 65:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)
        scope = next(hold.arrival.scope for hold in link.gate.held() if hold.arrival.scope.thread_id == "free")
        await asyncio.to_thread(client.request, "continue", scope)
        assert (await asyncio.wait_for(free, 10))["messages"][-1].content == "done"
        assert len(link.gate.held()) == 64
        await asyncio.to_thread(client.call, "continue")
        results = await asyncio.wait_for(asyncio.gather(*held), 60)
    assert [result["messages"][-1].content for result in results] == ["done"] * 64


def _two_turns(messages: list[Any]) -> Turn:
    return DONE if any(message.type == "tool" for message in messages) else turn(bash())


def test_a_reset_from_a_viewer_reaches_the_middleware(link: Link) -> None:
    """What was counted is forgotten there, and counted anew."""
    middleware = LoopDetectionMiddleware(hard_limit=3, warn_threshold=2)
    graph = agent([turn(bash()), turn(bash()), DONE] * 2, middleware)
    messages: list[Message] = []
    with connect(link.entry, control=True) as client:
        client.attach()
        graph.invoke(ask(), on("t"), context={"run_id": "r"})
        client.request("reset", ScopeKey("t", "r"))
        result = graph.invoke(ask(), on("t"), context={"run_id": "r"})
        with bus.lock:
            newest = bus.next_seq()
        client.call("pause")
        for message in client:
            messages.append(message)
            if getattr(message, "seq", 0) > newest:
                break
    assert result["messages"][-1].content == "done"
    assert [message.action for message in messages if isinstance(message, DecisionMade)].count("hard_stop") == 0
    assert len([message for message in messages if isinstance(message, Batch) and message.calls]) == 4
    assert middleware.policy == Policy(hard_limit=3, warn_threshold=2)
    until(lambda: link.viewers == 0)
