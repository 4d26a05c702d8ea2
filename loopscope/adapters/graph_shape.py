"""The name and the shape of the graph that a hook runs in, for the `run_start` of a recording.

LangGraph hands no graph to its nodes. It is reached through the running loop: what a node may call to start further
work is bound to it, and the graph is what refers to the loop's table of nodes. Asked for while something records,
once per graph; where any of this is not as expected, a recording does without.
"""

from __future__ import annotations

import gc
import weakref
from collections import OrderedDict
from typing import Any, NamedTuple

from langgraph.config import get_config
from langgraph.graph.state import CompiledStateGraph

from loopscope.engine.events import Graph, GraphEdge, GraphNode

__all__ = ["Shape", "current", "has_node", "of"]

_UNNAMED = "LangGraph"
_KEPT = 32


class Shape(NamedTuple):
    """What is known of a graph."""

    agent: str | None
    """Its name, where it was given one."""
    graph: Graph | None


_NOTHING = Shape(None, None)
_known: OrderedDict[int, tuple[weakref.ref[Any], Shape]] = OrderedDict()
"""By the address of the table of nodes, which is the same one while its graph lives."""


def current() -> Shape:
    """The shape of the graph whose node is running; nothing where it cannot be reached. Never raises."""
    try:
        nodes = _nodes()
        known = _known.get(id(nodes))
        graph = known[0]() if known is not None else None
        if known is None or graph is None or graph.nodes is not nodes:
            return _look(nodes)
        return known[1]
    except Exception:  # noqa: BLE001 - none of this is promised by LangGraph
        return _NOTHING


def of(graph: Any) -> Shape:
    """The shape of a compiled graph; as much of it as can be drawn. Never raises."""
    try:
        known = _known.get(id(graph.nodes))
        return known[1] if known is not None and known[0]() is graph else _keep(graph)
    except Exception:  # noqa: BLE001 - anything may have been given for a graph
        return _NOTHING


def has_node(name: str) -> bool:
    """Whether the graph whose node is running has a node of this name; False where it cannot be reached."""
    try:
        return name in _nodes()
    except Exception:  # noqa: BLE001 - as above
        return False


def _nodes() -> dict[str, Any]:
    nodes: dict[str, Any] = (
        get_config().get("configurable", {})["__pregel_call"].keywords["schedule_task"].__self__.nodes
    )
    return nodes


def _look(nodes: dict[str, Any]) -> Shape:
    owner = _owner(nodes)
    return _NOTHING if owner is None else _keep(owner)


def _keep(owner: CompiledStateGraph[Any, Any, Any, Any]) -> Shape:
    shape = Shape(None if owner.name == _UNNAMED else owner.name, _drawn(owner))
    _known[id(owner.nodes)] = (weakref.ref(owner), shape)
    while len(_known) > _KEPT:
        _known.popitem(last=False)
    return shape


def _owner(nodes: dict[str, Any]) -> CompiledStateGraph[Any, Any, Any, Any] | None:
    holders = gc.get_referrers(nodes)
    # Attributes of an object are its own, or in a dict of their own, as the interpreter likes.
    attributes = [holder for holder in holders if isinstance(holder, dict) and holder.get("nodes") is nodes]
    for holder in (*holders, *(owner for each in attributes for owner in gc.get_referrers(each))):
        if isinstance(holder, CompiledStateGraph) and holder.nodes is nodes:
            return holder
    return None


def _drawn(graph: CompiledStateGraph[Any, Any, Any, Any]) -> Graph | None:
    try:
        drawn = graph.get_graph(xray=True)
    except Exception:  # noqa: BLE001 - a graph may be too unusual to be drawn
        return None
    return Graph(
        nodes=tuple(GraphNode(node.id, node.name) for node in drawn.nodes.values()),
        edges=tuple(GraphEdge(edge.source, edge.target, conditional=edge.conditional) for edge in drawn.edges),
    )
