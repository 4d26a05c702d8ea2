from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from loopscope import LoopDetectionMiddleware, Policy
from loopscope.cli import run
from loopscope.engine.events import Batch, DecisionMade, Event, Header, PolicySet, Result, RunEnd, RunStart, Warned
from loopscope.errors import UsageError
from loopscope.recording.bus import bus
from loopscope.recording.reader import read
from tests.adapters.scripted import DONE, ScriptedModel, Turn, agent, ask, bash, on, turn
from tests.adapters.test_subagents import delegating, repeating
from tests.adapters.test_threads import by_thread

ROOT = Path(__file__).parents[2]


def recorded(path: Path) -> list[Event]:
    """The events of a recording, all of which must be readable."""
    events = [line.event for line in read(path)]
    assert None not in events
    return events  # type: ignore[return-value]  # just checked


def kinds(events: list[Event]) -> str:
    """The kinds of the events, one letter each."""
    letters = {
        Header: "H",
        RunStart: "S",
        Batch: "b",
        DecisionMade: "d",
        Result: "r",
        Warned: "w",
        RunEnd: "E",
        PolicySet: "P",
    }
    return "".join(letters[type(event)] for event in events)


def verified(path: Path) -> bool:
    """Whether the command line finds the recorded decisions equal to the replayed ones."""
    return run(["replay", str(path), "--verify"]) == 0


def test_a_recording_holds_the_whole_run(tmp_path: Path) -> None:
    """Header, graph, batches, decisions, warnings, results and the end, in the order in which they happened."""
    path = tmp_path / "run.jsonl"
    guard = LoopDetectionMiddleware(record=path)
    agent([turn(bash(), text="once more")], guard, name="fixer").invoke(ask(), on("t"))
    guard.close()
    events = recorded(path)
    assert kinds(events) == "HS" + "bdr" * 2 + "bdwrw" + "bdr" + "bd" + "E"
    header, start = events[:2]
    assert isinstance(header, Header)
    assert (header.policy, header.enforced) == (guard.policy.to_dict(), True)
    assert isinstance(start, RunStart)
    assert (start.agent, start.thread_id, start.resume_of) == ("fixer", "t", None)
    assert start.graph is not None
    assert {"model", "tools", "LoopDetectionMiddleware.after_model"} <= {node.id for node in start.graph.nodes}
    assert ("tools", "model") in {(edge.source, edge.target) for edge in start.graph.edges}
    batch = events[2]
    assert isinstance(batch, Batch)
    assert (batch.text, batch.node, batch.model) == ("once more", "model", "scripted-1")
    assert batch.message_id is not None
    assert batch.calls[0].args == {"command": "git status"}
    result = events[4]
    assert isinstance(result, Result)
    assert (result.call_id, result.name, result.status) == (batch.calls[0].id, "bash", "ok")
    assert (result.content, result.size) == ("ran git status", 14)
    assert [event.state for event in events if isinstance(event, Warned)] == ["queued", "delivered"]
    assert isinstance(events[-1], RunEnd)
    assert events[-1].status == "loop_capped"
    assert path.stat().st_mode & 0o777 == 0o600
    assert verified(path)


async def test_asynchronous_and_streamed_runs_are_recorded_alike(tmp_path: Path) -> None:
    """The same run gives the same events, however it is run."""
    shapes = set()
    for how in ("ainvoke", "astream", "stream"):
        path = tmp_path / f"{how}.jsonl"
        guard = LoopDetectionMiddleware(record=str(path))
        graph = agent([turn(bash())] * 3 + [DONE], guard)
        if how == "ainvoke":
            await graph.ainvoke(ask())
        elif how == "astream":
            async for _ in graph.astream(ask(), stream_mode="messages"):
                pass
        else:
            for _ in graph.stream(ask(), stream_mode="messages"):
                pass
        guard.close()
        events = recorded(path)
        shapes.add(kinds(events))
        assert events[1].graph is not None  # type: ignore[union-attr]
    assert shapes == {"HS" + "bdr" * 2 + "bdwrw" + "b" + "E"}


@pytest.mark.parametrize("limit", [100, 5])
def test_recorded_decisions_equal_replayed_ones(limit: int, tmp_path: Path) -> None:
    """Many runs, sub-agents and evictions through one middleware; the command line verifies every decision."""
    path = tmp_path / "many.jsonl"
    policy = Policy(max_tracked_threads=limit, tool_freq_warn=6, tool_freq_hard_limit=9)
    guard = LoopDetectionMiddleware(tool_freq_overrides={"delegate": (2, 3)}, policy=policy, record=path)
    graph = agent(by_thread, guard)
    for thread in range(12):
        graph.invoke(ask(f"thread {thread} run 0"), on(f"t{thread}"))
    inner = agent(repeating(4), guard, name="inner")
    agent([turn(("delegate", {"task": "x"}))], guard, tools=[delegating(inner)]).invoke(ask(), on("nested"))
    guard.reset("nested")
    guard.close()
    assert verified(path)


def test_secrets_never_reach_the_file_and_verdicts_stay(tmp_path: Path) -> None:
    """In arguments, texts, results and errors, and by the user's own pattern; the loop is found all the same."""
    path = tmp_path / "secret.jsonl"
    key, own = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD", "ACME-12345"
    guard = LoopDetectionMiddleware(record=path, redact=[r"ACME-\d+"])
    command = f"curl -H 'Authorization: Bearer {key}' https://x.example/{own}"
    graph = agent([turn(bash(command), text=f"I use {own}")], guard)
    final = graph.invoke(ask(), on("t"))
    guard.close()
    assert "[FORCED STOP]" in str(final["messages"][-1].content)
    text = path.read_text()
    assert key not in text
    assert own not in text
    counts = [event.hash_count for event in recorded(path) if isinstance(event, DecisionMade)]
    assert counts == [1, 2, 3, 4, 5]
    assert verified(path)
    assert final["messages"][1].tool_calls[0]["args"] == {"command": command}


def test_two_middlewares_share_a_file(tmp_path: Path) -> None:
    """Parent and sub-agent with policies of their own, one recording; the child's policy is told for its scope."""
    path = tmp_path / "shared.jsonl"
    outer_guard = LoopDetectionMiddleware(record=path)
    inner_guard = LoopDetectionMiddleware(hard_limit=3, record=path)
    inner = agent([turn(bash())], inner_guard, name="inner")
    outer = agent([turn(("delegate", {"task": "x"})), DONE], outer_guard, tools=[delegating(inner)], name="outer")
    outer.invoke(ask(), on("t"))
    outer_guard.close()
    inner_guard.close()
    events = recorded(path)
    assert kinds(events) == "HS" + "bd" + "SP" + "bdr" * 2 + "bd" + "E" + "r" + "b" + "E"
    assert verified(path)


def test_a_recording_holds_what_is_delegated_and_nothing_else(tmp_path: Path) -> None:
    """A sub-agent under a middleware of its own is part of it; another agent of the process is not."""
    path = tmp_path / "mine.jsonl"
    guard = LoopDetectionMiddleware(record=path)
    inner = agent([turn(bash()), DONE], LoopDetectionMiddleware(), name="inner")
    outer = agent([turn(("delegate", {"task": "x"})), DONE], guard, tools=[delegating(inner)], name="outer")
    other = agent([turn(bash()), DONE], LoopDetectionMiddleware(), name="other")
    other.invoke(ask())
    outer.invoke(ask())
    other.invoke(ask())
    guard.close()
    assert [event.agent for event in recorded(path) if isinstance(event, RunStart)] == ["outer", "inner"]


def test_detection_goes_on_after_the_recording_ends(tmp_path: Path) -> None:
    """Closing twice is closing once; later runs are guarded and not recorded."""
    path = tmp_path / "closed.jsonl"
    guard = LoopDetectionMiddleware(record=path)
    guard.close()
    guard.close()
    final = agent([turn(bash())], guard).invoke(ask())
    assert "[FORCED STOP]" in str(final["messages"][-1].content)
    assert kinds(recorded(path)) == "H"


def test_a_file_that_cannot_be_written_is_told_when_the_middleware_is_made(tmp_path: Path) -> None:
    """And not in the middle of a run."""
    with pytest.raises(UsageError, match="nowhere"):
        LoopDetectionMiddleware(record=tmp_path / "nowhere" / "run.jsonl")


def test_arguments_that_json_cannot_hold_are_counted_and_recorded(tmp_path: Path) -> None:
    """NaN, sets, integer keys and lone surrogates: equal calls stay equal, and a replay agrees."""
    path = tmp_path / "odd.jsonl"
    guard = LoopDetectionMiddleware(record=path)

    @tool
    def odd(value: Any) -> str:
        """Take anything."""
        return str(type(value))

    odds: list[Any] = [float("nan"), {1: 2}, "\ud800", {"n": float("inf")}]
    script = [turn(("odd", {"value": value})) for value in odds for _ in range(2)]
    agent([*script, DONE], guard, tools=[odd]).invoke(ask())
    guard.close()
    counts = [event.hash_count for event in recorded(path) if isinstance(event, DecisionMade)]
    assert counts == [1, 2] * len(odds)
    assert verified(path)


def run_script(body: str, path: Path) -> subprocess.CompletedProcess[str]:
    """Runs a program that records to `path`."""
    head = f"""
        from pathlib import Path
        from loopscope import LoopDetectionMiddleware
        from tests.adapters.scripted import DONE, Turn, agent, ask, bash, on, turn
        guard = LoopDetectionMiddleware(record={str(path)!r})
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "widgets"), *sys.path])}
    code = textwrap.dedent(head) + textwrap.dedent(body)
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_batch_is_on_disk_before_its_tools_run(tmp_path: Path) -> None:
    """A tool that kills the process leaves a recording that ends with the batch that asked for it."""
    path = tmp_path / "killed.jsonl"
    done = run_script(
        """
        import os, signal
        from langchain_core.tools import tool
        @tool
        def bash(command: str) -> str:
            "Run."
            os.kill(os.getpid(), signal.SIGKILL)
        agent([turn(("bash", {"command": "kill"}))], guard, tools=[bash]).invoke(ask())
        """,
        path,
    )
    assert done.returncode == -signal.SIGKILL
    events = recorded(path)
    assert kinds(events) == "HSbd"
    assert events[2].calls[0].args == {"command": "kill"}  # type: ignore[union-attr]


def test_a_program_that_crashes_tells_how_its_runs_ended(tmp_path: Path) -> None:
    """The model's error; and for a run that no hook saw the end of, that it is not known."""
    path = tmp_path / "crashed.jsonl"
    done = run_script(
        """
        try:
            agent([turn(bash())], guard).invoke(ask(), on("one", recursion_limit=4))
        except Exception:
            pass
        agent([turn(bash()), Turn(error=TimeoutError("no answer"))], guard).invoke(ask(), on("two"))
        """,
        path,
    )
    assert done.returncode == 1
    assert "no answer" in done.stderr
    ends = {event.thread_id: (event.status, event.reason) for event in recorded(path) if isinstance(event, RunEnd)}
    assert ends == {"one": ("unknown", None), "two": ("error", "TimeoutError: no answer")}


def test_what_is_recorded_is_what_was_published(tmp_path: Path) -> None:
    """An observer of the process and the file of the one agent that runs get the same events in the same order."""
    path = tmp_path / "both.jsonl"
    heard: list[Event] = []
    unsubscribe = bus.subscribe(heard.append)
    guard = LoopDetectionMiddleware(record=path)
    model = ScriptedModel(script=[turn(bash()), Turn(error=ValueError("x"))])
    with pytest.raises(ValueError, match="x"):
        agent(model, guard).invoke({"messages": [HumanMessage("go"), AIMessage("before"), HumanMessage("on")]}, on("t"))
    guard.close()
    unsubscribe()
    assert [json.loads(line)["seq"] for line in path.read_text().splitlines()[1:]] == [e.seq for e in heard]  # type: ignore[union-attr]
    assert kinds(recorded(path)) == "HSbdrE"
