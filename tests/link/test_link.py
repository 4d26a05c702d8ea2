"""A process that listens: its files and names, how it ends, and that viewers that come and go leave nothing behind."""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from loopscope.engine.events import Control, ScopeKey
from loopscope.errors import CannotAttachError
from loopscope.link.client import connect
from loopscope.link.endpoint import Link, listen
from loopscope.link.limits import Limits
from loopscope.recording.bus import bus
from loopscope.recording.feed import Released, Status
from loopscope.recording.gate import gatehouse
from tests.link.support import (
    FREE,
    Agent,
    attached,
    descriptors,
    raw,
    read_all,
    until,
)


def test_the_files_are_the_owners_alone(link: Link) -> None:
    """Folder, socket and discovery file; nothing in a name reaches a path."""
    path = Path(link.address)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    file = path.with_suffix(".json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    entry = json.loads(file.read_bytes())
    assert (entry["pid"], entry["name"], entry["transport"], entry["token"]) == (os.getpid(), "test", "unix", None)
    assert "path" not in entry or entry["path"] == ""


@pytest.mark.parametrize("name", ["../../etc/passwd", "a\x1b]0;owned\x07b", "x\ny", "\u202egnp.exe", "n" * 10_000, "/"])
def test_a_name_is_only_text(opened: Callable[..., Link], name: str) -> None:
    """Paths, control characters and floods in it come out harmless, and the files have names of our own."""
    link = opened(name)
    entry = connect(link.entry).welcome
    for told in (link.entry.name, entry.name):
        assert told.isprintable()
        assert 0 < len(told) <= 80
    files = sorted(path.suffix for path in Path(link.address).parent.iterdir())
    assert files == [".json", ".sock"]
    assert Path(link.address).name.startswith(f"{os.getpid()}-")


def test_agents_names_reach_the_list(link: Link) -> None:
    """The discovery file is written anew when another graph begins."""
    agent = Agent()
    client, state = attached(link)
    with client:
        agent.start(agent="planner")
        agent.start(ScopeKey("t", "other"), agent="coder")
        state.catch_up(client, agent)
    file = Path(link.address).with_suffix(".json")
    until(lambda: json.loads(file.read_bytes())["graphs"] == ["planner", "coder"])


@pytest.mark.parametrize("what", ["loopscope.link.endpoint.write", "loopscope.link.server.Server.start"])
def test_an_endpoint_that_cannot_be_opened_leaves_nothing(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """A full disk, or no thread to be had: the program hears it in one line and can go on without."""

    def failing(*_arguments: object) -> None:
        raise OSError(28, "No space left on device") if what.endswith("write") else RuntimeError("can't start thread")

    monkeypatch.setattr(what, failing)
    files = descriptors()
    with pytest.raises(CannotAttachError, match="cannot open an endpoint"):
        listen()
    assert not bus.active
    assert gatehouse.gate is None
    assert list((Path(os.environ["XDG_RUNTIME_DIR"]) / "loopscope").iterdir()) == []
    monkeypatch.undo()
    assert descriptors() <= files


def test_one_process_has_one_link(link: Link) -> None:
    """A second call gives back the first, until it is closed."""
    assert listen() is link
    assert "observe only" not in repr(link)
    link.close()
    link.close()
    assert "closed" in repr(link)
    other = listen("again")
    assert other is not link
    assert other.address != link.address
    assert "observe only" in repr(other)
    other.close()


def test_closing_lets_everything_go(link: Link, pool: ThreadPoolExecutor) -> None:
    """Held runs go on, viewers are told, and no thread, file or subscription is left."""
    agent = Agent(FREE)
    agent.start()
    client, state = attached(link, control=True)
    client.call("pause")
    run = pool.submit(agent.batch)
    until(lambda: bool(link.gate.held()))
    link.close()
    assert run.result(60) == "ran"
    for message in client:
        state.take(message)
    assert client.bye is not None
    assert client.bye.code == "ended"
    assert isinstance(state.messages[-1], (Status, Control, Released))
    assert list(Path(link.address).parent.iterdir()) == []
    assert not any(thread.name == "loopscope-link" for thread in threading.enumerate())
    assert gatehouse.gate is None
    assert not bus.active
    with pytest.raises(CannotAttachError):
        connect(link.entry)


def test_a_hundred_attach_detach_cycles_leave_nothing_behind(link: Link) -> None:
    """No thread, descriptor, file, viewer or memory of them."""
    agent = Agent(FREE)
    agent.start()

    def cycle() -> None:
        client, state = attached(link, control=True)
        agent.batch()
        state.catch_up(client, agent)
        client.call("pause")
        client.call("continue")
        client.close()

    cycle()
    until(lambda: link.viewers == 0)
    files, threads = descriptors(), threading.active_count()
    for _ in range(100):
        cycle()
    until(lambda: link.viewers == 0)
    until(lambda: descriptors() <= files)
    assert threading.active_count() <= threads
    until(lambda: not link._server._connections)  # type: ignore[union-attr]
    assert not link._server._sockets  # type: ignore[union-attr]


def test_viewers_that_come_and_go_do_not_fill_the_memory(opened: Callable[..., Link]) -> None:
    """What is told of them is bounded with everything else, also where nothing happens in the program."""
    link = opened(limits=Limits(backlog=20_000, burst=10**6, per_second=10**6), control=True)
    with connect(link.entry, control=True) as client:
        for _ in range(300):
            client.call("setBreakpoints", breakpoints=[{"kind": "tool", "subject": "x" * 100}])
    until(lambda: link.viewers == 0)
    assert link._hub._backlog.size < 40_000


def test_there_may_be_too_many_viewers(opened: Callable[..., Link]) -> None:
    """The ones that are there stay; the next one is told."""
    link = opened(limits=Limits(viewers=2))
    clients = [connect(link.entry) for _ in range(2)]
    with pytest.raises(CannotAttachError, match="2 viewers"):
        connect(link.entry)
    clients[0].close()
    until(lambda: link.viewers == 1)
    connect(link.entry).close()
    assert clients[1].call("attach") is not None
    clients[1].close()


def test_a_connection_that_says_nothing_has_to_go_when_others_come(opened: Callable[..., Link]) -> None:
    """So that whoever holds connections open cannot keep viewers out."""
    link = opened(limits=Limits(greeting=4))
    with raw(link) as silent:
        for _ in range(6):
            with raw(link):
                pass
        others = [raw(link) for _ in range(5)]
        opened_ = [other.__enter__() for other in others]
        connect(link.entry).close()
        assert b"too-many" in read_all(silent)
        for other in opened_:
            other.close()
