from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.graph import MessagesState
from langgraph.types import Command, interrupt

from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Header, RunStart
from loopscope.sources.langgraph_sqlite import events
from tests.sources.langgraph_sqlite.graphs import ASK, THREAD, answer, batches, calls, ends, graph_of, loop, saved, told

TRUNK = [
    "r1 start",
    "r1 calls search(a)",
    "r1 ok found a",
    "r1 calls search(a)",
    "r1 ok found a",
    "r1 says done",
    "r1 end completed",
]


def before(graph: Any, node: str, nth: int = 0) -> Any:
    """The snapshot that was taken before a node ran for the nth time."""
    return [snapshot for snapshot in graph.get_state_history(THREAD) if snapshot.next == (node,)][::-1][nth]


def trunk(saver: Any, *more: Any) -> Any:
    graph = loop([calls("a"), calls("a"), answer(), *more]).compile(saver)
    graph.invoke(ASK, THREAD)
    return graph


def test_a_replay_from_an_earlier_checkpoint_is_a_branch(tmp_path: Path) -> None:
    """What a branch does again, the run it was taken from does not do again: its counts begin anew."""

    def fork(saver: Any) -> None:
        graph = trunk(saver, calls("a"), answer("other"))
        graph.invoke(None, before(graph, "agent").config)

    path = saved(tmp_path / "c.db", fork)
    assert told(path) == [
        *TRUNK,
        "r2 start resumes r1",
        "r2 calls search(a)",
        "r2 ok found a",
        "r2 says other",
        "r2 end completed",
    ]
    detector = LoopDetector()
    counts = [decision.hash_count for event in events(path) for decision in detector.observe(event)]
    assert counts == [1, 2, 1]


def test_an_edit_of_an_earlier_checkpoint_is_a_branch(tmp_path: Path) -> None:
    """`update_state` on an old checkpoint and going on from there leaves the first way as it was."""

    def fork(saver: Any) -> None:
        graph = trunk(saver, calls("z"), answer("other"))
        old = before(graph, "tools")
        graph.invoke(None, graph.update_state(old.config, {"messages": [HumanMessage("edited")]}, as_node="tools"))

    assert told(saved(tmp_path / "c.db", fork)) == [
        *TRUNK,
        "r2 start resumes r1",
        "r2 calls search(z)",
        "r2 ok found z",
        "r2 says other",
        "r2 end completed",
    ]


def test_branches_of_a_named_run_have_names_of_their_own(tmp_path: Path) -> None:
    """A fork that keeps the caller's run id must not add to the counts of that run."""
    named: Any = {**THREAD, "metadata": {"run_id": "mine"}}

    def fork(saver: Any) -> None:
        graph = loop([calls("a"), answer(), calls("a"), answer()]).compile(saver)
        graph.invoke(ASK, named)
        graph.invoke(None, {**named, "configurable": before(graph, "agent").config["configurable"]})

    first, second = (event for event in events(saved(tmp_path / "c.db", fork)) if isinstance(event, RunStart))
    assert first.run_id == "mine"
    assert second.run_id is not None
    assert second.run_id.startswith("mine~")
    assert second.resume_of == "mine"


def test_two_branches_of_one_checkpoint_are_two_runs(tmp_path: Path) -> None:
    """Each way that was taken from the same point is a run."""

    def fork(saver: Any) -> None:
        graph = trunk(saver, answer("second"), answer("third"))
        start = before(graph, "agent").config
        graph.invoke(None, start)
        graph.invoke(None, start)

    assert told(saved(tmp_path / "c.db", fork))[len(TRUNK) :] == [
        "r2 start resumes r1",
        "r2 says second",
        "r2 end completed",
        "r3 start resumes r1",
        "r3 says third",
        "r3 end completed",
    ]


def test_a_new_input_on_an_earlier_checkpoint_is_a_branch(tmp_path: Path) -> None:
    """Asking something else at an old point of a conversation branches it there."""

    def fork(saver: Any) -> None:
        graph = trunk(saver, answer("other"))
        graph.invoke(ASK, before(graph, "agent").config)

    assert told(saved(tmp_path / "c.db", fork))[len(TRUNK) :] == [
        "r2 start resumes r1",
        "r2 says other",
        "r2 end completed",
    ]


def test_going_on_after_a_finished_run_is_another_one(tmp_path: Path) -> None:
    """As live: a run that was over is not the one that an edit of its last state sets going again."""

    def go_on(saver: Any) -> None:
        graph = trunk(saver, answer("other"))
        graph.update_state(THREAD, {"messages": [HumanMessage("and?")]}, as_node="__start__")
        graph.invoke(None, THREAD)

    assert told(saved(tmp_path / "c.db", go_on))[len(TRUNK) :] == [
        "r2 start resumes r1",
        "r2 says other",
        "r2 end completed",
    ]


def test_an_edit_alone_changes_nothing(tmp_path: Path) -> None:
    """A state that is edited after the run's end leaves the run as it ended."""

    def edit(saver: Any) -> None:
        graph = trunk(saver)
        graph.update_state(THREAD, {"messages": [HumanMessage("note")]}, as_node="tools")

    assert told(saved(tmp_path / "c.db", edit)) == TRUNK


def _asks(_: Any) -> Any:
    return {"messages": [ToolMessage(interrupt("may I?"), tool_call_id="c")]}


def _interrupted(saver: Any, *, durability: Any = None) -> Any:
    graph = loop([calls("a"), answer()], tools=_asks).compile(saver)
    graph.invoke(ASK, THREAD, durability=durability)
    return graph


@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_a_resumed_run_is_the_same_run(tmp_path: Path, durability: Any) -> None:
    """The answer to an interrupt takes the run up again under its own id, with its counts."""

    def resume(saver: Any) -> None:
        _interrupted(saver, durability=durability).invoke(Command(resume="yes"), THREAD, durability=durability)

    assert told(saved(tmp_path / "c.db", resume)) == [
        "r1 start",
        "r1 calls search(a)",
        "r1 start resumes r1",
        "r1 ok yes",
        "r1 says done",
        "r1 end completed",
    ]


def test_a_run_that_waits_is_not_over(tmp_path: Path) -> None:
    """What the person was asked stands in the reason."""
    (end,) = ends(saved(tmp_path / "c.db", _interrupted))
    assert (end.status, end.reason) == ("unknown", "interrupted, waiting for an answer: may I?")


def test_a_node_that_asks_twice(tmp_path: Path) -> None:
    """An answer to the first question leaves the run waiting at the second."""

    def asks_twice(_: Any) -> Any:
        interrupt("first?")
        interrupt("second?")

    def resume(saver: Any) -> None:
        graph = loop([calls("a"), answer()], tools=asks_twice).compile(saver)
        graph.invoke(ASK, THREAD)
        graph.invoke(Command(resume="yes"), THREAD)

    (end,) = ends(saved(tmp_path / "c.db", resume))
    assert (end.status, end.reason) == ("unknown", "interrupted, waiting for an answer: second?")


def test_a_resume_under_another_run_id_is_told_as_one(tmp_path: Path) -> None:
    """LangGraph's server gives each resume a run id: it is a run of its own that names the one it takes up."""

    def resume(saver: Any) -> None:
        graph = loop([calls("a"), answer()], tools=_asks).compile(saver)
        graph.invoke(ASK, {**THREAD, "metadata": {"run_id": "first"}})
        graph.invoke(Command(resume="yes"), {**THREAD, "metadata": {"run_id": "second"}})

    path = saved(tmp_path / "c.db", resume)
    starts = [(event.run_id, event.resume_of) for event in events(path) if isinstance(event, RunStart)]
    assert starts == [("first", None), ("second", "first")]


def test_an_interrupt_inside_a_subgraph_resumes_there(tmp_path: Path) -> None:
    """Both the subgraph and the graph around it are taken up again, each as itself."""

    def resume(saver: Any) -> None:
        graph = graph_of(MessagesState)
        graph.add_node("sub", loop([calls("a"), answer()], tools=_asks).compile())
        graph.add_edge("__start__", "sub")
        compiled = graph.compile(saver)
        compiled.invoke(ASK, THREAD)
        compiled.invoke(Command(resume="yes"), THREAD)

    path = saved(tmp_path / "c.db", resume)
    assert told(path) == [
        "r1 start",
        "r2 start in r1",
        "r2 calls search(a)",
        "r2 start in r1 resumes r2",
        "r2 ok yes",
        "r2 says done",
        "r2 end completed",
        "r1 start resumes r1",
        "r1 end completed",
    ]
    assert len(batches(path)) == 2
    assert {event.thread_id for event in events(path) if not isinstance(event, Header)} == {"t"}
