"""Recordings made by hand and the command line called in this process."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

from loopscope.cli import run


class Outcome(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        """Standard output as JSON Lines."""
        return [json.loads(line) for line in self.out.splitlines()]


Cli: TypeAlias = Callable[..., Outcome]
Record: TypeAlias = Callable[..., str]


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    """Calls a command line in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> Outcome:
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        sys.stdout.flush()
        sys.stderr.flush()
        written = capfd.readouterr()
        return Outcome(code, written.out, written.err)

    return call


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Writes a recording: a header, then a batch of one call to `tool` for each query; gives its name."""

    def write(
        queries: Sequence[str],
        *,
        name: str = "run.jsonl",
        policy: dict[str, Any] | None = None,
        tool: str = "sql",
        extra: str = "",
    ) -> str:
        lines: list[dict[str, Any]] = [{"kind": "header", "format": "loopscope/1", "policy": policy, "enforced": False}]
        for number, query in enumerate(queries, 1):
            call = {"id": f"c{number}", "name": tool, "args": {"query": query}}
            place = {"seq": 10 * number, "ts": 1000.0 + number, "thread_id": "t", "run_id": "r"}
            lines.append({"kind": "batch", **place, "calls": [call]})
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines) + extra, "utf-8")
        return name

    return write
