from __future__ import annotations

import asyncio
import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict
from uuid import uuid4

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState
from langgraph.graph.message import add_messages
from langgraph.types import Overwrite

from loopscope import LoopDetectionMiddleware
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, DecisionMade, Event, Header, RunStart
from loopscope.recording.bus import bus
from loopscope.sources.langgraph_sqlite import events
from tests.sources.langgraph_sqlite.graphs import (
    ASK,
    THREAD,
    Model,
    answer,
    batches,
    calls,
    graph_of,
    loop,
    results,
    saved,
    search,
    told,
)

LOOPED = [
    "r1 start",
    "r1 calls search(a)",
    "r1 ok found a",
    "r1 calls search(a)",
    "r1 ok found a",
    "r1 says done",
    "r1 end completed",
]


def looping() -> list[AIMessage]:
    return [calls("a"), calls("a"), answer()]


def test_a_run_becomes_its_batches_and_results(tmp_path: Path) -> None:
    """Each message of a run is told once, though every checkpoint holds those before it too."""
    path = saved(tmp_path / "c.db", lambda saver: loop(looping()).compile(saver).invoke(ASK, THREAD))
    assert told(path) == LOOPED


async def test_an_async_run_reads_the_same(tmp_path: Path) -> None:
    """The async saver's file is no other."""
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.db")) as saver:
        await loop(looping()).compile(saver).ainvoke(ASK, THREAD)
    assert told(tmp_path / "c.db") == LOOPED


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_durability_changes_times_not_events(tmp_path: Path, durability: Any) -> None:
    """Checkpoints at the end of each invocation alone still give two runs with all their messages."""

    def twice(saver: Any) -> None:
        graph = loop([*looping(), *looping()]).compile(saver)
        graph.invoke(ASK, THREAD, durability=durability)
        graph.invoke(ASK, THREAD, durability=durability)

    path = saved(tmp_path / "c.db", twice)
    assert told(path) == LOOPED + [line.replace("r1", "r2") for line in LOOPED]


def test_each_invocation_is_a_run_with_counts_of_its_own(tmp_path: Path) -> None:
    """As with the middleware: a question asked again on the same thread does not add to the counts of the first."""

    def twice(saver: Any) -> None:
        graph = loop([*looping(), *looping()]).compile(saver)
        graph.invoke(ASK, THREAD)
        graph.invoke(ASK, THREAD)

    detector = LoopDetector()
    path = saved(tmp_path / "c.db", twice)
    counts = [decision.hash_count for event in events(path) for decision in detector.observe(event)]
    assert counts == [1, 2, 1, 2]


def test_the_callers_run_id_names_the_run(tmp_path: Path) -> None:
    """A run id in the metadata, as LangGraph's server and many callers put it there, is the run's."""

    def twice(saver: Any) -> None:
        graph = loop([*looping(), *looping()]).compile(saver)
        graph.invoke(ASK, {**THREAD, "metadata": {"run_id": "mine"}})
        graph.invoke(ASK, {**THREAD, "metadata": {"run_id": "next"}})

    path = saved(tmp_path / "c.db", twice)
    assert [batch.run_id for batch in batches(path)] == ["mine"] * 3 + ["next"] * 3


def test_times_are_those_of_the_checkpoints(tmp_path: Path) -> None:
    """A message is as old as the first checkpoint that holds it, so times rise with the steps of the run."""
    path = saved(tmp_path / "c.db", lambda saver: loop(looping()).compile(saver).invoke(ASK, THREAD))
    times = [event.ts for event in events(path) if not isinstance(event, Header)]
    assert all(isinstance(ts, float) and ts > 1_700_000_000 for ts in times)
    assert times == sorted(times, key=float)  # type: ignore[arg-type]
    assert len(set(times)) >= 5


def test_events_are_a_recording(tmp_path: Path) -> None:
    """A header without a policy comes first, then events whose numbers rise by one."""
    path = saved(tmp_path / "c.db", lambda saver: loop(looping()).compile(saver).invoke(ASK, THREAD))
    header, *rest = events(path)
    assert isinstance(header, Header)
    assert (header.format, header.policy, header.enforced) == ("loopscope/1", None, False)
    assert header.producer == "langgraph-sqlite"
    assert header.created is not None
    assert header.created.endswith("+00:00")
    assert [getattr(event, "seq", None) for event in rest] == list(range(1, len(rest) + 1))


def test_threads_follow_each_other(tmp_path: Path) -> None:
    """Threads are told one after the other, in the order in which they began, and share nothing."""

    def several(saver: Any) -> None:
        for thread in ("b", "a"):
            loop(looping()).compile(saver).invoke(ASK, {"configurable": {"thread_id": thread}})

    path = saved(tmp_path / "c.db", several)
    threads = [event.thread_id for event in events(path) if isinstance(event, Batch)]
    assert threads == ["b", "b", "b", "a", "a", "a"]


def test_what_the_model_tells_is_kept(tmp_path: Path) -> None:
    """Usage, model, text, message id and the node that ran stand in the batch."""
    said = AIMessage(
        "Let me look.",
        id="m1",
        tool_calls=[{"name": "search", "args": {"query": "a"}, "id": "c1"}],
        usage_metadata={"input_tokens": 7, "output_tokens": 3, "total_tokens": 10},
        response_metadata={"model_name": "scripted-1", "cost": 0.25},
    )
    path = saved(tmp_path / "c.db", lambda saver: loop([said, answer()]).compile(saver).invoke(ASK, THREAD))
    batch = batches(path)[0]
    assert (batch.message_id, batch.node, batch.text, batch.model) == ("m1", "agent", "Let me look.", "scripted-1")
    assert batch.usage is not None
    assert (batch.usage.input_tokens, batch.usage.output_tokens, batch.usage.cost_usd) == (7, 3, 0.25)
    assert [(call.id, call.name, call.args) for call in batch.calls] == [("c1", "search", {"query": "a"})]


def test_parallel_calls_are_one_batch(tmp_path: Path) -> None:
    """All calls of one message are one batch, whatever tasks run them."""
    path = saved(
        tmp_path / "c.db", lambda saver: loop([calls("a", "b", "c"), answer()]).compile(saver).invoke(ASK, THREAD)
    )
    assert told(path)[1] == "r1 calls search(a)+search(b)+search(c)"
    assert [result.content for result in results(path)] == ["found a", "found b", "found c"]


def test_long_results_keep_their_size_and_digest(tmp_path: Path) -> None:
    """A result is cut to its preview, and measured and hashed whole."""
    query = "é" * 5_000
    path = saved(tmp_path / "c.db", lambda saver: loop([calls(query), answer()]).compile(saver).invoke(ASK, THREAD))
    (result,) = results(path)
    assert len(result.content) == 2_000
    assert result.size == len(f"found {query}".encode())
    assert result.digest is not None
    assert len(result.digest) == 16


def test_an_agent_of_langchain_is_named(tmp_path: Path) -> None:
    """What `create_agent` calls itself is the agent's name; its model node is the batch's."""
    model = Model(messages=iter([calls("a"), answer()]))
    path = saved(
        tmp_path / "c.db",
        lambda saver: create_agent(model, [search], checkpointer=saver, name="boss").invoke(ASK, THREAD),
    )
    assert next(event.agent for event in events(path) if isinstance(event, RunStart)) == "boss"
    assert [batch.node for batch in batches(path)] == ["model", "model"]


def test_messages_that_were_removed_still_happened(tmp_path: Path) -> None:
    """A summary that takes messages out of the state does not take them out of the run."""

    def forget(state: Any) -> Any:
        return {"messages": [RemoveMessage(message.id) for message in state["messages"][1:]]}

    graph = loop([calls("a"), answer()])
    graph.add_node("forget", forget)
    graph.add_edge("forget", END)
    graph.add_conditional_edges("tools", lambda _: "forget", ["forget"])
    path = saved(tmp_path / "c.db", lambda saver: graph.compile(saver).invoke(ASK, THREAD))
    assert "r1 calls search(a)" in told(path)
    assert "r1 ok found a" in told(path)


def test_a_history_that_is_handed_in_did_not_happen_here(tmp_path: Path) -> None:
    """Calls and answers of an earlier conversation, passed as input, are no batches of this run."""
    old = calls("old")
    handed = [
        HumanMessage("first"),
        old,
        ToolMessage("found old", tool_call_id=old.tool_calls[0]["id"]),
        AIMessage("older answer"),
        ("assistant", "in short"),
        ("user", "now"),
    ]
    path = saved(
        tmp_path / "c.db",
        lambda saver: loop([calls("a"), answer()]).compile(saver).invoke({"messages": handed}, THREAD),
    )
    assert told(path) == ["r1 start", "r1 calls search(a)", "r1 ok found a", "r1 says done", "r1 end completed"]


def test_an_answer_that_is_handed_in_is_a_result(tmp_path: Path) -> None:
    """A caller that runs the tools itself brings their results as its next input."""

    def by_hand(saver: Any) -> None:
        asked = calls("a")
        graph = loop([asked, answer()], tools=lambda _: {}).compile(saver, interrupt_before=["tools"])
        graph.invoke(ASK, THREAD)
        graph.invoke({"messages": [ToolMessage("by hand", tool_call_id=asked.tool_calls[0]["id"])]}, THREAD)

    assert "r2 ok by hand" in told(saved(tmp_path / "c.db", by_hand))


class Grown(TypedDict):
    """A state whose lists of plain dicts have no ids."""

    messages: Annotated[list[Any], operator.add]
    log: list[Any]


def _plain_turn(state: Any) -> dict[str, Any]:
    function = {"name": "look", "arguments": '{"query": "q"}'}
    return {
        "messages": [
            {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": "c", "content": "nothing"},
        ],
        "log": [*(state.get("log") or []), {"tool": "look", "args": {"query": "q"}, "result": "nothing"}],
    }


def _plain(saver: Any, turns: int = 3) -> None:
    graph = graph_of(Grown)
    graph.add_node("turn", _plain_turn)
    graph.add_edge(START, "turn")
    graph.add_conditional_edges("turn", lambda state: "turn" if len(state["log"]) < turns else END, ["turn", END])
    graph.compile(saver).invoke({"messages": [{"role": "user", "content": "hi"}], "log": []}, THREAD)


def test_equal_messages_without_ids_are_told_as_often_as_they_came(tmp_path: Path) -> None:
    """In a list of plain dicts only the count tells a repetition from a copy."""
    path = saved(tmp_path / "c.db", _plain)
    turn = ['r1 calls look({"query": "q"})', "r1 ok nothing"]
    assert told(path) == ["r1 start", *turn * 3, "r1 end completed"]


def test_a_log_of_calls_is_read_where_it_is_named(tmp_path: Path) -> None:
    """With `--channel`, entries of a program's own log are batches, and their outcomes results."""
    path = saved(tmp_path / "c.db", _plain)
    assert told(path, "log") == ["r1 start", *["r1 calls look(q)", "r1 ok nothing"] * 3, "r1 end completed"]


def _fold(state: Any, writes: Sequence[Any]) -> Any:
    for write in writes:
        state = add_messages(state, write)
    return state


class Changes(TypedDict):
    """A state that stores only what changes."""

    messages: Annotated[list[Any], DeltaChannel(_fold, snapshot_frequency=4)]


@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_a_delta_channel_is_read_from_what_was_written(tmp_path: Path, durability: Any) -> None:
    """Its checkpoints mostly hold nothing, now and then all; either way each message is told once."""
    script = [calls("a"), calls("b"), calls("c"), calls("d"), calls("e"), answer()]
    path = saved(
        tmp_path / "c.db",
        lambda saver: loop(script, state=Changes).compile(saver).invoke(ASK, THREAD, durability=durability),
    )
    problems: list[tuple[int, str]] = []
    turns = [line for query in "abcde" for line in (f"r1 calls search({query})", f"r1 ok found {query}")]
    assert told(path, problems=problems) == ["r1 start", *turns, "r1 says done", "r1 end completed"]
    assert problems == []


def test_messages_get_their_ids_late(tmp_path: Path) -> None:
    """A message that was written without an id and snapshot with one is the same message."""

    def unnamed(state: Any) -> Any:
        key = state["messages"][-1].tool_calls[0]["id"]
        return {"messages": [ToolMessage("by hand", tool_call_id=key)]}

    script = [calls("a"), calls("b"), calls("c"), answer()]
    path = saved(
        tmp_path / "c.db",
        lambda saver: loop(script, state=Changes, tools=unnamed).compile(saver).invoke(ASK, THREAD),
    )
    assert [result.content for result in results(path)] == ["by hand"] * 3


def test_a_list_that_is_overwritten_is_read_too(tmp_path: Path) -> None:
    """`Overwrite` replaces a delta channel's list; what it holds for the first time is new."""

    def replaced(state: Any) -> Any:
        asked = state["messages"][-1]
        output = ToolMessage("by hand", id=f"{uuid4()}", tool_call_id=asked.tool_calls[0]["id"])
        return {"messages": Overwrite([asked, output])}

    path = saved(
        tmp_path / "c.db",
        lambda saver: loop([calls("a"), answer()], state=Changes, tools=replaced).compile(saver).invoke(ASK, THREAD),
    )
    assert told(path)[1:3] == ["r1 calls search(a)", "r1 ok by hand"]


def test_the_functional_api_is_read_from_its_tasks(tmp_path: Path) -> None:
    """A graph of one function has no step between its model calls, but what its tasks gave back is stored."""
    script = iter([calls("a"), calls("b"), answer()])

    @task
    def think() -> AIMessage:
        return next(script)

    @task
    def act(asked: Any) -> ToolMessage:
        return ToolMessage(f"found {asked['args']['query']}", tool_call_id=asked["id"])

    def run(saver: Any) -> None:
        @entrypoint(checkpointer=saver)
        def agent(question: str) -> str:
            said = think().result()
            while said.tool_calls:
                for asked in said.tool_calls:
                    act(asked).result()
                said = think().result()
            return f"{question} {said.content}"

        agent.invoke("hi", THREAD)

    assert told(saved(tmp_path / "c.db", run)) == [
        "r1 start",
        "r1 calls search(a)",
        "r1 ok found a",
        "r1 calls search(b)",
        "r1 ok found b",
        "r1 says done",
        "r1 end completed",
    ]


def test_a_graph_without_messages_has_runs_and_no_batches(tmp_path: Path) -> None:
    """Nothing is made up for a state without messages, and the reader is told what to try."""

    class Numbers(TypedDict):
        total: int

    graph = graph_of(Numbers)
    graph.add_node("add", lambda state: {"total": state["total"] + 1})
    graph.add_edge(START, "add")
    path = saved(tmp_path / "c.db", lambda saver: graph.compile(saver).invoke({"total": 1}, THREAD))
    problems: list[tuple[int, str]] = []
    assert told(path, problems=problems) == ["r1 start", "r1 end completed"]
    assert problems == [(0, "no channel holds messages; name one of total with --channel if one of them does")]


def test_concurrent_threads_do_not_mix(tmp_path: Path) -> None:
    """Rows of threads that ran at the same time stand between each other in the file, and are told apart."""

    async def run() -> None:
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.db")) as saver:
            await asyncio.gather(
                *[
                    loop([calls(name), calls(name), answer()])
                    .compile(saver)
                    .ainvoke(ASK, {"configurable": {"thread_id": name}})
                    for name in ("a", "b", "c")
                ]
            )

    asyncio.run(run())
    by_thread: dict[str | None, list[str]] = {}
    for batch in batches(tmp_path / "c.db"):
        by_thread.setdefault(batch.thread_id, []).extend(call.args["query"] for call in batch.calls)
    assert by_thread == {"a": ["a", "a"], "b": ["b", "b"], "c": ["c", "c"]}


def test_a_message_in_two_channels_is_told_once(tmp_path: Path) -> None:
    """All channels with messages are read, and an id counts once over all of them; one can be asked for alone."""

    class Two(MessagesState):
        notes: Annotated[list[Any], add_messages]

    def think(_: Any) -> Any:
        said, aside = calls("a"), answer("aside")
        return {"messages": [said], "notes": [said, aside]}

    graph = graph_of(Two)
    graph.add_node("think", think)
    graph.add_edge(START, "think")
    path = saved(tmp_path / "c.db", lambda saver: graph.compile(saver).invoke(ASK, THREAD))
    assert told(path)[1:3] == ["r1 calls search(a)", "r1 says aside"]
    assert told(path, "messages")[1:-1] == ["r1 calls search(a)"]


def test_a_checkpoint_gives_the_verdicts_that_the_middleware_gave(tmp_path: Path) -> None:
    """What was decided live and what is decided of the same runs in the checkpoints is the same, to the stop."""
    live: list[tuple[str, int, str]] = []

    def note(event: Event) -> None:
        if isinstance(event, DecisionMade):
            live.append((event.hash, event.hash_count, event.action))

    def run(saver: Any) -> None:
        script = [*[calls("a") for _ in range(3)], answer(), *[calls("a") for _ in range(5)]]
        model = Model(messages=iter(script))
        agent = create_agent(model, [search], checkpointer=saver, middleware=[LoopDetectionMiddleware()])
        agent.invoke(ASK, THREAD)
        agent.invoke(ASK, THREAD)

    unsubscribe = bus.subscribe(note)
    try:
        path = saved(tmp_path / "c.db", run)
    finally:
        unsubscribe()
    detector = LoopDetector()
    found = [decision for event in events(path) for decision in detector.observe(event)]
    assert [(decision.hash, decision.hash_count, decision.action) for decision in found] == live
    assert [action for _, _, action in live] == ["pass", "pass", "warn", "pass", "pass", "warn", "pass", "hard_stop"]
    assert told(path)[-1] == "r2 end loop_capped"
