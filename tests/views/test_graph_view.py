"""The Graph pane: nodes with visits and heat, the circle in words, a table where rails do not fit."""

from __future__ import annotations

from pathlib import Path

import msgspec

from loopscope.engine.events import Graph, GraphEdge, GraphNode, RunStart
from loopscope.session.session import Session
from loopscope.settings import Choice
from loopscope.targets import open_session
from loopscope.views import graph
from loopscope.views.cells import cell_len
from loopscope.views.model import plain
from tests.engine.support import batch
from tests.session.support import session_of

CASES = Path(__file__).parent.parent / "cases"


def shown(session: Session, width: int = 76) -> list[str]:
    return [plain(line).rstrip() for line in graph.body(session, width)]


def test_two_alternating_commands_are_a_circle() -> None:
    """A graph derived from the batches, hot, with its circle in words."""
    session = open_session(CASES / "05-search-fetch-alternation.jsonl", Choice.of())
    assert shown(session) == [
        "GRAPH  derived from the batches",
        "╭─┬─▶[▓agent     ▓]    ×200",
        "│ │      ├──────────╮",
        "│ │  [▓web_search▓] │  ×100",
        "│ ╰──────╯          │",
        "│    [▓web_fetch ▓]◀╯  ×100",
        "╰────────╯",
        "",
        "circle  agent → web_search → agent → web_fetch → agent  ×10",
        "cycles  2 possible, 2 with every edge taken by this run",
        "edges   4 of 4 taken",
        "heat    share of the last 20 batches  ░ <10%  ▒ <30%  ▓ ≥30%",
    ]


def with_graph() -> Session:
    """A recorded graph whose tools node runs two tools, one of them a hundred times."""
    names = ["__start__", "Guard.before_agent_with_a_long_name_for_a_hook", "model", "tools"]
    nodes = tuple(GraphNode(name, name) for name in names)
    ways = [("__start__", names[1]), (names[1], "model"), ("model", "tools"), ("tools", "model")]
    shape = Graph(nodes, tuple(GraphEdge(*way) for way in ways))
    start = RunStart(seq=0, ts=None, thread_id="t", run_id="r", agent="a", graph=shape)
    calls = [batch(n, ("search" if n % 9 else "open", {"query": str(n % 2)})) for n in range(1, 12)]
    return session_of([start, *[msgspec.structs.replace(event, node="model") for event in calls]])


def test_a_recorded_graph_shows_the_tools_of_its_tools_node() -> None:
    """Tools stand inside the node that runs them, the worst verdict of the window with each."""
    session = with_graph()
    session.open_at_first_stop()
    text = "\n".join(shown(session))
    assert "GRAPH  from the recording" in text
    assert "…before_agent_with_a_long_n…" in text
    assert "search" in text
    assert "×10 ■" in text
    assert "cycles  1 possible, 1 with every edge taken by this run" in text
    content = graph.data(session)
    inside = [node for node in content.nodes if node.inside]
    assert [(node.id, node.visits) for node in inside] == [("search", 10), ("open", 1)]
    assert next(node for node in content.nodes if node.id == "model").here


def test_a_narrow_pane_gets_a_table() -> None:
    """Rails need room; a table says the same."""
    session = with_graph()
    session.seek(1)
    lines = shown(session, 44)
    assert lines[1].startswith("node")
    assert any(line.startswith("model") and "tools ×11" in line for line in lines)
    assert all(cell_len(line) <= 44 for line in lines)
    assert any(line.startswith("circle") and "none" in line for line in lines)


def test_too_many_rails_are_a_table_and_no_cycle_is_no_line() -> None:
    """A graph with more rails than anyone can follow is a table at any width."""
    nodes = [f"n{i}" for i in range(40)]
    ways = [GraphEdge(nodes[i], nodes[j]) for i in range(20) for j in (39 - i,)]
    start = RunStart(
        seq=0, ts=None, thread_id="t", run_id="r", agent="a",
        graph=Graph(tuple(GraphNode(node, node) for node in nodes), (*ways, *map(GraphEdge, nodes, nodes[1:]))),
    )  # fmt: skip
    session = session_of([start, batch(1, ("x", {}))])
    session.seek(1)
    lines = shown(session, 200)
    assert lines[1].startswith("node")
    assert not any(line.startswith("cycles") for line in lines)


def test_lines_are_those_of_the_body() -> None:
    """A pane that scrolls asks for what is visible."""
    session = with_graph()
    session.seek(5)
    assert graph.lines(session, 2, 3, 76) == graph.body(session, 76)[2:5]
    assert graph.height(session, 76) == len(graph.body(session, 76))


def test_nothing_yet() -> None:
    """A recording without batches has no graph to show."""
    assert shown(session_of([])) == ["There is no batch yet."]


def test_hostile_names_are_inert() -> None:
    """Names of nodes and tools come from outside."""
    session = session_of([batch(n, ("\x1b[2J[red]evil", {"q": n})) for n in range(1, 4)])
    session.seek(3)
    text = "\n".join(shown(session))
    assert "\x1b" not in text
    assert "[red]evil" in text
