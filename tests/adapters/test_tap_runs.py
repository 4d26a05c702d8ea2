"""What the tap tells of runs: how they end, and which it sees at all."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.errors import GraphRecursionError

from loopscope import tap
from loopscope.engine.events import Batch, RunEnd, RunStart
from tests.adapters.scripted import DONE, ScriptedModel, Turn, agent, ask, bash, on, turn
from tests.adapters.tapped import asking, by_hand, chained, chained_loop, hand_made, told

Kinds = Callable[..., Any]


def test_a_run_that_fails_and_one_that_is_left(events: list[Any], of: Kinds) -> None:
    """How a run ended is told: too many steps, a stream that nobody reads to its end."""
    graph, handler = asking([turn(bash())]), tap()
    with pytest.raises(GraphRecursionError):
        graph.invoke(ask(), {"callbacks": [handler], "recursion_limit": 4})
    stream = graph.stream(ask(), {"callbacks": [handler]})
    next(stream)
    stream.close()
    failed, left = of(events, RunEnd)
    assert (failed.status, left.status) == ("error", "cancelled")
    assert failed.reason.startswith("GraphRecursionError: Recursion limit of 4")
    assert "\n" not in failed.reason


async def test_a_run_that_is_cancelled(events: list[Any], of: Kinds) -> None:
    """While the model takes its time; the run was shown from before."""
    begun = asyncio.Event()

    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    graph = agent(ScriptedModel(script=[Turn(wait=wait)]), name="slow")
    running = asyncio.create_task(graph.ainvoke(ask(), {"callbacks": [tap()]}))
    await begun.wait()
    assert [start.agent for start in of(events, RunStart)] == ["slow"]
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [end.status for end in of(events, RunEnd)] == ["cancelled"]


def test_a_model_that_is_asked_with_callbacks_of_its_own(events: list[Any]) -> None:
    """The tap does not hear of that; the message is told when the node returns it."""
    model = ScriptedModel(script=[turn(bash()), DONE])
    graph = chained_loop(lambda state: {"messages": [model.invoke(state["messages"], {"callbacks": []})]})
    graph.invoke(ask(), {"callbacks": [tap()]})
    assert [entry[1] for entry in told(events)] == ["starts", "agent", "pass", "ok", "agent", "ends"]


def test_a_graph_that_is_tapped_for_good_and_one_within_an_unwatched_one(events: list[Any]) -> None:
    """`with_config` does for every run; an outer graph without a tap changes nothing."""
    inner = by_hand([hand_made(), AIMessage("")] * 2, name="inner").with_config(callbacks=[tap()])
    inner.invoke(ask())

    def node(state: Any) -> Any:
        return {"messages": inner.invoke(state)["messages"][-1:]}

    chained(node).invoke(ask())
    entries = told(events)
    assert [entry[1] for entry in entries] == ["starts", "agent", "pass", "ok", "agent", "ends"] * 2
    assert {entry[2] for entry in entries if entry[1] == "starts"} == {"inner"}


def test_two_taps_tell_once(events: list[Any], of: Kinds) -> None:
    """Whichever comes first tells, of the outer graph and of the inner one."""
    first, second = tap(), tap()
    inner = by_hand([hand_made("b"), AIMessage("")]).with_config(callbacks=[second])

    def node(state: Any) -> Any:
        return {"messages": inner.invoke(state)["messages"][-1:]}

    by_hand([hand_made("a"), AIMessage("")]).invoke(ask(), {"callbacks": [first, second]})
    chained(node).invoke(ask(), {"callbacks": [first]})
    assert [call.id for event in of(events, Batch) for call in event.calls] == ["a", "b"]
    assert len(of(events, RunEnd)) == 3


def test_a_graph_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch, events: list[Any]) -> None:
    """Where LangGraph keeps its frames to itself, the structure is the given graph's, and everything else is told."""
    from loopscope.adapters.tap import handler

    monkeypatch.setattr(handler, "running_graph", lambda _: None)
    monkeypatch.setattr(handler, "place_of", lambda *_: None)
    inner = by_hand([hand_made("b"), AIMessage("")], name="inner")

    def node(state: Any) -> Any:
        return {"messages": inner.invoke(state)["messages"][-1:]}

    graph = chained(node, name="outer")
    graph.invoke(ask(), {"callbacks": [tap(graph)], **on("t")})
    inner_events = [entry for entry in told(events) if entry[0] == "b"]
    assert [entry[1] for entry in inner_events] == ["starts", "agent", "pass", "ok", "agent", "ends"]
    start = next(event for event in events if isinstance(event, RunStart) and event.parent_run_id is None)
    assert start.graph is not None
    assert any(node.id.startswith("node") for node in start.graph.nodes)
    assert {event.thread_id for event in events} == {"t"}


@pytest.mark.parametrize("given", [None, 1, object(), "graph"])
def test_anything_may_be_given_for_a_graph(given: object, events: list[Any]) -> None:
    """It is only looked at where the running graph cannot be found out."""
    by_hand([AIMessage("x")]).invoke(ask(), {"callbacks": [tap(given)]})
    assert [entry[1] for entry in told(events)] == ["starts", "agent", "ends"]


def test_a_config_with_a_tap_can_be_copied_and_pickled() -> None:
    """Programs do that; a copy is the same tap, and what is unpickled elsewhere does nothing."""
    handler = tap()
    assert copy.copy(handler) is handler
    assert copy.deepcopy({"callbacks": [handler]})["callbacks"][0] is handler
    assert type(pickle.loads(pickle.dumps(handler))).__name__ == "BaseCallbackHandler"  # noqa: S301 - made here


def test_the_tap_loads_nothing_of_the_debugger() -> None:
    """An observed program gets engine, recording and adapters, and of other packages only msgspec is new."""
    root = Path(__file__).parents[2]
    code = "import sys, json\n{}\nprint(json.dumps(sorted(sys.modules)))"
    loaded = []
    for line in ("import langgraph.graph", "from loopscope import tap; import langgraph.graph"):
        done = subprocess.run(
            [sys.executable, "-c", code.format(line)],
            env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        loaded.append(set(json.loads(done.stdout)))
    framework, modules = ({name.partition(".")[0] for name in each} for each in loaded)
    assert modules - framework - sys.stdlib_module_names == {"loopscope", "msgspec"}
    parts = {name.split(".")[1] for name in loaded[1] if name.startswith("loopscope.")}
    assert parts == {"adapters", "engine", "errors", "recording"}
