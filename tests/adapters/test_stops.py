from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from loopscope import LoopDetectionMiddleware
from loopscope.engine.events import DecisionMade, Event, RunEnd
from tests.adapters.scripted import DONE, ScriptedModel, Shell, agent, ask, bash, on, turn
from tests.adapters.test_warnings import HOW, run


@HOW
async def test_the_fifth_equal_batch_is_rejected_and_the_graph_ends_by_itself(how: str) -> None:
    """Four batches run, the fifth runs no tool; nothing raises; the last message says why, under the id that it had."""
    shell = Shell()
    model = ScriptedModel(script=[turn(bash(), text="once more")])
    final = await run(agent(model, LoopDetectionMiddleware(), tools=[shell.tool]), how)
    assert shell.ran == ["git status"] * 4
    assert len(model.requests) == 5
    last = final["messages"][-1]
    assert isinstance(last, AIMessage)
    assert not last.tool_calls
    assert str(last.content).startswith("once more\n\n[FORCED STOP]")
    assert last.response_metadata["finish_reason"] == "stop"
    assert len({message.id for message in final["messages"]}) == len(final["messages"])


@HOW
async def test_a_batch_whose_later_call_crosses_a_hard_limit_runs_no_tool_at_all(how: str) -> None:
    """An earlier call of the same batch only warns, yet none of the three is executed."""
    ran: list[str] = []

    @tool
    def read_file(path: str) -> str:
        """Read a file."""
        ran.append(path)
        return "text"

    batch = turn(*[("read_file", {"path": name}) for name in "abc"])
    guard = LoopDetectionMiddleware(tool_freq_warn=2, tool_freq_hard_limit=3)
    final = await run(agent([batch], guard, tools=[read_file]), how)
    assert ran == []
    assert "read_file was called 3 times" in str(final["messages"][-1].content)
    assert not any(isinstance(message, ToolMessage) for message in final["messages"])


def test_a_stop_clears_nothing() -> None:
    """In the same run the next identical batch is stopped at once."""
    shell = Shell()
    graph = agent([turn(bash())], LoopDetectionMiddleware(), tools=[shell.tool], checkpointer=InMemorySaver())
    for _ in range(3):
        graph.invoke(ask(), on("t"), context={"run_id": "one goal"})
    assert len(shell.ran) == 4


def test_the_same_command_once_per_turn_of_the_user_never_warns(events: list[Event], of: Callable[..., Any]) -> None:
    """Each turn is a run of its own; six times `git status` over six turns is no loop."""
    script = [said for _ in range(6) for said in (turn(bash()), DONE)]
    graph = agent(script, LoopDetectionMiddleware(), checkpointer=InMemorySaver())
    for _ in range(6):
        graph.invoke(ask("status?"), on("t"))
    decisions = of(events, DecisionMade)
    assert [decision.action for decision in decisions] == ["pass"] * 6
    assert len({decision.run_id for decision in decisions}) == 6


@pytest.mark.parametrize("config", [{"run_id": "5f3f9a4e-8d2c-4e36-9a39-4b6cfb1f5d11"}, {}])
def test_entries_of_one_run_share_one_budget(config: dict[str, Any]) -> None:
    """A run id that the caller repeats, in the context or in the config, is one run."""
    shell = Shell()
    script = [said for _ in range(6) for said in (turn(bash()), DONE)]
    graph = agent(script, LoopDetectionMiddleware(), tools=[shell.tool], checkpointer=InMemorySaver())
    for _ in range(6):
        graph.invoke(ask(), on("t", **config), context=None if config else {"run_id": "one"})
    assert len(shell.ran) == 4


def test_a_run_id_of_none_is_a_run_id() -> None:
    """The key is there, so None is kept: all such entries of a thread are one run."""
    shell, guard = Shell(), LoopDetectionMiddleware()
    script = [said for _ in range(6) for said in (turn(bash()), DONE)]
    graph = agent(script, guard, tools=[shell.tool], checkpointer=InMemorySaver())
    for _ in range(5):
        graph.invoke(ask(), on("t"), context={"run_id": None})
    assert len(shell.ran) == 4
    assert guard.consume_stop_reason(None) == "loop_capped"


def test_a_stop_reason_is_read_once(events: list[Event], of: Callable[..., Any]) -> None:
    """By run id, in the caller's context, and as the status of the run's end."""
    guard = LoopDetectionMiddleware()
    context = {"run_id": "r", "thread_id": "t"}
    agent([turn(bash())], guard).invoke(ask(), context=context)
    assert context["stop_reason"] == "loop_capped"
    assert guard.consume_stop_reason("r") == "loop_capped"
    assert guard.consume_stop_reason("r") is None
    (end,) = of(events, RunEnd)
    assert (end.thread_id, end.run_id, end.status) == ("t", "r", "loop_capped")


def test_a_caller_who_named_no_run_can_ask_by_what_the_context_holds() -> None:
    """The reason in the context knows the generated run id."""
    guard, context = LoopDetectionMiddleware(), {"user": "x"}
    agent([turn(bash())], guard).invoke(ask(), context=context)
    assert guard.consume_stop_reason("loop_capped") is None
    assert guard.consume_stop_reason(context["stop_reason"]) == "loop_capped"
    assert guard.consume_stop_reason(context["stop_reason"]) is None


def test_a_warning_is_no_stop_reason(events: list[Event], of: Callable[..., Any]) -> None:
    """A run that was warned and recovered ended as any other."""
    guard, context = LoopDetectionMiddleware(), {"run_id": "r"}
    agent([turn(bash())] * 3 + [DONE], guard).invoke(ask(), context=context)
    assert guard.consume_stop_reason("r") is None
    assert context == {"run_id": "r"}
    assert [end.status for end in of(events, RunEnd)] == ["completed"]


def test_a_context_that_takes_no_notes_does_not_disturb() -> None:
    """A frozen context is left as it is."""

    class Frozen(BaseModel, frozen=True):
        run_id: str = "frozen"

    guard = LoopDetectionMiddleware()
    agent([turn(bash())], guard, context_schema=Frozen).invoke(ask(), context=Frozen())
    assert guard.consume_stop_reason("frozen") == "loop_capped"


def test_reset_of_a_thread_forgets_its_counts_and_reasons_and_no_other() -> None:
    """After it the same calls start over, in that thread alone."""
    shell, guard = Shell(), LoopDetectionMiddleware()
    graph = agent([turn(bash())], guard, tools=[shell.tool], checkpointer=InMemorySaver())
    for thread in ("a", "b"):
        graph.invoke(ask(), on(thread), context={"run_id": f"run of {thread}"})
    guard.reset("a")
    assert guard.consume_stop_reason("run of a") is None
    assert guard.consume_stop_reason("run of b") == "loop_capped"
    shell.ran.clear()
    graph.invoke(ask(), on("b"), context={"run_id": "run of b"})
    assert shell.ran == []
    graph.invoke(ask(), on("a"), context={"run_id": "run of a"})
    assert len(shell.ran) == 4
    guard.reset()
    graph.invoke(ask(), on("b"), context={"run_id": "run of b"})
    assert len(shell.ran) == 8


class Last(AgentMiddleware[Any, Any, Any]):
    """Sees the model's message after the guard did, and notes whether it calls anything."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[bool] = []

    def after_model(self, state: Any, runtime: Any) -> None:  # noqa: ARG002
        """Note it."""
        self.seen.append(bool(getattr(state["messages"][-1], "tool_calls", ())))


class Answer(BaseModel):
    """What the agent is to give."""

    value: int


@pytest.mark.parametrize("others", [[], [Last]])
@pytest.mark.parametrize("tools", [True, False])
def test_structured_output_that_goes_in_circles_is_stopped(tools: bool, others: list[type[Last]]) -> None:
    """Of five equal answers that do not fit the schema the last is replaced, its tool message goes, the agent ends."""
    model = ScriptedModel(script=[turn(("Answer", {"value": "no number"}))])
    options: dict[str, Any] = {} if tools else {"tools": []}
    guards = [*(other() for other in others), LoopDetectionMiddleware()]
    graph = agent(model, *guards, response_format=ToolStrategy(Answer), **options)
    final = graph.invoke(ask())
    assert len(model.requests) == 5
    assert isinstance(final["messages"][-1], AIMessage)
    assert "[FORCED STOP]" in str(final["messages"][-1].content)
    answered = [message.tool_call_id for message in final["messages"] if isinstance(message, ToolMessage)]
    called = [
        call["id"] for message in final["messages"] if isinstance(message, AIMessage) for call in message.tool_calls
    ]
    assert answered == called
    assert len(called) == 4


def test_structured_output_is_observed_though_a_tool_message_is_behind_it(events: list[Event]) -> None:
    """The batch is that of the AI message, and its own tool message is the result."""
    graph = agent([turn(("Answer", {"value": 1}))], LoopDetectionMiddleware(), response_format=ToolStrategy(Answer))
    final = graph.invoke(ask())
    assert final["structured_response"] == Answer(value=1)
    kinds = [type(event).__name__ for event in events]
    assert kinds == ["RunStart", "Batch", "DecisionMade", "Result", "RunEnd"]


def test_other_middlewares_still_see_the_message_that_was_stopped() -> None:
    """A stop jumps over nobody: what redacts or logs the answer gets the one that is kept."""
    last = Last()
    agent([turn(bash())], last, LoopDetectionMiddleware()).invoke(ask())
    assert last.seen == [True] * 4 + [False]


def test_the_graph_has_the_documented_nodes() -> None:
    """`before_agent` changes nothing and is a node all the same, so that checkpoints of other versions fit."""
    graph = agent([DONE], LoopDetectionMiddleware())
    own = {f"LoopDetectionMiddleware.{hook}" for hook in ("before_agent", "after_model", "after_agent")}
    assert set(graph.get_graph().nodes) == {"__start__", "model", "tools", "__end__"} | own
