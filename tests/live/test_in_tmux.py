"""Two real programs: an agent on a graph of LangGraph, and `loopscope attach` in a terminal, driven by keys."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.live.support import Agent, until
from tests.widgets.test_in_tmux import Terminal

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux, which the tests drive, is not installed"),
]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """130 columns, 36 rows."""
    found = Terminal(tmp_path / "tmux", (130, 36))
    yield found
    found.close()


def command(*options: str) -> str:
    """The command line; the shell says how it ended."""
    where = shlex.quote(os.environ["XDG_RUNTIME_DIR"])
    return f"XDG_RUNTIME_DIR={where} {shlex.join([sys.executable, '-m', 'loopscope', *options])}; echo ended $?"


def test_pause_step_continue_detach(terminal: Terminal, agent: Callable[..., Agent]) -> None:
    """The agent's output is what it is without a viewer, but for the pause."""
    process = agent("--pause", "0.2")
    terminal.line(command("attach", "looper", "--control"))
    terminal.wait(" LIVE looper", "2 Detect", "= PASS")
    terminal.press("Space")
    terminal.wait(" PAUSED looper", "HELD before its tools run", "would be")
    count = process.tools
    terminal.press("n")
    until(lambda: process.tools == count + 1)
    terminal.wait("HELD before its tools run", f"{count + 1}/{count + 1}")
    assert process.tools == count + 1
    terminal.press("c")
    terminal.wait(" LIVE looper", gone="HELD")
    until(lambda: process.tools > count + 4)
    terminal.press("Space")
    terminal.wait("HELD before its tools run")
    terminal.press("D")
    terminal.wait(" DETACHED looper", gone="HELD")
    count = process.tools
    until(lambda: process.tools > count + 3)
    terminal.press("N")
    terminal.wait("3 Inspect #")
    terminal.press("q")
    terminal.wait("ended 0")
    tools = [line for line in process.said if line.startswith("tool")]
    assert tools == [f"tool {'AB'[n % 2]}" for n in range(len(tools))]
    assert set(process.said) == {"listening", "tool A", "tool B"}


def test_the_process_is_killed(terminal: Terminal, agent: Callable[..., Agent]) -> None:
    """The viewer says so, and keeps everything."""
    process = agent("--pause", "0.1")
    terminal.line(command("attach", str(process.pid)))
    terminal.wait(" LIVE looper", "4/4")
    process.end()
    terminal.wait(" ENDED looper", "process ended")
    terminal.press("g")
    terminal.wait("3 Inspect #1")
    terminal.press("q")
    terminal.wait("ended 0")


def test_ps_and_ctl(terminal: Terminal, agent: Callable[..., Agent]) -> None:
    """From a shell beside it."""
    process = agent("--pause", "0.05")
    terminal.line(command("ps"))
    terminal.wait("looper", str(process.pid), "ended 0")
    terminal.line(command("ctl", "looper", "set", "hard_limit=8"))
    terminal.wait("set hard_limit=8 in LoopDetectionMiddleware")
    until(lambda: "done" in process.said)
    assert process.tools >= 8
