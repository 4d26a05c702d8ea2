"""A graph level by level, itself and each of its sub-graphs, with the cycles of each.

A cycle runs within one level: to go round through a sub-graph is a cycle of the graph around it. So each is as short as
the graph was drawn, and what bounds an inner loop is never taken for a bound of the outer one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import networkx as nx

from loopscope.graph import END, LONGEST_CYCLE, MOST_CYCLES

__all__ = ["Cycle", "Level", "Router", "levels"]


class Router(NamedTuple):
    """What decides where a node leads."""

    source: str
    function: Any
    ends: tuple[str, ...] | None
    """The nodes that it may lead to; None where it does not say, so that it may lead anywhere."""
    ways: dict[str, str]
    """The node that each of its answers leads to, where it says."""


class Cycle(NamedTuple):
    """Nodes that lead to each other, in order."""

    nodes: tuple[str, ...]
    drawn: bool
    """Every edge was drawn; False: some router may lead anywhere, and may never lead this way."""
    closed: bool
    """No edge leads out of it: nothing but an error ends it."""


class Level(NamedTuple):
    """A graph without its sub-graphs."""

    path: str
    """The way to it from the top, nodes joined by `:`; nothing at the top."""
    graph: Any
    edges: frozenset[tuple[str, str]]
    routers: tuple[Router, ...]
    inner: tuple[tuple[str, Any], ...]
    """Its sub-graphs, by node."""

    def name(self, node: str) -> str:
        """What a node is called in reports."""
        return f"{self.path}:{node}" if self.path else node

    def cycles(self) -> Iterator[Cycle]:
        """Its cycles: those within each strongly connected component, short ones first, at least one of each.

        At most `MOST_CYCLES` of at most `LONGEST_CYCLE` nodes for a component; a longer one where there is no other.
        """
        graph: nx.DiGraph[str] = nx.DiGraph(sorted(self.edges))
        for component in sorted(nx.strongly_connected_components(graph), key=min):
            part = graph.subgraph(component)
            if part.number_of_edges() == 0:
                continue
            found = list(islice(nx.simple_cycles(part, length_bound=LONGEST_CYCLE), MOST_CYCLES))
            if not found:
                found = [[source for source, _ in nx.find_cycle(part)]]
            for nodes in sorted(map(_rotated, found), key=lambda nodes: (len(nodes), nodes)):
                yield self._cycle(nodes)

    def _cycle(self, nodes: tuple[str, ...]) -> Cycle:
        open_ended = {router.source for router in self.routers if router.ends is None}
        leaves = any(source in nodes and target not in nodes for source, target in self.edges)
        return Cycle(nodes, drawn=not open_ended & set(nodes), closed=not leaves)

    def routers_of(self, nodes: tuple[str, ...]) -> list[Router]:
        """What decides where these nodes lead."""
        return [router for router in self.routers if router.source in nodes]


def levels(graph: Any) -> Iterator[Level]:
    """The graph and its sub-graphs."""
    named = list(graph.get_subgraphs(recurse=True))
    yield _level("", graph)
    for path, inner in named:
        yield _level(path.replace("|", ":"), inner)


def _level(path: str, graph: Any) -> Level:
    routers = tuple(_routers(graph))
    return Level(path, graph, frozenset(_edges(graph, routers)), routers, tuple(graph.get_subgraphs()))


def _edges(graph: Any, routers: tuple[Router, ...]) -> Iterator[tuple[str, str]]:
    """The edges as the graph was built: when it draws itself, LangGraph adds ways to the end that there are not."""
    builder = getattr(graph, "builder", None)
    if builder is None:
        yield from ((edge.source, edge.target) for edge in graph.get_graph().edges)
        return
    yield from builder.edges
    yield from ((source, target) for sources, target in builder.waiting_edges for source in sources)
    everywhere = (*builder.nodes, END)
    for router in routers:
        yield from ((router.source, target) for target in (everywhere if router.ends is None else router.ends))


def _routers(graph: Any) -> Iterator[Router]:
    builder = getattr(graph, "builder", None)
    for source, branches in getattr(builder, "branches", {}).items():
        for branch in branches.values():
            function = getattr(branch.path, "func", None) or getattr(branch.path, "afunc", None) or branch.path
            ends = branch.ends
            yield Router(source, function, tuple(ends.values()) if ends else None, dict(ends or {}))
    for name, node in getattr(builder, "nodes", {}).items():
        ends = getattr(node, "ends", None)
        if ends:
            runnable = node.runnable
            function = getattr(runnable, "func", None) or getattr(runnable, "afunc", None) or runnable
            yield Router(name, function, tuple(ends), {end: end for end in ends})


def _rotated(nodes: list[str]) -> tuple[str, ...]:
    """A cycle from its least node on, so that it is the same each time."""
    start = nodes.index(min(nodes))
    return tuple(nodes[start:] + nodes[:start])
