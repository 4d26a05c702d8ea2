from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphDrained
from langgraph.types import Command

from loopscope import LoopDetectionMiddleware, Policy
from loopscope.adapters.escalation import tried_in
from loopscope.engine.events import Event, RunEnd, RunStart
from loopscope.errors import PolicyError
from tests.adapters.scripted import DONE, ScriptedModel, Shell, agent, ask, bash, on, turn
from tests.adapters.test_subagents import delegating, repeating
from tests.adapters.test_warnings import HOW, run

Kinds = Callable[..., Any]


def stuck(on_stop: Any, *more: Any, saver: Any = True, **options: Any) -> tuple[Any, Shell, ScriptedModel]:
    """An agent that repeats one command, its shell and its model."""
    shell = Shell(lambda _: "nothing to commit")
    model = ScriptedModel(script=[*[turn(bash())] * 5, *more] if more else [turn(bash())])
    guard = LoopDetectionMiddleware(on_stop=on_stop)
    return (
        agent(model, guard, tools=[shell.tool], checkpointer=InMemorySaver() if saver else None, **options),
        shell,
        model,
    )


@HOW
async def test_an_interrupt_asks_a_person_and_tells_what_was_tried(how: str) -> None:
    """Before the tools run; a stop leaves the run ended as it would be without asking."""
    graph, shell, model = stuck("interrupt")
    state = await run(graph, how, config=on("t"))
    (asked,) = state["__interrupt__"] if "__interrupt__" in state else graph.get_state(on("t")).interrupts
    assert shell.ran == ["git status"] * 4
    command = {"name": "bash", "args": {"command": "git status"}}
    assert (asked.value["reason"], asked.value["iterations"], asked.value["calls"]) == ("loop_capped", 4, [command])
    assert asked.value["tried"] == [{"calls": [command], "times": 4, "result": "nothing to commit"}]
    assert "the same tool calls (bash) came 5 times" in asked.value["text"]
    final = graph.invoke(Command(resume="stop"), on("t"))
    assert "[FORCED STOP]" in str(final["messages"][-1].content)
    assert (len(shell.ran), len(model.requests)) == (4, 5)


def test_a_person_who_agrees_lets_these_calls_be_made() -> None:
    """Once: the next equal batch asks again."""
    graph, shell, _ = stuck("interrupt")
    graph.invoke(ask(), on("t"))
    again = graph.invoke(Command(resume=True), on("t"))
    assert len(shell.ran) == 5
    assert "came 6 times" in again["__interrupt__"][0].value["text"]


def test_a_persons_advice_goes_to_the_model_in_place_of_results() -> None:
    """No tool runs, each call is answered, and the model goes on."""
    graph, shell, model = stuck("interrupt", DONE)
    context: dict[str, Any] = {"run_id": "r"}
    graph.invoke(ask(), on("t"), context=context)
    final = graph.invoke(Command(resume="read the log instead"), on("t"), context={"run_id": "r"})
    assert final["messages"][-1].content == "done"
    assert len(shell.ran) == 4
    told = model.requests[-1][-1]
    assert isinstance(told, ToolMessage)
    assert told.status == "error"
    assert str(told.content).endswith("Advice: read the log instead")
    calls = [call["id"] for m in final["messages"] if isinstance(m, AIMessage) for call in m.tool_calls]
    assert [m.tool_call_id for m in final["messages"] if isinstance(m, ToolMessage)] == calls


def test_answers_for_a_schema_that_go_in_circles_are_stripped() -> None:
    """No call of them waits to be made, so that nobody need be asked."""
    from langchain.agents.structured_output import ToolStrategy
    from pydantic import BaseModel

    class Answer(BaseModel):
        """What the agent is to give."""

        value: int

    graph = agent(
        [turn(("Answer", {"value": "no number"}))],
        LoopDetectionMiddleware(on_stop="interrupt"),
        response_format=ToolStrategy(Answer),
        checkpointer=InMemorySaver(),
    )
    final = graph.invoke(ask(), on("t"))
    assert "__interrupt__" not in final
    assert "[FORCED STOP]" in str(final["messages"][-1].content)


def test_without_a_checkpointer_an_interrupt_strips() -> None:
    """Nobody could answer, so the run ends as by default."""
    graph, shell, _ = stuck("interrupt", saver=False)
    assert "[FORCED STOP]" in str(graph.invoke(ask())["messages"][-1].content)
    assert len(shell.ran) == 4


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_a_drain_ends_the_run_before_the_tools_and_keeps_its_state(asynchronous: bool) -> None:
    """`GraphDrained` says why; the calls are in the state, and whoever invokes it again makes them."""
    graph, shell, _ = stuck("drain")
    with pytest.raises(GraphDrained, match="came 5 times"):
        await graph.ainvoke(ask(), on("t")) if asynchronous else graph.invoke(ask(), on("t"))
    state = graph.get_state(on("t"))
    assert state.next == ("tools",)
    assert state.values["messages"][-1].tool_calls
    assert len(shell.ran) == 4
    with pytest.raises(GraphDrained, match="came 6 times"):
        graph.invoke(None, on("t"))
    assert len(shell.ran) == 5


def test_a_drain_in_a_sub_agent_ends_the_whole_run() -> None:
    """They share one control."""
    guard = LoopDetectionMiddleware(on_stop="drain")
    inner = agent(repeating(9), guard, name="inner")
    outer = agent([turn(("delegate", {"task": "x"}))], guard, tools=[delegating(inner)])
    with pytest.raises(GraphDrained):
        outer.invoke(ask())


def test_a_stop_reason_carries_what_was_tried() -> None:
    """However it was stopped; in the context and in what is consumed."""
    guard = LoopDetectionMiddleware(hard_limit=3)
    shell, context = Shell(), {"run_id": "r"}
    script = [turn(bash("ls")), turn(bash("pwd")), turn(bash("pwd")), turn(bash("pwd"))]
    agent(script, guard, tools=[shell.tool]).invoke(ask(), context=context)
    reason = guard.consume_stop_reason("r")
    assert reason is not None
    assert reason == context["stop_reason"] == "loop_capped"
    assert [(each.calls[0]["args"]["command"], each.times, each.result) for each in reason.tried] == [
        ("ls", 1, "ran ls"),
        ("pwd", 2, "ran pwd"),
    ]


def test_the_policy_file_can_say_it_too_and_a_wrong_word_is_told() -> None:
    """As any other setting."""
    assert LoopDetectionMiddleware(policy=Policy(on_stop="drain")).policy.on_stop == "drain"
    assert LoopDetectionMiddleware.from_config({"on_stop": "interrupt"}).policy.on_stop == "interrupt"
    with pytest.raises(PolicyError, match="strip, interrupt or drain"):
        LoopDetectionMiddleware(on_stop="raise")  # type: ignore[arg-type]


def test_the_events_tell_that_a_person_was_asked(events: list[Event], of: Kinds) -> None:
    """The run ends as escalated, and the one that goes on is a resume of it."""
    graph, _, _ = stuck("interrupt", DONE)
    graph.invoke(ask(), on("t"))
    graph.invoke(Command(resume=True), on("t"))
    assert [end.status for end in of(events, RunEnd)] == ["escalated", "completed"]
    first, second = of(events, RunStart)
    assert second.resume_of == first.run_id


def test_what_was_tried_is_bounded_and_takes_any_arguments() -> None:
    """The ten newest; arguments that are no JSON are equal to none."""
    circle: dict[str, Any] = {}
    circle["self"] = circle
    odd = AIMessage.model_construct(content="", tool_calls=[{"name": "x", "args": circle, "id": "1"}])
    many: list[Any] = [
        odd,
        odd,
        *(AIMessage("", tool_calls=[{"name": str(n), "args": {}, "id": str(n)}]) for n in range(9)),
    ]
    assert [attempt.calls[0]["name"] for attempt in tried_in(many)] == ["x", *map(str, range(9))]
