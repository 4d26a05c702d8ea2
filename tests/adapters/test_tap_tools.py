"""What the tap tells of tools: results, errors, and calls that hand over to another agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from loopscope import tap
from loopscope.engine.events import Batch, Event, Result, RunEnd
from tests.adapters.scripted import DONE, agent, ask, turn
from tests.adapters.tapped import asking, chained, hand_made, told

Kinds = Callable[..., Any]


def test_results_and_errors_of_tools(events: list[Event], of: Kinds) -> None:
    """A tool that raises, one that refuses its arguments, one that answers; by id, with the class of the error."""

    @tool
    def bad(x: int) -> str:
        """Fails."""
        raise ValueError(f"no {x}")

    calls = turn(("bad", {"x": 1}), ("bad", {"x": "one"}), ("nothing", {}))
    asking([calls, DONE], bad).invoke(ask(), {"callbacks": [tap()]})
    (batch, _), results = of(events, Batch), of(events, Result)
    assert {result.call_id for result in results} == {call.id for call in batch.calls}
    assert [(result.name, result.status, result.error_type) for result in results] == [
        ("bad", "error", "ValueError"), ("bad", "error", "ValidationError"), ("nothing", "error", None),
    ]  # fmt: skip
    assert results[0].duration_s is not None
    assert "no 1" in results[0].content


def test_an_error_that_ends_the_run(events: list[Event], of: Kinds) -> None:
    """The result is told, and the end says why."""

    @tool
    def bad() -> str:
        """Fails."""
        raise KeyError("gone")

    def tools(state: Any) -> Any:
        bad.invoke(state["messages"][-1].tool_calls[0] | {"args": {}})

    def said(state: Any) -> Any:  # noqa: ARG001
        return {"messages": [hand_made()]}

    graph = chained(said, tools)
    with pytest.raises(KeyError):
        graph.invoke(ask(), {"callbacks": [tap()]})
    (result,) = of(events, Result)
    assert (result.call_id, result.status, result.error_type, result.content) == (
        "c1",
        "error",
        "KeyError",
        "KeyError: 'gone'",
    )
    assert [(end.status, end.reason) for end in of(events, RunEnd)] == [("error", "KeyError: 'gone'")]


def test_a_tool_that_is_tried_again(events: list[Event], of: Kinds) -> None:
    """What it gave in the end counts, once."""
    tries: list[int] = []

    @tool
    def flaky() -> str:
        """Works the second time."""
        tries.append(1)
        if len(tries) == 1:
            raise TimeoutError
        return "there"

    def tools(state: Any) -> Any:
        call = state["messages"][-1].tool_calls[0] | {"args": {}}
        try:
            return {"messages": [flaky.invoke(call)]}
        except TimeoutError:
            return {"messages": [flaky.invoke(call)]}

    def said(state: Any) -> Any:  # noqa: ARG001
        return {"messages": [hand_made()]}

    chained(said, tools).invoke(ask(), {"callbacks": [tap()]})
    assert [(result.status, result.content) for result in of(events, Result)] == [("ok", "there")]


def test_tools_that_a_node_runs_by_hand(events: list[Event], of: Kinds) -> None:
    """Then the message tells what came back; one that says error is one."""

    def said(state: Any) -> Any:  # noqa: ARG001
        return {"messages": [hand_made("a"), hand_made("b")]}

    def tools(state: Any) -> Any:  # noqa: ARG001
        bad = ToolMessage("OSError: disk", tool_call_id="b", status="error", name="bash")
        return Command(update={"messages": [{"role": "tool", "content": "fine", "tool_call_id": "a"}, bad]})

    chained(said, tools).invoke(ask(), {"callbacks": [tap()]})
    results = [(result.call_id, result.status, result.error_type, result.content) for result in of(events, Result)]
    assert results == [("a", "ok", None, "fine"), ("b", "error", "OSError", "OSError: disk")]


def test_a_hand_over_by_a_tool(events: list[Event]) -> None:
    """A tool that answers with a command for the graph around: its own scope has the result, the other one begins."""

    @tool
    def to_b(tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Hand over."""
        moved = {"messages": [ToolMessage("moved", tool_call_id=tool_call_id)]}
        return Command(goto="b", graph=Command.PARENT, update=moved)

    graph: Any = StateGraph(MessagesState)
    graph.add_node("a", agent([turn(("to_b", {}))], tools=[to_b], name="a"))
    graph.add_node("b", agent([DONE], name="b"))
    graph.add_edge(START, "a")
    graph.compile(name="team").invoke(ask(), {"callbacks": [tap()]})
    entries = told(events)
    call = entries[2][2]
    assert entries == [
        ("a", "starts", "team", "-"),
        ("b", "starts", "a", "a"), ("b", "model", call), ("b", "pass", 1), ("b", "ok", call),
        ("b", "ends", "completed"),
        ("c", "starts", "b", "a"), ("c", "model"), ("c", "ends", "completed"),
        ("a", "ends", "completed"),
    ]  # fmt: skip


def test_a_node_that_hands_over_by_itself(events: list[Event], of: Kinds) -> None:
    """A message in a command for the graph around belongs to the one that said it."""

    def inner(state: Any) -> Any:  # noqa: ARG001
        return Command(graph=Command.PARENT, goto="after", update={"messages": [AIMessage("bye")]})

    def after(state: Any) -> Any:  # noqa: ARG001
        return {}

    graph: Any = StateGraph(MessagesState)
    graph.add_node("first", chained(inner))
    graph.add_node("after", after)
    graph.add_edge(START, "first")
    graph.compile().invoke(ask(), {"callbacks": [tap()]})
    (batch,) = of(events, Batch)
    assert (batch.text, "first:" in batch.run_id) == ("bye", True)
    assert [end.status for end in of(events, RunEnd)] == ["completed", "completed"]
