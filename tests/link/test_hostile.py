"""Probes of the endpoint: none gets in, none does harm, each loses its own connection and nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from loopscope.errors import CannotAttachError
from loopscope.link.client import connect
from loopscope.link.connection import LONGEST_HELLO, LONGEST_REQUEST
from loopscope.link.discovery import Entry, entries, new_entry, write
from loopscope.link.endpoint import Link
from loopscope.link.limits import Limits
from loopscope.link.target import discover
from tests.link.support import FREE, Agent, State, descriptors, raw, read_all, same_state, until

NOBODY = 65_534
HELLO = b'{"kind":"hello","version":1}\n'
ATTACH = b'{"kind":"request","id":1,"verb":"attach"}\n'
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

FIRST_LINES: list[tuple[bytes, str | None]] = [
    (b"\0\1\2\xff\xfe\n", "malformed"),
    (bytes(range(256)).replace(b"\n", b"") + b"\n", "malformed"),
    (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "malformed"),
    (b"POST /hello HTTP/1.1\r\n\r\n" + HELLO + ATTACH, "malformed"),
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n", "malformed"),
    (b"[" * 4_000 + b"\n", "malformed"),
    (b'{"kind":"hello","version":1,"x":' + b'{"a":' * 600 + b"1" + b"}" * 600 + b"}\n", None),
    (b'{"kind":"hello","version":1,"x":' + b"[" * 3_900 + b"\n", "malformed"),
    (b'{"kind":"hello","version":0}\n', "version"),
    (b'{"kind":"hello","version":0,"oldest":-9}\n', "version"),
    (b'{"kind":"hello","version":1000000000,"oldest":1000000000}\n', "version"),
    (b'{"kind":"hello","version":9999999999999999999999999999}\n', None),
    (b'{"kind":"hello","version":true}\n', "malformed"),
    (ATTACH, "malformed"),
    (b"\n", "malformed"),
    (b"x" * (LONGEST_HELLO + 1), "too-long"),
    (b"x" * (LONGEST_HELLO + 1) + b"\n", "too-long"),
    (b"x" * 10_000_000, "too-long"),
]


@pytest.fixture
def link(opened: Callable[..., Link]) -> Link:
    """A link that takes few requests."""
    return opened("target", control=True, limits=Limits(burst=50, per_second=50))


def serves(link: Link) -> None:
    """A viewer of good faith gets everything, and the agent runs."""
    agent = Agent(FREE)
    agent.start()
    assert agent.batch() == "ran"
    client, state = connect(link.entry, control=link.control), State()
    with client:
        client.attach()
        state.catch_up(client, agent)
        assert state.detector.batches >= 1
        assert len(link._hub.viewers) == 1
    until(lambda: not link._server._connections)  # type: ignore[union-attr]
    assert not link.gate.armed


def bye(answer: bytes) -> str:
    """The code of the last line of an answer."""
    last = json.loads(answer.rstrip(b"\n").rpartition(b"\n")[2])
    assert last["kind"] == "bye"
    return str(last["code"])


@pytest.mark.parametrize(("line", "code"), FIRST_LINES, ids=range(len(FIRST_LINES)))
def test_a_first_line_that_is_no_hello_ends_the_connection(link: Link, line: bytes, code: str | None) -> None:
    """Binary junk, HTTP, deep or endless JSON, versions from nowhere; an odd hello that makes sense is let in."""
    with raw(link) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(line)
        if code is None:
            connection.shutdown(socket.SHUT_WR)
        answer = read_all(connection)
        if code is None:
            assert b'"welcome"' in answer or bye(answer) == "malformed"
        elif answer:
            assert bye(answer) == code
            assert b"welcome" not in answer
            assert len(answer) < 400
        else:
            assert len(line) > 100_000  # closed while the flood was still coming: the answer went down with it
    serves(link)


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (HELLO, "malformed"),
        (b"\xff\xff\n", "malformed"),
        (b'{"kind":"request","id":1}\n', "malformed"),
        (b'{"kind":"request","id":1,"verb":"pause","arguments":' + b"[" * 60_000 + b"\n", "malformed"),
        (b"y" * (LONGEST_REQUEST + 1), "too-long"),
        (b"\n" * 200, "malformed"),
    ],
    ids=range(6),
)
def test_a_later_line_that_is_no_request_ends_the_connection(link: Link, lines: bytes, code: str) -> None:
    """Also a hello said twice."""
    with raw(link) as connection:
        connection.sendall(HELLO)
        connection.sendall(lines)
        assert bye(read_all(connection)) == code
    serves(link)


@pytest.mark.parametrize("start", [b"", b'{"kind":"he', HELLO + b'{"kind"', HELLO + ATTACH + b"{"])
def test_a_line_that_does_not_end_in_time_ends_the_connection(opened: Callable[..., Link], start: bytes) -> None:
    """However slowly it goes on."""
    link = opened("impatient", control=True, limits=Limits(line_s=0.3))
    with raw(link) as connection:
        connection.sendall(start)
        connection.settimeout(0.05)
        answer = b""
        while True:
            try:
                piece = connection.recv(1 << 16)
            except TimeoutError:
                if start:
                    with contextlib.suppress(BrokenPipeError):  # it has ended just now, and its last line is there
                        connection.sendall(b" ")
                continue
            except ConnectionError:
                break
            if not piece:
                break
            answer += piece
        assert bye(answer) == "too-slow"


def test_a_flood_of_requests_ends_the_connection(link: Link) -> None:
    """After more than a person or a program of good faith would send."""
    with raw(link) as connection:
        connection.sendall(HELLO + b'{"kind":"request","id":1,"verb":"nonsense"}\n' * 500)
        answer = read_all(connection)
    assert answer.count(b'"unknown-verb"') < 60
    assert bye(answer) == "too-many"
    serves(link)


def test_asking_without_reading_ends_the_connection(opened: Callable[..., Link]) -> None:
    """Answers do not pile up for somebody who never takes them."""
    link = opened(limits=Limits(burst=10**9, per_second=10**9))
    line = b'{"kind":"request","id":1,"verb":"' + b"x" * 300 + b'"}\n'
    with raw(link) as connection:
        connection.sendall(HELLO)
        with pytest.raises(ConnectionError):
            _send_for_ever(connection, line * 100)
    serves(link)


def _send_for_ever(connection: socket.socket, lines: bytes) -> None:
    while True:
        connection.sendall(lines)


def test_a_viewer_that_never_reads_loses_its_connection(opened: Callable[..., Link]) -> None:
    """What waits for it is bounded, and after a while it has to go."""
    link = opened(limits=Limits(stuck_s=0.3))
    agent = Agent(FREE)
    agent.start()
    with raw(link) as connection:
        connection.sendall(HELLO + ATTACH)
        until(lambda: link.viewers == 1)
        for number in range(2_000):
            agent.batch(("bash", {"command": f"echo {number}", "padding": "x" * 500}))
        waiting = [each._transport.get_write_buffer_size() for each in link._server._connections.values()]  # type: ignore[union-attr]
        assert all(size < 1_000_000 for size in waiting)
        until(lambda: link.viewers == 0)
    serves(link)


def test_one_that_goes_in_the_middle_of_a_message_is_gone(link: Link) -> None:
    """As one that is killed while it writes."""
    for part in (b"", b'{"kind', HELLO[:-1], HELLO + b'{"kind":"request","id":1,"ver'):
        with raw(link) as connection:
            connection.sendall(part)
    until(lambda: link.viewers == 0)
    serves(link)


def test_what_is_not_allowed_is_not_done(opened: Callable[..., Link]) -> None:
    """Control without leave is answered, whatever the hello claims; nothing happens."""
    link = opened("shy")
    agent = Agent(FREE)
    agent.start()
    verbs = ("pause", "stop", "reset", "setPolicy", "setBreakpoints", "next", "passOnce", "continue")
    with raw(link) as connection:
        connection.sendall(b'{"kind":"hello","version":1,"control":true,"controls":true,"admin":1}\n')
        for number, verb in enumerate(verbs):
            connection.sendall(b'{"kind":"request","id":%d,"verb":"%s"}\n' % (number, verb.encode()))
        connection.sendall(b'{"kind":"request","id":99,"verb":"disconnect"}\n')
        answers = read_all(connection)
    assert answers.count(b'"not-allowed"') == len(verbs)
    assert agent.batch() == "ran"
    serves(link)


@pytest.mark.parametrize(
    "token", [None, "", "0" * 64, "\u00e9" * 64, "x" * 3_000], ids=["none", "empty", "zeros", "letters", "long"]
)
def test_without_the_token_a_port_says_nothing(opened: Callable[..., Link], token: str | None) -> None:
    """Not what it is, nor whether the version would suit; the token of another session is as good as none."""
    link = opened(transport="tcp")
    assert link.entry.token is not None
    assert len(bytes.fromhex(link.entry.token)) == 32
    with raw(link) as connection:
        connection.sendall(json.dumps({"kind": "hello", "version": 0, "token": token}).encode() + b"\n" + ATTACH)
        answer = read_all(connection)
    assert bye(answer) == "token"
    assert link.entry.session.encode() not in answer
    assert str(os.getpid()).encode() not in answer
    wrong = msgspec.structs.replace(link.entry, token="f" * 64)
    with pytest.raises(CannotAttachError, match="token"):
        connect(wrong)
    serves(link)


def test_a_port_is_open_to_this_machine_only(opened: Callable[..., Link]) -> None:
    """And a viewer never dials anywhere else, whatever a discovery file says."""
    link = opened(transport="tcp")
    assert link.address.startswith("127.0.0.1:")
    for address in ("192.0.2.1:80", "localhost:22", "127.0.0.1:x", "127.0.0.1:99999999999", ":1", ""):
        with pytest.raises(CannotAttachError):
            connect(msgspec.structs.replace(link.entry, address=address), timeout=0.5)


def test_another_process_at_the_same_address_is_not_taken_for_this_one(link: Link) -> None:
    """Its session is not the one in the discovery file."""
    with pytest.raises(CannotAttachError, match="another process"):
        connect(msgspec.structs.replace(link.entry, session="0" * 16))


def as_nobody(script: str, *arguments: str) -> subprocess.Popen[str]:
    """A program that is another user's once it has loaded what it needs: that user may not read our Python."""
    return subprocess.Popen(
        [sys.executable, "-c", BECOME_NOBODY + script, *arguments], text=True, stdout=subprocess.PIPE, cwd="/"
    )


BECOME_NOBODY = f"""
import os, socket, sys
os.setgroups([])
os.setgid({NOBODY})
os.setuid({NOBODY})
"""
DIAL = """
connection = socket.socket(socket.AF_UNIX)
connection.settimeout(60)
try:
    connection.connect(sys.argv[1])
    connection.sendall(b'{"kind":"hello","version":1,"control":true}\\n')
    print(repr(connection.recv(1000)))
except OSError as error:
    print(type(error).__name__)
"""


@needs_root
def test_another_user_does_not_get_in(link: Link) -> None:
    """The folder keeps it out; where that were opened, the kernel still tells who it is, and it hears nothing."""
    path = Path(link.address)
    assert as_nobody(DIAL, link.address).communicate()[0].strip() == "PermissionError"
    opened_up = [each for each in path.parents if each.stat().st_mode & 0o777 == 0o700]
    modes = [(each, each.stat().st_mode) for each in opened_up]
    try:
        for each in opened_up:
            each.chmod(0o755)
        path.chmod(0o666)
        assert as_nobody(DIAL, link.address).communicate()[0].strip() in (
            "b''",
            "ConnectionResetError",
            "BrokenPipeError",
        )
    finally:
        for each, mode in modes:
            each.chmod(mode)
    serves(link)


LISTEN = """
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o666)
listener.listen()
print("ready", flush=True)
while True:
    connection, _ = listener.accept()
    print(connection.recv(1000), flush=True)
"""


@needs_root
def test_a_viewer_tells_another_users_process_nothing(tmp_path: Path) -> None:
    """Not even where a link, or a discovery file, leads to its socket."""
    place = Path("/tmp") / f"loopscope-test-{os.getpid()}"  # noqa: S108 - where another user can listen
    place.mkdir()
    os.chown(place, NOBODY, NOBODY)
    try:
        theirs = place / "evil.sock"
        process = as_nobody(LISTEN, str(theirs))
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        ours = tmp_path / "ours.sock"
        ours.symlink_to(theirs)
        for path in (theirs, ours):
            with pytest.raises(CannotAttachError, match="belongs to user 65534"):
                connect(path)
        process.kill()
        assert "hello" not in process.communicate()[0]
    finally:
        for each in place.iterdir():
            each.unlink()
        place.rmdir()


def test_a_discovery_file_that_is_a_link_or_no_file_is_ignored(link: Link, tmp_path: Path) -> None:
    """Also one that is too long, broken, or a pipe; what is live is found all the same."""
    folder = Path(link.address).parent
    elsewhere = tmp_path / "elsewhere.json"
    write(msgspec.structs.replace(link.entry, name="fake"), elsewhere)
    (folder / "1-link.json").symlink_to(elsewhere)
    (folder / "1-dir.json").mkdir()
    os.mkfifo(folder / "1-pipe.json")
    (folder / "1-long.json").write_bytes(b" " * 100_000)
    (folder / "1-junk.json").write_bytes(b"\xff" * 100)
    (folder / "1-deep.json").write_bytes(b"[" * 50_000)
    assert [entry.name for entry in entries()] == ["target"]
    assert [live.entry.name for live in discover()] == ["target"]
    assert elsewhere.exists()


def test_what_an_endpoint_says_of_itself_is_safe_to_draw(link: Link, capsys: pytest.CaptureFixture[str]) -> None:
    """Where another program with the right to write there lies in its discovery file."""
    folder = Path(link.address).parent
    evil = "\x1b]0;owned\x07\u202e../../x\n"
    entry = msgspec.structs.replace(new_entry("unix", str(folder / "none.sock"), "x", control=True), name=evil, pid=1)
    with pytest.raises(CannotAttachError) as caught:
        connect(entry)
    print(caught.value)  # noqa: T201 - what a command line does with it
    assert capsys.readouterr().out.rstrip("\n").isprintable()


def connections_in_a_row(link: Link, count: int) -> None:
    agent = Agent(FREE)
    agent.start()
    client, state = connect(link.entry), State()
    with client:
        client.attach()
        files = descriptors()
        for number in range(count):
            with raw(link) as connection:
                if number % 2:
                    connection.sendall(HELLO)
            if number % 100 == 0:
                assert agent.batch() == "ran"
        state.catch_up(client, agent)
        assert same_state(state.detector, agent.detector)
        until(lambda: link.viewers == 1)
        until(lambda: descriptors() <= files)


def test_connections_in_a_row_leave_nothing(opened: Callable[..., Link]) -> None:
    """A viewer of good faith looks on meanwhile."""
    connections_in_a_row(opened(), 500)


@pytest.mark.slow
def test_ten_thousand_connections_in_a_row_leave_nothing(opened: Callable[..., Link]) -> None:
    """As above, for longer."""
    connections_in_a_row(opened(), 10_000)


def test_a_process_without_descriptors_left_goes_on(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    """Accepting fails for a while, and then works again."""
    server = link._server
    assert server is not None
    accept = server._loop.sock_accept
    failed: list[socket.socket] = []

    async def failing(listener: socket.socket) -> object:
        if len(failed) < 1:
            failed.append(listener)
            raise OSError(24, "Too many open files")
        return await accept(listener)

    monkeypatch.setattr(server._loop, "sock_accept", failing)
    with raw(link):
        pass
    with raw(link):
        until(lambda: bool(failed))
    serves(link)


def test_an_entry_is_what_it_was(link: Link) -> None:
    """Written and read again."""
    found = next(entry for entry in entries() if entry.pid == os.getpid())
    assert isinstance(found, Entry)
    assert msgspec.structs.replace(found, path="") == link.entry
