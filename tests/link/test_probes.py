"""Fifteen probes of the endpoint of a real process: none gets in, and the agent goes on as before."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psutil  # type: ignore[import-untyped]
import pytest

from loopscope.errors import CannotAttachError
from loopscope.link.client import connect
from loopscope.link.discovery import Entry, entries
from tests.link.support import State, raw, read_all, until
from tests.link.test_faults import Program
from tests.link.test_hostile import DIAL, as_nobody, needs_root

HELLO = b'{"kind":"hello","version":1,"client":"probe","control":true}\n'
ATTACH = b'{"kind":"request","id":1,"verb":"attach"}\n'
PAUSE = b'{"kind":"request","id":2,"verb":"pause"}\n'
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="what a process has open is asked of /proc")


class Target:
    """An agent that listens in a process of its own, and what it has open and in memory."""

    def __init__(self, what: str) -> None:
        self.program = Program(what)
        self.entry: Entry = next(entry for entry in entries() if entry.pid == self.program.pid)
        self._process = psutil.Process(self.program.pid)
        with connect(self.entry) as client:
            client.attach()
            State().follow(client, lambda message: getattr(message, "seq", 0) > 0)
        self._files = self._process.num_fds()
        self._threads = self._process.num_threads()
        self._memory = self._process.memory_info().rss

    def say(self, *lines: bytes) -> bytes:
        """What it answers to these, until it closes."""
        with raw(self.entry) as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(b"".join(lines))
                connection.shutdown(socket.SHUT_WR)
            return read_all(connection)

    def goes_on(self) -> None:
        """The agent runs, a viewer of good faith sees it, and nothing of the probe is left."""
        before = self.program.count()[0]
        with connect(self.entry) as client:
            client.attach()
            state = State()
            state.follow(client, lambda _message: state.detector.batches > before + 2)
        assert self.program.process.poll() is None
        until(lambda: self._process.num_fds() <= self._files)
        assert self._process.num_threads() <= self._threads
        assert self._process.memory_info().rss - self._memory < 60_000_000


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """The folder for endpoints; short, since a socket's path has to be."""
    with tempfile.TemporaryDirectory(prefix="ls-") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def targets() -> Iterator[Callable[[str], Target]]:
    """One agent of each kind for all probes, one after the other."""
    made: dict[str, Target] = {}
    with contextlib.ExitStack() as stack:

        def start(what: str) -> Target:
            if what not in made:
                found = made[what] = Target(what)
                stack.enter_context(found.program.process)
                stack.callback(found.program.process.kill)
            return made[what]

        yield start


@pytest.fixture
def target(targets: Callable[[str], Target], folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Target]:
    """The agent of a kind."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    return lambda what="loop": targets(what)


Targets = Callable[..., Target]


def last(answer: bytes) -> str:
    """The code of its last line."""
    line = json.loads(answer.rstrip(b"\n").rpartition(b"\n")[2])
    return str(line.get("code") or line.get("error", {}).get("code"))


@needs_root
@needs_linux
def test_another_user(target: Targets) -> None:
    """1: neither through the closed folder, nor where somebody opened it."""
    found = target()
    path = Path(found.entry.address)
    assert as_nobody(DIAL, str(path)).communicate()[0].strip() == "PermissionError"
    closed = [each for each in (path, *path.parents) if each.stat().st_mode & 0o077 == 0]
    modes = [(each, each.stat().st_mode) for each in closed]
    try:
        for each in closed:
            each.chmod(0o777)
        said = as_nobody(DIAL, str(path)).communicate()[0].strip()
        assert said in ("b''", "ConnectionResetError", "BrokenPipeError")
    finally:
        for each, mode in modes:
            each.chmod(mode)
    found.goes_on()


@needs_linux
def test_links_in_its_place(target: Targets, tmp_path: Path) -> None:
    """2: neither a folder nor a socket that is a symbolic link is taken for the endpoint of a process."""
    found = target()
    folder = Path(found.entry.address).parent
    aside = tmp_path / "elsewhere"
    folder.rename(aside)
    folder.symlink_to(aside)
    try:
        assert entries() == []
    finally:
        folder.unlink()
        aside.rename(folder)
    planted = folder / "1-abcdef.sock"
    planted.symlink_to(tmp_path / "trap")
    planted.with_suffix(".json").write_bytes(
        msgspec.json.encode(msgspec.structs.replace(found.entry, address=str(planted)))
    )
    assert [entry.pid for entry in entries() if entry.address == str(planted)] == []
    for left in (planted, planted.with_suffix(".json")):
        left.unlink(missing_ok=True)
    found.goes_on()


@needs_linux
@pytest.mark.parametrize("token", [None, "", "0" * 64, "f" * 64, 7, ["f" * 64]])
def test_a_wrong_token(target: Targets, token: object) -> None:
    """3: it hears no more than that."""
    found = target("port")
    answer = found.say(json.dumps({"kind": "hello", "version": 1, "token": token}).encode() + b"\n", ATTACH, PAUSE)
    assert last(answer) in ("token", "malformed")
    assert answer.count(b"\n") == 1
    assert found.entry.session.encode() not in answer
    found.goes_on()


@needs_linux
def test_a_replayed_hello(target: Targets) -> None:
    """4: twice on one connection is once too often, and what lets in here lets in nowhere else."""
    found = target("port")
    assert found.entry.token is not None
    heard = msgspec.json.encode({"kind": "hello", "version": 1, "token": found.entry.token, "control": True}) + b"\n"
    assert last(found.say(heard, heard)) == "malformed"
    other = Program("port")
    with other.process:
        theirs = next(entry for entry in entries() if entry.pid == other.pid)
        with raw(theirs) as connection:
            connection.sendall(heard + ATTACH)
            assert last(read_all(connection)) == "token"
        other.process.kill()
    found.goes_on()


@needs_linux
@pytest.mark.parametrize("version", [0, 10**9])
def test_a_version_from_nowhere(target: Targets, version: int) -> None:
    """5 and 6: too old is told to upgrade; one that speaks no older version either is told so too."""
    found = target()
    asked = {"kind": "hello", "version": version, "oldest": version}
    answer = found.say(json.dumps(asked).encode() + b"\n", ATTACH)
    assert last(answer) == "version"
    assert b"upgrade" in answer
    found.goes_on()


@needs_linux
def test_control_without_leave(target: Targets) -> None:
    """7: asked for, claimed or just tried, nothing is steered where the process does not allow it."""
    found = target("shy")
    verbs = ("pause", "next", "passOnce", "stop", "reset", "setPolicy", "setBreakpoints", "continue")
    asked = [json.dumps({"kind": "request", "id": 5, "verb": verb}).encode() + b"\n" for verb in verbs]
    answer = found.say(HELLO, *asked)
    assert answer.count(b'"not-allowed"') == len(verbs)
    found.goes_on()


@needs_linux
@pytest.mark.parametrize("start", [b"", HELLO], ids=["first", "later"])
def test_a_line_without_end(target: Targets, start: bytes) -> None:
    """8: a hundred megabytes are not kept."""
    found = target()
    with raw(found.entry) as connection:
        connection.sendall(start)
        with pytest.raises(ConnectionError):
            connection.sendall(b"x" * 100_000_000)
    found.goes_on()


@needs_linux
def test_a_slow_line(target: Targets) -> None:
    """9: one byte at a time is too slow, while others are served."""
    found = target()
    with raw(found.entry) as connection:
        connection.settimeout(0.2)
        answer = b""
        with contextlib.suppress(ConnectionError):
            while b"\n" not in answer:
                with contextlib.suppress(TimeoutError):
                    answer += connection.recv(4096)
                if b"\n" not in answer:
                    connection.sendall(b" ")
        assert last(answer) == "too-slow"
    found.goes_on()


@needs_linux
@pytest.mark.parametrize(
    "junk",
    [
        os.urandom(2_000) + b"\n",
        bytes(range(256)) * 10,
        b"\0" * 5_000 + b"\n",
        b"[" * 4_000 + b"\n",
        b'{"a":' * 700 + b"\n",
    ],
    ids=["random", "all", "zeros", "lists", "objects"],
)
def test_junk_and_deep_nesting(target: Targets, junk: bytes) -> None:
    """10 and 11: before the hello and behind it."""
    found = target()
    for start in (b"", HELLO):
        answer = found.say(start, junk)
        assert last(answer) in ("malformed", "too-long")
    found.goes_on()


@needs_linux
@pytest.mark.slow
def test_ten_thousand_connections_in_a_row(target: Targets) -> None:
    """12: some say hello and some nothing; the process is as it was before."""
    found = target()
    for number in range(10_000):
        with raw(found.entry) as connection:
            if number % 2:
                connection.sendall(HELLO)
    found.goes_on()


@needs_linux
@pytest.mark.parametrize("what", ["loop", "port"])
def test_an_http_request(target: Targets, what: str) -> None:
    """13: as a page in a browser can send one; what stands behind its head is not read."""
    found = target(what)
    body = HELLO + ATTACH + PAUSE
    head = f"POST / HTTP/1.1\r\nHost: {found.entry.address}\r\nContent-Length: {len(body)}\r\n\r\n"
    answer = found.say(head.encode(), body)
    assert last(answer) == "malformed"
    assert b"welcome" not in answer
    found.goes_on()


@needs_linux
@pytest.mark.parametrize("name", ["../../../etc/passwd", "\x1b]0;owned\x07\x1b[2J", "a\nb\r", "x" * 3_000])
def test_paths_and_control_characters_in_names(target: Targets, name: str) -> None:
    """14: of a viewer, and of a process that is asked for; none makes a file, and none reaches a recording as it is."""
    found = target()
    before = sorted(path.name for path in Path(found.entry.address).parent.iterdir())
    with contextlib.suppress(CannotAttachError), connect(found.entry, control=True, name=name) as client:
        client.attach()
        client.call("pause")
        state = State()
        message = state.follow(client, lambda message: getattr(message, "action", None) == "pause")
        by = getattr(message, "by", "")
        assert by.isprintable()
        assert len(by) < 200
    with pytest.raises(CannotAttachError) as refused:
        connect(name)
    assert str(refused.value).isprintable()
    assert sorted(path.name for path in Path(found.entry.address).parent.iterdir()) == before
    found.goes_on()


@needs_linux
def test_a_flood_of_requests(target: Targets) -> None:
    """15: it ends with the connection that it came through."""
    found = target()
    answer = found.say(HELLO, b'{"kind":"request","id":1,"verb":"nonsense"}\n' * 5_000)
    assert last(answer) == "too-many"
    found.goes_on()
