"""The tap while nobody watches: it does as little as it can, and its engine sees the same as if somebody did."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Iterator
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import tools_condition
from langgraph.types import Command, RetryPolicy, Send

from loopscope import Policy, tap
from loopscope.recording.bus import bus
from tests.adapters.scripted import DONE, ScriptedModel, ask, bash, turn
from tests.adapters.tapped import asking, by_hand, chained, chained_loop, hand_made

Tick = Callable[[], None]
"""Called by a graph at every turn: at one of them somebody begins to watch."""
_MANY = 70
"""Turns of a run that is accounted in more than one go."""


def model_of(*commands: str, tick: Tick) -> ScriptedModel:
    """A model that asks for these commands, one at a turn, and is done."""
    left = iter(commands)

    def script(_: Any) -> Any:
        tick()
        command = next(left, None)
        return DONE if command is None else turn(bash(command))

    return ScriptedModel(script=script)


def messages_of(*commands: str, tick: Tick) -> Iterator[AIMessage]:
    """As `model_of`, made by hand."""
    for number, command in enumerate(commands):
        tick()
        yield hand_made(f"c{number}", command)
    yield AIMessage("done")


def looping_by_hand(tick: Tick) -> Any:
    """A node that makes its messages itself, with ids and without."""
    commands = [f"ls {number % 3}" for number in range(_MANY)]
    left = messages_of(*commands, tick=tick)
    return chained_loop(lambda _: {"messages": [next(left)]})


def looping_with_a_model(tick: Tick) -> Any:
    """A node that asks a model."""
    return asking(model_of(*[f"ls {number % 3}" for number in range(_MANY)], tick=tick))


def asked_within_a_chain(tick: Tick) -> Any:
    """The model is a part of something that the node calls."""
    model = RunnableLambda(lambda messages: messages) | model_of("a", "b", "b", tick=tick)
    return chained_loop(lambda state: {"messages": [model.invoke(state["messages"])]})


def an_agent_within_a_tool(tick: Tick) -> Any:
    """Which has tools of its own, and is asked twice."""

    @tool
    def research(topic: str) -> str:
        """Look it up."""
        inner = asking(model_of(f"find {topic}", f"read {topic}", tick=tick), name="inner")
        return str(inner.invoke(ask())["messages"][-1].content)

    calls = [turn(("research", {"topic": "x"})), turn(("research", {"topic": "y"}), ("research", {"topic": "z"})), DONE]
    return asking(calls, research)


def a_model_within_a_tool(tick: Tick) -> Any:
    """Its answer is one of the node that runs the tool."""
    model = model_of("p", "q", "q", tick=tick)

    @tool
    def think(about: str) -> str:
        """Think."""
        return str(model.invoke([HumanMessage(about)]).content)

    return asking([turn(("think", {"about": "x"})), turn(("think", {"about": "y"})), DONE], think)


def a_chain_within_a_tool(tick: Tick) -> Any:
    """The model is asked by something that the tool calls."""

    def asked(about: str) -> list[Any]:
        return [HumanMessage(about)]

    chain: Any = RunnableLambda(asked) | model_of("p", "q", tick=tick)

    @tool
    def think(about: str) -> str:
        """Think."""
        return str(chain.invoke(about).content)

    return asking([turn(("think", {"about": "x"})), turn(("think", {"about": "y"})), DONE], think)


def a_model_at_an_edge(tick: Tick) -> Any:
    """A router asks where to go on."""
    router = model_of("again", "again", tick=tick)

    def route(state: Any) -> str:
        return "said" if router.invoke(state["messages"]).tool_calls else END

    def said(state: Any) -> Any:
        return {"messages": [AIMessage("", tool_calls=[
            {"name": "bash", "args": {"command": "x"}, "id": f"c{len(state['messages'])}"}
        ])]}  # fmt: skip

    graph: Any = StateGraph(MessagesState)
    graph.add_node(said)
    graph.add_edge(START, "said")
    graph.add_conditional_edges("said", route, ["said", END])
    return graph.compile()


def an_agent_within_a_node(tick: Tick) -> Any:
    """Its messages are returned by the node too, and again by a graph around it."""
    inner = by_hand(list(messages_of("a", "a", "b", tick=tick)), name="inner")

    def node(state: Any) -> Any:
        return {"messages": inner.invoke(state)["messages"]}

    def more(state: Any) -> Any:
        tick()
        return {"messages": [*state["messages"], hand_made("m", "more")]}

    graph: Any = StateGraph(MessagesState)
    graph.add_node("between", chained(node, name="between"))
    graph.add_node(more)
    graph.add_edge(START, "between")
    graph.add_edge("between", "more")
    return graph.compile()


def workers_at_once(tick: Tick) -> Any:
    """`Send`, and updates by `Command`, a hundred at a time."""

    def spread(_: Any) -> list[Send]:
        return [Send("worker", {"number": number}) for number in range(100)]

    def worker(state: Any) -> Any:
        tick()
        return Command(update={"messages": [hand_made(f"c{state['number']}", "work")]})

    graph: Any = StateGraph(MessagesState)
    graph.add_node(worker)
    graph.add_conditional_edges(START, spread, ["worker"])
    return graph.compile()


def what_was_there_before(tick: Tick) -> Any:
    """Messages that are passed on, returned twice, rewritten, copied from a model's, or sole and given to the run."""
    model = model_of("a", "b", "c", tick=tick)
    once = hand_made("once", "once", id="once")

    def passed(state: Any) -> Any:
        return {"messages": [state["messages"][1]]}

    def new(_: Any) -> Any:
        return {"messages": [once]}

    def twice(_: Any) -> Any:
        return {"messages": [once]}

    def rewritten(_: Any) -> Any:
        return {"messages": [hand_made("once", "changed", id="once")]}

    def copied(state: Any) -> Any:
        answer = model.invoke(state["messages"])
        return {"messages": [AIMessage(answer.content, tool_calls=answer.tool_calls)]}

    def edited(state: Any) -> Any:
        answer = model.invoke(state["messages"])
        return {"messages": [hand_made("e", "edited", id=answer.id)]}

    def several(state: Any) -> Any:
        answer = model.invoke(state["messages"])
        return {"messages": [*state["messages"], answer, hand_made("s1", "s"), hand_made("s2", "s")]}

    def nameless(_: Any) -> Any:
        tick()
        return {"messages": [hand_made("n", "nameless")]}

    def inserted(state: Any) -> Any:
        return {"messages": [*state["messages"][:2], hand_made("i", "inserted")]}

    return chained(passed, new, twice, rewritten, copied, edited, several, nameless, inserted)


class Plain(TypedDict):
    """A state whose messages get no ids."""

    messages: Annotated[list[Any], operator.add]


def without_ids(tick: Tick) -> Any:
    """The same message returned twice, and then another like it."""
    once = hand_made("once", "once")

    def one(_: Any) -> Any:
        return {"messages": [once]}

    def two(_: Any) -> Any:
        tick()
        return {"messages": [once]}

    def three(_: Any) -> Any:
        tick()
        return {"messages": [hand_made("once", "once")]}

    return chained(one, two, three, state=Plain)


def tried_again(tick: Tick) -> Any:
    """A node that fails after its model has answered, and asks for the same when it is executed again."""
    failed: list[int] = []

    def agent(state: Any) -> Any:
        tick()
        number = len(state["messages"])
        answer = ScriptedModel(script=[turn(bash(f"{number}")) if number < 5 else DONE]).invoke(state["messages"])
        if number not in failed:
            failed.append(number)
            raise ConnectionError("once")
        return {"messages": [answer]}

    return chained_loop(agent, retry=RetryPolicy(initial_interval=0, jitter=False))


def the_functional_api(tick: Tick) -> Any:
    """Tasks of an entry point."""
    model = model_of("a", "a", "b", tick=tick)

    @task
    def call_model(messages: list[Any]) -> Any:
        return model.invoke(messages)

    @entrypoint()
    def loop(state: dict[str, Any]) -> Any:
        messages = list(state["messages"])
        answer = call_model(messages).result()
        while answer.tool_calls:
            messages += [answer, *[ToolMessage("ran", tool_call_id=call["id"]) for call in answer.tool_calls]]
            answer = call_model(messages).result()
        return {"messages": [*messages, answer]}

    return loop


KINDS: dict[Callable[[Tick], Any], list[int]] = {
    looping_by_hand: [70], looping_with_a_model: [70], asked_within_a_chain: [3], an_agent_within_a_tool: [2, 2, 2, 2],
    a_model_within_a_tool: [4], a_chain_within_a_tool: [4], a_model_at_an_edge: [5], an_agent_within_a_node: [1, 3],
    workers_at_once: [100], what_was_there_before: [8], without_ids: [2], tried_again: [2], the_functional_api: [3],
}  # fmt: skip
"""The batches of each of its scopes."""


def counted(kind: Callable[[Tick], Any], from_turn: int | None, *, asynchronous: bool) -> list[tuple[int, list[str]]]:
    """What the engine has seen of a run, batches and hashes by scope; somebody watches from that turn on, or nobody."""
    turns: list[int] = []
    leave: list[Callable[[], None]] = []

    def tick() -> None:
        turns.append(1)
        if len(turns) == from_turn:
            leave.append(bus.subscribe(lambda _: None))

    if from_turn == 0:
        leave.append(bus.subscribe(lambda _: None))
    handler, graph = tap(policy=Policy(window_size=1_000)), kind(tick)
    given = {"messages": [HumanMessage("go"), hand_made("given", "given", id="given")]}
    config = {"callbacks": [handler], "recursion_limit": 500}
    if asynchronous:
        asyncio.run(graph.ainvoke(given, config))
    else:
        graph.invoke(given, config)
    for each in leave:
        each()
    assert not handler._runs, "every run that was noted is forgotten once it is over"
    assert turns
    assert len(leave) == (from_turn is not None)
    scopes = handler._watcher.detector.scopes.values()
    return sorted((scope.spent.batches, sorted(scope.hashes.items)) for scope in scopes)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_engine_sees_the_same(kind: Callable[[Tick], Any], asynchronous: bool) -> None:
    """Whether somebody watches from the beginning, from some turn on, or never."""
    seen = counted(kind, 0, asynchronous=asynchronous)
    assert [batches for batches, _ in seen] == KINDS[kind]
    assert counted(kind, None, asynchronous=asynchronous) == seen
    assert counted(kind, 1, asynchronous=asynchronous) == seen
    assert counted(kind, 2, asynchronous=asynchronous) == seen


def test_calls_are_taken_as_they_were_made() -> None:
    """A program that fills in arguments of its own before the tool runs changes nothing of what the model asked for."""

    def tools(state: Any) -> Any:
        state["messages"][-1].tool_calls[0]["args"]["command"] = "changed"
        return {"messages": [ToolMessage("ran", tool_call_id=state["messages"][-1].tool_calls[0]["id"])]}

    handler, model = tap(), ScriptedModel(script=[turn(bash("one")), turn(bash("two")), DONE])
    graph: Any = StateGraph(MessagesState)
    graph.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node(tools)
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    graph.compile().invoke(ask(), {"callbacks": [handler]})
    (scope,) = handler._watcher.detector.scopes.values()
    assert len(set(scope.hashes.items)) == 2


def test_tools_are_no_business_of_it() -> None:
    """LangChain need not even call it for them, until somebody watches."""
    handler = tap()
    ignored = [handler.ignore_agent]
    leave = bus.subscribe(lambda _: None)
    ignored.append(handler.ignore_agent)
    leave()
    assert [*ignored, handler.ignore_agent] == [True, False, True]


class Odd(list[Any]):
    """A channel of a state that cannot be read."""

    def __len__(self) -> int:
        raise RuntimeError("odd")


def test_what_cannot_be_read_costs_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    """It is said once in the log; the batches around it are accounted."""

    class State(MessagesState, total=False):
        odd: Any

    def one(_: Any) -> Any:
        return {"messages": [hand_made("one", "one", id="one")]}

    def two(_: Any) -> Any:
        return {"odd": Odd()}

    def three(_: Any) -> Any:
        return {"messages": [hand_made("three", "three", id="three")]}

    def four(_: Any) -> Any:
        return {"odd": None}

    def five(_: Any) -> Any:
        return {"messages": [hand_made("five", "five", id="five")]}

    handler = tap()
    chained(one, two, three, four, five, state=State).invoke(ask(), {"callbacks": [handler]})
    (scope,) = handler._watcher.detector.scopes.values()
    assert scope.spent.batches == 2
    assert [record.name for record in caplog.records] == ["loopscope"]
