"""Graphs of all kinds for the tap to watch, and what it tells in a form that tests can state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from loopscope.engine.events import Batch, DecisionMade, Event, Result, RunEnd, RunStart, Warned
from loopscope.recording.bus import bus
from tests.adapters.scripted import ScriptedModel, Shell

__all__ = ["asking", "by_hand", "chained", "chained_loop", "hand_made", "listening", "told"]


def asking(script: Any, *tools: Any, state: Any = MessagesState, **options: Any) -> Any:
    """A graph of two nodes, `agent` and `tools`, whose agent asks a scripted model."""
    model = script if isinstance(script, ScriptedModel) else ScriptedModel(script=script)
    return chained_loop(lambda state: {"messages": [model.invoke(state["messages"])]}, *tools, state=state, **options)


def chained_loop(
    agent: Callable[[Any], Any], *tools: Any, state: Any = MessagesState, retry: Any = None, **options: Any
) -> Any:
    """The usual loop around any agent."""
    graph: Any = StateGraph(state)
    graph.add_node("agent", agent, retry_policy=retry)
    graph.add_node("tools", ToolNode(list(tools) or [Shell().tool], handle_tool_errors=True))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    return graph.compile(**options)


def by_hand(messages: Sequence[Any], **options: Any) -> Any:
    """The usual loop around an agent that says these messages, one at a turn, and asks no model."""
    left = list(messages)
    return chained_loop(lambda _: {"messages": [left.pop(0)]}, **options)


def chained(*nodes: Callable[[Any], Any], state: Any = MessagesState, **options: Any) -> Any:
    """A graph of these nodes, one after the other, each named as its function is."""
    graph: Any = StateGraph(state)
    before = START
    for node in nodes:
        graph.add_node(node.__name__, node)
        graph.add_edge(before, node.__name__)
        before = node.__name__
    return graph.compile(**options)


def hand_made(call_id: str = "c1", command: str = "ls", **more: Any) -> AIMessage:
    """A message with one call, and no id unless one is given."""
    return AIMessage("", tool_calls=[{"name": "bash", "args": {"command": command}, "id": call_id}], **more)


def told(events: Sequence[Event]) -> list[tuple[Any, ...]]:
    """The events in short, scopes as letters in the order in which they were first told of."""
    scopes: dict[Any, str] = {None: "-"}
    found: list[tuple[Any, ...]] = []
    for event in events:
        key = (getattr(event, "thread_id", None), getattr(event, "run_id", None))
        scope = scopes.setdefault(key, chr(ord("a") + len(scopes) - 1))
        if isinstance(event, RunStart):
            parent = (event.parent_thread_id, event.parent_run_id)
            above = scopes.get(parent, "?") if event.parent_run_id is not None else "-"
            found.append((scope, "resumes" if event.resume_of else "starts", event.agent, above))
        elif isinstance(event, Batch):
            found.append((scope, event.node, *[call.id or call.name for call in event.calls]))
        elif isinstance(event, DecisionMade):
            found.append((scope, event.action, event.hash_count))
        elif isinstance(event, Result):
            found.append((scope, event.status, event.call_id))
        elif isinstance(event, RunEnd):
            found.append((scope, "ends", event.status))
        elif isinstance(event, Warned):
            found.append((scope, event.state))
    return found


@contextmanager
def listening() -> Iterator[list[Event]]:
    """Every event that is published within."""
    seen: list[Event] = []
    leave = bus.subscribe(seen.append)
    yield seen
    leave()
