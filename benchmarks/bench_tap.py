"""What the tap costs: a graph with it beside the same graph with a callback handler that does nothing.

The time is taken inside of the callbacks, in the midst of the runs: a whole run varies by more than the difference.
Each figure is the least of many runs, taken in turns with its yardstick.
"""

from __future__ import annotations

import contextlib
import itertools
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
from langgraph.callbacks import GraphCallbackHandler
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from benchmarks.frame import Figure
from loopscope import tap
from loopscope.engine.policy import Policy

TURNS = 50
RUNS = 40
_NEVER = Policy(warn_threshold=10**9, hard_limit=10**9, tool_freq_warn=10**9, tool_freq_hard_limit=10**9)
_CALLBACKS = (
    "on_chain_start", "on_chain_end", "on_chain_error", "on_chat_model_start", "on_llm_end", "on_tool_start",
    "on_tool_end",
)  # fmt: skip


class Counting(BaseChatModel):
    """Calls a tool with new arguments so many times, then is done."""

    turns: int

    @property
    def _llm_type(self) -> str:
        return "counting"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:  # noqa: ARG002
        return ChatResult(generations=[ChatGeneration(message=_answer(messages, self.turns))])


def _answer(messages: list[Any], turns: int) -> AIMessage:
    done = len(messages) > 2 * turns
    call = {"name": "bash", "args": {"command": f"step {len(messages)}"}, "id": str(uuid.uuid4())}
    return AIMessage("", id=str(uuid.uuid4()), tool_calls=[] if done else [call])


@tool
def bash(command: str) -> str:
    """Run a command."""
    return command


def graph_of(agent: Callable[[MessagesState], dict[str, Any]]) -> Any:
    """The usual two nodes, whose first one is given."""
    graph: Any = StateGraph(MessagesState)
    graph.add_node("agent", agent)
    graph.add_node("tools", ToolNode([bash]))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    return graph.compile()


def asking_a_model() -> Any:
    """A graph whose agent asks a chat model."""
    model = Counting(turns=TURNS)
    return graph_of(lambda state: {"messages": [model.invoke(state["messages"])]})


def by_hand() -> Any:
    """A graph whose agent makes its messages itself."""
    return graph_of(lambda state: {"messages": [_answer(state["messages"], TURNS)]})


class Idle(GraphCallbackHandler):
    """A handler that does nothing, also where the base class does more than nothing."""

    run_inline = True

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        """Nothing."""


def timed(handler: BaseCallbackHandler) -> tuple[BaseCallbackHandler, list[float]]:
    """The handler with its callbacks timed, and the list that holds the seconds spent in them."""
    spent, clock = [0.0], time.perf_counter

    def wrapped(name: str) -> Callable[..., None]:
        def callback(_: Any, *args: Any, **kwargs: Any) -> None:
            start = clock()
            getattr(handler, name)(*args, **kwargs)
            spent[0] += clock() - start

        return callback

    made = type("Timed", (GraphCallbackHandler,), {name: wrapped(name) for name in _CALLBACKS} | {"run_inline": True})
    return made(), spent


def run_of(graph: Any, handler: BaseCallbackHandler) -> Callable[[], tuple[float, float]]:
    """Measures one run of the graph: seconds in the callbacks, and in all."""
    within, spent = timed(handler)

    def run() -> tuple[float, float]:
        spent[0] = 0.0
        start = time.perf_counter()
        graph.invoke({"messages": [("user", "go")]}, {"callbacks": [within], "recursion_limit": 10_000})
        return spent[0], time.perf_counter() - start

    run()
    return run


def measure(what: str, graph: Any, handler: BaseCallbackHandler, limit: float) -> Figure:
    """What a batch costs beyond the same graph with a handler that does nothing, in microseconds."""
    idle, ours = run_of(graph, Idle()), run_of(graph, handler)
    pairs = [(idle(), ours()) for _ in range(RUNS)]
    nothing, whole = (min(column) / TURNS * 1e6 for column in zip(*(bare for bare, _ in pairs), strict=True))
    more = min(spent for _, (spent, _) in pairs) / TURNS * 1e6 - nothing
    return Figure(
        what,
        f"+{more:.1f} µs",
        f"{whole:.0f} µs a batch with a handler that does nothing ({nothing:.1f} µs in it)",
        f"≤ +{limit:g} µs",
        more <= limit,
    )


@contextlib.contextmanager
def recorded() -> Iterator[BaseCallbackHandler]:
    """A tap that records."""
    with tempfile.TemporaryDirectory() as folder:
        made = tap(policy=_NEVER, record=Path(folder) / "run.jsonl")
        yield made
        made.close()


def figures() -> list[Figure]:
    """All figures of this file."""
    found = [
        measure(f"tap, nobody watching, per batch of a graph {what}", graph(), tap(policy=_NEVER), 20)
        for what, graph in (("that asks a chat model", asking_a_model), ("that makes its messages itself", by_hand))
    ]
    with recorded() as handler:
        found.append(measure("tap that records, per batch of the same", asking_a_model(), handler, 500))
    return found


if __name__ == "__main__":
    for figure in itertools.chain(figures()):
        print(*figure, sep=" | ")
