"""What goes wrong between an agent and its viewers, each a real process: neither takes harm from the other."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from loopscope.cli import run
from loopscope.link.client import connect
from loopscope.link.discovery import entries
from tests.link.support import State
from tests.live.support import PATIENCE, Agent, Viewer, until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SMALL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
from loopscope.cli import main
sys.argv = ["loopscope", *sys.argv[2:]]
main()
"""
"""A command whose disk is full after so many bytes of a file."""

Agents = Callable[..., Agent]
Viewers = Callable[..., Viewer]
Commands = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def command() -> Iterator[Commands]:
    """Starts `loopscope` in processes of their own, and ends them."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, room: int | None = None) -> subprocess.Popen[str]:
        code = ["-m", "loopscope"] if room is None else ["-c", SMALL, str(room)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "widgets")])}
        process = subprocess.Popen(
            [sys.executable, *code, *arguments],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for each in started:
        each.kill()
        each.communicate()


def goes_on(agent: Agent, batches: int = 3) -> None:
    """The agent runs."""
    before = agent.tools
    until(lambda: agent.tools >= before + batches)


def test_a_viewer_that_never_reads(agent: Agents, command: Commands, viewer: Viewers) -> None:
    """Stopped in the midst of reading: the agent and the other viewer notice nothing, and nothing piles up."""
    process = agent("--pause", "0.001")
    stuck = command("attach", str(process.pid), "--json")
    assert stuck.stdout is not None
    assert json.loads(stuck.stdout.readline())
    stuck.send_signal(signal.SIGSTOP)
    memory = psutil.Process(process.pid).memory_info().rss
    seen = viewer(process, control=False)
    goes_on(process, 400)
    seen.until(lambda live: len(live.session) >= process.tools - 50)
    assert psutil.Process(process.pid).memory_info().rss - memory < 60_000_000
    stuck.send_signal(signal.SIGCONT)
    newest = process.tools
    for line in stuck.stdout:
        event = json.loads(line)
        if event["kind"] == "batch" and event["seq"] > newest:
            break


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_the_disk_is_full_while_a_viewer_records(
    agent: Agents, command: Commands, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It goes on showing, says in the end what was lost, and what it had written is a recording; the agent goes on."""
    process = agent("--pause", "0.001", "--batches", "120")
    record = tmp_path / "run.jsonl"
    recording = command("attach", str(process.pid), "--record", str(record), "--json", room=20_000)
    shown, said = recording.communicate(timeout=PATIENCE)
    assert recording.returncode == 0
    assert "could not be written" in said
    assert "Traceback" not in said
    kinds = [json.loads(line)["kind"] for line in shown.splitlines()]
    assert kinds.count("batch") >= 120
    assert record.stat().st_size <= 20_000
    until(lambda: "done" in process.said)
    assert run(["replay", str(record), "--json"]) == 0
    decided = capfd.readouterr().out.splitlines()
    assert 10 < len(decided) < 120


def test_a_policy_that_is_invalid(agent: Agents, command: Commands) -> None:
    """It is refused with what is wrong, and the old one stays in force."""
    process = agent("--pause", "0.01", "--limit", "500")
    _, before = process.state()
    refused = command("ctl", str(process.pid), "set", "hard_limit=2", "warn_threshold=3")
    _, said = refused.communicate(timeout=PATIENCE)
    assert refused.returncode == 2
    assert "hard_limit" in said
    assert said.count("\n") == 1
    client = connect(process.pid, control=True)
    with client:
        with pytest.raises(Exception, match="hard_limit"):
            client.call("setPolicy", changes={"hard_limit": 1})
        with pytest.raises(Exception, match="window_size"):
            client.call("setPolicy", policy={"window_size": "wide"})
    _, after = process.state()
    assert after.policy == before.policy
    goes_on(process)


def test_five_viewers_two_of_them_steering(agent: Agents, viewer: Viewers) -> None:
    """All see the same; a pause ends with the last one that steers, and not before."""
    process = agent("--pause", "0.005")
    first, second = viewer(process), viewer(process)
    watching = [viewer(process, control=False) for _ in range(3)]
    everybody = [first, second, *watching]
    for each in everybody:
        each.until(lambda live: live.status.viewers == 5 and live.status.controllers == 2)
    first.feed.request("pause")
    for each in everybody:
        each.until(lambda live: live.holds())
    held = first.live.holds()
    assert held is not None
    second.feed.request("next")
    for each in everybody:
        each.until(lambda live: live.held and held.hold not in live.held)
        assert len(each.live.session) == len(first.live.session)
    count = process.tools
    first.close()
    second.until(lambda live: live.status.controllers == 1)
    assert process.tools == count
    assert second.live.holds() is not None
    second.close()
    goes_on(process)
    for each in watching:
        each.until(lambda live: live.status.controllers == 0 and not live.paused)


def test_a_viewer_that_is_gone_in_the_middle_of_a_message(agent: Agents, viewer: Viewers) -> None:
    """Cut off while it asks, or while it is told something: it is gone, and nothing is paused."""
    process = agent("--pause", "0.002")
    entry = next(entry for entry in entries() if entry.pid == process.pid)
    seen = viewer(process, control=False)
    hello = b'{"kind":"hello","version":1,"control":true}\n'
    for part in (b'{"kind":"request","id":1,"verb":"pau', b'{"kind":"request","id":1,"verb":"attach"}\n{"kind":'):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(entry.address)
            connection.sendall(hello + part)
            assert connection.recv(10)
    seen.until(lambda live: live.status.viewers == 1 and live.status.controllers == 0)
    goes_on(process)


def test_a_hundred_times_attached_and_detached(agent: Agents) -> None:
    """No thread, descriptor, socket or file is left on either side."""
    process = agent("--pause", "0.005")
    theirs, ours = psutil.Process(process.pid), psutil.Process()
    folder = Path(os.environ["XDG_RUNTIME_DIR"]) / "loopscope"

    def cycle() -> None:
        with connect(process.pid, control=True) as client:
            client.attach()
            client.call("pause")
            State().follow(client, lambda message: getattr(message, "kind", None) != "status")

    def viewers() -> int:
        with connect(process.pid) as client:
            return client.welcome.summary.viewers

    cycle()
    goes_on(process)
    until(lambda: viewers() == 0)
    counts = (theirs.num_fds, theirs.num_threads, ours.num_fds, ours.num_threads)
    before = [count() for count in counts]
    files = sorted(path.name for path in folder.iterdir())
    for _ in range(100):
        cycle()
    goes_on(process)
    until(lambda: viewers() == 0)
    until(lambda: all(count() <= most for count, most in zip(counts, before, strict=True)))
    assert sorted(path.name for path in folder.iterdir()) == files
