from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.errors import GraphRecursionError

from loopscope.sources.langgraph_sqlite.endings import Tail, ending
from tests.sources.langgraph_sqlite.graphs import (
    ASK,
    THREAD,
    Model,
    answer,
    call,
    calls,
    chain,
    checkpoint,
    database,
    ends,
    loop,
    message,
    named,
    pack,
    saved,
    search,
    told,
)


def failing(saver: Any) -> Any:
    graph = loop([calls("boom"), answer()]).compile(saver)
    with pytest.raises(ValueError, match="boom"):
        graph.invoke(ASK, THREAD)
    return graph


def test_an_error_ends_the_run(tmp_path: Path) -> None:
    """The error that a task raised is the reason."""
    (end,) = ends(saved(tmp_path / "c.db", failing))
    assert (end.status, end.reason) == ("error", "ValueError('boom')")


def test_what_the_siblings_of_a_failed_call_gave_back_is_told(tmp_path: Path) -> None:
    """The step never came to its end, so these results stand in no checkpoint; they came nevertheless."""

    def parallel(saver: Any) -> None:
        with pytest.raises(ValueError, match="boom"):
            loop([calls("a", "boom", "b")], tools=None).compile(saver).invoke(ASK, THREAD)

    def spread(saver: Any) -> None:
        model = Model(messages=iter([calls("a", "boom", "b")]))
        with pytest.raises(ValueError, match="boom"):
            create_agent(model, [search], checkpointer=saver).invoke(ASK, THREAD)

    assert told(saved(tmp_path / "one.db", parallel))[-1] == "r1 end error"
    assert told(saved(tmp_path / "many.db", spread)) == [
        "r1 start",
        "r1 calls search(a)+search(boom)+search(b)",
        "r1 ok found a",
        "r1 ok found b",
        "r1 end error",
    ]


def test_a_run_that_is_tried_again_failed_once(tmp_path: Path) -> None:
    """The failure is told where it came, and the same run goes on behind it."""

    def again(saver: Any) -> None:
        failing(saver)
        loop([answer()], tools=lambda _: {"messages": []}).compile(saver).invoke(None, THREAD)

    assert told(saved(tmp_path / "c.db", again)) == [
        "r1 start",
        "r1 calls search(boom)",
        "r1 end error",
        "r1 start resumes r1",
        "r1 says done",
        "r1 end completed",
    ]


def test_a_cancelled_task(tmp_path: Path) -> None:
    """Versions of 2025 store the cancelling of a task where its error would stand: that is no failure."""
    rows = chain(checkpoint([message("ai", id="1", tool_calls=[call("a")])]))
    marks = [{"checkpoint_id": "0", "idx": -1, "channel": "__error__", "value": pack("CancelledError()")}]
    (end,) = ends(database(tmp_path / "c.db", rows, marks))
    assert (end.status, end.reason) == ("cancelled", "CancelledError()")


async def test_a_run_that_was_cancelled_from_outside(tmp_path: Path) -> None:
    """Today's LangGraph stores nothing then, and nothing is made up: it is one of the ends without an answer."""
    started = asyncio.Event()

    async def hang(_: Any) -> Any:
        started.set()
        await asyncio.Event().wait()

    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.db")) as saver:
        running = asyncio.create_task(loop([calls("a")], tools=hang).compile(saver).ainvoke(ASK, THREAD))
        await started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    (end,) = ends(tmp_path / "c.db")
    assert end.status == "unknown"
    assert end.reason is not None
    assert "before tools; no error is stored" in end.reason


def stuck(saver: Any, limit: int, **configurable: Any) -> None:
    graph = loop(calls("a") for _ in range(limit)).compile(saver)
    config: Any = {"configurable": {"thread_id": "t", **configurable}, "recursion_limit": limit}
    with pytest.raises(GraphRecursionError):
        graph.invoke(ASK, config)


def test_a_run_that_just_ended_at_an_unknown_limit(tmp_path: Path) -> None:
    """LangGraph stores no error there: what is known is the number of steps and which node was to run."""
    (end,) = ends(saved(tmp_path / "c.db", lambda saver: stuck(saver, 6)))
    assert end.status == "unknown"
    assert end.reason is not None
    assert end.reason.startswith("ended without a final answer after 6 steps, before agent; no error is stored")
    assert "recursion limit" in end.reason


def test_a_run_that_just_ended_at_a_known_limit(tmp_path: Path) -> None:
    """Where the metadata tell the limit, and it was reached, that is why it ended."""
    (end,) = ends(saved(tmp_path / "c.db", lambda saver: stuck(saver, 6, recursion_limit=6)))
    assert end.status == "error"
    assert (
        end.reason == "ended without a final answer after 6 steps, before agent: the recursion limit of 6 was reached"
    )


def test_a_run_that_just_ended_at_the_default_limit(tmp_path: Path) -> None:
    """Exactly 25 steps and no answer is what LangGraph's own limit leaves."""
    (end,) = ends(saved(tmp_path / "c.db", lambda saver: stuck(saver, 25)))
    assert end.status == "error"
    assert (
        end.reason
        == "ended without a final answer after 25 steps, before tools: 25 is LangGraph's default recursion limit"
    )


def test_steps_are_counted_from_the_input(tmp_path: Path) -> None:
    """The steps of earlier invocations on the thread are not this one's, whenever checkpoints are written."""

    def twice(saver: Any, durability: Any) -> None:
        loop([calls("a"), answer()]).compile(saver).invoke(ASK, THREAD, durability=durability)
        with pytest.raises(GraphRecursionError):
            loop([calls("a"), calls("b"), calls("c")]).compile(saver).invoke(
                ASK, {**THREAD, "recursion_limit": 5}, durability=durability
            )

    for durability in ("sync", "exit"):
        last = ends(saved(tmp_path / f"{durability}.db", partial(twice, durability=durability)))[-1]
        assert last.reason is not None
        assert last.reason.startswith("ended without a final answer after 5 steps, before tools")


def test_a_breakpoint_is_no_answer(tmp_path: Path) -> None:
    """A run that was stopped before a node says so."""

    def pause(saver: Any) -> None:
        loop([calls("a")]).compile(saver, interrupt_before=["tools"]).invoke(ASK, THREAD)

    (end,) = ends(saved(tmp_path / "c.db", pause))
    assert end.status == "unknown"
    assert end.reason is not None
    assert "after 1 step, before tools" in end.reason


def test_a_run_that_a_loop_guard_ended(tmp_path: Path) -> None:
    """A guard takes the calls out of the message under its id: the batch is told, and why the run ended."""

    def capped(saver: Any) -> None:
        said = calls("a")
        graph = loop([said])
        graph.add_node(
            "guard", lambda _: {"messages": [AIMessage("\n\n[FORCED STOP] search came too often.", id=said.id)]}
        )
        graph.add_edge("agent", "guard")
        graph.branches["agent"].clear()
        graph.compile(saver).invoke(ASK, THREAD)

    path = saved(tmp_path / "c.db", capped)
    assert told(path)[1] == "r1 calls search(a)"
    (end,) = ends(path)
    assert (end.status, end.reason) == ("loop_capped", "[FORCED STOP] search came too often.")


NOTHING = Tail((), certain=False, newest=None, steps=None, limit=None)


@pytest.mark.parametrize(
    ("tail", "writes", "expected"),
    [
        (NOTHING, {}, ("unknown", None)),
        (NOTHING._replace(certain=True), {}, ("completed", None)),
        (NOTHING._replace(newest={"role": "assistant", "content": "x"}), {}, ("completed", None)),
        (NOTHING, {"__error__": ["CancelledError()", "OSError()"]}, ("error", "OSError()")),
        (NOTHING, {"__error__": ["KeyboardInterrupt()"]}, ("cancelled", "KeyboardInterrupt()")),
        (NOTHING, {"__error__": [{"kind": 1}]}, ("error", '{"kind": 1}')),
        (
            NOTHING,
            {"__interrupt__": [[{"value": {"ask": 1}}]]},
            ("unknown", 'interrupted, waiting for an answer: {"ask": 1}'),
        ),
    ],
)
def test_how_a_run_ended(tail: Tail, writes: dict[str, list[Any]], expected: tuple[str, str | None]) -> None:
    """Each of the marks that LangGraph leaves, and the lack of any."""
    assert ending(tail, writes) == expected


def test_before_the_edges_were_stored_the_last_message_decides(tmp_path: Path) -> None:
    """In files of older versions a run whose last message is a result ended without an answer; no node is named."""
    rows = chain(
        checkpoint([message("ai", id="1", tool_calls=[]), message("tool", id="2", tool_call_id="c", content="x")])
    )
    rows[0]["checkpoint"] = rows[0]["checkpoint"].replace(b"branch:to:agent", b"agent----------")
    (end,) = ends(database(tmp_path / "c.db", rows))
    assert end.reason is not None
    assert end.reason.startswith("ended without a final answer; no error is stored")


def test_the_nodes_that_were_sent_to_are_named(tmp_path: Path) -> None:
    """Nodes that wait as messages to them are next too, as older versions and newer ones store them."""
    state = {"v": 1, "ts": "2026-01-02T03:04:05", "channel_values": {}, "channel_versions": {}, "versions_seen": {}}
    sent = named(1, "langgraph.types", "Send", ["tools", {}])
    old = pack({**state, "pending_sends": [sent, 7]})
    new = pack({**state, "channel_values": {"__pregel_tasks": [sent], "branch:agent:choose:writer": 1, "__start__": 1}})
    for name, blob in (("old", old), ("new", new)):
        (end,) = ends(database(tmp_path / f"{name}.db", chain(blob)))
        assert end.reason is not None
        assert "before tools" in end.reason or "before writer, __start__, tools" in end.reason
        assert end.ts == 1767323045.0
