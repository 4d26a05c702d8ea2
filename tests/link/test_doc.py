"""The page on the protocol: what stands there is what the code does, and its viewer works."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from loopscope.link.connection import LONGEST_HELLO, LONGEST_REQUEST
from loopscope.link.discovery import Entry
from loopscope.link.endpoint import Link
from loopscope.link.limits import MAX_PAUSE, Limits
from loopscope.link.refusal import Code
from loopscope.link.verbs import CONTROL
from loopscope.link.wire import Answer, Bye, Hello, Request, Welcome, read_from_agent, read_hello, read_request
from loopscope.recording.feed import Held, Released, Snapshotted, Status
from tests.link.support import Agent
from tests.link.test_faults import Program

TEXT = (Path(__file__).parent.parent.parent / "docs" / "link.md").read_text(encoding="utf-8")
LINES = [line for block in re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]
MESSAGES = [line for line in LINES if "kind" in json.loads(line)]
KINDS = {
    str(kind.__struct_config__.tag): kind
    for kind in (Hello, Request, Answer, Bye, Welcome, Held, Released, Snapshotted, Status)
}


@pytest.mark.parametrize("line", MESSAGES, ids=[f"{n}-{json.loads(line)['kind']}" for n, line in enumerate(MESSAGES)])
def test_every_message_on_the_page_is_one(line: str) -> None:
    """It is read, and every field in it is known."""
    kind = KINDS[json.loads(line)["kind"]]
    read = {Hello: read_hello, Request: read_request}.get(kind, read_from_agent)
    assert isinstance(read(line.encode()), kind)
    assert set(json.loads(line)) <= {"kind", *kind.__struct_fields__}


def test_every_field_of_every_message_is_on_the_page() -> None:
    """Also those of the discovery file."""
    for name, kind in KINDS.items():
        shown = {field for line in MESSAGES if json.loads(line)["kind"] == name for field in json.loads(line)}
        assert shown == {"kind", *kind.__struct_fields__}, name
    entry = next(json.loads(line) for line in LINES if "kind" not in json.loads(line))
    assert set(entry) == set(Entry.__struct_fields__) - {"path"}
    assert msgspec.convert(entry, Entry).transport == "unix"


def test_every_verb_and_code_is_on_the_page() -> None:
    """And every limit has the number that it has in the code."""
    for verb in (*CONTROL, "attach", "disconnect"):
        assert f"| `{verb}` |" in TEXT
    for code in get_args(Code):
        assert f"`{code}`" in TEXT
    limits = Limits()
    for number in (
        f"{limits.burst} at once, {limits.per_second:g} a second",
        f"{limits.viewers}, and {limits.greeting} connections",
        f"{limits.accepts:,.0f} a second",
        f"{limits.backlog >> 20} MiB",
        f"{limits.line_s:g} s from its first byte",
        f"closed after {limits.stuck_s:g} s",
        f"({MAX_PAUSE:g} s",
        f"{LONGEST_REQUEST >> 10} KiB, {LONGEST_HELLO >> 10} KiB",
    ):
        assert number in TEXT, number


def test_the_viewer_on_the_page_works(link: Link, tmp_path: Path) -> None:
    """With nothing but the standard library."""
    script = tmp_path / "viewer.py"
    script.write_text(re.findall(r"```python\n(import glob.*?)```", TEXT, re.DOTALL)[0])
    agent = Agent()
    agent.start()
    with subprocess.Popen([sys.executable, "-Iu", str(script)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "attached to 'test'\n"
        assert link.wait_for_viewer(120)
        for _ in range(3):
            agent.batch()
        link.close()
        told = process.stdout.read().splitlines()
    assert process.returncode == 0
    assert [line.split()[0] for line in told] == ["batch", "batch", "batch", "warn", "the"]
    assert told[3] == "warn identical_call_set 3 of 3"


@pytest.mark.parametrize("what", ["loop", "port"])
def test_another_viewer_can_be_written_from_the_page(what: str) -> None:
    """It finds a process, pauses, sees verdicts, steers, leaves and comes back, over both kinds of transport."""
    program = Program(what)
    with program.process:
        try:
            command = [sys.executable, str(Path(__file__).with_name("other_viewer.py")), str(program.pid)]
            seen = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        finally:
            program.process.kill()
    assert seen.returncode == 0, seen.stderr
    told = json.loads(seen.stdout)
    assert set(told.pop("verbs").values()) == {""}
    assert told == {
        "policy": 1_000_000, "held": "pass", "wrong": "bad-request", "engines": [1], "again": "hard_stop",
        "breakpoints": ["tool"], "passed": 1, "released": ["pass", "other"], "bye": "disconnected", "next": True,
        "snapshots": 0,
    }  # fmt: skip
