"""`loopscope attach` where there is no terminal, half of one, or a recording in the pipe."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from loopscope.api import open as open_session
from loopscope.views.text import render
from tests.cli.conftest import Cli, Record

ROOT = Path(__file__).parents[2]
SAME = ["select 1"] * 6
SIZE = {"COLUMNS": "120", "LINES": "40"}
PATIENCE = 120.0


def _environment(**extra: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "widgets")]), **extra}


def test_without_a_terminal_the_view_is_printed(cli: Cli, record: Record) -> None:
    """The text of the views at the first stop, exit code 0."""
    name = record(SAME)
    assert cli("attach", name) == (0, render(open_session(name)), "")


def test_without_a_target_one_is_picked_on_a_terminal(cli: Cli, tmp_path: Path) -> None:
    """Where there is none, or for what has no screen, the target must be named; wrong options are told first."""
    shown = cli("attach")
    assert (shown.code, shown.out) == (2, "")
    assert shown.err == "loopscope: attach needs a TARGET here: stdout is not a terminal, so that none can be picked\n"
    assert cli("attach", "--json").err.startswith("loopscope: attach needs a TARGET for --record")
    assert "nosuch" in cli("attach", "--policy", "nosuch").err
    terminal = _Terminal(COMMAND, tmp_path)
    terminal.until(b"sql-retry-storm")
    terminal.type(b"\r")
    terminal.until(b"DISTANCE TO FIRE")
    terminal.type(b"q")
    assert terminal.end() == 0


def test_the_text_can_be_ascii(cli: Cli, record: Record) -> None:
    """For logs and readers that have nothing else."""
    shown = cli("attach", record(SAME), "--ascii")
    assert shown.code == 0
    assert shown.out.isascii()


def test_flags_decide_in_the_debugger_too(cli: Cli, record: Record) -> None:
    """The first stop is that of the limits asked for."""
    assert "  6/6  " in cli("attach", record(SAME), "--set", "hard_limit=6").out


def test_bad_lines_are_told(cli: Cli, record: Record) -> None:
    """On stderr, beside the view."""
    assert cli("attach", record(SAME, extra="not json\n")).err.startswith("loopscope: run.jsonl:8: ")


class _Terminal:
    """A terminal of our own, with the program that runs on it."""

    def __init__(self, command: str, folder: Path, **extra: str) -> None:
        self.drawn = b""
        self._terminal, inner = os.openpty()
        # What the leader of a session opens first becomes its controlling terminal.
        script = f"exec <>{os.ttyname(inner)} >&0 2>&0; {command}"
        environment = _environment(TERM="xterm-256color", **SIZE) | extra
        self._child = subprocess.Popen(
            ["/bin/sh", "-c", script],
            cwd=folder,
            env=environment,
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
        )
        os.close(inner)

    def until(self, wanted: bytes) -> None:
        """Reads until this was drawn."""
        end = time.monotonic() + PATIENCE
        while wanted not in self.drawn:
            assert time.monotonic() < end, self.drawn[-2000:]
            if select.select([self._terminal], [], [], 0.1)[0]:
                self.drawn += os.read(self._terminal, 1 << 16)

    def type(self, keys: bytes) -> None:
        os.write(self._terminal, keys)

    def end(self) -> int:
        """Reads to the end; the exit code of the program."""
        while True:
            try:
                piece = os.read(self._terminal, 1 << 16)
            except OSError:
                break
            if not piece:
                break
            self.drawn += piece
        os.close(self._terminal)
        return self._child.wait()


COMMAND = f"{sys.executable} -m loopscope attach"


def test_a_dumb_terminal_gets_the_text(record: Record, tmp_path: Path) -> None:
    """No escape sequence is sent to what cannot take it."""
    terminal = _Terminal(f"{COMMAND} {record(SAME)}", tmp_path, TERM="dumb")
    assert terminal.end() == 0
    assert b"\x1b" not in terminal.drawn
    assert b"DISTANCE TO FIRE" in terminal.drawn


def test_stderr_that_is_no_terminal_is_said(record: Record, tmp_path: Path) -> None:
    """Textual draws on stderr; whoever redirects it reads the reason on stdout, and the view as text."""
    terminal = _Terminal(f"{COMMAND} {record(SAME)} 2>errors", tmp_path)
    assert terminal.end() == 0
    assert b"stderr, on which the debugger draws, is not a terminal" in terminal.drawn
    assert b"DISTANCE TO FIRE" in terminal.drawn
    assert "stderr, on which the debugger draws" in (tmp_path / "errors").read_text()


def test_a_recording_in_the_pipe_leaves_the_keys_to_the_terminal(record: Record, tmp_path: Path) -> None:
    """`cat run.jsonl | loopscope attach -` draws, and q quits it."""
    terminal = _Terminal(f"cat {record(SAME)} | {COMMAND} -", tmp_path)
    terminal.until(b"DISTANCE TO FIRE")
    terminal.type(b"q")
    assert terminal.end() == 0


def test_a_pipe_without_a_terminal_is_read_too(record: Record, tmp_path: Path) -> None:
    """The text of what came through the pipe."""
    data = (tmp_path / record(SAME)).read_bytes()
    done = subprocess.run(
        [sys.executable, "-m", "loopscope", "attach", "-"],
        input=data,
        capture_output=True,
        env=_environment(),
        start_new_session=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"  5/6  " in done.stdout


@pytest.mark.parametrize("theme", ["light", "nord"])
def test_a_theme_can_be_named(record: Record, tmp_path: Path, theme: str) -> None:
    """Ours, or one of Textual's."""
    terminal = _Terminal(f"{COMMAND} {record(SAME)} --theme {theme}", tmp_path)
    terminal.until(b"DISTANCE TO FIRE")
    terminal.type(b"q")
    assert terminal.end() == 0


def test_an_unknown_theme_is_a_usage_error(record: Record, tmp_path: Path) -> None:
    """Told in one line, nothing drawn."""
    terminal = _Terminal(f"{COMMAND} {record(SAME)} --theme nrod", tmp_path)
    assert terminal.end() == 2
    assert b"nrod" in terminal.drawn
    assert b"Traceback" not in terminal.drawn


def test_a_script_that_does_not_run_is_told_how_to(cli: Cli, tmp_path: Path) -> None:
    """Its name is that of its process: what stands in it is not the trouble."""
    (tmp_path / "agent.py").write_text("print()\n")
    message = "loopscope: agent.py: is no recording, and no live process runs it: `loopscope run agent.py`\n"
    assert cli("attach", "agent.py") == (3, "", message)
