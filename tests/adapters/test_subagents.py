from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph

from loopscope import LoopDetectionMiddleware
from loopscope.engine.events import Batch, DecisionMade, Event, PolicySet, RunEnd, RunStart
from tests.adapters.scripted import DONE, ScriptedModel, Turn, agent, ask, bash, on, turn

Kinds = Callable[..., Any]


def by_scope(events: list[Event]) -> dict[str | None, list[tuple[str, int]]]:
    """Action and count of each decision, by run id, in the order of the scopes' first decisions."""
    scopes: dict[str | None, list[tuple[str, int]]] = {}
    for event in events:
        if isinstance(event, DecisionMade):
            scopes.setdefault(event.run_id, []).append((event.action, event.hash_count))
    return scopes


def repeating(count: int) -> Callable[[list[Any]], Turn]:
    """Runs the same command so many times."""
    return lambda messages: turn(bash()) if sum(isinstance(m, AIMessage) for m in messages) < count else DONE


def delegating(inner: Any, name: str = "delegate", context: dict[str, Any] | None = None) -> Any:
    """A tool that runs an agent, in both worlds."""

    def run(task: str) -> str:
        """Delegate a task."""
        return str(inner.invoke({"messages": [HumanMessage(task)]}, context=context)["messages"][-1].content)

    async def arun(task: str) -> str:
        """Delegate a task."""
        return str((await inner.ainvoke({"messages": [HumanMessage(task)]}, context=context))["messages"][-1].content)

    return StructuredTool.from_function(run, arun, name=name, description="Delegate a task.")


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_parallel_sub_agents_of_one_run_never_share_a_scope(
    asynchronous: bool, events: list[Event], of: Kinds
) -> None:
    """Two at once make four equal batches each, and neither sees eight; both are children of the one that delegated."""
    guard = LoopDetectionMiddleware()
    inner = agent(repeating(4), guard, name="inner")
    both = turn(("delegate", {"task": "a"}), ("delegate", {"task": "b"}))
    outer = agent([both, DONE], guard, tools=[delegating(inner)], name="outer")
    await outer.ainvoke(ask(), on("t")) if asynchronous else await asyncio.to_thread(outer.invoke, ask(), on("t"))
    scopes = by_scope(events)
    base = next(iter(scopes))
    assert scopes.pop(base) == [("pass", 1)]
    four = [("pass", 1), ("pass", 2), ("warn", 3), ("pass", 4)]
    assert list(scopes.values()) == [four, four]
    starts = {start.run_id: start for start in of(events, RunStart)}
    assert len(starts) == 3
    assert starts[base].parent_run_id is None
    assert starts[base].parent_thread_id is None
    for run_id in scopes:
        assert str(run_id).startswith(f"{base}/tools:")
        assert (starts[run_id].parent_thread_id, starts[run_id].parent_run_id) == ("t", base)
        assert starts[run_id].agent == "inner"
    assert [end.status for end in of(events, RunEnd)] == ["completed"] * 3


def test_a_sub_agent_that_ends_changes_nothing_in_its_parent(events: list[Event]) -> None:
    """The parent's counts and its waiting warning survive three delegations, each of which starts fresh."""
    guard = LoopDetectionMiddleware(warn_threshold=3, hard_limit=4)
    inner = agent(repeating(2), guard, name="inner")
    model = ScriptedModel(script=[turn(("delegate", {"task": "same"}))])
    outer = agent(model, guard, tools=[delegating(inner)])
    final = outer.invoke(ask())
    scopes = by_scope(events)
    base = next(iter(scopes))
    assert [count for _, count in scopes.pop(base)] == [1, 2, 3, 4]
    assert list(scopes.values()) == [[("pass", 1), ("pass", 2)]] * 3
    assert [any(m.name == "loop_warning" for m in request) for request in model.requests] == [False] * 3 + [True]
    assert "[FORCED STOP]" in str(final["messages"][-1].content)


def test_a_stopped_sub_agent_stops_nobody_else() -> None:
    """The parent goes on with what it got; its context tells of no stop, and the reasons are told apart by run id."""
    guard, context = LoopDetectionMiddleware(), {"run_id": "r"}
    inner = agent([turn(bash())], guard, name="inner")
    outer = agent([turn(("delegate", {"task": "x"})), Turn(text="went on")], guard, tools=[delegating(inner)])
    final = outer.invoke(ask(), context=context)
    assert final["messages"][-1].content == "went on"
    assert context == {"run_id": "r"}
    assert guard.consume_stop_reason("r") is None


def test_sub_agents_in_the_nodes_of_a_graph(events: list[Event], of: Kinds) -> None:
    """Two agents hand a task back and forth: each visit is a scope of its own, named by its node, below the run."""
    guard = LoopDetectionMiddleware()
    writer = agent(lambda _: turn(bash()) if _calls_last(_) else DONE, guard, name="writer")
    critic = agent(lambda _: turn(bash()) if _calls_last(_) else DONE, guard, name="critic")
    graph: Any = StateGraph(MessagesState)
    graph.add_node("writer", writer)
    graph.add_node("critic", critic)
    graph.add_edge(START, "writer")
    graph.add_edge("writer", "critic")
    graph.add_conditional_edges("critic", lambda s: END if len(s["messages"]) >= 19 else "writer")
    graph.compile(checkpointer=InMemorySaver()).invoke(ask(), on("t"), context={"run_id": "r"})
    starts = of(events, RunStart)
    assert len(starts) == len({start.run_id for start in starts}) == 6
    assert [start.agent for start in starts] == ["writer", "critic"] * 3
    assert all(start.run_id.startswith(f"r/{start.agent}:") for start in starts)
    assert {(start.parent_thread_id, start.parent_run_id) for start in starts} == {("t", "r")}
    assert all(decisions == [("pass", 1)] for decisions in by_scope(events).values())


def _calls_last(messages: list[Any]) -> bool:
    """Whether the turn has just begun: no call of a tool has been answered in it."""
    return bool(messages[-1].type != "tool")


def test_a_node_that_calls_an_agent_twice(events: list[Event], of: Kinds) -> None:
    """One after the other in one task they are siblings, not parent and child."""
    inner = agent([turn(bash()), DONE, turn(bash()), DONE], LoopDetectionMiddleware(), name="inner")

    def node(state: MessagesState) -> dict[str, Any]:  # noqa: ARG001
        return {"messages": [inner.invoke(ask())["messages"][-1], inner.invoke(ask())["messages"][-1]]}

    graph: Any = StateGraph(MessagesState)
    graph.add_node("twice", node)
    graph.add_edge(START, "twice")
    graph.compile().invoke(ask(), context={"run_id": "r"})
    first, second = of(events, RunStart)
    assert first.run_id.startswith("r/twice:")
    assert second.run_id == f"{first.run_id}|1"
    assert first.parent_run_id == second.parent_run_id == "r"


def test_a_chain_of_delegations_has_a_chain_of_parents(events: list[Event], of: Kinds) -> None:
    """Each one's parent is the loop around it, over graphs in between that are no agents."""
    guard = LoopDetectionMiddleware()
    lowest = agent([turn(bash()), DONE], guard, name="lowest")
    plain: Any = StateGraph(MessagesState)
    plain.add_node("step", lambda _: {"messages": lowest.invoke(ask())["messages"][-1:]})
    plain.add_edge(START, "step")
    middle = agent(
        [turn(("plain", {"task": "x"})), DONE], guard, tools=[delegating(plain.compile(), "plain")], name="middle"
    )
    top = agent([turn(("middle", {"task": "x"})), DONE], guard, tools=[delegating(middle, "middle")], name="top")
    top.invoke(ask(), context={"run_id": "r"})
    starts = {start.agent: start for start in of(events, RunStart)}
    assert starts["top"].parent_run_id is None
    assert starts["middle"].parent_run_id == "r"
    assert starts["lowest"].parent_run_id == starts["middle"].run_id
    assert starts["lowest"].run_id.startswith(f"{starts['middle'].run_id}|")


def test_a_sub_agent_with_a_run_id_of_its_own(events: list[Event], of: Kinds) -> None:
    """A context that is another object with another run id names the scope; its parent is still the one around it."""
    guard = LoopDetectionMiddleware()
    inner = agent([turn(bash()), DONE], guard, name="inner")
    mine = {"run_id": "mine", "thread_id": "elsewhere"}
    outer = agent([turn(("delegate", {"task": "x"})), DONE], guard, tools=[delegating(inner, context=mine)])
    outer.invoke(ask(), on("t"), context={"run_id": "r"})
    _, start = of(events, RunStart)
    assert (start.thread_id, start.run_id) == ("elsewhere", "mine")
    assert (start.parent_thread_id, start.parent_run_id) == ("t", "r")


def test_a_copy_of_the_parents_context_is_no_run_id_of_its_own(events: list[Event]) -> None:
    """Otherwise parallel sub-agents that are handed the context on would share one scope, and the parent's."""
    guard = LoopDetectionMiddleware()
    inner = agent(repeating(2), guard, name="inner")
    both = turn(*[("delegate", {"task": task}) for task in "ab"])
    copy = {"run_id": "r", "more": 1}
    outer = agent([both, DONE], guard, tools=[delegating(inner, context=copy)])
    outer.invoke(ask(), context={"run_id": "r"})
    scopes = by_scope(events)
    assert len(scopes) == 3
    assert scopes.pop("r") == [("pass", 1)]
    assert all(str(run_id).startswith("r/tools:") for run_id in scopes)


def test_two_middlewares_with_policies_of_their_own(events: list[Event], of: Kinds) -> None:
    """Parent and child have different limits; the recording says so for the child's scope."""
    lax, strict = LoopDetectionMiddleware(), LoopDetectionMiddleware(hard_limit=3)
    inner = agent([turn(bash())], strict, name="inner")
    outer = agent([turn(("delegate", {"task": "x"})), DONE], lax, tools=[delegating(inner)])
    outer.invoke(ask(), on("t"))
    base, child = by_scope(events)
    assert by_scope(events)[child] == [("pass", 1), ("pass", 2), ("hard_stop", 3)]
    (told,) = of(events, PolicySet)
    assert (told.run_id, told.policy["hard_limit"]) == (child, 3)
    assert base == of(events, RunStart)[1].parent_run_id


@pytest.mark.parametrize("handled", [True, False])
def test_a_sub_agent_that_fails_is_over_when_its_parent_goes_on(handled: bool, events: list[Event], of: Kinds) -> None:
    """Its end is told with the error that its model raised, and the parent's waiting warnings are untouched."""
    guard = LoopDetectionMiddleware()
    inner = agent([turn(bash()), Turn(error=ValueError("quota exceeded"))], guard, name="inner")

    @tool
    def delegate(task: str) -> str:
        """Delegate."""
        try:
            return str(inner.invoke({"messages": [HumanMessage(task)]})["messages"][-1].content)
        except ValueError:
            if not handled:
                raise
            return "failed"

    outer = agent([turn(("delegate", {"task": "x"})), DONE], guard, tools=[delegate])
    if not handled:
        with pytest.raises(ValueError, match="quota"):
            outer.invoke(ask())
        assert of(events, RunEnd) == []
        guard.close()
        assert {end.status for end in of(events, RunEnd)} == {"error", "unknown"}
        return
    outer.invoke(ask())
    child, top = of(events, RunEnd)
    assert (child.status, child.reason) == ("error", "ValueError: quota exceeded")
    assert (top.run_id, top.status) == (of(events, RunStart)[0].run_id, "completed")


def test_delegations_leave_nothing_behind() -> None:
    """However many sub-agents end, what is remembered of the run is the run."""
    guard = LoopDetectionMiddleware()
    inner = agent([DONE], guard, tools=[], name="inner")
    seen: list[int] = []

    def script(messages: list[Any]) -> Turn:
        (known,) = guard._guard.ids._seen.values()
        seen.append(len(known.scopes) + len(known.invocation.scopes) + len(known.invocation.run.keys))
        count = sum(isinstance(m, AIMessage) for m in messages)
        return turn(("delegate", {"task": str(count)})) if count < 10 else DONE

    agent(script, guard, tools=[delegating(inner)]).invoke(ask())
    assert set(seen) == {3}
    assert not guard._guard.ids._seen


def test_batches_without_calls_are_events_too(events: list[Event], of: Kinds) -> None:
    """Every AI message is one, with its text, usage, model and node, and no decision for it."""
    agent([turn(bash(), text="let me see"), DONE], LoopDetectionMiddleware()).invoke(ask())
    first, last = of(events, Batch)
    assert (first.text, last.text, last.calls) == ("let me see", "done", ())
    assert (last.usage.input_tokens, last.usage.output_tokens, last.model, last.node) == (
        100,
        10,
        "scripted-1",
        "model",
    )
    assert len(of(events, DecisionMade)) == 1
