"""`loopscope export`: pages and pictures as files."""

from __future__ import annotations

import os
import pty
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from loopscope.api import open as open_session
from loopscope.views.palette import DARK, LIGHT
from loopscope.views.web.page import page
from loopscope.views.web.picture import picture
from tests.cli.conftest import Cli, Record
from tests.sources.langgraph_sqlite.graphs import ASK, THREAD, answer, calls, loop, saved

ROOT = Path(__file__).parents[2]
SAME = ["select 1"] * 6
SAMPLE = "sample:sql-retry-storm"


def test_a_page_and_a_picture_are_files(cli: Cli, tmp_path: Path) -> None:
    """They are what the presenters make of the session, at the first stop; nothing is printed but where they are."""
    outcome = cli("export", SAMPLE, "--html", "run.html", "--svg", "run.svg")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.splitlines() == [
        f"loopscope: run.html: {SAMPLE} at batch 5 of 20", f"loopscope: run.svg: {SAMPLE} at batch 5 of 20",
    ]  # fmt: skip
    session = open_session(SAMPLE)
    assert (tmp_path / "run.html").read_text("utf-8") == page(session)
    assert (tmp_path / "run.svg").read_text("utf-8") == picture(session)
    assert {stat.S_IMODE((tmp_path / f"run.{kind}").stat().st_mode) for kind in ("html", "svg")} == {0o600}


@pytest.mark.parametrize("arguments", [[], ["--html", "-"]])
def test_a_page_goes_to_stdout(cli: Cli, arguments: list[str]) -> None:
    """Where it is asked for, and where stdout is no terminal and nothing is asked for."""
    outcome = cli("export", SAMPLE, *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == page(open_session(SAMPLE))


def test_a_picture_goes_to_stdout(cli: Cli) -> None:
    """Beside a page that goes to a file."""
    outcome = cli("export", SAMPLE, "--svg", "-", "--html", "run.html")
    assert outcome.out == picture(open_session(SAMPLE))


@pytest.mark.parametrize(
    ("target", "file"), [(SAMPLE, "sql-retry-storm.html"), ("run.v2.jsonl", "run.html"), (".jsonl", "run.html")]
)
def test_on_a_terminal_the_page_is_a_file_of_the_targets_name(
    record: Record, tmp_path: Path, target: str, file: str
) -> None:
    """A page on a terminal is of no use."""
    if not target.startswith("sample:"):
        record(SAME, name=target)
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "widgets")])}
    command = [sys.executable, "-m", "loopscope", "export", target]
    done = subprocess.run(command, cwd=tmp_path, env=environment, stdout=theirs, stderr=subprocess.PIPE, check=True)
    os.close(theirs)
    os.close(ours)
    assert done.stderr.decode().startswith(f"loopscope: {file}: {target} at batch 5")
    assert (tmp_path / file).read_text("utf-8").startswith("<!doctype html>")


def test_batch_theme_and_policy_can_be_chosen(cli: Cli) -> None:
    """As on the other verbs."""
    options = ["--at", 7, "--theme", "dark", "--set", "hard_limit=9"]
    assert "batch 7 of 20" in cli("export", SAMPLE, *options).out
    drawn = cli("export", SAMPLE, "--svg", "-", *options).out
    assert "batch 7 of 20 · limits: defaults +1 set" in drawn
    assert "warn 3 · hard 9" in drawn
    assert f"fill:{DARK.background}" in drawn
    assert LIGHT.background not in drawn


def test_a_checkpoint_file_can_be_exported(cli: Cli, tmp_path: Path) -> None:
    """With its channel."""
    script = [*(calls("clock") for _ in range(5)), answer()]
    saved(tmp_path / "c.db", lambda saver: loop(script).compile(saver).invoke(ASK, THREAD))
    assert "STOP identical_call_set A 5/5" in cli("export", "c.db", "--channel", "messages").out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([SAMPLE, "--at", "99"], 2, f"--at 99: {SAMPLE} has batches 1 to 20"),
        (["none.jsonl"], 3, "none.jsonl: no such file"),
        ([SAMPLE, "--html", "-", "--svg", "-"], 2, "--html - and --svg -: stdout takes one of them"),
        ([SAMPLE, "--html", "none/x.html"], 2, "none/x.html: there is no such folder; make it first"),
        ([SAMPLE, "--set", "hard_limit=0"], 2, "--set hard_limit=0: "),
    ],
)
def test_errors_are_one_line(cli: Cli, arguments: list[str], code: int, message: str) -> None:
    """With the exit codes of every verb, and no file."""
    outcome = cli("export", *arguments)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (code, "", 1)
    assert outcome.err.startswith(f"loopscope: {message}")


def test_a_run_without_calls_has_no_batch_to_name(cli: Cli, record: Record) -> None:
    """But a page."""
    record([])
    assert "no batch with calls yet" in cli("export", "run.jsonl").out
    outcome = cli("export", "run.jsonl", "--at", 1)
    assert (outcome.code, outcome.err) == (2, "loopscope: --at 1: run.jsonl has no batch with tool calls\n")


def test_an_earlier_export_is_replaced_and_nothing_else_is(cli: Cli, record: Record, tmp_path: Path) -> None:
    """A slip of the hand must not cost the recording."""
    path = tmp_path / record(SAME)
    content = path.read_bytes()
    for kind in ("--html", "--svg"):
        outcome = cli("export", "run.jsonl", kind, "run.jsonl")
        message = "loopscope: run.jsonl: exists, and is neither a page nor a picture; name another file\n"
        assert (outcome.code, outcome.err) == (2, message)
        (tmp_path / "empty").touch()
        assert [cli("export", "run.jsonl", kind, "empty").code for _ in range(2)] == [0, 0]
    assert path.read_bytes() == content


def test_lines_that_cannot_be_read_are_told(cli: Cli, record: Record) -> None:
    """On stderr, and on the page how many they are."""
    record(SAME, extra="nonsense\n")
    outcome = cli("export", "run.jsonl")
    assert outcome.err.startswith("loopscope: run.jsonl:8: is not JSON")
    assert "1 line could not be read." in outcome.out


def test_an_export_loads_no_screen_and_no_framework() -> None:
    """Neither Textual nor what the agent was written with."""
    code = (
        "import sys\nfrom loopscope.cli import run\nassert run(['export', 'sample:enforced-stop', '--svg', '-']) == 0"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "widgets")])}
    command = [sys.executable, "-c", f"{code}\nprint(*sys.modules)"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()}
    assert not loaded & {"textual", "langgraph", "langchain", "langchain_core", "networkx", "yaml"}
