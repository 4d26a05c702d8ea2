"""Real processes that are killed, end, fork and hang: neither the agent nor the viewer takes harm from the other."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from loopscope.engine.events import ScopeKey
from loopscope.link.client import connect
from loopscope.link.discovery import entries
from loopscope.link.endpoint import Link
from loopscope.link.follow import Follow
from loopscope.link.process import is_alive, start_time
from loopscope.link.target import discover
from loopscope.recording.feed import Connection, Held, Message
from tests.link.support import FREE, Agent, State, until

PROGRAM = Path(__file__).with_name("program.py")
VIEWER = """
import sys, time
sys.path.insert(0, sys.argv[2])
from loopscope.link.client import connect
client = connect(int(sys.argv[1]), control=True)
client.attach()
client.call("pause")
print("paused", flush=True)
time.sleep(60)
"""
ROOT = str(PROGRAM.parent.parent.parent)


class Program:
    """A process that listens."""

    def __init__(self, what: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), what], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self.process.pid
        self.ready = self.line()
        assert self.ready[0] == "ready"

    def line(self) -> list[str]:
        """The words of the next line that it says."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().split()

    def say(self, line: str = "") -> None:
        """Let it go on."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def count(self) -> list[int]:
        """How many batches it has run, per scope."""
        self.process.send_signal(signal.SIGUSR1)
        return [int(word) for word in self.line()]


@pytest.fixture
def run() -> Iterator[Callable[[str], Program]]:
    """Starts programs, and ends them."""
    with contextlib.ExitStack() as stack:

        def start(what: str) -> Program:
            program = Program(what)
            stack.enter_context(program.process)
            stack.callback(program.process.kill)
            return program

        yield start


def runtime_files() -> list[str]:
    """What lies in the folder of endpoints, but for what is just being written."""
    folder = Path(os.environ["XDG_RUNTIME_DIR"]) / "loopscope"
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".tmp")


def test_a_viewer_that_is_killed_while_paused_resumes_the_agent(run: Callable[[str], Program]) -> None:
    """By SIGKILL too; nothing but the pause was noticed, and its end does not wait for the longest pause."""
    program = run("loop")
    viewer = subprocess.Popen([sys.executable, "-c", VIEWER, str(program.pid), ROOT], stdout=subprocess.PIPE, text=True)
    with viewer:
        assert viewer.stdout is not None
        assert viewer.stdout.readline() == "paused\n"
        stopped = program.count()
        time.sleep(0.3)
        assert program.count() in (stopped, [stopped[0] + 1])
        viewer.kill()
        before = program.count()
        until(lambda: program.count()[0] > before[0] + 3)


def test_a_viewer_keeps_everything_when_its_process_is_killed(run: Callable[[str], Program]) -> None:
    """It says so once and ends; what the dead one left is removed by whoever looks next."""
    program = run("loop")
    feed, state = Follow(program.pid), State()
    messages: list[Message] = []
    for message in feed:
        messages.append(message)
        state.take(message)
        if state.detector.batches == 10 and program.process.poll() is None:
            program.process.kill()
            program.process.wait()
    assert [message.state for message in messages if isinstance(message, Connection)] == ["lost", "ended"]
    assert state.detector.batches >= 10
    assert len(runtime_files()) == 2
    assert [entry for entry in entries() if entry.pid == program.pid] == []
    assert runtime_files() == []


@pytest.mark.parametrize(("what", "code"), [("ends", 0), ("fails", 1)])
def test_a_program_that_ends_leaves_nothing(run: Callable[[str], Program], what: str, code: int) -> None:
    """By itself or by an exception: viewers hear it, and its files are gone."""
    program = run(what)
    assert len(runtime_files()) == 2
    client = connect(program.pid)
    client.attach()
    program.process.stderr = None
    program.say()
    assert list(client) is not None
    assert client.bye is not None
    assert client.bye.code == "ended"
    assert program.process.wait(120) == code
    assert runtime_files() == []
    client.close()


def test_a_forked_child_is_a_process_of_its_own(run: Callable[[str], Program]) -> None:
    """With an endpoint of its own from its first event on; the parent's is unaffected, and both states are right."""
    program = run("forks")
    child = int(program.ready[1])
    parent, seen = connect(program.pid, control=True), State()
    parent.attach()
    seen.follow(parent, lambda _message: seen.detector.batches == 4)
    until(lambda: any(entry.pid == child for entry in entries()))
    assert len(runtime_files()) == 4
    other, theirs = connect(child, control=True), State()
    assert other.welcome.session != parent.welcome.session
    other.attach()
    for message in other:
        theirs.take(message)
    assert other.bye is not None
    assert theirs.detector.batches == 5
    assert set(theirs.detector.scopes) == {ScopeKey("t", "r"), ScopeKey("child", None)}
    assert set(seen.detector.scopes) == {ScopeKey("t", "r")}
    program.say()
    seen.follow(parent, lambda _message: seen.detector.batches == 5)
    assert program.line() == ["parent", "5", "0"]
    assert len(runtime_files()) == 2
    parent.close()
    other.close()


def test_children_without_an_agent_have_no_endpoint(run: Callable[[str], Program]) -> None:
    """Neither those that end nor those that become another program; the parent's stays."""
    program = run("forks_idly")
    assert len(runtime_files()) == 2
    with connect(program.pid) as client:
        client.attach()
        state = State()
        state.follow(client, lambda _message: state.detector.batches == 1)


def test_a_pause_costs_nothing_and_ends_at_once(run: Callable[[str], Program]) -> None:
    """Nobody looks again and again whether it is over: a word ends it."""
    program = run("held")
    before = time.monotonic()
    time.sleep(1.0)
    client = connect(program.pid)
    asked = time.time()
    client.attach()
    words = program.line()
    assert words[0] == "released"
    assert float(words[1]) - asked < 60
    assert float(words[2]) < 0.2 * (time.monotonic() - before)
    client.close()


def test_pausing_one_of_three_runs_leaves_the_others_at_full_speed(run: Callable[[str], Program]) -> None:
    """In one event loop; and it goes on where it stood."""
    program = run("many")
    with connect(program.pid, control=True) as client:
        client.attach()
        state = State()
        client.request("pause", ScopeKey("t", "b"))
        state.follow(client, lambda message: isinstance(message, Held))
        first = program.count()
        until(lambda: program.count()[0] >= first[0] + 30)
        later = program.count()
        assert later[1] == first[1]
        assert later[2] >= first[2] + 25
        client.request("continue", ScopeKey("t", "b"))
        until(lambda: program.count()[1] > later[1] + 5)


def test_a_process_that_hangs_is_listed_all_the_same(run: Callable[[str], Program]) -> None:
    """Stopped by a signal it does not answer, but it is there, and its files stay."""
    program = run("loop")
    program.process.send_signal(signal.SIGSTOP)
    assert os.WIFSTOPPED(os.waitpid(program.pid, os.WUNTRACED)[1])
    try:
        (live,) = discover(timeout=0.2)
        assert (live.entry.pid, live.welcome) == (program.pid, None)
        assert len(runtime_files()) == 2
    finally:
        program.process.send_signal(signal.SIGCONT)
    until(lambda: discover()[0].welcome is not None)


def test_a_live_endpoint_is_never_removed(link: Link) -> None:
    """Not even where its pid means nothing here, as that of another container with the same folder."""
    file = Path(link.address).with_suffix(".json")
    file.write_bytes(msgspec.json.encode(msgspec.structs.replace(link.entry, pid=2**22 + 1, start_time=1)))
    assert len(entries()) == 1
    assert Path(link.address).exists()
    with connect(link.entry) as client:
        assert client.welcome.pid == os.getpid()


def test_a_port_of_a_dead_process_is_not_listed(opened: Callable[..., Link]) -> None:
    """There is no socket to ask: the pid, and when it was started, tell."""
    link = opened(transport="tcp")
    file = next(Path(os.environ["XDG_RUNTIME_DIR"]).glob("loopscope/*.json"))
    assert len(entries()) == 1
    link.close()
    for gone, there in (({"pid": 2**22 + 1}, 0), ({"start_time": 1}, 0), ({}, 1)):
        file.write_bytes(msgspec.json.encode(msgspec.structs.replace(link.entry, **gone)))
        assert len(entries()) == there
        assert file.exists() == bool(there)


def test_a_port_that_answers_is_never_removed(opened: Callable[..., Link]) -> None:
    """Though its pid means nothing here."""
    link = opened(transport="tcp")
    file = next(Path(os.environ["XDG_RUNTIME_DIR"]).glob("loopscope/*.json"))
    file.write_bytes(msgspec.json.encode(msgspec.structs.replace(link.entry, pid=2**22 + 1)))
    assert len(entries()) == 1


def test_a_folder_that_is_mounted_elsewhere_works(link: Link) -> None:
    """As that of a container, where the socket has another path than the process knows."""
    file = Path(link.address).with_suffix(".json")
    inside = msgspec.structs.replace(link.entry, address="/run/inside/loopscope/1-a.sock", pid=2**22 + 1)
    file.write_bytes(msgspec.json.encode(inside))
    with connect("test") as client:
        assert client.welcome.session == link.entry.session
    assert file.exists()


def test_files_that_belong_to_nobody_are_removed_after_a_while(link: Link) -> None:
    """Not at once: somebody may just be making them."""
    folder = Path(link.address).parent
    left = [folder / name for name in ("1-a.sock", "1-b.tmp", "1-c.json")]
    for path in left:
        path.touch()
    entries()
    assert all(path.exists() for path in left)
    for path in left:
        os.utime(path, (1.0, 1.0))
    os.utime(link.address, (1.0, 1.0))
    assert [entry.pid for entry in entries()] == [os.getpid()]
    assert not any(path.exists() for path in left)
    assert Path(link.address).exists()


def test_a_pid_is_one_process_only() -> None:
    """The time it was started tells it from a later one."""
    pid, started = os.getpid(), start_time(os.getpid())
    assert is_alive(pid, started)
    assert is_alive(pid, None)
    assert not is_alive(2**22 + 1, None)
    assert not is_alive(2**70, None)
    if started is not None:
        assert not is_alive(pid, started + 1)
    assert start_time(2**22 + 1) is None


def test_two_processes_do_not_touch_each_other(run: Callable[[str], Program]) -> None:
    """One folder, two endpoints; the end of one is no matter to the other."""
    first, second = run("loop"), run("ends")
    assert {live.entry.pid for live in discover()} == {first.pid, second.pid}
    second.say()
    second.process.wait(120)
    assert [live.entry.pid for live in discover()] == [first.pid]
    agent = Agent(FREE)
    assert agent.batch() == "ran"
