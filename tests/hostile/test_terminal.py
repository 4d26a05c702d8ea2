"""The real program in a real terminal on recordings that would take it over: what it writes, byte by byte.

`benchmarks/bench_frames.py` has what its frames cost.
"""

from __future__ import annotations

import base64
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopscope.recording.codec import encode
from tests.hostile.corpus import COUNT, EACH, foreign, recording, strings
from tests.views.support import looping
from tests.widgets.test_in_tmux import Terminal

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux, which the tests drive, is not installed"),
]

OURS = re.compile(
    rb"\x1b\[[0-9;:]*m"  # colours
    rb"|\x1b\[[0-9;]*[HABCDJKGd]"  # places, and what is cleared
    rb"|\x1b\[\?[0-9;]*[hl]|\x1b\[\?[0-9;]*\$p|\x1b\[[0-9;]*t"  # modes of the driver, and questions about them
    rb"|\x1b\[[<>=]?[0-9;]*u|\x1b\[c|\x1b\[>[0-9;]*[mc]"  # the keyboard's
    rb"|\x1b[78=>M]|\x1b\([B0]"
    rb"|\x1b\]22;[a-z-]*\x07"  # the shape of the mouse's pointer
)
"""What Textual writes by itself; everything else that begins with an escape is foreign."""
COPIED = re.compile(rb"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07")
"""What `y` asks the terminal to copy."""
NAME = "run \x1b]0;taken over\x07\x1b[2J \u202e[@click=app.quit]x[red]\x9b31m.jsonl"
"""A file may be called anything."""
ESCAPES = re.compile("[\x1b\x80-\x9f]")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """140 columns, 40 rows, and a title of its own."""
    found = Terminal(tmp_path / "tmux", (140, 40))
    found.tmux("select-pane", "-T", "as it was")
    yield found
    found.close()


def walk(terminal: Terminal) -> None:
    """Every pane and every window, on one recording; what comes next is only typed once this is there."""
    terminal.wait("2 Detect", "3 Inspect #")
    terminal.press("n", "]", "[", "s", "s", "n")
    terminal.press("1", "j", "j", "Enter", "u", "d", "3", "j", "Enter")
    terminal.press("4", "z")
    terminal.wait("GRAPH", gone="3 Inspect #")
    terminal.press("z", "2", "w")
    terminal.wait("Why #")
    terminal.press("Escape")
    terminal.wait("3 Inspect #", gone="Why #")
    terminal.press(":")
    terminal.wait("Go to", "a batch 20")
    terminal.press("e", "v", "i")
    terminal.wait("evi", gone="a batch 20")
    terminal.press("Escape")
    terminal.wait("3 Inspect #", gone="─ Go to ")
    terminal.press("/")
    terminal.wait("Filter the decisions")
    terminal.press("s", "t", "o", "Enter")
    terminal.wait("6 Decisions  /sto", gone="Filter the decisions")
    terminal.press("Escape")
    terminal.wait("6 Decisions", gone="6 Decisions  /sto")
    terminal.press("y")
    terminal.wait("if the terminal refused", gone="Timeline")
    terminal.press("q")
    terminal.wait("Timeline")
    terminal.press("o")
    terminal.wait("RECENT", "enter opens")
    terminal.press("Escape")
    terminal.wait("3 Inspect #")
    terminal.press("g", "G", "q")
    terminal.wait("ended 0")


def drive(terminal: Terminal, path: Path, options: str = "") -> bytes:
    """What the program writes while it is walked through."""
    written = path.with_name("written")
    command = shlex.join([sys.executable, "-m", "loopscope", "attach"])
    # The shell expands the name, so that it is not the terminal that gets it from us.
    terminal.line(f"cd {shlex.quote(str(path.parent))}; clear; {command} {options} ./*.jsonl; echo ended $?")
    terminal.wait("2 Detect", "3 Inspect #")
    terminal.tmux("pipe-pane", f"cat > {shlex.quote(str(written))}")
    walk(terminal)
    terminal.tmux("pipe-pane")
    return written.read_bytes()


def inert_bytes(written: bytes) -> None:
    """Nothing is left of it that acts, once what Textual writes is taken out; nor is it in what is copied."""
    copied = [base64.b64decode(text).decode() for text in COPIED.findall(written)]
    assert copied
    assert "".join(map(foreign, (text.replace("\n", "") for text in copied))) == ""
    left = OURS.sub(b"", COPIED.sub(b"", written)).decode()
    assert ascii(foreign(re.sub(r"[\r\n\x08\x0f]", "", left))) == "''"


@pytest.mark.parametrize("index", range(COUNT // EACH))
def test_no_byte_of_a_recording_acts_on_the_terminal(terminal: Terminal, tmp_path: Path, index: int) -> None:
    """All five hundred texts in all places of a recording: no escape of theirs is written, and the title stays."""
    folder = tmp_path / "runs"
    folder.mkdir()
    path = folder / "run.jsonl"
    path.write_bytes(recording(index))
    written = drive(terminal, path)
    inert_bytes(written)
    for text in strings()[index * EACH : (index + 1) * EACH]:
        for found in ESCAPES.finditer(text):
            piece = text[max(0, found.start() - 3) : found.end() + 8].encode("utf-8", "replace")
            assert piece not in written, ascii(piece)
    assert terminal.tmux("display-message", "-p", "#{pane_title}").strip() == "as it was"


@pytest.mark.parametrize("options", ["", "--ascii --theme light", "--no-color"])
def test_no_byte_of_a_files_name_acts_on_the_terminal(terminal: Terminal, tmp_path: Path, options: str) -> None:
    """It is in the bar, in what is copied and in the picker, as characters that can be read."""
    folder = tmp_path / "runs"
    folder.mkdir()
    path = folder / NAME
    path.write_bytes(b"".join(encode(event) + b"\n" for event in looping().events if event is not None))
    written = drive(terminal, path, options)
    inert_bytes(written)
    assert rb"\x1b]0;taken over" in written
    assert terminal.tmux("display-message", "-p", "#{pane_title}").strip() == "as it was"
