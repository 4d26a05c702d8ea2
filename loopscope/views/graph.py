"""Graph: the agent's nodes with their visits, where the run has been lately, and the circle that it goes round in.

Drawn as rails, or as a table where a graph is too large for them. Visits are of the whole run, heat and circle of the
window at the cursor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from loopscope.engine.decision import Decision
from loopscope.engine.rules.cycle import laps
from loopscope.graph import AGENT, Topology, cycles, order
from loopscope.session.session import Session
from loopscope.views.cells import cell_len
from loopscope.views.glyphs import GLYPH, TONE
from loopscope.views.model import Line, Mark, Span, Style, clip, crop, fit
from loopscope.views.rails import Rail, Rails, rails
from loopscope.views.words import safe_name

__all__ = ["Data", "Node", "body", "data", "height", "lines", "notes"]

HEAT = ((0.30, "▓"), (0.10, "▒"), (0.0, "░"))
"""Share of the window's batches at which a node is drawn in this shade."""
LONGEST_PERIOD = 8
LABEL = 28
"""Cells of a node's name."""
_STATES = {"pass": "new", "warn": "warn", "hard_stop": "stop"}
_SEVERITY = ("pass", "warn", "hard_stop")


class Node(NamedTuple):
    """One node, or one tool of a node that runs tools."""

    id: str
    label: str
    """Text to draw."""
    visits: int
    share: float
    """Share of the window's batches that went here, 0 to 1."""
    state: str
    """The worst verdict of those batches: `new`, `warn` or `stop`."""
    here: bool
    """The batch at the cursor went here."""
    inside: bool
    """A tool of the node above it."""


class Data(NamedTuple):
    """The pane's content."""

    nodes: tuple[Node, ...]
    rails: Rails | None
    topology: Topology
    circle: tuple[str, ...]
    """Nodes of the block that the newest batches repeat, first one again at the end; empty where they repeat none."""
    laps: int
    window: int
    """Batches that heat and circle are taken from."""


def data(session: Session) -> Data:
    """What the pane shows; the session has a batch at its cursor."""
    topology = session.topology()
    recent = _recent(session)
    heat = _Heat(topology, recent)
    nodes: list[Node] = []
    for identity in order(topology):
        nodes.append(heat.node(identity, topology.visits.get(identity, 0)))
        tools = topology.tools.get(identity, {})
        nodes.extend(heat.node(tool, count, inside=True) for tool, count in tools.items())
    rows = [node.id for node in nodes if not node.inside]
    place = {identity: row for row, identity in enumerate(rows)}
    ways = [
        Rail(place[e.source], place[e.target], e.taken > 0) for e in topology.edges if {e.source, e.target} <= set(rows)
    ]
    circle, count = _circle(recent, topology)
    return Data(tuple(nodes), rails(len(rows), ways), topology, circle, count, len(recent))


class _Recent(NamedTuple):
    """One batch of the window."""

    node: str | None
    tools: tuple[str, ...]
    decision: Decision


def _recent(session: Session) -> list[_Recent]:
    """The window's batches of the cursor's scope, oldest first."""
    timeline, cursor = session.timeline, session.cursor
    key = timeline.scope_of(cursor)
    numbers = [n for n in timeline.scopes[key].batches if n <= cursor][-timeline.policy_at(cursor).window_size :]
    rows = timeline.batches
    return [
        _Recent(timeline.nodes.values[rows.node[n - 1]], timeline.names.values[rows.names[n - 1]], timeline.verdict(n))
        for n in numbers
    ]


def _where(batch: _Recent, topology: Topology) -> list[str]:
    """The nodes and tools that a batch went to."""
    known = {node.id for node in topology.nodes}
    model = batch.node if batch.node in known else AGENT if AGENT in known else None
    runners = [place for place, tools in topology.tools.items() if set(batch.tools) & set(tools)]
    return [*([model] if model is not None else []), *runners, *dict.fromkeys(batch.tools)]


class _Heat:
    """Where the window's batches went, and the worst that was said of them there."""

    def __init__(self, topology: Topology, recent: Sequence[_Recent]) -> None:
        self.window = len(recent)
        self.here = set(_where(recent[-1], topology)) if recent else set()
        self.counts: Counter[str] = Counter()
        self.worst: dict[str, str] = {}
        for batch in recent:
            for place in _where(batch, topology):
                self.counts[place] += 1
                self.worst[place] = max(self.worst.get(place, "pass"), batch.decision.action, key=_SEVERITY.index)

    def node(self, identity: str, visits: int, *, inside: bool = False) -> Node:
        """A node with its heat; of a middleware's hook only the hook's name where the whole is too long."""
        owner, _, hook = identity.rpartition(".")
        label = f"…{hook}" if owner and cell_len(identity) > LABEL else identity
        share = self.counts[identity] / self.window if self.window else 0.0
        state = _STATES[self.worst.get(identity, "pass")]
        return Node(identity, safe_name(label), visits, share, state, identity in self.here, inside)


def _circle(recent: Sequence[_Recent], topology: Topology) -> tuple[tuple[str, ...], int]:
    """The block of batches that the newest ones repeat, as the nodes and tools that it went through."""
    newest = [(batch.node, tuple(sorted(batch.tools))) for batch in reversed(recent)]
    count, period = laps(newest, LONGEST_PERIOD)
    same = next((i for i, batch in enumerate(newest) if batch != newest[0]), len(newest))
    if same > max(1, count):
        count, period = same, 1
    if count < 2:  # noqa: PLR2004 - once round is no circle
        return (), 0
    block = list(recent)[-period:]
    stops = [name for batch in block for name in (_model(batch, topology), "+".join(dict.fromkeys(batch.tools)))]
    return (*map(safe_name, stops), safe_name(stops[0])), count


def _model(batch: _Recent, topology: Topology) -> str:
    return _where(batch, topology)[0] if batch.node is None else batch.node


def height(session: Session, width: int) -> int:
    """Lines of the whole pane."""
    return len(body(session, width))


def lines(session: Session, first: int, count: int, width: int) -> list[Line]:
    """Lines `first` up to `first + count` of the pane."""
    return body(session, width)[first : first + count]


def body(session: Session, width: int) -> list[Line]:
    """The whole pane: the graph, the circle, and what the shades mean."""
    if not session.cursor:
        return [(Span("There is no batch yet.", "dim"),)]
    content = data(session)
    source = "derived from the batches" if content.topology.derived else "from the recording"
    head: Line = (Span("GRAPH  ", "title"), Span(source, "dim"))
    drawn = _drawn(content, width) or _table(content, width)
    return [crop(line, width) for line in [head, *drawn, (), *notes(content, width)]]


def _drawn(content: Data, width: int) -> list[Line]:
    """The rails; nothing where they do not fit."""
    layout = content.rails
    if layout is None:
        return []
    label = min(LABEL, max([cell_len(node.label) for node in content.nodes] + [8]))
    right = max((len(text.rstrip()) for text in layout.right), default=0)
    if layout.width + label + 4 + right + 12 > width:
        return []
    found: list[Line] = []
    row = -1
    for node, following in zip_longest(content.nodes, content.nodes[1:]):
        row += not node.inside
        found.append((_tool_line if node.inside else _node_line)(node, layout, row, label))
        if following is None or not following.inside:
            found.append(_way_line(layout, row, label))
    return found


def _shade(node: Node) -> str:
    return next(glyph for least, glyph in HEAT if node.share >= least) if node.share else " "


def _count(node: Node) -> Line:
    seen = f" ×{node.visits}" if node.visits else ""
    state: Line = (Span(f" {GLYPH[node.state]}", TONE[node.state]),) if node.share and node.state != "new" else ()
    return (Span(seen, "text" if node.visits else "dim"), *state)


def _style(node: Node) -> Style:
    return TONE[node.state] if node.share else "text" if node.visits else "dim"


def _node_line(node: Node, layout: Rails, row: int, label: int) -> Line:
    shade = _shade(node)
    name = Span(f"[{shade}{fit(node.label, label)}{shade}]", _style(node), "strong" if node.here else "")
    return (Span(layout.left[2 * row], "dim"), name, Span(layout.right[2 * row], "dim"), *_count(node))


def _tool_line(node: Node, layout: Rails, row: int, label: int) -> Line:
    """A tool inside its node; the rails that go down past it go on."""
    left, right = (_going_down(rows, 2 * row) for rows in (layout.left, layout.right))
    shade = _shade(node)
    name = Span(f"   {shade} {fit(node.label, label - 2)} ", _style(node), "strong" if node.here else "")
    return (Span(left, "dim"), name, Span(right, "dim"), *_count(node))


def _going_down(rows: list[str], row: int) -> str:
    """The rails that leave a row downwards: the row below takes them up."""
    pairs = zip(rows[row], rows[row + 1], strict=True)
    return "".join("│" if upper in "│╭╮├┤┬┼" and lower in "│╰╯├┤┴┼" else " " for upper, lower in pairs)


def _way_line(layout: Rails, row: int, label: int) -> Line:
    left, right = layout.left[2 * row + 1], layout.right[2 * row + 1]
    before = ("─" if left[-1] in "─╰┴┼├" else " ") * 4
    after = ("─" if right[0] in "─╯┴┼┤" else " ") * (label - 1)
    return (Span(f"{left}{before}{layout.below[row]}{after}{right}", "dim"),)


def _table(content: Data, width: int) -> list[Line]:
    """One line a node: visits, shade, and where its ways lead."""
    label = max(10, min(LABEL, width // 3))
    found: list[Line] = [(Span(f"{fit('node', label)}  visits  leads to", "dim"),)]
    for node in content.nodes:
        targets = [edge for edge in content.topology.edges if edge.source == node.id and not node.inside]
        leads = ", ".join(
            f"{safe_name(edge.target)}{f' ×{edge.taken}' if edge.taken else ' (possible)'}" for edge in targets
        )
        name = f"{'  ' if node.inside else ''}{node.label}"
        mark: Mark = "strong" if node.here else ""
        numbers = Span(f"{_shade(node)} {node.visits:>6}  ", _style(node))
        found.append((Span(fit(name, label), _style(node), mark), numbers, Span(clip(leads, width - label - 9), "dim")))
    return found


def notes(content: Data, width: int) -> list[Line]:
    """The circle in words, cycles that the graph allows, and the shades."""
    found: list[Line] = []
    if content.circle:
        way = " → ".join(content.circle)
        found.append(
            (Span("circle  ", "title"), Span(clip(way, width - 16), "repeat"), Span(f"  ×{content.laps}", "text"))
        )
    else:
        found.append((Span("circle  ", "title"), Span("none in the window at the cursor", "dim")))
    possible = cycles(content.topology)
    if possible:
        taken = {(edge.source, edge.target) for edge in content.topology.edges if edge.taken}
        walked = sum(all(way in taken for way in zip(ring, [*ring[1:], ring[0]], strict=True)) for ring in possible)
        text = f"{len(possible)} possible, {walked} with every edge taken by this run"
        found.append((Span("cycles  ", "title"), Span(text)))
    edges = content.topology.edges
    found.append((Span("edges   ", "title"), Span(f"{sum(edge.taken > 0 for edge in edges)} of {len(edges)} taken")))
    shades = f"share of the last {content.window} batches  ░ <10%  ▒ <30%  ▓ ≥30%"
    found.append((Span("heat    ", "title"), Span(shades, "dim")))
    return found
