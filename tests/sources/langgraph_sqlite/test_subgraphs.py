from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Send

from loopscope.engine.events import Batch, RunStart
from loopscope.sources.langgraph_sqlite import events
from tests.sources.langgraph_sqlite.graphs import ASK, THREAD, answer, calls, graph_of, loop, saved, search, told


def around(**nodes: Any) -> Any:
    """A graph whose nodes run one after the other."""
    graph = graph_of(MessagesState)
    before = START
    for name, node in nodes.items():
        graph.add_node(name, node)
        graph.add_edge(before, name)
        before = name
    return graph


def test_a_subgraph_is_a_run_inside_the_run(tmp_path: Path) -> None:
    """Its id is that of the run and its place in the graph; the messages copied into it and back are told once."""
    first = calls("outer")
    graph = around(outer=lambda _: {"messages": [first]}, helper=loop([calls("a"), answer()]).compile())
    path = saved(tmp_path / "c.db", lambda saver: graph.compile(saver).invoke(ASK, THREAD))
    assert told(path) == [
        "r1 start",
        "r1 calls search(outer)",
        "r2 start in r1",
        "r2 calls search(a)",
        "r2 ok found a",
        "r2 says done",
        "r2 end completed",
        "r1 end completed",
    ]
    outer, inner = (event for event in events(path) if isinstance(event, RunStart))
    assert outer.agent is None
    assert inner.agent == "helper"
    assert inner.run_id is not None
    assert inner.run_id.startswith(f"{outer.run_id}/helper:")
    assert (inner.parent_thread_id, inner.parent_run_id) == ("t", outer.run_id)


def test_subgraphs_within_subgraphs_name_their_parents(tmp_path: Path) -> None:
    """Each is inside the next shorter place, and all share the id of the run."""
    deep = around(deepest=loop([calls("a"), answer()]).compile()).compile()
    path = saved(tmp_path / "c.db", lambda saver: around(deep=deep).compile(saver).invoke(ASK, THREAD))
    assert told(path)[:3] == ["r1 start", "r2 start in r1", "r3 start in r2"]
    runs = [event.run_id or "" for event in events(path) if isinstance(event, RunStart)]
    assert runs[2].startswith(f"{runs[1]}|deepest:")
    assert runs[1].startswith(f"{runs[0]}/deep:")


def test_an_agent_inside_a_tool_starts_fresh_each_time(tmp_path: Path) -> None:
    """Each delegation is a run of its own, and the result of the call is the caller's."""

    @tool
    def delegate(query: str) -> str:
        """Has another agent look."""
        helper = loop([calls(query), answer(f"{query}!")]).compile()
        return str(helper.invoke(ASK)["messages"][-1].content)

    script = [calls("a", tool_name="delegate"), calls("b", tool_name="delegate"), answer()]
    graph = loop(script, tools=ToolNode([delegate]))
    path = saved(tmp_path / "c.db", lambda saver: graph.compile(saver).invoke(ASK, THREAD))
    assert told(path) == [
        "r1 start",
        "r1 calls delegate(a)",
        "r2 start in r1",
        "r2 calls search(a)",
        "r2 ok found a",
        "r2 says a!",
        "r2 end completed",
        "r1 ok a!",
        "r1 calls delegate(b)",
        "r3 start in r1",
        "r3 calls search(b)",
        "r3 ok found b",
        "r3 says b!",
        "r3 end completed",
        "r1 ok b!",
        "r1 says done",
        "r1 end completed",
    ]


def test_parallel_subgraphs_never_share_a_run(tmp_path: Path) -> None:
    """The same node sent to twice at once is two runs with counts of their own."""

    def work(state: Any) -> Any:
        helper = loop([calls(state["topic"]), answer(state["topic"])]).compile()
        return {"messages": [helper.invoke(ASK)["messages"][-1]]}

    graph = graph_of(MessagesState)
    graph.add_node("work", work)
    graph.add_conditional_edges(START, lambda _: [Send("work", {"topic": "a"}), Send("work", {"topic": "b"})], ["work"])
    path = saved(tmp_path / "c.db", lambda saver: graph.compile(saver).invoke(ASK, THREAD))
    runs: dict[str | None, list[str]] = {}
    for event in events(path):
        if isinstance(event, Batch) and event.calls:
            runs.setdefault(event.run_id, []).extend(call.args["query"] for call in event.calls)
    assert sorted(runs.values()) == [["a"], ["b"]]


def test_a_subgraph_with_a_memory_of_its_own_is_a_run_each_time(tmp_path: Path) -> None:
    """A subgraph that keeps its state over invocations is inside the run that called it, and ends with it."""
    helper = loop([calls("a"), answer("one"), calls("b"), answer("two")]).compile(checkpointer=True)

    def twice(saver: Any) -> None:
        graph = around(helper=helper).compile(saver)
        graph.invoke(ASK, THREAD)
        graph.invoke(ASK, THREAD)

    assert told(saved(tmp_path / "c.db", twice)) == [
        "r1 start",
        "r2 start in r1",
        "r2 calls search(a)",
        "r2 ok found a",
        "r2 says one",
        "r2 end completed",
        "r1 end completed",
        "r3 start",
        "r4 start in r3",
        "r4 calls search(b)",
        "r4 ok found b",
        "r4 says two",
        "r4 end completed",
        "r3 end completed",
    ]


def test_calls_that_a_subgraph_runs_are_answered_where_they_were_made(tmp_path: Path) -> None:
    """A graph may leave its calls to a subgraph that only runs tools: their results are the caller's."""
    tools = around(run=ToolNode([search])).compile()
    path = saved(
        tmp_path / "c.db", lambda saver: loop([calls("a"), answer()], tools=tools).compile(saver).invoke(ASK, THREAD)
    )
    assert told(path) == [
        "r1 start",
        "r1 calls search(a)",
        "r2 start in r1",
        "r1 ok found a",
        "r2 end completed",
        "r1 says done",
        "r1 end completed",
    ]


def test_a_hand_off_is_answered_where_it_was_asked_for(tmp_path: Path) -> None:
    """The result of a call that leaves a subgraph stands in the graph around it; it answers the subgraph's batch."""
    handing = calls("b", tool_name="hand_off")

    def hand_off(state: Any) -> Command[Any]:
        output = ToolMessage("over to b", tool_call_id=handing.tool_calls[0]["id"])
        return Command(graph=Command.PARENT, goto="b", update={"messages": [*state["messages"], output]})

    graph = graph_of(MessagesState)
    graph.add_node("a", loop([handing], tools=hand_off).compile())
    graph.add_node("b", lambda _: {"messages": [answer()]})
    graph.add_edge(START, "a")
    path = saved(tmp_path / "c.db", lambda saver: graph.compile(saver).invoke(ASK, THREAD))
    lines = told(path)
    assert lines[:3] == ["r1 start", "r2 start in r1", "r2 calls hand_off(b)"]
    assert "r2 ok over to b" in lines
    assert lines[-2:] == ["r1 says done", "r1 end completed"]


def test_a_fork_takes_its_subgraphs_with_it(tmp_path: Path) -> None:
    """What a subgraph does again on a branch is inside the branch."""

    def fork(saver: Any) -> None:
        helper = loop([calls("a"), answer(), calls("a"), answer()]).compile()
        graph = around(helper=helper).compile(saver)
        graph.invoke(ASK, THREAD)
        start = next(snapshot for snapshot in graph.get_state_history(THREAD) if snapshot.next == ("helper",))
        graph.invoke(None, start.config)

    lines = told(saved(tmp_path / "c.db", fork))
    assert [line for line in lines if "start" in line or "calls" in line] == [
        "r1 start",
        "r2 start in r1",
        "r2 calls search(a)",
        "r3 start resumes r1",
        "r4 start in r3",
        "r4 calls search(a)",
    ]
