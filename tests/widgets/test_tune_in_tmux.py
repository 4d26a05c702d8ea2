"""`loopscope tune` in a real terminal: the screen, a run in the debugger, and back to the shell."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.widgets.test_in_tmux import Terminal

CASES = Path(__file__).parents[1] / "cases"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux, which the tests drive, is not installed"),
]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """150 columns, 44 rows."""
    found = Terminal(tmp_path / "tmux", (150, 44))
    yield found
    found.close()


def test_a_sweep_on_a_terminal(terminal: Terminal) -> None:
    """Arrows move, enter opens a run under the setting, q leads back and then to the shell."""
    terminal.line(f"{sys.executable} -m loopscope tune {CASES} --labels {CASES / 'TRUTH.tsv'}; echo over $?")
    terminal.wait("1 Settings", "hard_limit=6 window_size=10", "4 Advice")
    terminal.press("Down")
    terminal.wait("hard_limit=6 window_size=20")
    terminal.press("Enter")
    terminal.wait("5 What-if", "baseline", "override")
    terminal.press("q")
    terminal.wait("hard_limit=6 window_size=20", "4 Advice")
    terminal.press("q")
    terminal.wait("over 0")
