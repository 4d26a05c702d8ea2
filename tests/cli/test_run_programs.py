from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from loopscope.cli import run
from loopscope.engine.events import Batch, Control, Event, Header, Result, RunEnd, RunStart
from loopscope.link.discovery import Entry, entries
from loopscope.link.follow import Follow
from loopscope.recording.feed import Connection, Held, Message, Snapshotted
from loopscope.recording.reader import read

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
COMMANDS = {
    "typed_dict": ["typed_dict.py"],
    "async_only": ["async_only.py"],
    "fan_out": ["fan_out.py"],
    "subgraph": ["subgraph.py"],
    "sqlite": ["sqlite.py"],
    "interrupts": ["interrupts.py"],
    "agent": ["agent.py"],
    "pydantic_state": ["pydantic_state.py"],
    "dataclass_state": ["dataclass_state.py"],
    "in_function": ["in_function.py"],
    "with_argv": ["with_argv.py", "--record", "of its own", "-m", "2", "rest", "--", "--wait"],
    "relative": ["-m", "relative", "--wait", "-m", "x"],
    "raises": ["raises.py"],
}


class Ended(NamedTuple):
    """What a process left behind."""

    code: int
    out: str
    err: str


class Pair(NamedTuple):
    """The same program, bare and observed."""

    bare: Ended
    observed: Ended
    recording: Path

    @property
    def events(self) -> list[Event]:
        """The recording."""
        return [line.event for line in read(self.recording) if line.event is not None]

    def messages(self) -> Iterator[dict[str, Any]]:
        """The messages in the states that the program printed, each once."""
        seen = set()
        for line in self.bare.out.splitlines():
            shown = json.loads(line) if line.startswith("{") else None
            end = shown.get("end") if isinstance(shown, dict) else None
            for message in end["messages"] if isinstance(end, dict) else []:
                if (name := json.dumps(message)) not in seen:
                    seen.add(name)
                    yield message


def begun(command: list[str], **variables: str) -> subprocess.Popen[str]:
    """A program that has begun, in the folder of the programs."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "widgets")]), **variables}
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=PROGRAMS,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def pair(request: Any, tmp_path: Path) -> Pair:
    """Runs a program twice, at the same time."""
    command, recording = COMMANDS[request.param], tmp_path / "run.jsonl"
    observing = ["-m", "loopscope", "run", "--record", str(recording), *command]
    with begun(command) as bare, begun(observing) as observed:
        out, err = bare.communicate(timeout=120)
        more_out, more_err = observed.communicate(timeout=120)
    return Pair(Ended(bare.returncode, out, err), Ended(observed.returncode, more_out, more_err), recording)


@pytest.mark.parametrize("pair", COMMANDS, indirect=True)
def test_a_program_cannot_tell_that_it_is_observed(pair: Pair) -> None:
    """By invoke, ainvoke and stream: states, ids of messages, errors and their tracebacks, output and exit code.

    And the recording has every batch once, with the result of each of its calls, and replays to the same decisions.
    """
    assert pair.observed == pair.bare
    batches = [event for event in pair.events if isinstance(event, Batch)]
    results = [event for event in pair.events if isinstance(event, Result)]
    asked = Counter(call.id for batch in batches for call in batch.calls)
    named = Counter(batch.message_id for batch in batches if batch.message_id)
    told = {result.call_id: result.content for result in results}
    assert set(asked.values()) | set(named.values()) == {1}
    assert len(told) == len(results)
    for message in pair.messages():
        if message["type"] == "ai":
            assert message["id"] is None or not message["id"].startswith("ai-") or named[message["id"]] == 1
            assert all(asked[call] == 1 for call in message["calls"])
        elif message["type"] == "tool":
            assert told[message["answers"]].rstrip("!") == message["content"].rstrip("!")
    starts = [event for event in pair.events if isinstance(event, RunStart)]
    ends = [event for event in pair.events if isinstance(event, RunEnd)]
    assert {start.scope for start in starts} == {end.scope for end in ends} >= {batch.scope for batch in batches}
    assert run(["replay", "--verify", str(pair.recording)]) == 0


def watched(pid: int, *, steps: bool) -> list[Message]:
    """All that a viewer gets of this process, which waits for one; where it steps, each batch is held and let go."""
    feed = Follow(_entry(pid), control=steps)
    seen: list[Message] = []
    try:
        for message in feed:
            seen.append(message)
            if isinstance(message, Snapshotted) and steps:
                feed.request("pause")
            elif isinstance(message, Held) and message.reason != "wait":
                feed.request("next")
    finally:
        feed.close()
    return seen


def numbers(messages: Sequence[Any]) -> list[int]:
    """The numbers of what happened in the program."""
    told = (Header, Control, Snapshotted)
    return [message.seq for message in messages if hasattr(message, "seq") and not isinstance(message, told)]


def _entry(pid: int) -> Entry:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for entry in entries():
            if entry.pid == pid:
                return entry
        time.sleep(0.02)
    raise AssertionError("it never listened")


@pytest.mark.slow
@pytest.mark.parametrize("steps", [False, True], ids=["looks", "steps"])
@pytest.mark.parametrize("name", COMMANDS)
def test_nor_that_somebody_looks_at_it(name: str, steps: bool, tmp_path: Path) -> None:
    """The same with a viewer, also with one that holds each batch for a moment; who gets every event, once."""
    recording = tmp_path / "run.jsonl"
    observing = ["-m", "loopscope", "run", "--wait", *(["--control"] if steps else []), "--record", str(recording)]
    with begun(COMMANDS[name]) as bare, begun([*observing, *COMMANDS[name]]) as observed:
        with ThreadPoolExecutor() as pool:
            viewer = pool.submit(watched, observed.pid, steps=steps)
            out, err = observed.communicate(timeout=120)
            seen = viewer.result(60)
        wanted = bare.communicate(timeout=120)
    assert Ended(observed.returncode, out, err) == Ended(bare.returncode, *wanted)
    kept = [line.event for line in read(recording) if line.event is not None]
    assert numbers(seen) == numbers(kept)
    assert isinstance(seen[-1], Connection)
    assert seen[-1].state == "ended"
    assert run(["replay", "--verify", str(recording)]) == 0
