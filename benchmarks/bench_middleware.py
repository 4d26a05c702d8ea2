"""What the middleware costs: its hook beside the floor of such hooks, its agent beside one with hooks that do nothing.

Machines are shared and noisy, so each figure is the least of many rounds, taken in turns with its yardstick in the same
process.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Callable
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.runtime import ExecutionInfo, RunControl, Runtime

from benchmarks.frame import Figure, in_turns, ratio, timed
from loopscope import LoopDetectionMiddleware, Policy

_BATCHES = 4_000
_ROUNDS = 25
_TURNS = 50
_RUNS = 40
_BAR = 20.0
"""Microseconds that a batch of an agent may cost more on a quiet machine, where the floor takes 17 of them."""
_RATIO = 1.15
_NEVER = Policy(tool_freq_warn=10**9, tool_freq_hard_limit=10**9)


def figures() -> list[Figure]:
    """The hook alone, and an agent's run, both with nobody watching."""
    return [_hook(), _agent()]


def _hook() -> Figure:
    """The whole `after_model` hook on distinct batches of one call."""
    arguments = [{"command": f"grep -n {number} notes.txt"} for number in range(_BATCHES)]
    calls = [{"name": "bash", "args": args, "id": f"call-{number}"} for number, args in enumerate(arguments)]
    states = [{"messages": [AIMessage("", id=str(uuid.uuid4()), tool_calls=[call])]} for call in calls]
    runtimes = _runtimes()

    def floor() -> None:
        for args in arguments:
            _floor(args)

    def hook() -> float:
        middleware = LoopDetectionMiddleware(policy=_NEVER)
        middleware.before_agent({}, runtimes[0])
        after_model = middleware.after_model
        start = time.perf_counter()
        for state, runtime in zip(states, runtimes, strict=True):
            after_model(state, runtime)
        taken = time.perf_counter() - start
        middleware.after_agent({"messages": []}, runtimes[0])
        return taken

    times = in_turns(_ROUNDS, hook, lambda: timed(floor))
    yardstick = "2 x json.dumps(sort_keys=True, default=str) and an MD5"
    return ratio("middleware's after_model, per distinct batch of one call", times, 1.1, yardstick, per=_BATCHES)


def _floor(args: dict[str, Any]) -> None:
    """The least that a guard does for a batch which hashes it as DeerFlow does."""
    key = json.dumps(args, sort_keys=True, default=str)
    whole = json.dumps([key], sort_keys=True, default=str)
    hashlib.md5(whole.encode(), usedforsecurity=False).hexdigest()


def _runtimes() -> list[Runtime[Any]]:
    """A runtime for each node of one invocation, as LangGraph makes them."""
    control = RunControl()
    tasks = [str(uuid.uuid4()) for _ in range(_BATCHES)]
    infos = [
        ExecutionInfo(checkpoint_id="c", checkpoint_ns=f"Guard.after_model:{task}", task_id=task, thread_id="t")
        for task in tasks
    ]
    return [Runtime(control=control, execution_info=info) for info in infos]


def _agent() -> Figure:
    """What a batch of an agent costs beyond the same agent with hooks that do nothing.

    It is taken inside the hooks, in the midst of the run, where nothing is in the processor's caches: a whole run
    varies by more than the difference. How much that costs on this machine at this time, the floor tells in the same
    place.
    """
    idle, ours, least = (_run_of(each) for each in (Idle(), LoopDetectionMiddleware(policy=_NEVER), Hashing()))
    rounds = [(idle(), ours()[0], least()[0]) for _ in range(_RUNS)]
    nothing = min(hooks for (hooks, _), _, _ in rounds)
    whole = min(run for (_, run), _, _ in rounds) / _TURNS * 1e6
    more = (min(spent for _, spent, _ in rounds) - nothing) / _TURNS * 1e6
    floor = (min(spent for _, _, spent in rounds) - nothing) / _TURNS * 1e6
    return Figure(
        "middleware in an agent's run, all hooks, per batch",
        f"+{more:.1f} us = {more / floor:.2f} x",
        f"+{floor:.1f} us: the same floor there; the batch takes {whole:.0f} us",
        f"<= +{_BAR:.0f} us or {_RATIO} x",
        more <= max(_BAR, _RATIO * floor),
    )


def _run_of(middleware: AgentMiddleware[Any, Any, Any]) -> Callable[[], tuple[float, float]]:
    """Measures one run of an agent: seconds in the hooks of this middleware, and in all."""
    within, spent = _watched(middleware)
    graph: Any = create_agent(Counting(turns=_TURNS), tools=[bash], middleware=[within])

    def run() -> tuple[float, float]:
        spent[0] = 0.0
        whole = timed(lambda: graph.invoke({"messages": [("user", "go")]}))
        return spent[0], whole

    return run


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


class Hashing(Idle):
    """The same hooks, and the floor."""

    def after_model(self, state: Any, runtime: Any) -> None:  # noqa: ARG002
        """Hash the call."""
        for call in state["messages"][-1].tool_calls:
            _floor(call["args"])


def _watched(middleware: AgentMiddleware[Any, Any, Any]) -> tuple[AgentMiddleware[Any, Any, Any], list[float]]:
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
