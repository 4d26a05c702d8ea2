"""`loopscope import`, and files of a foreign format wherever a recording is taken."""

from __future__ import annotations

import gzip
import io
import os
import select
import stat
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypedDict

import pytest

import loopscope
from loopscope.samples import samples
from tests.cli.conftest import Cli, Record
from tests.sources.langgraph_sqlite.graphs import ASK, THREAD, answer, calls, database, graph_of, loop, saved

ROOT = Path(__file__).parents[2]
CASES = Path(__file__).parents[1] / "cases"
UNKNOWN = '{"kind":"mood", "seq":900,"later":{"b":1,"a":[2.50]}}\n'


class Kept(TypedDict, total=False):
    """A state with two lists of messages."""

    log: list[Any]
    other: list[Any]


def _said(call_id: str, tool: str) -> list[Any]:
    call = {"id": call_id, "function": {"name": tool, "arguments": "{}"}}
    return [{"role": "assistant", "content": "", "tool_calls": [call]}]


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoints of a run that asks the same five times."""
    script = [*(calls("clock") for _ in range(5)), answer()]
    path = tmp_path_factory.mktemp("stuck") / "checkpoints.db"
    return saved(path, lambda saver: loop(script).compile(saver).invoke(ASK, THREAD))


@pytest.fixture(scope="module")
def channels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoints of a run that keeps messages in two channels of its own."""
    graph = graph_of(Kept)
    graph.add_node("agent", lambda _state: {"log": _said("c1", "find"), "other": _said("c2", "open")})
    graph.add_edge("__start__", "agent")
    path = tmp_path_factory.mktemp("channels") / "checkpoints.db"
    return saved(path, lambda saver: graph.compile(saver).invoke({"other": []}, THREAD))


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "widgets")])}


def _loaded(*arguments: object) -> str:
    """The modules of a process that ran a verb."""
    code = (
        f"import sys\nfrom loopscope.cli import run\nassert run({[*map(str, arguments)]!r}) == 0\nprint(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=_environment(), capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_a_checkpoint_file_is_a_target_of_replay(cli: Cli, stuck: Path) -> None:
    """Its batches are decided as those of a recording."""
    outcome = cli("replay", stuck, "--json", "--fail-on", "stop")
    assert (outcome.code, outcome.err) == (1, "")
    assert [line["action"] for line in outcome.lines] == ["pass", "pass", "warn", "pass", "hard_stop"]


def test_a_checkpoint_file_is_a_target_of_explain_and_attach(cli: Cli, stuck: Path) -> None:
    """Arguments and results are read again from what was kept of it."""
    assert "batch 5 of 5, STOP identical_call_set A 5/5" in cli("explain", stuck).out
    shown = cli("attach", stuck)
    assert 'search("clock")' in shown.out
    assert "found clock" in shown.out


def test_a_checkpoint_file_is_opened_from_a_program(channels: Path) -> None:
    """With its channel, as on the command line."""
    assert len(loopscope.open(channels)) == 2
    assert [loopscope.open(channels, channel=name).row(1).names for name in Kept.__annotations__] == [
        ("find",),
        ("open",),
    ]


@pytest.mark.parametrize(
    ("verb", "both", "one"),
    [("attach", "2/2", "1/1"), ("replay", "2 batches", "1 batch "), ("explain", "of 2", "of 1")],
)
def test_the_channel_of_the_messages_can_be_named(cli: Cli, channels: Path, verb: str, both: str, one: str) -> None:
    """Where a state holds more lists than the conversation."""
    assert both in cli(verb, channels).out
    named = cli(verb, channels, "--channel", "log")
    assert named.code == 0
    assert one in named.out


def test_a_channel_that_is_not_there_is_told_with_the_nearest(cli: Cli, channels: Path) -> None:
    """A usage error in one line."""
    outcome = cli("replay", channels, "--channel", "lgo")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == f"loopscope: {channels}: no channel lgo; did you mean log?\n"


@pytest.mark.parametrize("target", ["run.jsonl", "sample:sql-retry-storm", "-"])
def test_a_recording_has_no_channels(cli: Cli, record: Record, target: str) -> None:
    """An option that would do nothing is refused."""
    record(["a"])
    outcome = cli("replay", target, "--channel", "log")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == f"loopscope: {target} has no channels, leave out --channel: it is for checkpoint files\n"


def test_another_database_is_refused_in_one_line(cli: Cli, tmp_path: Path) -> None:
    """It is told by its columns, not by the name of its table."""
    database(tmp_path / "c.db", schema="CREATE TABLE checkpoints (id, name);")
    for verb in (["replay"], ["explain"], ["attach"], ["import", "-o", "out.jsonl"]):
        outcome = cli(*verb, "c.db")
        assert (outcome.code, outcome.out) == (3, "")
        assert outcome.err.startswith("loopscope: c.db: not a LangGraph database: its table `checkpoints` has")
        assert outcome.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["c.db"]


def test_what_is_left_out_of_a_checkpoint_file_is_told_by_its_row(cli: Cli, stuck: Path, tmp_path: Path) -> None:
    """As bad lines of a recording are."""
    import sqlite3

    (tmp_path / "c.db").write_bytes(stuck.read_bytes())
    with sqlite3.connect(tmp_path / "c.db") as connection:
        connection.execute("UPDATE checkpoints SET checkpoint = x'c1' WHERE rowid = 3")
    outcome = cli("replay", "c.db")
    assert outcome.code == 0
    assert outcome.err.startswith("loopscope: c.db: row 3: ")
    assert outcome.err.count("\n") == 1


def test_a_recording_is_not_shown_to_the_foreign_formats(record: Record, tmp_path: Path) -> None:
    """What begins as a recording loads none of them, and of a checkpoint file no framework is loaded."""
    assert "loopscope.sources" not in _loaded("replay", tmp_path / record(["a"]))
    assert "loopscope.sources" not in _loaded("attach", "sample:sql-retry-storm")


def test_a_checkpoint_file_loads_no_framework(stuck: Path) -> None:
    """Its values are read by their structure alone."""
    loaded = _loaded("replay", stuck)
    assert "loopscope.sources.langgraph_sqlite" in loaded
    assert "langchain" not in loaded
    assert "langgraph." not in loaded


@pytest.mark.parametrize("start", [b"", b"\n \r\n", b"\xef\xbb\xbf"])
def test_a_recording_may_begin_with_white_space_or_a_mark(
    cli: Cli, record: Record, tmp_path: Path, start: bytes
) -> None:
    """As it always could."""
    path = tmp_path / record(["a"])
    path.write_bytes(start + path.read_bytes())
    assert len(cli("replay", "run.jsonl", "--json").lines) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_not_looked_into(cli: Cli, record: Record, tmp_path: Path) -> None:
    """What was taken from it to know its format would be missing."""
    content = (tmp_path / record(["a", "b"])).read_bytes()
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen([sys.executable, "-c", f"open('pipe', 'wb').write({content!r})"], cwd=tmp_path):
        assert len(cli("replay", "pipe", "--json").lines) == 2


def test_an_imported_checkpoint_file_gives_the_same_decisions(cli: Cli, stuck: Path) -> None:
    """Import is what replay does at once, kept."""
    outcome = cli("import", stuck, "-o", "run.jsonl")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == f"loopscope: run.jsonl: 14 events from {stuck}\n"
    assert cli("replay", "run.jsonl", "--json") == cli("replay", stuck, "--json")


def test_secrets_in_a_checkpoint_file_are_not_imported(cli: Cli, tmp_path: Path) -> None:
    """Neither from arguments nor from results, and the decisions are the same; equal calls are still equal."""
    secret, other = "sk-proj-" + "a1B2" * 12, "Tr0ub4dor-x7"
    said = f"curl -u bob:{other} -H 'Authorization: Bearer {secret}'"
    script = [*(calls(said) for _ in range(5)), calls(said + "!"), answer()]
    path = saved(tmp_path / "kept.db", lambda saver: loop(script).compile(saver).invoke(ASK, THREAD))
    assert secret in cli("replay", path).out + str(path.read_bytes())
    assert cli("import", path, "-o", "run.jsonl").code == 0
    text = (tmp_path / "run.jsonl").read_text()
    assert text.count("<redacted>") > 12
    assert secret not in text
    assert other not in text
    before, after = (cli("replay", each, "--json").lines for each in (path, "run.jsonl"))
    for name in ("batch", "seq", "hash_count", "action", "layer", "count"):
        assert [line[name] for line in after] == [line[name] for line in before], name
    assert [line["action"] for line in after] == ["pass", "pass", "warn", "pass", "hard_stop", "pass"]


def test_a_channel_can_be_imported(cli: Cli, channels: Path) -> None:
    """The recording has the calls of that channel alone."""
    cli("import", channels, "-o", "run.jsonl", "--channel", "other")
    assert "find" not in cli("replay", "run.jsonl").out


@pytest.mark.parametrize("name", [sample.name for sample in samples()])
def test_importing_a_recording_changes_nothing(cli: Cli, name: str, tmp_path: Path) -> None:
    """Byte for byte."""
    assert cli("import", f"sample:{name}", "-o", "out.jsonl").code == 0
    source = next(sample.file for sample in samples() if sample.name == name)
    assert (tmp_path / "out.jsonl").read_bytes() == source.read_bytes()


def test_decisions_stay_the_same_whatever_a_recording_went_through(cli: Cli, tmp_path: Path) -> None:
    """Packed, with a mark, blank lines, other line ends, two events on a line and a cut-off end, in and out again."""
    plain = (CASES / "05-search-fetch-alternation.jsonl").read_bytes()
    head, second, third, rest = plain.split(b"\n", 3)
    rough = (
        b"\xef\xbb\xbf" + head + b"\r\n\n" + second + b" " + third + b"\n" + rest + UNKNOWN.encode() + b'{"kind":"ba'
    )
    (tmp_path / "rough.jsonl.gz").write_bytes(gzip.compress(rough))
    outcome = cli("import", "rough.jsonl.gz", "-o", "smooth.jsonl")
    assert (outcome.code, outcome.err.count("\n")) == (0, 1)
    assert (tmp_path / "smooth.jsonl").read_bytes() == plain + UNKNOWN.encode()
    assert cli("replay", "smooth.jsonl", "--json") == cli(
        "replay", CASES / "05-search-fetch-alternation.jsonl", "--json"
    )


def test_unknown_kinds_and_fields_are_kept_as_they_are(cli: Cli, record: Record, tmp_path: Path) -> None:
    """A later version will know them; also numbers and spaces stay as they were written."""
    odd = '{"kind":"batch","seq":99,"ts":1.50,"thread_id":"t","run_id":"r","calls":[],"mood":"\\ud800"}\n'
    path = tmp_path / record(["a"], extra=UNKNOWN + odd)
    cli("import", "run.jsonl", "-o", "out.jsonl")
    assert (tmp_path / "out.jsonl").read_bytes() == path.read_bytes()


def test_lines_that_cannot_be_read_are_left_out_and_told(cli: Cli, record: Record) -> None:
    """With their number in the file that was read."""
    record(["a"], extra="nonsense\n")
    outcome = cli("import", "run.jsonl", "-o", "out.jsonl")
    first, last = outcome.err.splitlines()
    assert first.startswith("loopscope: run.jsonl:3: is not JSON")
    assert last == "loopscope: out.jsonl: 2 events from run.jsonl"
    assert cli("replay", "out.jsonl").err == ""


def test_a_recording_from_stdin_goes_to_stdout(
    cli: Cli, record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else stands there."""
    content = (tmp_path / record(["a"])).read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    outcome = cli("import", "-", "-o", "-")
    assert (outcome.code, outcome.out.encode()) == (0, content)
    assert outcome.err == "loopscope: stdout: 2 events from stdin\n"


def test_the_file_is_for_its_owner_and_may_be_packed(cli: Cli, record: Record, tmp_path: Path) -> None:
    """What a run said may be private; the same input gives the same bytes."""
    record(["a"])
    cli("import", "run.jsonl", "-o", "one.jsonl.gz")
    cli("import", "run.jsonl", "-o", "two.jsonl.gz")
    assert stat.S_IMODE((tmp_path / "one.jsonl.gz").stat().st_mode) == 0o600
    assert (tmp_path / "one.jsonl.gz").read_bytes() == (tmp_path / "two.jsonl.gz").read_bytes()
    assert cli("replay", "one.jsonl.gz", "--json") == cli("replay", "run.jsonl", "--json")


def test_a_file_that_exists_is_replaced_only_by_force(cli: Cli, record: Record, tmp_path: Path) -> None:
    """Also the recording that is read may be the one that is written."""
    path = tmp_path / record(["a"])
    content = path.read_bytes()
    outcome = cli("import", "run.jsonl", "-o", "run.jsonl")
    assert (outcome.code, outcome.err) == (2, "loopscope: run.jsonl: exists already; --force replaces it\n")
    assert cli("import", "run.jsonl", "-o", "run.jsonl", "--force").code == 0
    assert path.read_bytes() == content


def test_a_link_stays_a_link(cli: Cli, record: Record, tmp_path: Path) -> None:
    """What it leads to is replaced."""
    record(["a"])
    (tmp_path / "real.jsonl").write_text("old")
    (tmp_path / "link.jsonl").symlink_to("real.jsonl")
    assert cli("import", "run.jsonl", "-o", "link.jsonl", "--force").code == 0
    assert (tmp_path / "link.jsonl").is_symlink()
    assert (tmp_path / "real.jsonl").read_bytes() == (tmp_path / "run.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("none/out.jsonl", "none/out.jsonl: there is no such folder; make it first"),
        (".", ".: is a directory; name a file in it"),
        ("run.jsonl/x", "run.jsonl/x: Not a directory"),
        ("a\x1bb/x", "a\\x1bb/x: there is no such folder; make it first"),
        pytest.param("/dev/full", "/dev/full: No space left on device", marks=pytest.mark.skipif(
            not Path("/dev/full").exists(), reason="there is no full device here")),
    ],
)  # fmt: skip
def test_what_cannot_be_written_is_one_line(cli: Cli, record: Record, output: str, message: str) -> None:
    """A usage error, with what to do."""
    record(["a"])
    outcome = cli("import", "run.jsonl", "-o", output)
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"loopscope: {message}\n")


def test_a_device_is_written_to_as_it_is(cli: Cli, record: Record) -> None:
    """It is not replaced by a file."""
    record(["a"])
    assert cli("import", "run.jsonl", "-o", os.devnull).code == 0
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("content", ["", "nonsense\n", '{"kind":"header","format":"loopscope/2"}\n'])
def test_after_an_error_there_is_no_file(cli: Cli, tmp_path: Path, content: str) -> None:
    """Neither a part of one nor a draft."""
    (tmp_path / "run.jsonl").write_text(content)
    assert cli("import", "run.jsonl", "-o", "out.jsonl").code == 3
    assert [path.name for path in tmp_path.iterdir()] == ["run.jsonl"]


def test_a_file_that_appears_meanwhile_is_not_replaced(record: Record, tmp_path: Path) -> None:
    """What somebody else put there is theirs."""
    content = (tmp_path / record(["a"])).read_bytes()
    command = [sys.executable, "-m", "loopscope", "import", "-", "-o", "out.jsonl"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=tmp_path, env=_environment(), stdin=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        process.stdin.write(content)
        process.stdin.flush()
        while not list(tmp_path.glob(".loopscope-*")):
            time.sleep(0.01)
        (tmp_path / "out.jsonl").write_text("theirs")
        assert b"out.jsonl: exists already" in process.communicate()[1]
    assert process.returncode == 2
    assert (tmp_path / "out.jsonl").read_text() == "theirs"
    assert not list(tmp_path.glob(".loopscope-*"))


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals here")
def test_a_long_import_tells_on_a_terminal_how_far_it_is(record: Record, tmp_path: Path) -> None:
    """On a line that is gone in the end."""
    header, batch = (tmp_path / record(["a"])).read_bytes().splitlines(keepends=True)
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "loopscope", "import", "-", "-o", "out.jsonl"]
    process = subprocess.Popen(command, cwd=tmp_path, env=_environment(), stdin=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    assert process.stdin is not None
    process.stdin.write(header)
    seq = 10
    while not select.select([ours], [], [], 0.01)[0]:
        seq += 1
        process.stdin.write(batch.replace(b'"seq": 10', b'"seq": %d' % seq))
        process.stdin.flush()
    shown = os.read(ours, 1000)
    assert shown.startswith(b"\rloopscope: ")
    assert shown.endswith("events …".encode())
    process.communicate()
    left = os.read(ours, 10_000)
    assert b"\r   " in left
    assert left.endswith(b"\rloopscope: out.jsonl: %d events from stdin\r\n" % (seq - 9))
    os.close(ours)
