"""The shape of an agent's graph, its cycles, and which of its edges a run has taken.

From the recording where it tells, else derived from the batches: a model node, the tools that it called, and the ways
between. Apart from the screen since others ask the same questions. networkx is loaded when cycles are first asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec import Struct

from loopscope.engine.events import Graph, GraphEdge, GraphNode

__all__ = ["Edge", "Topology", "Visit", "cycles", "derive", "observe", "order"]

START, END = "__start__", "__end__"
AGENT = "agent"
"""What the model node is called where a recording does not name it."""
LONGEST_CYCLE = 8
"""Nodes in the longest cycle that is listed: there can be exponentially many, and no one reads longer ones."""
MOST_CYCLES = 50


class Visit(NamedTuple):
    """One batch: the node whose model asked, and the tools that it asked for."""

    node: str | None
    tools: tuple[str, ...]


class Edge(Struct, frozen=True):
    """A way from one node to another."""

    source: str
    target: str
    conditional: bool
    taken: int
    """How often the run is known to have gone it; 0 for a way that is only possible."""


class Topology(Struct, frozen=True):
    """A graph as it is drawn."""

    nodes: tuple[GraphNode, ...]
    edges: tuple[Edge, ...]
    visits: dict[str, int]
    """How often the run was at each node; a node where it never was is not in it."""
    tools: dict[str, dict[str, int]]
    """For each node that runs tools: how often each of them was called."""
    derived: bool
    """True: made from the batches alone, since the recording has no graph."""


def derive(visits: Iterable[Visit]) -> Graph:
    """The graph that the batches show: each model node, and a node for each tool that it called."""
    nodes: dict[str, GraphNode] = {}
    edges: dict[tuple[str, str], GraphEdge] = {}
    for visit in visits:
        model = visit.node or AGENT
        nodes.setdefault(model, GraphNode(model, model))
        for tool in dict.fromkeys(name for name in visit.tools if name):
            nodes.setdefault(tool, GraphNode(tool, tool))
            edges.setdefault((model, tool), GraphEdge(model, tool, conditional=True))
            edges.setdefault((tool, model), GraphEdge(tool, model))
    return Graph(tuple(nodes.values()), tuple(edges.values()))


def observe(recorded: Graph | None, visits: Sequence[Visit]) -> Topology:
    """The graph with what the run did in it.

    Args:
        recorded: the graph that the recording brings; None, or one without nodes, derives it.
        visits: the batches of one scope, in order.
    """
    derived = recorded is None or not recorded.nodes
    graph = derive(visits) if recorded is None or not recorded.nodes else recorded
    known = {node.id for node in graph.nodes}
    runner = None if derived else _runner(graph)
    ways = _Ways(graph)
    taken: Counter[tuple[str, str]] = Counter()
    count: Counter[str] = Counter()
    tools: dict[str, Counter[str]] = {}
    at: str | None = START if START in known else None
    for visit in visits:
        model = visit.node if visit.node in known else AGENT if AGENT in known else None
        if model is None:
            continue
        taken.update(ways.path(at, model))
        count[model] += 1
        at = model
        for place, names in _places(visit, runner, known):
            taken.update(ways.path(model, place))
            count[place] += 1
            at = place
            if place == runner:
                tools.setdefault(place, Counter()).update(names)
    passed = Counter({node: sum(n for way, n in taken.items() if way[1] == node) for node in known - set(count)})
    count += passed
    edges = tuple(Edge(e.source, e.target, e.conditional, taken[e.source, e.target]) for e in graph.edges)
    return Topology(graph.nodes, edges, dict(count), {place: dict(names) for place, names in tools.items()}, derived)


def _runner(graph: Graph) -> str | None:
    """The node that runs tools: `tools` by LangGraph's custom, alone or at the end of a subgraph's path."""
    return next((node.id for node in graph.nodes if node.id.split(":")[-1].split(".")[-1] == "tools"), None)


def _places(visit: Visit, runner: str | None, known: set[str]) -> list[tuple[str, list[str]]]:
    """Where the calls of a batch went: to the node of that name, else to the one that runs tools."""
    places: dict[str, list[str]] = {}
    for name in visit.tools:
        place = name if name in known else runner
        if place is not None:
            places.setdefault(place, []).append(name)
    return list(places.items())


class _Ways:
    """Shortest ways through a graph, remembered: nodes in between (of middleware) leave no trace of their own."""

    def __init__(self, graph: Graph) -> None:
        self._next: dict[str, list[str]] = {}
        for edge in graph.edges:
            self._next.setdefault(edge.source, []).append(edge.target)
        self._known: dict[tuple[str, str], list[tuple[str, str]]] = {}

    def path(self, source: str | None, target: str) -> list[tuple[str, str]]:
        """The edges of the shortest way; none where there is no way."""
        if source is None:
            return []
        if (source, target) not in self._known:
            self._known[source, target] = self._search(source, target)
        return self._known[source, target]

    def _search(self, source: str, target: str) -> list[tuple[str, str]]:
        came: dict[str, str] = {}
        queue = [source]
        for node in queue:
            for following in self._next.get(node, ()):
                if following in came:
                    continue
                came[following] = node
                if following == target:
                    return _back(came, source, target)
                queue.append(following)
        return []


def _back(came: dict[str, str], source: str, target: str) -> list[tuple[str, str]]:
    edges = [(came[target], target)]
    while edges[-1][0] != source:
        edges.append((came[edges[-1][0]], edges[-1][0]))
    return edges[::-1]


def order(topology: Topology) -> list[str]:
    """The nodes from the start on: what follows stands below, only loops lead up, what is out of reach comes last."""
    following: dict[str, list[str]] = {node.id: [] for node in topology.nodes}
    for edge in topology.edges:
        if edge.source in following and edge.target in following:
            following[edge.source].append(edge.target)
    done: list[str] = []
    seen: set[str] = set()
    for root in sorted(following, key=lambda node: node != START):
        stack: list[tuple[str, bool]] = [(root, False)]
        branch: list[str] = []
        while stack:
            node, left = stack.pop()
            if left:
                branch.append(node)
            elif node not in seen:
                seen.add(node)
                stack.append((node, True))
                stack.extend((target, False) for target in following[node] if target not in seen)
        done.extend(reversed(branch))
    return sorted(done, key=lambda node: node == END)


def cycles(topology: Topology) -> list[list[str]]:
    """Cycles of the graph: those within each strongly connected component, the shortest first.

    At most `MOST_CYCLES`, of at most `LONGEST_CYCLE` nodes. They are what can be, not what was: a conditional edge
    that has no list of its targets leads everywhere.
    """
    import networkx as nx  # noqa: PLC0415 - 60 ms that the first screen does not pay

    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_edges_from((edge.source, edge.target) for edge in topology.edges)
    found: list[list[str]] = []
    for component in nx.strongly_connected_components(graph):
        part = graph.subgraph(component)
        found.extend(islice(nx.simple_cycles(part, length_bound=LONGEST_CYCLE), MOST_CYCLES))
    return sorted(found, key=len)[:MOST_CYCLES]
