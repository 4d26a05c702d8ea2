"""One tap for many threads and runs, and what of it stays behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import MessagesState

from loopscope import tap
from loopscope.adapters.tap import handler as handlers
from loopscope.adapters.tap.runs import Bounded
from loopscope.cli import run
from loopscope.engine.events import Batch, DecisionMade, Event, Result, RunEnd, RunStart
from loopscope.engine.policy import Policy
from loopscope.recording.bus import bus
from loopscope.recording.reader import read
from tests.adapters.scripted import DONE, ScriptedModel, Turn, agent, ask, bash, on, turn
from tests.adapters.tapped import asking, by_hand, chained, hand_made

Kinds = Callable[..., Any]
THREADS, RUNS = 64, 3


def looping(messages: list[Any]) -> Turn:
    """As many equal batches as the user asks for, then a different one, then done."""
    asked = sum(isinstance(message, AIMessage) for message in messages)
    wanted = int(str(messages[0].content))
    return turn(bash()) if asked < wanted else turn(bash("else")) if asked == wanted else DONE


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1_000, 10])
def test_many_threads_at_once_through_one_graph_and_one_tap(limit: int, tmp_path: Path, of: Kinds) -> None:
    """64 threads with three runs each: what was decided equals the engine over the recorded order.

    Also while scopes are evicted all the time; and nothing of a run is lost, doubled or mixed up with another one's.
    """
    policy, path = Policy(max_tracked_threads=limit), tmp_path / "run.jsonl"
    handler = tap(policy=policy, record=path)
    graph = asking(looping)

    def work(number: int) -> None:
        for count in range(RUNS):
            graph.invoke(ask(str(2 + (number + count) % 5)), {"callbacks": [handler], **on(f"t{number}")})

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    handler.close()
    events = [line.event for line in read(path) if line.event is not None]
    assert run(["replay", "--verify", str(path)]) == 0
    assert len(of(events, RunStart)) == len(of(events, RunEnd)) == THREADS * RUNS
    for start in of(events, RunStart):
        own = [event for event in events if getattr(event, "run_id", None) == start.run_id]
        batches = [event for event in own if isinstance(event, Batch)]
        wanted = len(batches) - 2
        assert 2 <= wanted <= 6
        assert [len(batch.calls) for batch in batches] == [1] * (wanted + 1) + [0]
        calls = [batch.calls[0].id for batch in batches[:-1]]
        assert [event.call_id for event in own if isinstance(event, Result)] == calls
        counts = [event.hash_count for event in own if isinstance(event, DecisionMade)]
        assert limit == 10 or counts == [*range(1, wanted + 1), 1]
    assert not handler._runs
    assert not list(handler._watcher.ids.open_scopes())


async def test_many_tasks_on_one_loop(events: list[Event], of: Kinds) -> None:
    """The same of coroutines: each is counted for itself."""
    handler = tap()
    graph = agent(looping)
    runs = (graph.ainvoke(ask("4"), {"callbacks": [handler], **on(f"t{number}")}) for number in range(30))
    await asyncio.gather(*runs)
    counts: dict[str, list[int]] = {}
    for event in of(events, DecisionMade):
        counts.setdefault(event.thread_id, []).append(event.hash_count)
    assert len(counts) == 30
    assert all(found == [1, 2, 3, 4, 1] for found in counts.values())


@pytest.mark.parametrize("watched", [True, False])
def test_nothing_of_a_run_stays_behind(watched: bool) -> None:
    """Neither states nor messages nor graphs, whether it ended well, failed or was left, and whoever looked."""
    handler, leave = tap(), bus.subscribe(lambda _: None) if watched else lambda: None

    class Marked(list[Any]):
        """A value in a state that can be looked for."""

    class State(MessagesState, total=False):
        mark: Any

    def node(state: Any) -> Any:
        if state["messages"][0].content == "fail":
            raise ValueError
        return {"messages": [hand_made()]}

    marks = []
    for text in ("go", "fail"):
        mark = Marked()
        marks.append(weakref.ref(mark))
        graph = chained(node, state=State)
        with contextlib.suppress(ValueError):
            graph.invoke({**ask(text), "mark": mark}, {"callbacks": [handler]})
        del mark, graph
    gc.collect()
    assert [mark() for mark in marks] == [None, None]
    assert not handler._runs
    leave()


def test_runs_whose_end_is_never_told_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether those of a node, when its graph is over, or those of graphs, when there are too many."""
    monkeypatch.setattr(handlers, "_MANY", 10)
    handler = tap()
    graph = by_hand([AIMessage("x")] * 1_000)
    ended = handler.on_chain_end

    def of_graphs_alone(outputs: Any, *, run_id: Any, parent_run_id: Any = None, **more: Any) -> None:
        if parent_run_id is None:
            ended(outputs, run_id=run_id, **more)

    monkeypatch.setattr(handler, "on_chain_end", of_graphs_alone)
    for _ in range(100):
        graph.invoke(ask(), {"callbacks": [handler]})
    assert len(handler._runs) <= 10
    monkeypatch.setattr(handler, "on_chain_end", lambda *_, **__: None)
    handler._runs.limit = 50
    for _ in range(100):
        graph.invoke(ask(), {"callbacks": [handler]})
    assert len(handler._runs) <= 60


def test_a_bounded_dict_is_safe_from_many_threads() -> None:
    """Each forgets what is too much, and none fails."""
    bounded: Bounded[int, int] = Bounded(100)
    failures: list[BaseException] = []

    def work(offset: int) -> None:
        try:
            for number in range(5_000):
                bounded.keep(offset + number, number)
        except BaseException as error:  # noqa: BLE001 - whichever it is
            failures.append(error)

    threads = [threading.Thread(target=work, args=(10_000 * number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(bounded) <= 100


@pytest.mark.parametrize("part", ["on_chain_start", "fresh", "said", "tool_ended", "graph_ended", "said in a log"])
def test_a_tap_that_fails_never_disturbs_the_run(
    part: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, events: list[Event]
) -> None:
    """Whatever goes wrong in it is logged once, and the run ends as it would without."""
    handler = tap()

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("bug")

    if part == "on_chain_start":
        monkeypatch.setattr(handlers, "NodeRun", fail)
    elif part == "said in a log":
        monkeypatch.setattr(handler._observer, "said", fail)
        monkeypatch.setattr(logging.getLogger("loopscope"), "warning", fail)
    else:
        monkeypatch.setattr(handler._observer, part, fail)
    graph = asking(ScriptedModel(script=[turn(bash())] * 2 + [DONE]))
    end = graph.invoke(ask(), {"callbacks": [handler]})
    assert len(end["messages"]) == 6
    mine = [record for record in caplog.records if record.name == "loopscope"]
    assert len(mine) == (part != "said in a log")
    assert "LangGraph" not in caplog.text or mine
    assert isinstance(events, list)
