from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from langgraph.graph import START, MessagesState, StateGraph

from loopscope.adapters import graph_shape
from loopscope.adapters.graph_shape import Shape
from tests.adapters.scripted import DONE, agent, ask


def looking(seen: list[Shape], name: str | None = None) -> Any:
    """A graph whose node looks at the graph that it is in."""

    def node(state: MessagesState) -> dict[str, Any]:  # noqa: ARG001
        seen.append(graph_shape.current())
        return {}

    graph: Any = StateGraph(MessagesState)
    graph.add_node("look", node)
    graph.add_node("agent", agent([DONE], tools=[]))
    graph.add_edge(START, "look")
    graph.add_edge("look", "agent")
    return graph.compile(name=name)


def test_the_graph_of_the_running_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name, its nodes with those of subgraphs, its edges; looked for once."""
    seen: list[Shape] = []
    graph = looking(seen, "mine")
    graph.invoke(ask())
    monkeypatch.setattr(gc, "get_referrers", None)
    asyncio.run(graph.ainvoke(ask()))
    list(graph.stream(ask(), stream_mode="messages"))
    assert seen[0] == seen[1] == seen[2]
    assert seen[0].agent == "mine"
    assert seen[0].graph is not None
    assert {node.id for node in seen[0].graph.nodes} >= {"__start__", "look", "agent:model"}
    assert ("__start__", "look", False) in {(e.source, e.target, e.conditional) for e in seen[0].graph.edges}


def test_a_graph_without_a_name() -> None:
    """LangGraph's own default is no name."""
    seen: list[Shape] = []
    looking(seen).invoke(ask())
    assert seen[0].agent is None


def test_outside_of_a_graph_there_is_none() -> None:
    """And nothing raises."""
    assert graph_shape.current() == Shape(None, None)
    assert not graph_shape.has_node("model")


def test_a_graph_that_cannot_be_drawn_still_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing runs code of the graph's own."""
    seen: list[Shape] = []
    graph = looking(seen, "odd")

    def broken(*_: object, **__: object) -> None:
        raise TypeError

    monkeypatch.setattr(type(graph), "get_graph", broken)
    graph.invoke(ask())
    assert seen == [Shape("odd", None)]


def test_where_nothing_refers_to_the_nodes_there_is_no_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another interpreter, another LangGraph: a recording does without."""
    monkeypatch.setattr(gc, "get_referrers", lambda *_: [])
    seen: list[Shape] = []
    looking(seen, "hidden").invoke(ask())
    assert seen == [Shape(None, None)]


def test_graphs_that_are_gone_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so many shapes are remembered, and no graph is."""
    monkeypatch.setattr(graph_shape, "_KEPT", 3)
    for _ in range(6):
        looking([], "many").invoke(ask())
    gc.collect()
    known = list(graph_shape._known.values())
    assert len(known) == 3
    assert sum(graph() is not None for graph, _ in known) <= 1
