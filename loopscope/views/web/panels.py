"""The panels of a page: each takes what a presenter has computed and writes it as a table, a list or a drawing."""

from __future__ import annotations

from collections.abc import Sequence

from loopscope.engine.explain import headline
from loopscope.recording.inert import inert
from loopscope.session.letters import letter_name
from loopscope.session.session import Session
from loopscope.views import graph, inspector, scopes
from loopscope.views.calls import batch_label
from loopscope.views.flow import linked
from loopscope.views.glyphs import WORST
from loopscope.views.model import clip
from loopscope.views.topbar import elapsed, lane_name, scope_name
from loopscope.views.web import report, strip
from loopscope.views.web.diagram import diagram
from loopscope.views.web.markup import Markup, joined, tag
from loopscope.views.web.pieces import Told, cell, note, panel, sign, spans, table
from loopscope.views.words import clock, plural

__all__ = ["batch", "decisions", "graphs", "scope_tree", "timeline", "why"]

_TILE = 5
"""Columns of the strip in one drawing; these flow like words."""
_COLUMNS, _CELLS = 200, 240
_MOST_SCOPES = 200
_SHAPE = 60
"""Cells of a scope's overview."""
_WIDTH = 110
_LABEL, _SCOPE = 100, 40


def timeline(told: Told) -> Markup:
    """The strip in tiles, and the overview where the lane is longer."""
    session = told.session
    shown = strip.strip(session, _COLUMNS, _CELLS)
    tiles = [_tile(shown.columns[start : start + _TILE]) for start in range(0, len(shown.columns), _TILE)]
    parts: list[Markup] = [tag("div", *tiles, class_="tiles")]
    if shown.overview:
        drawn = strip.draw_overview(shown, 0, 0, _CELLS * 4, 24)
        words = f"All {shown.total:,} batches; a line is under those that are shown below."
        overview = tag("svg", drawn, viewBox=f"0 0 {_CELLS * 4} 30", class_="overview", role="img", aria_label=words)
        part = f"#{shown.columns[0].n:,} to #{shown.columns[-1].n:,}: {len(shown.columns)} of {shown.total:,} batches"
        parts = [overview, tag("p", part, class_="dim"), *parts]
    legend = [tag("span", sign(state), f" {state} ") for state in ("new", "repeat", "warn", "stop", "ahead")]
    parts.append(tag("p", "letter: hash; below it, its count in the window; ", *legend, class_="legend"))
    return panel("timeline", "Timeline", *parts, note=lane_name(session.lane))


def _tile(columns: Sequence[strip.Column]) -> Markup:
    width = strip.COLUMN * len(columns)
    return tag(
        "svg",
        strip.draw(columns),
        viewBox=f"0 0 {width} {strip.HEIGHT}",
        width=width,
        height=strip.HEIGHT,
        role="img",
        aria_label=strip.describe(columns),
    )


def why(told: Told) -> Markup:
    """The explanations, the one of the cursor first."""
    session, wanted = told.session, report.explained(told.session)
    parts: list[Markup] = []
    for number in wanted.numbers:
        found = session.explain(number, search=wanted.search)
        state = session.row(number).state
        where = scope_name(*session.timeline.scope_of(number))
        reference = spans(linked(f"#{number}", len(session)), told.rows)
        title = tag("h3", sign(state), " ", reference, f" {found.headline} ", tag("span", where, class_="note"))
        lines = [tag("li", spans(linked(inert(line), len(session)), told.rows)) for line in found.lines]
        parts += [title, tag("ol", *lines, class_="why")]
    if not wanted.search:
        parts.append(tag("p", "The nearest settings: loopscope explain --at N searches them.", class_="dim"))
    if wanted.more:
        parts.append(tag("p", f"{plural(wanted.more, 'more scope')} had a stop.", class_="dim"))
    return panel("why", "Why", *parts)


def decisions(told: Told, passages: Sequence[report.Passage], after: report.Gap) -> Markup:
    """Every warning and stop with the batches around it."""
    session = told.session
    several = sum(bool(record.batches) for record in session.timeline.scopes.values()) > 1
    columns = 5 + several
    rows: list[Markup] = []
    for passage in passages:
        rows.extend(_gap(passage.gap, columns))
        rows.extend(_decision(session, number, several=several) for number in passage.numbers)
    rows.extend(_gap(after, columns))
    scope = [("scope", "")] if several else []
    heads = [("#", "n"), ("time", "time n"), *scope, ("batch", "what"), ("seen", "n"), ("decision", "outcome")]
    return panel("decisions", "Decisions", table("Decisions", heads, rows, "decisions"))


def _gap(gap: report.Gap, columns: int) -> list[Markup]:
    if not gap.batches:
        return []
    verdicts = f", {gap.verdicts:,} of them warned or stopped" if gap.verdicts else " passed"
    return [note(f"{plural(gap.batches, 'batch')}{verdicts}", columns)]


def _decision(session: Session, number: int, *, several: bool) -> Markup:
    row = session.row(number)
    seconds = elapsed(session, number)
    said = row.state if row.decision.action == "pass" else headline(row.decision, session.letters(row.scope))
    letter = tag("b", letter_name(row.letter), class_="letter")
    look = f"{row.state} here" if number == session.cursor else row.state
    return tag(
        "tr",
        tag("th", f"{number:,}", scope="row", class_="n"),
        cell("" if seconds is None else clock(seconds), look="time n"),
        *([cell(tag("div", _end(scope_name(*row.scope))), look="scope")] if several else []),
        cell(tag("div", letter, " ", tag("code", clip(batch_label(session, number), _LABEL)), class_="call")),
        cell(f"{row.decision.hash_count:,}", look="n"),
        cell(sign(row.state), " ", said, look="outcome"),
        id=f"b{number}",
        class_=look,
    )


def _end(name: str) -> str:
    """The end of a name: where the names of sub-agents differ."""
    return name if len(name) <= _SCOPE else f"…{name[1 - _SCOPE :]}"


def scope_tree(told: Told) -> Markup:
    """Threads with their runs and sub-agents, each with the shape of its batches."""
    session = told.session
    found = scopes.rows(session)
    rows = [_scope(session, row) for row in found[:_MOST_SCOPES]]
    if len(found) > _MOST_SCOPES:
        rows.append(note(plural(len(found) - _MOST_SCOPES, "more row"), 4))
    heads = [("scope", ""), ("worst", ""), ("batches", "n"), ("shape", "cells")]
    return panel("scopes", "Scopes", table("Scopes", heads, rows))


def _scope(session: Session, row: scopes.Row) -> Markup:
    state = WORST[row.worst]
    ended = [" ", tag("span", row.status, class_="note")] if row.status else []
    record = session.timeline.scopes.get(row.lane.key) if row.lane.key is not None else None
    shape: list[Markup] = []
    if record is not None and record.batches:
        cells = strip.overview(session, record.batches, _SHAPE)
        drawn = strip.draw_cells(cells, 0, 0, 3 * len(cells), 12)
        shape = [tag("svg", drawn, viewBox=f"0 0 {3 * _SHAPE} 12", width=3 * _SHAPE, height=12, aria_hidden="true")]
    branches = [tag("span", row.branches, class_="branches", aria_hidden="true")] if row.branches else []
    return tag(
        "tr",
        tag("th", *branches, row.label, *ended, scope="row"),
        cell(sign(state), " ", "pass" if state == "new" else state, look="worst"),
        cell(f"{row.batches:,}", look="n"),
        cell(*shape, look="cells"),
        class_="here" if row.lane == session.lane else None,
    )


def graphs(told: Told) -> Markup:
    """The graph as a drawing where it can be read, and as a table."""
    content = graph.data(told.session)
    drawn = diagram(content)
    notes = [tag("p", spans(line, ()), class_="graph-note") for line in graph.notes(content, _WIDTH)[:-1]]
    heat = f"A node is filled by its share of the last {plural(content.window, 'batch')}; dashed ways were not taken."
    shown = [] if drawn is None else [tag("div", drawn, class_="drawn")]
    heads = [("node", ""), ("visits", "n"), ("share", "n"), ("leads to", "")]
    nodes = table("Nodes of the graph", heads, [_node(content, node) for node in content.nodes], "nodes")
    source = "derived from the batches" if content.topology.derived else "from the recording"
    told_too = tag("div", *notes, tag("p", heat, class_="dim"), nodes)
    return panel("graph", "Graph", tag("div", *shown, told_too, class_="graph"), note=source)


def _node(content: graph.Data, node: graph.Node) -> Markup:
    edges = [edge for edge in content.topology.edges if edge.source == node.id and not node.inside]
    leads = ", ".join(inert(edge.target) + (f" ×{edge.taken:,}" if edge.taken else " (possible)") for edge in edges)
    share = f"{round(node.share * 100)}%" if node.share else ""
    return tag(
        "tr",
        tag("th", tag("code", inert(node.id)), scope="row", class_="inside" if node.inside else None),
        cell(f"{node.visits:,}" if node.visits else "", look="n"),
        cell(share, look="n"),
        cell(tag("code", leads)),
        class_="here" if node.here else None,
    )


def batch(told: Told) -> Markup:
    """The calls and results of the batch at the cursor."""
    lines = inspector.batch_lines(told.session, _WIDTH)
    text = joined([joined([spans(line, told.rows), Markup("\n")]) for line in lines])
    return panel("batch", f"Batch {told.session.cursor:,}", tag("pre", text))
