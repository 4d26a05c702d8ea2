"""What the tap costs: a graph with it beside the same graph with a callback handler that does nothing.

The time is taken inside of the callbacks, in the midst of the runs, where nothing is in the processor's caches: a whole
run varies by more than the difference. How much that costs on this machine at this time, the floor tells in the same
place. Each figure is the least of many runs, taken in turns with its yardsticks.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from benchmarks.frame import Figure
from loopscope import Policy, tap

_TURNS = 128
"""A whole number of times as many as are accounted together, so that each run pays for all of its own."""
_RUNS = 25
_BAR = 20.0
"""Microseconds that a batch may cost more on a quiet machine, where the floor takes 17 of them."""
_RATIO = 1.1
_RECORDED = 500.0
_NEVER = Policy(warn_threshold=10**9, hard_limit=10**9, tool_freq_warn=10**9, tool_freq_hard_limit=10**9)
_CALLBACKS = (
    "on_chain_start", "on_chain_end", "on_chat_model_start", "on_llm_end", "on_tool_start", "on_tool_end",
)  # fmt: skip


def figures() -> list[Figure]:
    """A graph that asks a model and one that makes its messages itself, unwatched; and the first one, recorded."""
    model, hand = _looping(_asks()), _looping(lambda state: {"messages": [_answer(state["messages"])]})
    found = [
        _unwatched("tap in a graph that asks a chat model, nobody watching, per batch", model),
        _unwatched("tap in a graph that makes its messages itself, nobody watching, per batch", hand),
    ]
    with _recording() as handler:
        found.append(_recorded("tap in a graph that asks a chat model, recording, per batch", model, handler))
    return found


def _unwatched(what: str, graph: Any) -> Figure:
    idle, ours, least = (_run_of(graph, each) for each in (Idle(), tap(policy=_NEVER), Hashing()))
    rounds = [(idle(), ours()[0], least()[0]) for _ in range(_RUNS)]
    nothing = min(callbacks for (callbacks, _), _, _ in rounds)
    whole = min(run for (_, run), _, _ in rounds) / _TURNS * 1e6
    more = (min(spent for _, spent, _ in rounds) - nothing) / _TURNS * 1e6
    floor = (min(spent for _, _, spent in rounds) - nothing) / _TURNS * 1e6
    return Figure(
        what,
        f"+{more:.1f} us = {more / floor:.2f} x",
        f"+{floor:.1f} us: the floor there, 2 x json.dumps and an MD5; the batch takes {whole:.0f} us",
        f"<= +{_BAR:.0f} us or {_RATIO} x",
        more <= max(_BAR, _RATIO * floor),
    )


def _recorded(what: str, graph: Any, handler: BaseCallbackHandler) -> Figure:
    idle, ours = _run_of(graph, Idle()), _run_of(graph, handler)
    rounds = [(idle()[0], ours()[0]) for _ in range(_RUNS)]
    nothing, spent = (min(column) / _TURNS * 1e6 for column in zip(*rounds, strict=True))
    more = spent - nothing
    yardstick = f"{nothing:.1f} us: a handler that does nothing"
    return Figure(what, f"+{more:.0f} us", yardstick, f"<= +{_RECORDED:.0f} us", more <= _RECORDED)


def _run_of(graph: Any, handler: BaseCallbackHandler) -> Callable[[], tuple[float, float]]:
    """Measures one run of the graph: seconds in the callbacks, and in all."""
    within, spent = _timed(handler)

    def run() -> tuple[float, float]:
        spent[0] = 0.0
        start = time.perf_counter()
        graph.invoke({"messages": [("user", "go")]}, {"callbacks": [within], "recursion_limit": 10_000})
        return spent[0], time.perf_counter() - start

    run()
    return run


def _timed(handler: BaseCallbackHandler) -> tuple[BaseCallbackHandler, list[float]]:
    """The handler with its callbacks timed, and the list that holds the seconds spent in them.

    So is what LangChain asks before each callback for a tool, since a handler may leave those out.
    """
    spent, clock = [0.0], time.perf_counter

    def wrapped(name: str) -> Callable[..., None]:
        def callback(_: Any, *args: Any, **kwargs: Any) -> None:
            start = clock()
            getattr(handler, name)(*args, **kwargs)
            spent[0] += clock() - start

        return callback

    def ignored(_: Any) -> bool:
        start = clock()
        found: bool = handler.ignore_agent
        spent[0] += clock() - start
        return found

    callbacks: dict[str, Any] = {name: wrapped(name) for name in _CALLBACKS}
    return type("Timed", (Idle,), {**callbacks, "ignore_agent": property(ignored)})(), spent


class Idle(BaseCallbackHandler):
    """A handler that does nothing, also where the base class does more than nothing."""

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        """Nothing."""


class Hashing(Idle):
    """A handler that does the least of what has to be done for a batch: it hashes it as DeerFlow does."""

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:  # noqa: ARG002
        """Hash the calls of the agent's message."""
        found = outputs["messages"][0] if isinstance(outputs, dict) and len(outputs["messages"]) == 1 else None
        for call in found.tool_calls if isinstance(found, AIMessage) else ():
            key = json.dumps(call["args"], sort_keys=True, default=str)
            whole = json.dumps([key], sort_keys=True, default=str)
            hashlib.md5(whole.encode(), usedforsecurity=False).hexdigest()


class Counting(BaseChatModel):
    """Calls a tool with new arguments so many times, then is done."""

    @property
    def _llm_type(self) -> str:
        return "counting"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:  # noqa: ARG002
        return ChatResult(generations=[ChatGeneration(message=_answer(messages))])


def _asks() -> Callable[[Any], dict[str, Any]]:
    model = Counting()
    return lambda state: {"messages": [model.invoke(state["messages"])]}


def _answer(messages: list[Any]) -> AIMessage:
    call = {"name": "bash", "args": {"command": f"step {len(messages)}"}, "id": str(uuid.uuid4())}
    return AIMessage("", tool_calls=[] if len(messages) > 2 * _TURNS else [call])


@tool
def bash(command: str) -> str:
    """Run a command."""
    return command


def _looping(agent: Callable[[Any], dict[str, Any]]) -> Any:
    """The usual two nodes, the first of which is given."""
    graph: Any = StateGraph(MessagesState)
    graph.add_node("agent", agent)
    graph.add_node("tools", ToolNode([bash]))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    return graph.compile()


@contextlib.contextmanager
def _recording() -> Iterator[BaseCallbackHandler]:
    """A tap that records."""
    with tempfile.TemporaryDirectory() as folder:
        made = tap(policy=_NEVER, record=Path(folder) / "run.jsonl")
        yield made
        made.close()
