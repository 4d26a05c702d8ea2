from __future__ import annotations

from typing import Any

import networkx as nx
import pytest

from loopscope.lint.levels import levels
from loopscope.lint.report import Examined, as_text, examine
from tests.lint import graphs


def examined(name: str) -> list[Examined]:
    """The cycles of a graph of this name."""
    graph = getattr(graphs, name)
    return list(examine(graph if hasattr(graph, "get_graph") else graph.compile(), name).cycles)


def claims(cycle: Examined) -> list[str]:
    """Steps with how they are known."""
    return [f"{claim.step} {claim.certainty}" for claim in cycle.claims]


@pytest.mark.parametrize(
    ("name", "verdict", "expected"),
    [
        ("bare", "unbounded", ["message inferred"]),
        ("counted", "incomplete", ["counter inferred"]),
        ("commanded", "incomplete", ["counter inferred"]),
        ("remaining", "incomplete", ["counter inferred"]),
        ("unlooked", "unbounded", []),
        ("closed", "unbounded", []),
        ("asking", "unbounded", ["escalation inferred"]),
        ("stopping", "unbounded", ["escalation seen"]),
        ("forgets", "unbounded", []),
        ("plain_agent", "unbounded", []),
        ("limited", "incomplete", ["counter seen"]),
        ("half_limited", "unbounded", []),
        ("approved", "unbounded", ["escalation seen"]),
    ],
)
def test_what_bounds_a_cycle(name: str, verdict: str, expected: list[str]) -> None:
    """Each kind of bound, seen or inferred; a counter that no router looks at bounds nothing."""
    cycle = examined(name)[-1]
    assert (cycle.verdict, claims(cycle)) == (verdict, expected)


def test_the_sample_unguarded_is_named() -> None:
    """Its one cycle, through model and tools, has only the recursion limit, whose number is told."""
    (cycle,) = examined("bare")
    assert (cycle.nodes, cycle.verdict, cycle.certainty) == (("analyst", "tools"), "unbounded", "seen")
    assert cycle.missing == ("counter", "witness", "escalation", "budget")
    assert cycle.recursion_limit is not None


def test_the_sample_guarded_is_bounded() -> None:
    """With a budget every step is there, in every cycle; without one, that is what is missing."""
    for cycle in examined("guarded"):
        assert (cycle.verdict, cycle.missing) == ("incomplete", ("budget",))
    cycles = examined("whole")
    assert {cycle.verdict for cycle in cycles} == {"bounded"}
    of_tools = next(cycle for cycle in cycles if cycle.nodes == ("analyst", "tools"))
    assert claims(of_tools)[:4] == ["counter seen", "witness seen", "escalation seen", "message inferred"]
    assert [claim.text for claim in of_tools.claims][:3] == [
        "BoundedLoop sql counts at analyst, 3 iterations",
        "BoundedLoop sql compares last_error",
        "BoundedLoop sql gives up through give_up",
    ]


def test_the_middleware_bounds_an_agent() -> None:
    """Its limits are told; a budget is one more that a policy may have."""
    for cycle in examined("guarded_agent"):
        assert claims(cycle) == ["counter seen", "witness seen", "escalation seen", "message seen"]
        assert cycle.missing == ("budget",)


def test_an_outer_cycle_is_not_bounded_by_what_bounds_its_agents() -> None:
    """Each delegation starts fresh; but a budget is charged to the run around, and so it does."""
    outer = next(cycle for cycle in examined("team") if cycle.nodes == ("critic", "writer"))
    assert (outer.verdict, outer.closed) == ("unbounded", True)
    names = {cycle.nodes[0].partition(":")[0] for cycle in examined("team")}
    assert names == {"critic", "writer"}
    assert sum(":" in cycle.nodes[0] for cycle in examined("team")) == 4
    spending = next(cycle for cycle in examined("spending_team") if cycle.nodes == ("critic", "writer"))
    assert (spending.verdict, claims(spending)) == ("incomplete", ["budget seen", "budget seen"])


def test_a_router_that_does_not_say_where_it_leads_makes_cycles_inferred() -> None:
    """They are possible, not seen; elsewhere every edge was drawn."""
    assert {cycle.certainty for cycle in examined("vague")} == {"inferred"}
    assert {cycle.certainty for cycle in examined("counted")} == {"seen"}
    assert "may never be gone" in "\n".join(as_text(examine(graphs.vague.compile(), "vague")))


def test_a_graph_without_cycles_has_nothing_to_report() -> None:
    """One line says so."""
    assert list(as_text(examine(graphs.straight.compile(), "x:straight"))) == ["x:straight: 0 cycles"]


def test_a_cycle_without_a_way_out_is_told() -> None:
    """Nothing but an error ends it."""
    assert "  seen: no edge leads out of it" in list(as_text(examine(graphs.closed.compile(), "closed")))


def test_hostile_names_are_shown_and_not_obeyed() -> None:
    """A node may be called anything."""
    from langgraph.graph import START, MessagesState, StateGraph

    graph: Any = StateGraph(MessagesState)
    graph.add_node("\x1b]0;owned\x07", lambda _: None)
    graph.add_edge(START, "\x1b]0;owned\x07")
    graph.add_edge("\x1b]0;owned\x07", "\x1b]0;owned\x07")
    text = "\n".join(as_text(examine(graph.compile(), "\x1b[2J")))
    assert "\x1b" not in text
    assert "\\x1b]0;owned" in text


def test_cycles_are_bounded_in_number_and_every_component_has_one() -> None:
    """A complete graph has more cycles than anybody reads; a ring longer than what is listed is listed all the same."""
    from langgraph.graph import START, MessagesState, StateGraph

    full: Any = StateGraph(MessagesState)
    ring: Any = StateGraph(MessagesState)
    names = [f"n{number:02}" for number in range(14)]
    for graph in (full, ring):
        for name in names:
            graph.add_node(name, lambda _: None)
        graph.add_edge(START, "n00")
    for source in names:
        full.add_conditional_edges(source, lambda _: "n00", list(names))
    for source, target in nx.cycle_graph(names, create_using=nx.DiGraph).edges:
        ring.add_edge(source, target)
    assert len(examine(full.compile(), "full").cycles) == 50
    ((cycle,),) = (list(level.cycles()) for level in levels(ring.compile()))
    assert len(cycle.nodes) == 14
