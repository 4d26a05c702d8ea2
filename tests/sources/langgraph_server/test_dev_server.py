"""A real `langgraph dev`, in an environment of its own: `make test-server` installs it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from loopscope.engine.events import Batch, Control, Result, RunEnd, RunStart
from loopscope.errors import CannotAttachError, UsageError
from loopscope.recording.feed import Connection, Snapshotted
from loopscope.sources.langgraph_server import feed as feeds
from loopscope.sources.langgraph_server import follow
from tests.sources.reading import PATIENCE, Readings

PROGRAM = os.environ.get("LOOPSCOPE_LANGGRAPH") or "langgraph"
"""`make test-server` installs it, in an environment of its own."""
ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.server


class Server:
    """`langgraph dev` on a free port."""

    def __init__(self, folder: Path) -> None:
        shutil.copytree(Path(__file__).parent / "project", folder)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.folder = folder
        self.start()

    def start(self) -> None:
        """Let it run, and wait until it answers."""
        command = [PROGRAM, "dev", "--no-browser", "--no-reload", "--port", str(self.port)]
        environment = {**os.environ, "LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGSMITH_TRACING": "false"}
        environment.pop("PYTHONPATH", None)
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=log, stderr=log, start_new_session=True
            )
        end = time.monotonic() + 2 * PATIENCE
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1):
                    break
            except OSError:
                assert time.monotonic() < end, (self.folder / "log").read_text()
                assert self.process.poll() is None, (self.folder / "log").read_text()
                time.sleep(0.1)
        self.client: SyncLangGraphClient = get_sync_client(url=self.url, api_key=None)

    def stop(self) -> None:
        """End it."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def thread(self) -> str:
        """A new conversation."""
        return str(self.client.threads.create()["thread_id"])

    def run(self, thread: str, *earlier: dict[str, Any], **state: Any) -> str:
        """Let the agent begin."""
        asked = {"messages": [*earlier, {"role": "user", "content": "go"}], **state}
        return str(self.client.runs.create(thread, "agent", input=asked)["run_id"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for all tests."""
    found = Server(tmp_path_factory.mktemp("server") / "project")
    yield found
    found.stop()


def test_a_run_that_begins_is_followed_to_its_end(server: Server, reading: Readings) -> None:
    """Its batches and results in their order, each once; what it was given is not counted."""
    seen = reading(follow(server.url))
    assert isinstance(seen.next(object), Snapshotted)
    thread = server.thread()
    earlier = {"role": "ai", "content": "", "tool_calls": [{"name": "old", "args": {}, "id": "o"}], "id": "m-0"}
    answered = {"role": "tool", "content": "older", "tool_call_id": "o", "id": "m-1"}
    run = server.run(thread, earlier, answered, batches=3, pause=0.3)
    start = seen.next(RunStart)
    assert (start.thread_id, start.run_id, start.agent) == (thread, run, "agent")
    assert seen.next(RunEnd).status == "completed"
    assert seen.queries() == ["A", "B", "A"]
    results = [message for message in seen.found if isinstance(message, Result)]
    assert [result.content for result in results] == ["found A", "found B", "found A"]
    seqs = [message.seq for message in seen.found]  # type: ignore[union-attr]
    assert seqs == sorted(set(seqs))


def test_a_run_that_goes_on_is_seen_from_its_beginning(server: Server, reading: Readings) -> None:
    """However late one comes; a second turn of the conversation begins anew."""
    thread = server.thread()
    server.client.runs.join(thread, server.run(thread, batches=1))
    run = server.run(thread, batches=6, pause=0.4)
    early = reading(follow(server.url))
    for _ in range(3):
        early.next(Result)
    late = reading(follow(server.url))
    assert late.next(RunStart).run_id == run
    assert late.next(RunEnd).status == "completed"
    assert late.queries() == list("ABABAB")
    assert early.next(RunEnd).run_id == run
    assert early.queries() == late.queries()
    times = [message.ts or 0 for message in late.found if isinstance(message, (Batch, Result))]
    assert times == sorted(times)
    assert times[1] - times[0] > 0.3


def test_one_thread_is_shown_with_the_runs_that_are_over(server: Server, reading: Readings) -> None:
    """Each as a run of its own, the oldest first; other threads are not shown."""
    thread, other = server.thread(), server.thread()
    runs = []
    for batches in (2, 1):
        runs.append(server.run(thread, batches=batches))
        server.client.runs.join(thread, runs[-1])
    server.client.runs.join(other, server.run(other, batches=1))
    seen = reading(follow(f"{server.url}/threads/{thread}/"))
    assert [seen.next(RunEnd).run_id for _ in runs] == runs
    assert seen.queries() == ["A", "B", "A"]
    runs.append(server.run(thread, batches=1))
    assert seen.next(RunEnd).run_id == runs[-1]
    assert {message.thread_id for message in seen.found if isinstance(message, RunStart)} == {thread}


def test_a_long_run_is_read_page_by_page(server: Server, reading: Readings) -> None:
    """More states than a server gives at once."""
    thread = server.thread()
    server.client.runs.join(thread, server.run(thread, batches=60))
    seen = reading(follow(f"{server.url}/threads/{thread}"))
    assert seen.next(RunEnd).status == "completed"
    assert "".join(seen.queries()) == "AB" * 30


def test_ends_are_told_as_they_are(server: Server, reading: Readings) -> None:
    """An error with its text, and a question that waits for its answer, which goes on in another run."""
    seen = reading(follow(server.url))
    seen.next(Snapshotted)
    server.run(server.thread(), fails=True)
    failed = seen.next(RunEnd)
    assert (failed.status, "down" in (failed.reason or "")) == ("error", True)
    thread = server.thread()
    server.run(thread, asks=True, batches=1)
    asked = seen.next(RunEnd)
    assert (asked.status, asked.reason) == ("unknown", "interrupted, waiting for an answer")
    server.client.runs.create(thread, "agent", command={"resume": "yes"})
    assert seen.next(Result).content == "found A"
    assert seen.next(RunEnd).status == "completed"
    assert seen.queries() == ["A", "A"]


def test_a_run_is_stopped_where_control_was_asked_for(server: Server, reading: Readings) -> None:
    """By cancelling it; nothing else can be done, and without control not even that."""
    thread = server.thread()
    run = server.run(thread, batches=100, pause=0.3)
    watching = reading(follow(server.url))
    start = watching.next(RunStart)
    assert watching.feed.capabilities["stop"].startswith("this viewer only observes")
    with pytest.raises(UsageError, match="attach with --control"):
        watching.feed.request("stop", start.scope)
    steering = reading(follow(server.url, control=True, name="tester"))
    start = steering.next(RunStart)
    with pytest.raises(UsageError, match=r"cannot pause: a LangGraph server cannot do it: .*listen"):
        steering.feed.request("pause")
    assert steering.feed.request("stop") == {"scopes": 1}
    control = steering.next(Control)
    assert (control.action, control.by, control.run_id) == ("stop", "tester", run)
    assert steering.next(RunEnd).status == "cancelled"
    assert watching.next(RunEnd).status == "cancelled"
    assert steering.feed.request("stop") == {"scopes": 0}


def test_a_server_that_is_gone_is_looked_for(
    tmp_path: Path, reading: Readings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lost, back when it answers again, and in the end the feed is over."""
    server = Server(tmp_path / "project")
    try:
        seen = reading(follow(server.url))
        seen.next(Snapshotted)
        server.stop()
        assert seen.next(Connection).state == "lost"
        server.start()
        assert seen.next(Connection).state == "back"
        server.run(server.thread(), batches=1)
        assert seen.next(RunEnd).status == "completed"
        monkeypatch.setattr(feeds, "_PATIENCE", 0.5)
        server.stop()
        assert [seen.next(Connection).state for _ in range(2)] == ["lost", "ended"]
    finally:
        if server.process.poll() is None:
            server.stop()


def test_from_the_command_line(server: Server, tmp_path: Path) -> None:
    """Events as JSON Lines and a recording; `ctl` stops the run."""
    thread = server.thread()
    server.run(thread, batches=100, pause=0.3)
    record = tmp_path / "run.jsonl"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "widgets")])}

    def loopscope(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "loopscope", *arguments]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    with loopscope("attach", server.url, "--json", "--record", str(record), "--set", "hard_limit=4") as viewer:
        assert viewer.stdout is not None
        for line in viewer.stdout:
            if json.loads(line)["kind"] == "result":
                break
        with loopscope("ctl", server.url, "stop") as asked:
            assert asked.stdout is not None
            assert asked.stdout.read() == "stopping 1 scope at the next batch\n"
        ended = next(json.loads(line) for line in viewer.stdout if '"run_end"' in line)
        assert ended["status"] == "cancelled"
        viewer.send_signal(signal.SIGINT)
        assert viewer.wait(PATIENCE) == 130
    with loopscope("replay", str(record), "--json") as replayed:
        assert replayed.stdout is not None
        first = json.loads(replayed.stdout.readline())
    assert (first["thread_id"], first["hash_count"]) == (thread, 1)


def test_what_is_no_server(server: Server) -> None:
    """Nobody answers, or there is no such thread: said in one line."""
    with pytest.raises(CannotAttachError, match=r"127\.0\.0\.1:1: .*connection"):
        follow("http://127.0.0.1:1")
    with pytest.raises(CannotAttachError, match="not found"):
        follow(f"{server.url}/threads/00000000-0000-0000-0000-000000000000")
