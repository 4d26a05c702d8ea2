"""What the middleware costs: its hook beside the floor of such hooks, its agent beside one with hooks that do nothing.

Machines are shared and noisy, so each figure is the least of many rounds, taken in turns with its yardstick in the same
process.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.runtime import ExecutionInfo, RunControl, Runtime

from loopscope import LoopDetectionMiddleware, Policy

BATCHES = 4_000
ROUNDS = 25
TURNS = 50
RUNS = 60
NEVER = Policy(tool_freq_warn=10**6, tool_freq_hard_limit=10**6)


class Figure(NamedTuple):
    """One measured figure beside its yardstick."""

    what: str
    value: str
    yardstick: str
    bar: str
    met: bool


def floor(arguments: list[dict[str, Any]]) -> float:
    """Seconds for what DeerFlow's identity of a batch takes at least: two `json.dumps` and an MD5."""
    start = time.perf_counter()
    for args in arguments:
        key = json.dumps(args, sort_keys=True, default=str)
        hashlib.md5(json.dumps([key], sort_keys=True, default=str).encode(), usedforsecurity=False).hexdigest()
    return time.perf_counter() - start


def hook(states: list[dict[str, Any]], runtimes: list[Runtime[Any]]) -> float:
    """Seconds for the whole `after_model` hook over distinct batches of one call, with nobody watching."""
    middleware = LoopDetectionMiddleware(policy=NEVER)
    middleware.before_agent({}, runtimes[0])
    after_model = middleware.after_model
    start = time.perf_counter()
    for state, runtime in zip(states, runtimes, strict=True):
        after_model(state, runtime)
    taken = time.perf_counter() - start
    middleware.after_agent({"messages": []}, runtimes[0])
    return taken


def measure_hook() -> Figure:
    """The hook per batch as a ratio to the floor."""
    arguments = [{"command": f"grep -n {number} notes.txt"} for number in range(BATCHES)]
    calls = [{"name": "bash", "args": args, "id": f"call-{number}"} for number, args in enumerate(arguments)]
    states = [{"messages": [AIMessage("", id=str(uuid.uuid4()), tool_calls=[call])]} for call in calls]
    runtimes = _runtimes()
    floors: list[float] = []
    hooks: list[float] = []
    for _ in range(ROUNDS):
        floors.append(floor(arguments))
        hooks.append(hook(states, runtimes))
    least, ours = min(floors) / BATCHES * 1e6, min(hooks) / BATCHES * 1e6
    return Figure(
        "after_model hook, nobody watching, per distinct one-call batch",
        f"{ours:.2f} µs = {ours / least:.2f} × the floor",
        f"floor {least:.2f} µs (2 × json.dumps + MD5)",
        "≤ 1.1 × the floor",
        ours <= 1.1 * least,
    )


def _runtimes() -> list[Runtime[Any]]:
    """A runtime for each node of one invocation, as LangGraph makes them."""
    control = RunControl()
    tasks = [str(uuid.uuid4()) for _ in range(BATCHES)]
    return [
        Runtime(
            control=control,
            execution_info=ExecutionInfo(
                checkpoint_id="c",
                checkpoint_ns=f"LoopDetectionMiddleware.after_model:{task}",
                task_id=task,
                thread_id="t",
            ),
        )
        for task in tasks
    ]


class Idle(AgentMiddleware[Any, Any, Any]):
    """The same hooks, doing nothing."""

    def before_agent(self, state: Any, runtime: Any) -> None:
        """Nothing."""

    def after_model(self, state: Any, runtime: Any) -> None:
        """Nothing."""

    def after_agent(self, state: Any, runtime: Any) -> None:
        """Nothing."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        """Nothing but the call."""
        return handler(request)


def timed(middleware: AgentMiddleware[Any, Any, Any]) -> tuple[AgentMiddleware[Any, Any, Any], list[float]]:
    """The middleware with its hooks timed where they run, and the list that holds the seconds spent in them."""
    spent, clock = [0.0], time.perf_counter

    class Timed(Idle):
        def before_agent(self, state: Any, runtime: Any) -> Any:
            start = clock()
            result = middleware.before_agent(state, runtime)
            spent[0] += clock() - start
            return result

        def after_model(self, state: Any, runtime: Any) -> Any:
            start = clock()
            result = middleware.after_model(state, runtime)
            spent[0] += clock() - start
            return result

        def after_agent(self, state: Any, runtime: Any) -> Any:
            start = clock()
            result = middleware.after_agent(state, runtime)
            spent[0] += clock() - start
            return result

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            inside = [0.0]

            def model(request: Any) -> Any:
                began = clock()
                response = handler(request)
                inside[0] = clock() - began
                return response

            start = clock()
            result = middleware.wrap_model_call(request, model)
            spent[0] += clock() - start - inside[0]
            return result

    return Timed(), spent


class Counting(BaseChatModel):
    """Calls a tool with new arguments so many times, then is done."""

    turns: int

    @property
    def _llm_type(self) -> str:
        return "counting"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:  # noqa: ARG002
        """Tools make no difference."""
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:  # noqa: ARG002
        done = len(messages) > 2 * self.turns
        call = {"name": "bash", "args": {"command": f"step {len(messages)}"}, "id": str(uuid.uuid4())}
        message = AIMessage("", id=str(uuid.uuid4()), tool_calls=[] if done else [call])
        return ChatResult(generations=[ChatGeneration(message=message)])


@tool
def bash(command: str) -> str:
    """Run a command."""
    return command


def run_of(middleware: AgentMiddleware[Any, Any, Any]) -> Callable[[], tuple[float, float]]:
    """Measures one run of an agent: seconds in the hooks of this middleware, and in all."""
    within, spent = timed(middleware)
    graph: Any = create_agent(Counting(turns=TURNS), tools=[bash], middleware=[within])

    def run() -> tuple[float, float]:
        spent[0] = 0.0
        start = time.perf_counter()
        graph.invoke({"messages": [("user", "go")]})
        return spent[0], time.perf_counter() - start

    run()
    return run


def measure_agent() -> Figure:
    """What a batch of an agent costs beyond the same agent with hooks that do nothing.

    It is taken inside the hooks, in the midst of the run: a whole run varies by more than the difference.
    """
    idle, ours = run_of(Idle()), run_of(LoopDetectionMiddleware(policy=NEVER))
    bare: list[tuple[float, float]] = []
    guarded: list[tuple[float, float]] = []
    for _ in range(RUNS):
        bare.append(idle())
        guarded.append(ours())
    nothing, whole = (min(column) / TURNS * 1e6 for column in zip(*bare, strict=True))
    more = min(spent for spent, _ in guarded) / TURNS * 1e6 - nothing
    return Figure(
        "agent run with the middleware, per batch, all hooks",
        f"+{more:.1f} µs",
        f"{whole:.0f} µs a batch with hooks that do nothing ({nothing:.1f} µs in them)",
        "≤ +20 µs",
        more <= 20,  # noqa: PLR2004 - the bar
    )


def figures() -> list[Figure]:
    """All figures of this file."""
    return [measure_hook(), measure_agent()]


def main() -> int:
    """Print the figures; 1 if a bar is missed."""
    measured = figures()
    for figure in measured:
        print(
            f"{'ok  ' if figure.met else 'MISS'} {figure.what}: {figure.value} | {figure.yardstick} | bar {figure.bar}"
        )
    return 0 if all(figure.met for figure in measured) else 1


if __name__ == "__main__":
    sys.exit(main())
