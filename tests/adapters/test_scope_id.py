from __future__ import annotations

import gc
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from langchain_core.messages import AIMessage
from langgraph.runtime import ExecutionInfo, RunControl, Runtime

from loopscope import LoopDetectionMiddleware
from loopscope.adapters.scope_id import Scope, ScopeIds
from loopscope.engine.events import ScopeKey


def ids(limit: int = 100, lost: list[Scope] | None = None) -> ScopeIds[Scope]:
    """What tells scopes apart, for an adapter that keeps nothing of them."""
    return ScopeIds(limit, Scope, (lost if lost is not None else []).append)


def runtime(  # noqa: PLR0913 - what a runtime tells
    control: RunControl | None, namespace: str = "node:1", *, thread: str | None = None, run: str | None = None,
    context: Any = None, task: str = "task",
) -> Runtime[Any]:  # fmt: skip
    """A runtime of a node, new each time as LangGraph's are."""
    info = ExecutionInfo(checkpoint_id="c", checkpoint_ns=namespace, task_id=task, thread_id=thread, run_id=run)
    return Runtime(control=control, execution_info=info, context=context)


def test_the_thread_is_the_contexts_else_the_configs_else_default() -> None:
    """Always as text."""
    found = ids()
    keys = [
        found.begin(runtime(RunControl(), thread="t", context={"thread_id": 5})).key.thread_id,
        found.begin(runtime(RunControl(), thread="t", context={"thread_id": ""})).key.thread_id,
        found.begin(runtime(RunControl(), thread="t", context=SimpleNamespace(thread_id="mine"))).key.thread_id,
        found.begin(runtime(RunControl())).key.thread_id,
    ]
    assert keys == ["5", "t", "mine", "default"]


def test_the_run_is_the_contexts_else_the_configs_else_generated() -> None:
    """None is kept where a mapping says so; a generated id is like no other."""
    found = ids()
    named = [
        found.begin(runtime(RunControl(), run="config", context={"run_id": "context"})).key.run_id,
        found.begin(runtime(RunControl(), run="config", context={"run_id": None})).key.run_id,
        found.begin(runtime(RunControl(), run="config", context={"user": 1})).key.run_id,
        found.begin(runtime(RunControl(), run="config", context=SimpleNamespace(run_id=7))).key.run_id,
    ]
    assert named == ["context", None, "config", "7"]
    generated = {found.begin(runtime(RunControl())).key.run_id for _ in range(50)}
    assert len(generated) == 50
    assert all(isinstance(run_id, str) for run_id in generated)


def test_every_node_of_an_invocation_has_the_same_scope() -> None:
    """New runtimes, one control."""
    found, control = ids(), RunControl()
    scope = found.begin(runtime(control))
    assert all(found.find(runtime(control, f"node:{n}")) is scope for n in range(5))


def test_a_control_at_a_reused_address_is_another_invocation() -> None:
    """Identity is compared and the object held, so the address of one that is gone means nothing."""
    found = ids()
    seen = set()
    for _ in range(200):
        control = RunControl()
        scope = found.begin(runtime(control))
        seen.add(scope.key)
        found.end(scope)
        del control, scope
        gc.collect(0)
    assert len(seen) == 200


def test_two_adapters_give_one_answer() -> None:
    """What one has generated, the other finds, in the same process."""
    one, other, control = ids(), ids(), RunControl()
    assert one.begin(runtime(control)).key == other.find(runtime(control)).key
    sub = runtime(control, "tools:1|node:2")
    assert one.begin(sub).key == other.find(sub).key


@pytest.mark.parametrize(
    ("prefix", "parent"),
    [
        ("tools:1", "r"),
        ("tools:1|2", "r"),
        ("tools:1|tools:2", "r/tools:1"),
        ("tools:1|3|tools:2", "r"),
        ("tools:1|plain:5|tools:2", "r/tools:1"),
        ("other:1|tools:2", "r"),
    ],
)
def test_the_parent_is_the_nearest_loop_around(prefix: str, parent: str) -> None:
    """Numbers tell siblings apart; graphs that are no agents are passed over."""
    found, control = ids(), RunControl()
    found.begin(runtime(control, thread="t", context={"run_id": "r"}))
    context = {"run_id": "r"}
    outer = runtime(control, "tools:1|node:9", thread="t", context=context)
    if prefix != "tools:1":
        found.begin(outer)
    scope = found.begin(runtime(control, f"{prefix}|node:9", thread="t", context=context))
    assert scope.key == ScopeKey("t", f"r/{prefix}")
    assert scope.parent_key == ScopeKey("t", parent)


def test_runtimes_without_a_control_are_invocations_of_their_own() -> None:
    """An older LangGraph, or a test that calls the hooks itself."""
    found = ids()
    bare: Runtime[Any] = Runtime(context={"thread_id": "t"})
    assert found.find(bare) is found.find(bare)
    assert found.find(runtime(None, context={"run_id": "r"})).key == ScopeKey("default", "r")


def test_what_has_been_idle_longest_is_given_up_first() -> None:
    """Invocations in which hooks are called stay; of the others the oldest goes, and its loops are told of."""
    lost: list[Scope] = []
    found = ids(3, lost)
    controls = [RunControl() for _ in range(6)]
    scopes = [found.begin(runtime(control)) for control in controls[:3]]
    found.begin(runtime(controls[3]))
    assert lost == scopes[:1]
    assert found.find(runtime(controls[1])) is scopes[1]
    found.begin(runtime(controls[4]))
    assert lost == [scopes[0], scopes[2]]
    assert len(list(found.open_scopes())) == 3


def test_a_thread_in_which_too_much_was_left_open_forgets_the_oldest() -> None:
    """Unfinished runs are bounded, per thread and in all."""
    found = ids(2)
    for thread in "abc":
        for _ in range(9):
            found.begin(runtime(RunControl(), thread=thread))
    assert list(found._runs) == ["b", "c"]
    assert {len(runs) for runs in found._runs.values()} == {4}
    assert len(found._last) <= 2


def test_forgetting_takes_no_invocation_for_a_resume() -> None:
    """After a reset of everything a resume is a run of its own."""
    found = ids()
    first = found.begin(runtime(RunControl(), thread="t"))
    assert found.find(runtime(RunControl(), thread="t")).key == first.key
    found.forget()
    assert found.find(runtime(RunControl(), thread="t")).key != first.key


def calling(command: str = "ls") -> dict[str, Any]:
    """A state whose newest message makes one call."""
    return {"messages": [AIMessage("", tool_calls=[{"name": "bash", "args": {"command": command}, "id": "c"}])]}


@pytest.mark.parametrize("kind", ["runtime", "namespace", "mock"])
def test_hooks_can_be_called_without_a_graph(kind: str) -> None:
    """As unit tests of an application do, with whatever stands for a runtime."""

    def made(context: dict[str, Any]) -> Any:
        if kind == "runtime":
            runtime: Runtime[Any] = Runtime(context=context)
            return runtime
        if kind == "namespace":
            return SimpleNamespace(context=context)
        mock = MagicMock()
        mock.context = context
        return mock

    guard = LoopDetectionMiddleware()
    one, two = made({"thread_id": "t", "run_id": "one"}), made({"thread_id": "t", "run_id": "two"})
    assert [guard.after_model(calling(), one) for _ in range(4)] == [None] * 4
    assert guard.after_model(calling(), two) is None
    update = guard.after_model(calling(), one)
    assert update is not None
    assert update["messages"][-1].tool_calls == []
    assert guard.consume_stop_reason("one") == "loop_capped"
    guard.after_agent({"messages": []}, one)
    for messages in ([], [AIMessage("hi")]):
        assert guard.after_model({"messages": messages}, one) is None
