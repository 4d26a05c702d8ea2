"""The graph of an agent: derived or recorded, walked by the run, ordered for drawing, and its cycles."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loopscope.engine.events import Graph, GraphEdge, GraphNode
from loopscope.graph import MOST_CYCLES, Edge, Topology, Visit, cycles, derive, observe, order


def graph(*ways: str) -> Graph:
    """A graph from `a>b` ways; `a?b` is conditional."""
    pairs = [(way.replace("?", ">").split(">"), "?" in way) for way in ways]
    nodes = dict.fromkeys(node for pair, _ in pairs for node in pair)
    return Graph(
        tuple(GraphNode(node, node) for node in nodes),
        tuple(GraphEdge(source, target, conditional) for (source, target), conditional in pairs),
    )


REACT = graph("__start__>before", "before>model", "model>after", "after?tools", "after?__end__", "tools>model")


def taken(topology: Topology) -> dict[tuple[str, str], int]:
    return {(edge.source, edge.target): edge.taken for edge in topology.edges if edge.taken}


def test_a_graph_is_derived_from_the_batches() -> None:
    """Model nodes and the tools that they called, with the ways there and back; unnamed ones are no nodes."""
    topology = observe(
        None, [Visit("lead", ("search", "search", "")), Visit("lead", ("open",)), Visit(None, ("open",))]
    )
    assert topology.derived
    assert [node.id for node in topology.nodes] == ["lead", "search", "open", "agent"]
    assert topology.visits == {"lead": 2, "search": 1, "open": 2, "agent": 1}
    assert taken(topology) == {
        ("lead", "search"): 1, ("search", "lead"): 1, ("lead", "open"): 1, ("open", "agent"): 1, ("agent", "open"): 1,
    }  # fmt: skip
    assert observe(Graph(), [Visit("a", ("t",))]).derived


def test_a_recorded_graph_is_walked() -> None:
    """Each batch goes from its model to the node that runs tools, through what lies between, and back."""
    topology = observe(REACT, [Visit("model", ("search",)), Visit("model", ("search", "open"))])
    assert not topology.derived
    assert taken(topology) == {
        ("__start__", "before"): 1,
        ("before", "model"): 1,
        ("model", "after"): 2,
        ("after", "tools"): 2,
        ("tools", "model"): 1,
    }
    assert topology.visits == {"model": 2, "tools": 2, "before": 1, "after": 2}
    assert topology.tools == {"tools": {"search": 2, "open": 1}}


def test_tools_that_are_nodes_and_models_that_are_unknown() -> None:
    """A tool with a node of its own goes there; a model that the graph does not have is `agent`, or passed over."""
    fan = graph("agent>search", "search>agent", "agent>tools", "tools>agent")
    topology = observe(fan, [Visit("elsewhere", ("search", "open")), Visit(None, ("search",))])
    assert topology.visits == {"agent": 2, "search": 2, "tools": 1}
    assert topology.tools == {"tools": {"open": 1}}
    assert observe(REACT, [Visit("elsewhere", ("search",))]).visits == {}
    without_tools = observe(graph("model>model"), [Visit("model", ("search",))])
    assert without_tools.tools == {}


def test_the_tools_node_of_a_subgraph_is_found() -> None:
    """Expanded subgraphs carry their path in the name."""
    topology = observe(graph("inner:model>inner:tools", "inner:tools>inner:model"), [Visit("inner:model", ("x",))])
    assert topology.tools == {"inner:tools": {"x": 1}}


def test_no_way_takes_no_edge() -> None:
    """Where the graph has no way, nothing is claimed."""
    assert taken(observe(graph("model>model", "tools>tools"), [Visit("model", ("x",))])) == {}


def test_order_goes_down_from_the_start() -> None:
    """What follows stands below, loops lead up, the end is last, what is out of reach too."""
    topology = observe(REACT, [])
    assert order(topology) == ["__start__", "before", "model", "after", "tools", "__end__"]
    lost = Topology((GraphNode("x", "x"),), (Edge("x", "nowhere", conditional=False, taken=0),), {}, {}, derived=False)
    assert order(lost) == ["x"]


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=20))
def test_every_node_is_ordered_once(pairs: list[tuple[int, int]]) -> None:
    """For any graph."""
    topology = observe(graph(*[f"n{a}>n{b}" for a, b in pairs], "n0>n0"), [])
    assert sorted(order(topology)) == sorted(node.id for node in topology.nodes)


def test_cycles_are_listed_shortest_first() -> None:
    """Within each component; a complete graph does not explode."""
    (ring,) = cycles(observe(REACT, []))
    assert sorted(ring) == ["after", "model", "tools"]
    many = graph(*[f"n{a}>n{b}" for a in range(9) for b in range(9) if a != b])
    found = cycles(observe(many, []))
    assert len(found) == MOST_CYCLES
    assert [len(ring) for ring in found] == sorted(len(ring) for ring in found)


def test_derive_keeps_the_order_of_first_use() -> None:
    """So that a derived graph reads like the run."""
    assert [edge.target for edge in derive([Visit("a", ("x",)), Visit("a", ("y", "x"))]).edges] == ["x", "a", "y", "a"]
