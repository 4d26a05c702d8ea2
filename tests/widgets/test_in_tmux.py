"""The real program in a real terminal, from its start to its end, driven by keys as a person would."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopscope.recording.codec import encode
from loopscope.samples import samples
from loopscope_widgets.terminal.user import settings_file
from tests.views.support import Story

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux, which the tests drive, is not installed")


class Terminal:
    """A terminal of its own server, so that no other tmux is touched."""

    def __init__(self, socket: Path, size: tuple[int, int]) -> None:
        self.socket = str(socket)
        width, height = size
        path = os.pathsep.join([str(ROOT), str(ROOT / "widgets")])
        shell = ["env", "-u", "COLUMNS", "-u", "LINES", f"PYTHONPATH={path}", "sh"]
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height), *shell)

    def tmux(self, *arguments: str) -> str:
        """One tmux command and what it prints."""
        done = subprocess.run(
            ["tmux", "-S", self.socket, *arguments], check=True, capture_output=True, text=True, timeout=PATIENCE
        )
        return done.stdout

    def press(self, *keys: str) -> None:
        """Keys by tmux's names."""
        self.tmux("send-keys", *keys)

    def line(self, text: str) -> None:
        """A line for the shell."""
        self.tmux("send-keys", "-l", text)
        self.press("Enter")

    def screen(self) -> str:
        """What stands on it."""
        return self.tmux("capture-pane", "-p")

    def wait(self, *texts: str, gone: str = "") -> str:
        """Until all of this is on the screen, and `gone` is not."""
        end = time.monotonic() + PATIENCE
        while True:
            screen = self.screen()
            if all(text in screen for text in texts) and not (gone and gone in screen):
                return screen
            assert time.monotonic() < end, f"waited for {texts} without {gone!r}:\n{screen}"
            time.sleep(0.02)

    def close(self) -> None:
        """End the server."""
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], check=False, capture_output=True, timeout=PATIENCE)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """120 columns, 48 rows."""
    found = Terminal(tmp_path / "tmux", (120, 48))
    yield found
    found.close()


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Six equal searches whose result tries to change the terminal's title and to clear the screen."""
    story = Story()
    for _ in range(6):
        story.call("search", {"query": "rust tls"}, "nothing \x1b]0;taken over\x07\x1b[2J found")
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"".join(encode(event) + b"\n" for event in story.events if event is not None))
    return path


def command(recording: Path, *options: str) -> str:
    """The command line that opens it; the shell says how it ended."""
    return f"{shlex.join([sys.executable, '-m', 'loopscope', 'attach', str(recording), *options])}; echo ended $?"


def test_from_start_to_quit(terminal: Terminal, recording: Path) -> None:
    """It opens at the first stop, follows the keys, opens and closes windows, and leaves the terminal as it was."""
    terminal.line(command(recording))
    screen = terminal.wait("■ STOP identical_call_set A 5/5", "2 Detect", "3 Inspect #5", "opened at the first stop")
    assert "DISTANCE TO FIRE" in screen
    terminal.wait("5 nearest settings")
    terminal.press("N")
    terminal.wait("3 Inspect #4", "one more identical batch = STOP")
    terminal.press("[")
    terminal.wait("▲ WARN identical_call_set A 3/3")
    terminal.press("w")
    terminal.wait("Why #3", "WHY WARNED")
    terminal.press("Escape")
    terminal.wait("2 Detect", gone="Why #3")
    terminal.press(":", "2", "Enter")
    terminal.wait("3 Inspect #2", "one more identical batch = WARN")
    terminal.press("?")
    terminal.wait("next decision: a warning or a stop")
    terminal.press("q")
    terminal.wait("2 Detect", gone="next decision: a warning")
    terminal.press("Right", "S-Right")
    terminal.wait("3 Inspect #6")
    terminal.press("n")
    terminal.wait("cannot step forward: this is the last batch")
    terminal.press("Tab", "z")
    terminal.wait("3 Inspect #6", gone="2 Detect")
    terminal.press("z", "4")
    terminal.wait("4 Graph", "circle", "search", gone="DISTANCE TO FIRE")
    terminal.press("2", "/", "w", "a", "r", "n", "Enter")
    terminal.wait("6 Decisions  /warn  1 match", "▲ WARN", gone="Filter the decisions")
    terminal.press("Escape")
    terminal.wait("6 Decisions", gone="/warn")
    terminal.press("s")
    terminal.wait("EVENTS #6  1 of")
    terminal.press("m", "y")
    terminal.wait("batch 6 of 6", "if the terminal refused", gone="Timeline")
    terminal.press("q")
    terminal.wait("◆6")
    terminal.press("1", "k", "Enter")
    terminal.wait("thread t   6/6")
    terminal.press("q")
    screen = terminal.wait("ended 0")
    assert "Detect" not in screen


def test_a_recording_does_not_act_on_the_terminal(terminal: Terminal, recording: Path) -> None:
    """Its escape sequences are shown, not sent: the title stays, the screen stays."""
    title = terminal.tmux("display-message", "-p", "#{pane_title}")
    terminal.line(command(recording))
    terminal.wait(r"\x1b]0;taken", "2 Detect")
    terminal.press("n", "q")
    terminal.wait("ended 0")
    assert terminal.tmux("display-message", "-p", "#{pane_title}") == title


def test_a_small_terminal_that_grows(terminal: Terminal, recording: Path) -> None:
    """One pane under tabs; side by side once there is room."""
    terminal.tmux("resize-window", "-x", "80", "-y", "24")
    terminal.line(command(recording, "--theme", "light", "--ascii"))
    terminal.wait("[2 Detect]", "X STOP identical_call_set A 5/5")
    terminal.tmux("resize-window", "-x", "130", "-y", "40")
    terminal.wait("2 Detect | 4 Graph | 5 What-if -", "3 Inspect #5")
    terminal.press("q")
    terminal.wait("ended 0")


def test_a_recording_that_is_picked(terminal: Terminal, recording: Path) -> None:
    """Named by nobody: typed once, then among those that were opened lately."""
    bare = command(recording).replace(str(recording), "")
    terminal.line(bare)
    terminal.wait("SAMPLES", "sql-retry-storm", "■ STOP")
    terminal.press("/")
    terminal.tmux("send-keys", "-l", str(recording))
    terminal.press("Enter")
    terminal.wait("■ STOP identical_call_set A 5/5", "2 Detect")
    terminal.press("q")
    terminal.wait("ended 0")
    terminal.line(f"clear; {bare}")
    terminal.wait("RECENT", "run.jsonl", "6 batches")
    # From the end, since above it there is whatever else runs on this machine.
    terminal.press("End", *["k"] * len(samples()), "Enter")
    terminal.wait("■ STOP identical_call_set A 5/5", "2 Detect")
    terminal.press("o")
    terminal.wait("RECENT", "enter opens")
    terminal.press("Escape")
    terminal.wait("2 Detect")
    terminal.press("q")
    terminal.wait("ended 0")


def test_keys_with_a_conflict(terminal: Terminal, recording: Path) -> None:
    """One line before anything is drawn, and exit code 2."""
    file = settings_file()
    file.parent.mkdir(parents=True)
    file.write_text('[keymap]\n"batch.next" = "m"\n')
    terminal.line(command(recording))
    said = terminal.wait("ended 2")
    # The line may be wrapped at any space, which the terminal then does not keep.
    assert "misbothbatch.nextandmark" in "".join(said.split())


def test_a_pipe(terminal: Terminal, recording: Path) -> None:
    """The recording comes from standard input, the keys from the terminal behind it."""
    terminal.line(f"cat {shlex.quote(str(recording))} | {command(Path('-'))}")
    terminal.wait("■ STOP identical_call_set A 5/5", "2 Detect")
    terminal.press("N")
    terminal.wait("3 Inspect #4")
    terminal.press("q")
    terminal.wait("ended 0")
