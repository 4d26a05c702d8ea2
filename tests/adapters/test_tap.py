"""What the tap tells of graphs that know nothing of it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import tools_condition
from langgraph.types import Command, Overwrite, Send
from pydantic import BaseModel

from loopscope import tap
from loopscope.engine.events import Batch, DecisionMade, Event, Result, RunEnd, RunStart, Warned
from loopscope.engine.policy import Policy
from loopscope.recording.bus import bus
from tests.adapters.scripted import DONE, ScriptedModel, ask, bash, on, turn
from tests.adapters.tapped import asking, by_hand, chained, chained_loop, hand_made, told

Kinds = Callable[..., Any]


def ids_of(events: list[Any]) -> list[str | None]:
    """The ids of the messages that were told, in order."""
    return [event.message_id for event in events if isinstance(event, Batch)]


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
async def test_a_graph_that_asks_a_model(way: str, events: list[Any], of: Kinds) -> None:
    """Every answer once, when it is given, with what the provider told; every result; nothing reaches the model."""
    model = ScriptedModel(script=[turn(bash(), text="again")] * 5 + [DONE])
    graph, config = asking(model), {"callbacks": [tap()], **on("t")}
    if way == "invoke":
        end = await asyncio.to_thread(graph.invoke, ask(), config)
    elif way == "stream":
        end = (await asyncio.to_thread(lambda: list(graph.stream(ask(), config, stream_mode="values"))))[-1]
    elif way == "ainvoke":
        end = await graph.ainvoke(ask(), config)
    else:
        end = [each async for each in graph.astream(ask(), config, stream_mode="values")][-1]
    said = [message for message in end["messages"] if isinstance(message, AIMessage)]
    assert ids_of(events) == [message.id for message in said]
    assert len(said) == 6
    counts = [(event.action, event.hash_count) for event in of(events, DecisionMade)]
    assert counts == [("pass", 1), ("pass", 2), ("warn", 3), ("pass", 4), ("hard_stop", 5)]
    assert of(events, Warned) == []
    assert not any(message.name == "loop_warning" for request in model.requests for message in request)
    batch, result = of(events, Batch)[0], of(events, Result)[0]
    assert (batch.node, batch.text, batch.model, batch.usage.input_tokens) == ("agent", "again", "scripted-1", 100)
    assert (result.call_id, result.name, result.status) == (batch.calls[0].id, "bash", "ok")
    assert result.content == "ran git status"
    assert 0 <= result.duration_s < 5
    (start,), (ended,) = of(events, RunStart), of(events, RunEnd)
    assert {node.id for node in start.graph.nodes} == {"__start__", "agent", "tools", "__end__"}
    assert ended.status == "completed"
    assert {event.thread_id for event in events} == {"t"}


def test_a_graph_that_makes_its_messages_itself(events: list[Any]) -> None:
    """They have no ids when they are returned, and are told of once all the same."""
    by_hand([hand_made("c1"), hand_made("c2"), AIMessage("done")]).invoke(ask(), {"callbacks": [tap()]})
    assert told(events) == [
        ("a", "starts", None, "-"),
        ("a", "agent", "c1"), ("a", "pass", 1), ("a", "ok", "c1"),
        ("a", "agent", "c2"), ("a", "pass", 2), ("a", "ok", "c2"),
        ("a", "agent"),
        ("a", "ends", "completed"),
    ]  # fmt: skip


def test_constant_call_ids_are_no_reason_to_miss_a_batch(events: list[Any]) -> None:
    """Hand-written agents often use one id for all of their calls."""
    by_hand([hand_made(), hand_made(), hand_made(), AIMessage("")]).invoke(ask(), {"callbacks": [tap()]})
    assert [entry for entry in told(events) if entry[1] in {"pass", "warn"}] == [
        ("a", "pass", 1), ("a", "pass", 2), ("a", "warn", 3),
    ]  # fmt: skip


class Model(BaseModel):
    """A state that is checked."""

    messages: list[Any] = []


@dataclass
class Data:
    """A state that is plain."""

    messages: list[Any] = field(default_factory=list)


OPENAI = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}],
}


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ({"messages": hand_made()}, ["c1"]),
        ({"messages": [hand_made("a"), hand_made("b")]}, ["a", "b"]),
        ({"messages": (hand_made(),), "other": [1, 2], "draft": hand_made("d")}, ["c1", "d"]),
        ({"messages": Overwrite([hand_made()])}, ["c1"]),
        ({"messages": [OPENAI]}, ["c1"]),
        ({"messages": [("assistant", "said")]}, [None]),
        ({"messages": [("user", "asked"), {"role": "user", "content": "asked"}, HumanMessage("x")]}, []),
        ({"messages": [{"role": "assistant", "content": {"odd": object()}}]}, []),
        ({"found": [{"type": "tool", "content": "no message"}], "pairs": [("a", 1)], "deep": {"ai": {}}}, []),
        (Command(update={"messages": [hand_made()]}), ["c1"]),
        (Command(update=[("messages", [hand_made()]), ("messages", [hand_made("b")])]), ["c1", "b"]),
        ([Command(update={"messages": [hand_made()]}), {"messages": [hand_made("b")]}], ["c1", "b"]),
        (Command(goto=END), []),
        (Model(messages=[hand_made()]), ["c1"]),
        (Data([hand_made()]), ["c1"]),
        (
            {
                "messages": [
                    AIMessageChunk(content="", tool_call_chunks=[{"name": "x", "args": "{}", "id": "k", "index": 0}])
                ]
            },
            ["k"],
        ),
        (None, []),
    ],
)
def test_messages_are_found_in_whatever_a_node_returns(output: Any, expected: list[str], events: list[Any]) -> None:
    """Mappings, models, dataclasses, commands, lists of them; as objects and as the plain data that reducers take."""

    class State(MessagesState, total=False):
        other: Any
        draft: Any
        found: Any
        pairs: Any
        deep: Any

    def node(state: Any) -> Any:  # noqa: ARG001
        return output

    node.__annotations__ = {}
    # LangGraph's own reducer refuses some of it.
    with contextlib.suppress(TypeError, ValueError, RuntimeError):
        chained(node, state=State).invoke(ask(), {"callbacks": [tap()]})
    found = [event.calls[0].id if event.calls else None for event in events if isinstance(event, Batch)]
    assert found == expected


def test_what_a_node_was_given_is_nothing_new(events: list[Any], of: Kinds) -> None:
    """Neither in the input of a run, nor returned whole by every node, nor rewritten under the same id."""

    def whole(state: Any) -> Any:
        return {"messages": [*state.messages, AIMessage("one", id="new")]}

    def again(state: Any) -> Any:
        return {"messages": [*state.messages, AIMessage("changed", id="new")]}

    before = [HumanMessage("x"), hand_made(id="old"), ToolMessage("y", tool_call_id="c1"), AIMessage("z")]
    chained(whole, again, state=Data).invoke({"messages": before}, {"callbacks": [tap()]})
    assert [(event.message_id, event.text) for event in of(events, Batch)] == [("new", "one")]
    assert of(events, Result) == []


def test_a_model_whose_answer_is_written_down_anew(events: list[Any], of: Kinds) -> None:
    """A node that copies the answer into a message of its own says nothing new; one that adds a word does."""
    model = ScriptedModel(script=[turn(bash(), text="I"), turn(text="said"), turn(text="so")])

    def copied(state: Any) -> Any:
        answer = model.invoke(state["messages"])
        return {"messages": [AIMessage(answer.content, tool_calls=answer.tool_calls, name="me")]}

    def quoted(state: Any) -> Any:
        return {"messages": [AIMessage(model.invoke(state["messages"]).content)]}

    def added(state: Any) -> Any:
        return {"messages": [AIMessage(f"{model.invoke(state['messages']).content}!")]}

    chained(copied, quoted, added).invoke(ask(), {"callbacks": [tap()]})
    assert [event.text for event in of(events, Batch)] == ["I", "said", "so", "so!"]


def test_workers_at_once(events: list[Any], of: Kinds) -> None:
    """`Send`: many nodes of one name at a time belong to one scope; nothing of them is lost or doubled."""

    def spread(state: Any) -> list[Send]:  # noqa: ARG001
        return [Send("worker", {"number": number}) for number in range(20)]

    def worker(state: Any) -> Any:
        return Command(update={"messages": [hand_made(f"c{state['number']}")]})

    graph: Any = StateGraph(MessagesState)
    graph.add_node("worker", worker)
    graph.add_conditional_edges(START, spread, ["worker"])
    graph.compile().invoke(ask(), {"callbacks": [tap()]})
    assert sorted(event.hash_count for event in of(events, DecisionMade)) == sorted(range(1, 21))
    assert {event.calls[0].id for event in of(events, Batch)} == {f"c{number}" for number in range(20)}
    assert len({event.run_id for event in events}) == 1


def test_a_sub_graph_is_a_scope_of_its_own(events: list[Any]) -> None:
    """As a node and called by one, in graphs in between that say nothing; what it said is not told again outside."""
    lowest = by_hand([hand_made("x"), AIMessage("y")], name="lowest")

    def between(state: Any) -> Any:
        return {"messages": lowest.invoke(state)["messages"]}

    def outer(state: Any) -> Any:  # noqa: ARG001
        return {"messages": [AIMessage("and out")]}

    graph: Any = StateGraph(MessagesState)
    graph.add_node("middle", chained(between, name="middle"))
    graph.add_node(outer)
    graph.add_edge(START, "middle")
    graph.add_edge("middle", "outer")
    graph.compile().invoke(ask(), {"callbacks": [tap()]})
    assert told(events) == [
        ("a", "starts", None, "-"),
        ("b", "starts", "lowest", "a"), ("b", "agent", "x"), ("b", "pass", 1), ("b", "ok", "x"), ("b", "agent"),
        ("b", "ends", "completed"),
        ("a", "outer"),
        ("a", "ends", "completed"),
    ]  # fmt: skip


def test_the_functional_api(events: list[Any], of: Kinds) -> None:
    """Tasks of an entry point are its own loop, not agents that it delegates to."""
    model = ScriptedModel(script=[turn(bash()), DONE])

    @task
    def call_model(messages: list[Any]) -> Any:
        return model.invoke(messages)

    @task
    def call_tool(call: dict[str, Any]) -> Any:
        return ToolMessage("ran", tool_call_id=call["id"])

    @entrypoint(checkpointer=InMemorySaver())
    def loop(messages: list[Any]) -> Any:
        answer = call_model(messages).result()
        while answer.tool_calls:
            messages = [*messages, answer, *[call_tool(call).result() for call in answer.tool_calls]]
            answer = call_model(messages).result()
        return answer

    loop.invoke([HumanMessage("go")], cast(Any, {"callbacks": [tap()], **on("t")}))
    assert len({event.run_id for event in events}) == 1
    assert [event.node for event in of(events, Batch)] == ["call_model", "call_model"]
    assert [event.content for event in of(events, Result)] == ["ran"]


def test_the_limits_are_the_users(events: list[Any], of: Kinds) -> None:
    """A policy that is given decides, also with layers that look at results."""
    policy = Policy.load("bounded").with_(hard_limit=3, warn_threshold=2)
    asking([turn(bash())] * 4 + [DONE]).invoke(ask(), {"callbacks": [tap(policy=policy)]})
    actions = [(event.action, event.layer) for event in of(events, DecisionMade) if event.at == "batch"]
    assert actions[:3] == [("pass", None), ("warn", "identical_call_set"), ("hard_stop", "identical_call_set")]
    assert any(event.at == "result" for event in of(events, DecisionMade))


def test_nobody_watches_and_then_somebody_does(of: Kinds) -> None:
    """What ran unseen was counted: whoever looks later sees the loop where it stands, from the next batch on."""
    seen: list[Event] = []
    leave: list[Callable[[], None]] = []
    turns = iter(range(1, 7))

    def agent(state: Any) -> Any:  # noqa: ARG001
        number = next(turns)
        if number == 4:
            leave.append(bus.subscribe(seen.append))
        return {"messages": [hand_made(f"c{number}") if number < 6 else AIMessage("")]}

    chained_loop(agent).invoke(ask(), {"callbacks": [tap()]})
    leave[0]()
    assert [(event.action, event.hash_count) for event in of(seen, DecisionMade)] == [("pass", 4), ("hard_stop", 5)]
    assert [type(event) for event in seen[:2]] == [RunStart, Batch]
    assert isinstance(seen[-1], RunEnd)


def test_what_ran_unseen_is_in_the_engine_when_it_is_asked() -> None:
    """Although it is accounted some at a time; with the arguments as they were when they were told."""
    handler = tap()
    args = {"command": "ls"}

    def agent(state: Any) -> Any:
        number = len(state["messages"])
        if number == 9:
            (scope,) = handler._watcher.detector.scopes.values()
            assert scope.spent.batches == 4
            assert list(scope.hashes.counts.values()) == [4]
        message = hand_made(f"c{number}")
        message.tool_calls[0]["args"] = args
        return {"messages": [message if number < 11 else AIMessage("")]}

    def tools(state: Any) -> Any:
        call = state["messages"][-1].tool_calls[0]
        call["args"]["changed"] = True
        answer = ToolMessage("x", tool_call_id=call["id"])
        del call["args"]["changed"]
        return {"messages": [answer]}

    graph: Any = StateGraph(MessagesState)
    graph.add_node(agent)
    graph.add_node(tools)
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    graph.compile().invoke(ask(), {"callbacks": [handler]})
