"""`loopscope attach` on a live process without a screen: events as JSON Lines, and as a recording that replays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from loopscope.cli.watch import Recorded
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, Call
from loopscope.engine.policy import DEFAULT
from loopscope.link.endpoint import Link, listen
from loopscope.recording.feed import Snapshotted
from loopscope.recording.gate import gatehouse
from tests.cli.conftest import Cli, Record
from tests.link.support import Agent, until
from tests.sources.langgraph_sqlite.graphs import ASK, THREAD, answer, calls, loop, saved
from tests.sources.langgraph_sqlite.writing import Writer

ROOT = Path(__file__).parents[2]
ME = str(os.getpid())


@pytest.fixture(autouse=True)
def _fresh() -> None:
    """The gatehouse of a process that has just begun."""
    gatehouse.base, gatehouse._engines, gatehouse._registered = None, {}, 0


@pytest.fixture
def listening() -> Iterator[Callable[..., Link]]:
    """`listen`, closed at the end."""
    links: list[Link] = []

    def make(**options: Any) -> Link:
        links.append(listen("bot", **options))
        return links[-1]

    yield make
    for link in links:
        link.close()


def attach(*arguments: str) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "widgets")])}
    command = [sys.executable, "-m", "loopscope", "attach", *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_events_until_the_end(listening: Callable[..., Link]) -> None:
    """From the oldest that is kept, each as it comes, until the process ends its link."""
    link = listening()
    agent = Agent()
    agent.start()
    agent.batch()
    with attach("bot", "--json") as viewer:
        assert viewer.stdout is not None
        first = json.loads(viewer.stdout.readline())
        until(lambda: link.viewers == 1)
        agent.batch()
        agent.end()
        link.close()
        rest = [json.loads(line) for line in viewer.stdout]
        assert viewer.wait(120) == 0
    kinds = [first["kind"], *(line["kind"] for line in rest)]
    assert [kind for kind in kinds if kind not in ("status", "connection", "policy")] == [
        "run_start", "batch", "decision", "result", "batch", "decision", "result", "run_end",
    ]  # fmt: skip
    assert rest[-1] == {"kind": "connection", "state": "ended", "reason": "the process has ended its link"}


def test_what_is_recorded_replays_the_same(listening: Callable[..., Link], cli: Cli, tmp_path: Path) -> None:
    """--record beside --json; the recording has the policy, and what was decided is decided again."""
    link = listening()
    agent = Agent(DEFAULT.with_(warn_threshold=2, hard_limit=4))
    agent.start()
    file = tmp_path / "live.jsonl"
    with attach(ME, "--record", str(file), "--json") as viewer:
        assert link.wait_for_viewer(120)
        for _ in range(5):
            agent.batch()
        agent.end()
        link.close()
        out, err = viewer.communicate(timeout=120)
    assert (viewer.returncode, err) == (0, "")
    assert out
    actions = [line["action"] for line in cli("replay", file, "--json").lines]
    assert actions == ["pass", "warn", "pass", "hard_stop", "hard_stop"]
    assert cli("replay", file, "--verify").code == 0


def test_without_a_screen_it_is_told_how_it_is_now(listening: Callable[..., Link], cli: Cli) -> None:
    """The view as text of all that there is, under a bar that calls it live; the process is not waited for."""
    listening()
    agent = Agent()
    agent.start()
    for _ in range(3):
        agent.batch()
    shown = cli("attach", "bot")
    assert shown.code == 0
    assert shown.out.startswith(" LIVE bot ")
    assert "3/3" in shown.out.splitlines()[0]
    assert "as it is now" in shown.err


def test_no_secret_is_recorded(tmp_path: Path) -> None:
    """What is read from a target that masks none is shown as it is, and masked in the recording."""
    args = {"command": "psql --password hunter2secret"}
    batch = Batch(seq=1, ts=1.0, thread_id="t", run_id="r", calls=(Call("c", "bash", args),))
    feed = [Snapshotted(seq=0, state=LoopDetector().snapshot()), batch]
    file = tmp_path / "live.jsonl"
    assert list(Recorded(cast("Any", feed), str(file)))[1] is batch
    assert "hunter2secret" not in file.read_text()
    assert "<redacted>" in file.read_text()


def test_who_may_not_steer_is_told_at_once(listening: Callable[..., Link]) -> None:
    """Exit code 4 and one line, rather than a viewer whose keys do nothing."""
    listening()
    with attach("bot", "--control", "--json") as viewer:
        out, err = viewer.communicate(timeout=120)
    assert (viewer.returncode, out, err.count("\n")) == (4, "", 1)
    assert "this process lets itself be observed only" in err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nobody"], 4, "no live process nobody and no file of this name"),
        (["4194304"], 4, "no live process 4194304"),
        (["nobody.jsonl"], 3, "nobody.jsonl"),
        (["sample:sql-retry-storm", "--control"], 2, "are for what is live"),
        (["sample:sql-retry-storm", "--record", "x.jsonl"], 2, "are for what is live"),
    ],
)
def test_what_cannot_be_attached(cli: Cli, arguments: list[str], code: int, said: str) -> None:
    """A process that is not there is 4, a file that is not there 3."""
    shown = cli("attach", *arguments)
    assert (shown.code, shown.out, shown.err.count("\n")) == (code, "", 1)
    assert said in shown.err


def test_a_live_process_has_its_own_limits(cli: Cli, listening: Callable[..., Link]) -> None:
    """--set would be a what-if: it is said how to set them."""
    listening()
    shown = cli("attach", "bot", "--set", "hard_limit=9")
    assert shown.code == 2
    assert "loopscope ctl" in shown.err


def test_events_of_a_recording(cli: Cli, record: Record) -> None:
    """--json prints what is recorded, too."""
    shown = cli("attach", record(["select 1", "zw\xf6lf"]), "--json")
    assert [line["kind"] for line in shown.lines] == ["header", "batch", "batch"]
    assert shown.out.isascii()


def test_a_file_is_a_file(cli: Cli, record: Record, listening: Callable[..., Link]) -> None:
    """Even where a process has the same name."""
    listening()
    record(["select 1"], name="bot")
    assert [line["kind"] for line in cli("attach", "bot", "--json").lines] == ["header", "batch"]


def test_a_script_is_no_recording(cli: Cli, listening: Callable[..., Link], tmp_path: Path) -> None:
    """A process is called as its script, which may lie where one types its name."""
    listening()
    (tmp_path / "bot").write_text("import loopscope\n")
    assert "observed only" in cli("attach", "bot", "--control").err
    (tmp_path / "other.py").write_text("import loopscope\n")
    assert cli("attach", "other.py").code == 3


def test_a_checkpoint_file_is_followed_while_it_is_written(tmp_path: Path, cli: Cli) -> None:
    """Each event as it comes, and a recording of them that replays as the file itself."""
    path = tmp_path / "live.db"
    program = Writer(path)
    record = tmp_path / "run.jsonl"
    with attach(str(path), "--follow", "--json", "--record", str(record), "--set", "hard_limit=3") as viewer:
        assert viewer.stdout is not None
        for query in ("a", "b", "a", "a"):
            program.say(query)
            line = until_line(viewer, "batch")
            assert line["calls"][0]["args"] == {"query": query}
        assert program.end() == 0
        until_line(viewer, "run_end")
        viewer.send_signal(signal.SIGINT)
        assert viewer.wait(120) == 130
    program.process.communicate()
    lines = cli("replay", record, "--json").lines
    assert [line["action"] for line in lines] == ["pass", "pass", "pass", "hard_stop"]
    theirs = cli("replay", path, "--json", "--set", "hard_limit=3").lines
    assert [line["hash"] for line in lines] == [line["hash"] for line in theirs]


def until_line(viewer: subprocess.Popen[str], kind: str) -> dict[str, Any]:
    """Read what a viewer prints until a line of this kind has come."""
    assert viewer.stdout is not None
    for text in viewer.stdout:
        line: dict[str, Any] = json.loads(text)
        if line["kind"] == kind:
            return line
    raise AssertionError("the viewer has ended")


def test_what_cannot_be_followed_or_steered(tmp_path: Path, cli: Cli, record: Record) -> None:
    """A recording is not followed, and a checkpoint file is not steered; each says why, in one line."""
    path = saved(tmp_path / "c.db", lambda saver: loop([calls("a"), answer()]).compile(saver).invoke(ASK, THREAD))
    refused = cli("attach", path, "--follow", "--control")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "a checkpoint file can only be read" in refused.err
    assert "can be followed" in cli("attach", record(["a"]), "--follow").err
    assert cli("attach", "--follow").code == 2
    assert cli("attach", path, "--record", "x.jsonl").code == 2


def test_a_followed_file_without_a_screen_is_shown_as_it_is(tmp_path: Path, cli: Cli) -> None:
    """As any other file."""
    path = saved(tmp_path / "c.db", lambda saver: loop([calls("a"), answer()]).compile(saver).invoke(ASK, THREAD))
    shown = cli("attach", path, "--follow")
    assert (shown.code, shown.out) == (0, cli("attach", path).out)
    assert "1/1" in shown.out
