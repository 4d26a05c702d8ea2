"""The agent's graph as a drawing: nodes below each other, ways back on the left, ways ahead on the right.

The layout is that of the terminal's rails; here lines can be lines. What the run never took is dashed, and how much a
node is filled tells its share of the window.
"""

from __future__ import annotations

from typing import NamedTuple

from loopscope.recording.inert import inert
from loopscope.views.graph import LABEL, Data, Node
from loopscope.views.model import clip
from loopscope.views.rails import MOST_LANES, Rail, lanes
from loopscope.views.web.markup import Markup, joined, tag
from loopscope.views.web.strip import shape

__all__ = ["diagram"]

MOST_NODES = 40
"""Nodes and tools that are drawn; a larger graph is a table alone."""
_BOX, _NODE, _TOOL, _GAP = 236, 28, 22, 22
"""Width of a node; heights of a node, of a tool inside it and of what is between two nodes."""
_LANE = 14
_COUNTS = 70


class _Place(NamedTuple):
    """Where a node is drawn."""

    node: Node
    tools: tuple[Node, ...]
    y: float

    @property
    def bottom(self) -> float:
        return self.y + _NODE + _TOOL * len(self.tools) + (4 if self.tools else 0)


def diagram(content: Data) -> Markup | None:
    """The graph, as an SVG element; None where it is too large to be read."""
    places = _places(content)
    row = {place.node.id: index for index, place in enumerate(places)}
    ways = {
        Rail(row[edge.source], row[edge.target], edge.taken > 0)
        for edge in content.topology.edges
        if edge.source in row and edge.target in row
    }
    back = lanes([way for way in ways if way.target <= way.source])
    ahead = lanes([way for way in ways if way.target > way.source + 1])
    left, right = (max([0, *(lane + 1 for lane in side.values())]) for side in (back, ahead))
    if len(content.nodes) > MOST_NODES or max(left, right) > MOST_LANES:
        return None
    x = _LANE * left + 16
    parts = [_step(places, way, x + _BOX / 2) for way in sorted(ways) if way.target == way.source + 1]
    parts += [_way(places, way, x, -(lane + 1) * _LANE) for way, lane in back.items()]
    parts += [_way(places, way, x + _BOX, (lane + 1) * _LANE) for way, lane in ahead.items()]
    beside = x + _BOX + _LANE * right + 16
    parts += [_node(place, x, beside) for place in places]
    width, height = beside + _COUNTS, places[-1].bottom + 4
    return tag(
        "svg",
        *parts,
        class_="diagram",
        viewBox=f"0 0 {width:g} {height:g}",
        width=width,
        height=height,
        role="img",
        aria_label=_describe(content),
    )


def _places(content: Data) -> list[_Place]:
    found: list[_Place] = []
    for node in content.nodes:
        if node.inside:
            found[-1] = found[-1]._replace(tools=(*found[-1].tools, node))
        else:
            found.append(_Place(node, (), found[-1].bottom + _GAP if found else 4))
    return found


def _node(place: _Place, x: float, beside: float) -> Markup:
    """The box, its tools inside it, and how often each was visited."""
    node = place.node
    look = "node here" if node.here else "node"
    box = {"x": x, "y": place.y, "width": _BOX, "height": place.bottom - place.y, "rx": 6}
    parts = [
        tag("rect", class_="under", **box),
        tag("rect", class_=f"heat {node.state}", **box, fill_opacity=_heat(node)),
    ]
    parts.append(tag("rect", class_=look, **box))
    parts += _row(node, x + 10, place.y + 18, beside, LABEL)
    for index, tool in enumerate(place.tools):
        y = place.y + _NODE + _TOOL * index
        parts.append(
            tag(
                "rect",
                class_=f"heat {tool.state}",
                x=x + 8,
                y=y,
                width=_BOX - 16,
                height=_TOOL - 3,
                rx=4,
                fill_opacity=_heat(tool),
            )
        )
        parts += _row(tool, x + 18, y + 14, beside, LABEL - 2)
    return tag("g", *parts)


def _heat(node: Node) -> float:
    return 0.06 + 0.3 * node.share if node.share else 0


def _row(node: Node, x: float, y: float, beside: float, label: int) -> list[Markup]:
    looks = "title" if node.here else None if node.visits else "dim"
    parts = [tag("text", clip(node.label, label), class_=looks, x=x, y=y)]
    if node.visits:
        parts.append(tag("text", f"×{node.visits:,}", x=beside, y=y))
    if node.share and node.state != "new":
        parts.append(shape(node.state, beside + 12 + 8 * len(f"×{node.visits:,}"), y - 4))
    return parts


def _look(way: Rail) -> str:
    return "taken" if way.taken else "possible"


def _step(places: list[_Place], way: Rail, x: float) -> Markup:
    """A way to the node below."""
    start, end = places[way.source].bottom, places[way.target].y
    return joined(
        [tag("path", class_=f"way {_look(way)}", d=f"M{x:g} {start:g}V{end - 6:g}"), _head(way, x, end, "down")]
    )


def _way(places: list[_Place], way: Rail, x: float, out: float) -> Markup:
    """A way around: out of the lower end of its source, along its lane, into its target."""
    source, target = places[way.source], places[way.target]
    start, end, side = source.bottom - 9, target.y + 9, 1 if out > 0 else -1
    down, bend = (1 if end > start else -1), min(6.0, abs(end - start) / 2)
    d = (
        f"M{x:g} {start:g}H{x + out - side * bend:g}q{side * bend:g} 0 {side * bend:g} {down * bend:g}"
        f"V{end - down * bend:g}q0 {down * bend:g} {-side * bend:g} {down * bend:g}H{x + side * 6:g}"
    )
    return joined([tag("path", class_=f"way {_look(way)}", d=d), _head(way, x, end, "right" if out < 0 else "left")])


def _head(way: Rail, x: float, y: float, towards: str) -> Markup:
    point = {"down": "l-4-7h8z", "right": "l-7-4v8z", "left": "l7-4v8z"}[towards]
    return tag("path", class_=f"head {_look(way)}", d=f"M{x:g} {y:g}{point}")


def _describe(content: Data) -> str:
    """The graph in words."""
    taken = ", ".join(
        f"{edge.source} to {edge.target} {edge.taken} times" for edge in content.topology.edges if edge.taken
    )
    return inert(f"Graph of {len(content.topology.nodes)} nodes. Ways taken: {taken or 'none'}.", 2000)
