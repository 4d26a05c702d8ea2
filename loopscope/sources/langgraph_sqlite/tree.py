"""The checkpoints of a thread as a tree, in an order in which each comes after those that it builds on.

Apart since it needs their metadata alone: states, which can be large, are read one at a time while the tree is walked.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    from loopscope.sources.langgraph_sqlite.segment import Segment
    from loopscope.sources.langgraph_sqlite.store import CheckpointRow

__all__ = ["Forest", "Node", "clock", "plant"]

_UUID_CLOCK = 6
_EPOCH = 0x01B21DD213814000
_TICKS = 10_000_000
_MAX_NESTING = 100
"""Graphs within graphs: more than any program has, few enough for a name made of nothing but separators."""
_MAX_NUMBER = 1 << 53


class Node:
    """One checkpoint: where it stands, and what its metadata says."""

    __slots__ = (
        "agent",
        "children",
        "goes_on",
        "id",
        "limit",
        "namespace",
        "number",
        "outer",
        "parent",
        "run_id",
        "segment",
        "source",
        "step",
        "time",
    )

    def __init__(self, row: CheckpointRow) -> None:
        self.number = row.number
        self.namespace = row.namespace
        self.id = row.id
        self.time = clock(row.id)
        self.source = row.metadata.get("source")
        """`input`, `loop`, `update` or `fork`."""
        self.step: int | None = _whole(row.metadata.get("step"))
        self.run_id = _name(row.metadata.get("run_id"))
        self.agent = _name(row.metadata.get("lc_agent_name")) or _name(row.metadata.get("graph_id"))
        self.limit = _whole(row.metadata.get("recursion_limit"))
        self.parent: Node | None = None
        self.outer: Node | None = None
        """The checkpoint of the enclosing graph that this subgraph runs on top of."""
        self.children = 0
        """How many checkpoints are still to come that build on this one."""
        self.goes_on = False
        """Whether the graph itself went on from here, without a new input."""
        self.segment: Segment | None = None


def clock(key: str) -> float | None:
    """The time in a checkpoint id, in Unix seconds; None where it holds none."""
    try:
        parsed = UUID(key)
    except ValueError:
        return None
    if parsed.version != _UUID_CLOCK:
        return None
    ticks = (parsed.int >> 96 << 28) | (parsed.int >> 80 & 0xFFFF) << 12 | (parsed.int >> 64 & 0xFFF)
    return (ticks - _EPOCH) / _TICKS


def plant(rows: Iterable[CheckpointRow]) -> list[Node]:
    """The nodes of a thread, linked, parents and enclosing checkpoints first, otherwise by time.

    Ids are ordered within one process only, so neither they nor the order of the rows decide alone. A parent that is
    not in the file is none; a circle of parents, which no program writes, is cut.
    """
    return Forest().grow(rows)


class Forest:
    """The nodes of a thread so far."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[str, str], Node] = {}

    def without_place(self, rows: list[CheckpointRow]) -> set[int]:
        """The numbers of those that build on a checkpoint which is not there: savers may write that a moment later."""
        lacking: set[int] = set()
        while True:
            left = [row for row in rows if row.number not in lacking]
            known = self._nodes.keys() | {(row.namespace, row.id) for row in left}
            found = {row.number for row in left if _lacks(row, known)}
            if not found:
                return lacking
            lacking |= found

    def grow(self, rows: Iterable[CheckpointRow]) -> list[Node]:
        """The nodes of rows that were added, linked to those before; in the order that `plant` tells of."""
        nodes = self._nodes
        links: dict[Node, tuple[str | None, dict[str, Any]]] = {}
        for row in rows:
            if (row.namespace, row.id) not in nodes:
                node = nodes[row.namespace, row.id] = Node(row)
                parents = row.metadata.get("parents")
                links[node] = (row.parent, parents if isinstance(parents, dict) else {})
        for node, (parent, parents) in links.items():
            node.parent = nodes.get((node.namespace, parent)) if parent is not None else None
            if node.namespace:
                node.outer = _enclosing(nodes, node.namespace, parents)
        return _sorted(list(links))


def _enclosing(nodes: dict[tuple[str, str], Node], namespace: str, parents: dict[str, Any]) -> Node | None:
    """The nearest enclosing graph whose checkpoint is in the file."""
    return next((nodes[key] for key in _around(namespace, parents) if key in nodes), None)


def _around(namespace: str, parents: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The checkpoints of the enclosing graphs, the nearest first."""
    for _ in range(_MAX_NESTING):
        namespace = namespace.rpartition("|")[0]
        yield namespace, str(parents.get(namespace))
        if not namespace:
            return


def _lacks(row: CheckpointRow, known: Container[tuple[str, str]]) -> bool:
    parents = row.metadata.get("parents")
    around = _around(row.namespace, parents if isinstance(parents, dict) else {}) if row.namespace else ()
    return (row.parent is not None and (row.namespace, row.parent) not in known) or any(
        name != "None" and (namespace, name) not in known for namespace, name in around
    )


def _sorted(nodes: list[Node]) -> list[Node]:
    fresh = set(nodes)
    waiting: dict[Node, int] = {}
    followers: dict[Node, list[Node]] = {}
    for node in nodes:
        before = [other for other in (node.parent, node.outer) if other is not None and other in fresh]
        waiting[node] = len(before)
        for other in before:
            followers.setdefault(other, []).append(node)
    ready = [(_place(node), node.number, node) for node in nodes if not waiting[node]]
    heapify(ready)
    order: list[Node] = []
    circular = (node for node in nodes if waiting[node] > 0)
    while len(order) < len(nodes):
        if not ready:
            _cut(next(circular), waiting, ready)
        node = heappop(ready)[2]
        order.append(node)
        if node.parent is not None:
            node.parent.children += 1
            node.parent.goes_on |= node.source == "loop"
        for follower in followers.get(node, ()):
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heappush(ready, (_place(follower), follower.number, follower))
    return order


def _place(node: Node) -> float:
    return node.time or 0.0


def _cut(node: Node, waiting: dict[Node, int], ready: list[tuple[float, int, Node]]) -> None:
    node.parent = node.outer = None
    waiting[node] = -1
    heappush(ready, (_place(node), node.number, node))


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _MAX_NUMBER else None


def _name(value: object) -> str | None:
    return value or None if isinstance(value, str) else None
