from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from loopscope.engine.events import Batch, Gap, Header
from loopscope.recording.reader import Reader

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals, limits and pipes are POSIX here")
ROOT = Path(__file__).parent.parent.parent

PRELUDE = """
import sys
from loopscope.engine.events import Batch, Call
from loopscope.recording.writer import Recorder

def batch(seq, size=50):
    return Batch(seq=seq, ts=None, thread_id="t", run_id="r", calls=(Call("c", "bash", {"command": "x" * size}),))

path = sys.argv[1]
"""


def program(text: str, *args: str | Path) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + text, *map(str, args)], stdout=subprocess.PIPE, text=True, env=environment
    )


KILLED = """
recorder = Recorder(path)
for seq in range(1, 1_000_000):
    recorder.put(batch(seq, size=seq * 7919 % 20_000))
    if not recorder.settle(10):
        raise SystemExit("the disk does not follow")
    print(seq, flush=True)
"""


def test_a_crash_loses_at_most_the_last_line(tmp_path: Path) -> None:
    """Killed at any moment, a recorder leaves every line that was settled whole, and at most a half one at the end."""
    dice = random.Random(3)  # noqa: S311 - the same moments each time, as far as processes go
    for attempt in range(4):
        path = tmp_path / f"run{attempt}.jsonl"
        child = program(KILLED, path)
        settled = 0
        assert child.stdout is not None
        for _ in range(dice.randrange(1, 60)):
            settled = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().splitlines()
        child.wait()
        child.stdout.close()
        settled = int(rest[-1]) if rest else settled
        lines = path.read_bytes().split(b"\n")
        whole = [json.loads(line) for line in lines[:-1]]
        assert [line.get("seq") for line in whole] == [None, *range(1, len(whole))]
        assert len(whole) - 1 >= settled
        reader = Reader(path)
        assert sum(isinstance(line.event, Batch) for line in reader) >= settled
        assert reader.problems == []


def test_a_batch_is_in_the_file_before_its_tools_take_the_process_down(tmp_path: Path) -> None:
    """A tool that kills the process at once leaves the batch that called it."""
    path = tmp_path / "run.jsonl"
    child = program(
        "import os, signal\nrecorder = Recorder(path)\nfor seq in (1, 2, 3): recorder.put(batch(seq))\n"
        "recorder.settle(10)\nos.kill(os.getpid(), signal.SIGKILL)\n",
        path,
    )
    child.communicate()
    assert child.returncode == -signal.SIGKILL
    assert [line.event.seq for line in Reader(path) if isinstance(line.event, Batch)] == [1, 2, 3]


def test_a_program_that_ends_without_closing_loses_nothing(tmp_path: Path) -> None:
    """The end of the interpreter is the end of the recording: what was put is written."""
    path = tmp_path / "run.jsonl"
    child = program(
        "recorder = Recorder(path)\nfor seq in range(1, 2001): recorder.put(batch(seq))\nsys.exit(3)\n", path
    )
    child.communicate()
    assert child.returncode == 3
    assert [line.event.seq for line in Reader(path) if isinstance(line.event, Batch)] == list(range(1, 2001))


FULL = """
import resource
recorder = Recorder(path, capacity=200_000)
for seq in range(1, 11): recorder.put(batch(seq))
assert recorder.settle(10)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (30_011, most))
for seq in range(11, 3001): recorder.put(batch(seq))
assert not recorder.settle(30)
assert recorder.lost > 0
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
while not recorder.settle(0.1): pass
recorder.put(batch(3001))
recorder.close()
print(recorder.lost)
"""


def test_a_disk_that_was_full_for_a_while_leaves_whole_lines_and_a_gap(tmp_path: Path) -> None:
    """The line that was cut off by the full disk is finished first; then comes what was kept, the gap, and the rest."""
    path = tmp_path / "run.jsonl"
    child = program(FULL, path)
    output, _ = child.communicate()
    assert child.returncode == 0
    lost = int(output)
    reader = Reader(path)
    events = [line.event for line in reader]
    assert reader.problems == []
    assert isinstance(events[0], Header)
    gap, last = events[-2:]
    assert isinstance(gap, Gap)
    assert gap.lost == lost
    assert isinstance(last, Batch)
    numbers = [event.seq for event in events[1:-2] if isinstance(event, Batch)]
    assert numbers == list(range(1, 3001 - lost))
    assert (gap.seq, last.seq) == (3000, 3001)
