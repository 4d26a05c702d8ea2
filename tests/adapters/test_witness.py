from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from loopscope import BoundedLoop, LoopDetectionMiddleware, Policy, tap
from loopscope import open as opened
from loopscope.engine.events import DecisionMade, Event, RunEnd, Witness
from loopscope.errors import PredicateError
from tests.adapters.bounded.sql import MISSPELT, answered, guarded, queries
from tests.adapters.scripted import ScriptedModel, Shell, agent, ask, bash, on, turn
from tests.adapters.test_warnings import HOW, run

Kinds = Callable[..., Any]
FILES = Policy.parse({"stagnation": {"witness": "files", "mode": "increases", "warn": 1, "hard_limit": 2}})


def written(state: Any) -> int:
    """How many different commands were run."""
    return len({str(message.content) for message in state["messages"] if message.type == "tool"})


@HOW
async def test_a_value_of_the_state_that_stands_still_stops_an_agent(how: str, events: list[Event], of: Kinds) -> None:
    """Calls and results differ each time; the number of files does not, and that is what counts."""
    shell = Shell(lambda command: "a" if command == "touch a" else "b")
    script = [turn(bash(command)) for command in ("touch a", "touch b", "touch c", "touch d", "touch e", "touch f")]
    guard = LoopDetectionMiddleware(policy=FILES, witness={"files": written})
    final = await run(agent(script, guard, tools=[shell.tool]), how)
    assert "no progress" in str(final["messages"][-1].content)
    assert shell.ran == ["touch a", "touch b", "touch c", "touch d"]
    assert [event.values["files"] for event in of(events, Witness)] == [0, 1, 2, 2, 2]
    assert [end.status for end in of(events, RunEnd)] == ["stagnated"]


def test_the_recording_replays_with_its_witnesses(
    tmp_path: Path, events: list[Event], decided: Callable[..., Any],
    replayed: Callable[[Sequence[Event], Policy], Any],
) -> None:  # fmt: skip
    """They are events, so that what was decided comes out again."""
    shell = Shell(lambda _: "same")
    script = [turn(bash(f"touch {letter}")) for letter in "abcdef"]
    guard = LoopDetectionMiddleware(policy=FILES, witness={"files": written}, record=tmp_path / "run.jsonl")
    agent(script, guard, tools=[shell.tool]).invoke(ask())
    guard.close()
    assert decided(events) == replayed(events, FILES)
    assert opened(tmp_path / "run.jsonl").first_stop() == 3


def test_a_witness_that_asks_a_model_is_refused() -> None:
    """As everywhere."""
    with pytest.raises(PredicateError, match=r"^witness\['files'\]= "):
        LoopDetectionMiddleware(witness={"files": ScriptedModel(script=[])})  # type: ignore[dict-item]


def test_a_bounded_loop_shows_its_witness_to_whoever_observes(events: list[Event], of: Kinds) -> None:
    """The tap's events have it, named as the loop; under a policy that names it, the engine sees the standstill too."""
    policy = Policy.parse({"stagnation": {"witness": "sql", "warn": 1}})
    loop = BoundedLoop("sql", max_iterations=9, success=answered, patience=3)
    guarded(ScriptedModel(script=queries(MISSPELT)), loop).invoke(ask(), {"callbacks": [tap(policy=policy)]})
    told = [event.values["sql"] for event in of(events, Witness)]
    assert len(told) == 4
    assert all("custmer" in str(value) for value in told)
    assert [decision.layer for decision in of(events, DecisionMade) if decision.action == "warn"][:1] == ["stagnation"]


def test_a_run_whose_loop_gave_up_ends_as_escalated(events: list[Event], of: Kinds) -> None:
    """Not as completed; where a person is waited for, it has not ended."""
    loop = BoundedLoop("sql", max_iterations=9, success=answered)
    guarded(ScriptedModel(script=queries(MISSPELT)), loop).invoke(ask(), {"callbacks": [tap()]})
    assert [end.status for end in of(events, RunEnd)] == ["escalated"]
    waiting = guarded(ScriptedModel(script=queries(MISSPELT)), loop, checkpointer=InMemorySaver())
    waiting.invoke(ask(), on("t", callbacks=[tap()]))
    assert len(of(events, RunEnd)) == 1


def test_a_recording_alone_has_the_witness_too(tmp_path: Path) -> None:
    """Nobody need be on the bus."""
    watcher = tap(record=tmp_path / "run.jsonl")
    loop = BoundedLoop("sql", max_iterations=9, success=answered)
    guarded(ScriptedModel(script=queries(MISSPELT)), loop).invoke(ask(), {"callbacks": [watcher]})
    watcher.close()
    assert (tmp_path / "run.jsonl").read_text().count('"kind":"witness"') == 2


def test_nobody_who_observes_is_nobody_who_is_told() -> None:
    """The loop works the same."""
    loop = BoundedLoop("sql", max_iterations=9, success=answered)
    final = guarded(ScriptedModel(script=queries(MISSPELT)), loop).invoke(ask())
    assert final["sql_ended"] == "stagnation"
