from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, interrupt

from loopscope import LoopDetectionMiddleware
from loopscope.engine.events import Batch, DecisionMade, Event, RunStart, Warned
from tests.adapters.scripted import DONE, ScriptedModel, Shell, agent, ask, bash, on, turn
from tests.adapters.test_warnings import warnings_in

APPROVE: Command[Any] = Command(resume={"decisions": [{"type": "approve"}]})


@pytest.fixture(params=["memory", "sqlite"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A checkpointer of each kind."""
    if request.param == "memory":
        yield InMemorySaver()
        return
    connection = sqlite3.connect(tmp_path / "checkpoints.db", check_same_thread=False)
    yield SqliteSaver(connection)
    connection.close()


def approval() -> HumanInTheLoopMiddleware[Any, Any, Any]:
    """Asks a person before each call of `bash`."""
    return HumanInTheLoopMiddleware(interrupt_on={"bash": True})


def test_six_identical_approval_gated_calls_over_resumes_stop_at_the_fifth(
    saver: Any, events: list[Event], of: Callable[..., Any]
) -> None:
    """Every resume is a new invocation without a run id, and yet one run: four approvals are asked for, not six."""
    shell = Shell()
    model = ScriptedModel(script=[*[turn(bash())] * 6, DONE])
    graph = agent(model, approval(), LoopDetectionMiddleware(), tools=[shell.tool], checkpointer=saver)
    state = graph.invoke(ask(), on("t"))
    approvals = 0
    while "__interrupt__" in state:
        approvals += 1
        state = graph.invoke(APPROVE, on("t"))
    assert approvals == 4
    assert shell.ran == ["git status"] * 4
    assert "[FORCED STOP]" in str(state["messages"][-1].content)
    assert [len(warnings_in(request)) for request in model.requests] == [0, 0, 0, 1, 0]
    decisions = of(events, DecisionMade)
    assert [decision.hash_count for decision in decisions] == [1, 2, 3, 4, 5]
    (run_id,) = {decision.run_id for decision in decisions}
    assert [start.resume_of for start in of(events, RunStart)] == [None] + [run_id] * 4


@pytest.mark.parametrize("mode", ["batched", "per_call"])
async def test_asynchronous_resumes_are_the_same_run(mode: Any) -> None:
    """Whether the approval is asked for behind the model or within the tools."""
    shell = Shell()
    gate: Any = HumanInTheLoopMiddleware(interrupt_on={"bash": True}, interrupt_mode=mode)
    graph = agent([turn(bash())], gate, LoopDetectionMiddleware(), tools=[shell.tool], checkpointer=InMemorySaver())
    state = await graph.ainvoke(ask(), on("t"))
    while "__interrupt__" in state:
        answer: Any = {"type": "approve"} if mode == "per_call" else {"decisions": [{"type": "approve"}]}
        state = await graph.ainvoke(Command(resume=answer), on("t"))
    assert len(shell.ran) == 4


def test_a_warning_waits_over_a_resume() -> None:
    """The batch that is warned is the one that asks for approval; the model is told after it."""
    model = ScriptedModel(script=[turn(bash("a")), turn(bash("a")), DONE])
    graph = agent(model, approval(), LoopDetectionMiddleware(warn_threshold=2), checkpointer=InMemorySaver())
    graph.invoke(ask(), on("t"))
    graph.invoke(APPROVE, on("t"))
    graph.invoke(APPROVE, on("t"))
    assert [len(warnings_in(request)) for request in model.requests] == [0, 0, 1]


def test_a_new_turn_after_an_abandoned_interrupt_is_a_run_of_its_own(
    events: list[Event], of: Callable[..., Any]
) -> None:
    """A person who answers with a new message begins anew; only a resume goes on."""
    graph = agent([turn(bash())], approval(), LoopDetectionMiddleware(), checkpointer=InMemorySaver())
    graph.invoke(ask(), on("t"))
    graph.invoke(ask(), on("t"))
    graph.invoke(APPROVE, on("t"))
    first, second, third = of(events, Batch)
    assert first.run_id != second.run_id == third.run_id


def test_interrupted_threads_do_not_take_up_each_others_runs(events: list[Event], of: Callable[..., Any]) -> None:
    """Resumes in the other order than the interrupts each find the run of their own thread."""
    graph = agent([turn(bash())], approval(), LoopDetectionMiddleware(), checkpointer=InMemorySaver())
    for thread in ("a", "b"):
        graph.invoke(ask(), on(thread))
    for thread in ("a", "b"):
        graph.invoke(APPROVE, on(thread))
    runs: dict[str, set[str]] = {}
    for batch in of(events, Batch):
        runs.setdefault(batch.thread_id, set()).add(batch.run_id)
    assert [len(ids) for ids in runs.values()] == [1, 1]
    assert runs["a"] != runs["b"]


def test_a_resume_under_a_new_run_id_has_a_fresh_budget(events: list[Event], of: Callable[..., Any]) -> None:
    """Who names runs decides what is one; the recording still tells what was taken up."""
    graph = agent([turn(bash())], approval(), LoopDetectionMiddleware(), checkpointer=InMemorySaver())
    graph.invoke(ask(), on("t"), context={"run_id": "one"})
    graph.invoke(APPROVE, on("t"), context={"run_id": "two"})
    assert [decision.hash_count for decision in of(events, DecisionMade)] == [1, 1]
    assert [start.resume_of for start in of(events, RunStart)] == [None, "one"]


class Confirmed(LoopDetectionMiddleware):
    """A guard whose own node asks somebody after it has decided, and is executed again on the answer."""

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Decide, then ask."""
        update = super().after_model(state, runtime)
        interrupt("go on?")
        return update


def test_a_node_that_is_executed_again_counts_once(events: list[Event], of: Callable[..., Any]) -> None:
    """The same task gives the decision that it gave before, stops too, and no event."""
    shell = Shell()
    guard = Confirmed(hard_limit=3, warn_threshold=2)
    graph = agent([turn(bash())], guard, tools=[shell.tool], checkpointer=InMemorySaver())
    state = graph.invoke(ask(), on("t"))
    while "__interrupt__" in state:
        state = graph.invoke(Command(resume="yes"), on("t"))
    assert [decision.hash_count for decision in of(events, DecisionMade)] == [1, 2, 3]
    assert len(shell.ran) == 2
    assert "[FORCED STOP]" in str(state["messages"][-1].content)
    assert [event.state for event in of(events, Warned)] == ["queued", "delivered"]


def test_a_node_that_is_executed_again_under_another_run_id_counts_once(
    events: list[Event], of: Callable[..., Any]
) -> None:
    """It is the task that was decided, whoever resumes it."""
    graph = agent([turn(bash()), DONE], Confirmed(), checkpointer=InMemorySaver())
    graph.invoke(ask(), on("t"), context={"run_id": "one"})
    graph.invoke(Command(resume="yes"), on("t"), context={"run_id": "two"})
    assert [batch.calls != () for batch in of(events, Batch)] == [True, False]


def test_a_fork_from_an_earlier_checkpoint_counts_anew(events: list[Event], of: Callable[..., Any]) -> None:
    """Going back and running on is a new execution, though it starts before the very same node."""
    graph = agent([turn(bash()), DONE], LoopDetectionMiddleware(), checkpointer=InMemorySaver())
    graph.invoke(ask(), on("t"))
    earlier = [s for s in graph.get_state_history(on("t")) if s.next == ("LoopDetectionMiddleware.after_model",)]
    graph.invoke(None, earlier[-1].config)
    counted = of(events, DecisionMade)
    assert len(counted) == 2
    assert counted[0].hash == counted[1].hash
    assert counted[0].run_id != counted[1].run_id


def test_a_fork_within_a_named_run_goes_on_counting(events: list[Event], of: Callable[..., Any]) -> None:
    """The caller says that it is the same run, so what is executed again adds to it."""
    graph = agent([turn(bash()), DONE], LoopDetectionMiddleware(), checkpointer=InMemorySaver())
    graph.invoke(ask(), on("t"), context={"run_id": "r"})
    earlier = [s for s in graph.get_state_history(on("t")) if s.next == ("LoopDetectionMiddleware.after_model",)]
    graph.invoke(None, earlier[-1].config, context={"run_id": "r"})
    assert [decision.hash_count for decision in of(events, DecisionMade)] == [1, 2]


def test_static_interrupts_are_resumes_too(events: list[Event], of: Callable[..., Any]) -> None:
    """A graph that is stepped by `interrupt_before` stays one run."""
    graph = agent([turn(bash())], LoopDetectionMiddleware(), checkpointer=InMemorySaver(), interrupt_before=["tools"])
    state = graph.invoke(ask(), on("t"))
    while graph.get_state(on("t")).next:
        state = graph.invoke(None, on("t"))
    assert "[FORCED STOP]" in str(state["messages"][-1].content)
    assert len({batch.run_id for batch in of(events, Batch)}) == 1


@pytest.mark.parametrize("own_checkpoints", [None, True])
def test_a_sub_agent_that_asks_keeps_its_scope_and_that_of_its_parent(
    own_checkpoints: bool | None, events: list[Event], of: Callable[..., Any]
) -> None:
    """The first hook of the resume is the sub-agent's; both go on counting where they were; each delegation is fresh.

    A sub-agent with checkpoints of its own has the same namespace in each delegation, and remembers the one before.
    """
    delegations = 2

    @tool
    def delete(path: str) -> str:
        """Delete a file."""
        return f"{path}: {interrupt('really?')}"

    inner_guard, outer_guard = LoopDetectionMiddleware(), LoopDetectionMiddleware()
    twice = _until(2, ("delete", {"path": "x"}))
    inner = agent(twice, inner_guard, tools=[delete], name="inner", checkpointer=own_checkpoints)

    @tool
    def delegate(task: str) -> str:
        """Delegate."""
        return str(inner.invoke({"messages": [HumanMessage(task)]})["messages"][-1].content)

    outer = agent(_until(2, ("delegate", {"task": "t"})), outer_guard, tools=[delegate], checkpointer=InMemorySaver())
    state = outer.invoke(ask(), on("t"))
    while "__interrupt__" in state:
        state = outer.invoke(Command(resume="yes"), on("t"))
    scopes: dict[str | None, list[int]] = {}
    for decision in of(events, DecisionMade):
        scopes.setdefault(decision.run_id, []).append(decision.hash_count)
    base = min(scopes, key=lambda run_id: len(str(run_id)))
    assert scopes.pop(base) == [1, 2]
    assert all(str(run_id).startswith(f"{base}/tools") for run_id in scopes)
    assert list(scopes.values()) == [[1, 2]] * delegations
    parents = {start.run_id: start.parent_run_id for start in of(events, RunStart)}
    assert parents == {base: None} | dict.fromkeys(scopes, base)


def _until(count: int, call: Any) -> Callable[[list[Any]], Any]:
    """Makes this call so many times for each message of the user, then is done."""

    def script(messages: list[Any]) -> Any:
        asked = max(index for index, message in enumerate(messages) if isinstance(message, HumanMessage))
        return turn(call) if sum(isinstance(m, AIMessage) for m in messages[asked:]) < count else DONE

    return script


def test_a_sub_agent_without_checkpoints_that_starts_over_is_in_the_same_run(
    events: list[Event], of: Callable[..., Any]
) -> None:
    """The resume begins with the `before_agent` of the sub-agent, and is no new run of the parent for that."""
    inner = agent([DONE], LoopDetectionMiddleware(), tools=[], name="inner", checkpointer=False)

    @tool
    def delegate(task: str) -> str:
        """Delegate, then ask."""
        inner.invoke({"messages": [HumanMessage(task)]})
        return str(interrupt("really?"))

    guard = LoopDetectionMiddleware()
    outer = agent(_until(2, ("delegate", {"task": "t"})), guard, tools=[delegate], checkpointer=InMemorySaver())
    state = outer.invoke(ask(), on("t"))
    while "__interrupt__" in state:
        state = outer.invoke(Command(resume="yes"), on("t"))
    assert [decision.hash_count for decision in of(events, DecisionMade)] == [1, 2]


def test_the_order_of_middlewares_is_the_documented_one() -> None:
    """Listed last the guard decides before anybody is asked; a rejected batch needs no approval."""
    model = ScriptedModel(script=[turn(*[bash()] * 2)])
    guard = LoopDetectionMiddleware(tool_freq_warn=1, tool_freq_hard_limit=2)
    graph = agent(model, approval(), guard, checkpointer=InMemorySaver())
    state = graph.invoke(ask(), on("t"))
    assert "__interrupt__" not in state
