"""What holds for every verb: help, spelling, exit codes, one line an error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from loopscope import __version__
from loopscope.cli import VERBS
from tests.cli.conftest import Cli, Record

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "widgets")])}


def _start(*arguments: str, folder: Path) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "loopscope", *arguments]
    return subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stdin=pipe, stdout=pipe, stderr=pipe)


def test_without_a_verb_the_verbs_are_listed(cli: Cli) -> None:
    """Each with its one line, in the order of the table; the same as --help."""
    bare = cli()
    assert bare.code == 0
    assert bare == cli("--help") == cli("-h")
    positions = [bare.out.index(f"\n  {verb} ") for verb in VERBS]
    assert positions == sorted(positions)


@pytest.mark.parametrize("verb", list(VERBS))
def test_every_verb_has_help_and_its_summary_stands_in_the_list(cli: Cli, verb: str) -> None:
    """A verb that is listed can be called, and every option of it is explained."""
    shown = cli(verb, "--help")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith(f"Usage: loopscope {verb} ")
    assert VERBS[verb] in cli("--help").out


def test_the_version_is_printed(cli: Cli) -> None:
    """`loopscope --version` is what a bug report begins with."""
    assert cli("--version") == (0, f"loopscope {__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["repla"], "loopscope: No such verb 'repla'. Did you mean replay? See `loopscope --help`."),
        (["zzz"], "loopscope: No such verb 'zzz'. Verbs are attach, "),
        (["replay", "--jsn", "x"], "loopscope replay: No such option '--jsn'. (Did you mean one of: '--json'"),
        (["replay"], "loopscope replay: Missing argument 'TARGET...'. See `loopscope replay --help`."),
        (
            ["replay", "x", "--fail-on", "never"],
            "loopscope replay: Invalid value for '--fail-on': 'never' is not one of",
        ),
        (
            ["config", "shw"],
            "loopscope config: No such command 'shw'. Did you mean 'show'? See `loopscope config --help`.",
        ),
        (
            ["replay", "sample:sql-retry-strom"],
            "loopscope: there is no sample 'sql-retry-strom'; did you mean sample:sql-",
        ),
        (["replay", "sample:\x1b[31m"], "loopscope: there is no sample '\\x1b[31m'; `loopscope samples` lists them"),
    ],
)
def test_a_usage_error_is_one_line_with_the_nearest_spelling(cli: Cli, arguments: list[str], message: str) -> None:
    """Exit code 2, nothing on stdout, and what to do."""
    outcome = cli(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(message)
    assert outcome.err.count("\n") == 1


def test_an_unreadable_recording_is_exit_code_3(cli: Cli, tmp_path: Path) -> None:
    """Missing, empty, binary or of a newer format: one line, no traceback."""
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "newer.jsonl").write_text('{"kind":"header","format":"loopscope/9"}\n')
    for name in ("missing.jsonl", "empty.jsonl", "newer.jsonl", "."):
        for verb in ("replay", "explain", "attach"):
            outcome = cli(verb, name)
            assert (outcome.code, outcome.out) == (3, ""), (verb, name)
            assert outcome.err.startswith(f"loopscope: {name}"), (verb, name)
            assert outcome.err.count("\n") == 1, (verb, name)


def test_a_reader_that_has_seen_enough_is_no_error(record: Record, tmp_path: Path) -> None:
    """`loopscope replay … | head -1` says nothing on stderr."""
    name = record([f"select {n}" for n in range(5_000)])
    for arguments in (["--json"], []):
        process = _start("replay", name, *arguments, folder=tmp_path)
        assert process.stdout is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait() == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize("arguments", [["--help"], ["samples"], ["replay", "sample:enforced-stop", "--json"]])
def test_a_full_disk_is_one_line_and_no_finding(arguments: list[str], tmp_path: Path) -> None:
    """Exit code 1 would tell CI that a run was stopped; what is still buffered says nothing more at exit."""
    with Path("/dev/full").open("wb") as full:
        process = subprocess.run(
            [sys.executable, "-m", "loopscope", *arguments],
            cwd=tmp_path, env=ENVIRONMENT, stdout=full, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
    assert (process.returncode, process.stderr) == (2, b"loopscope: stdout: No space left on device\n")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (PermissionError(13, "Permission denied", "kept/a\x1b"), "kept/a\\x1b: Permission denied"),
        (ConnectionResetError(104, "Connection reset by peer"), "Connection reset by peer"),
    ],
)
def test_what_the_system_refuses_is_one_line(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, error: OSError, told: str
) -> None:
    """With the file, if it is known which; stdout is not blamed for another's trouble."""

    def refuse() -> None:
        raise error

    monkeypatch.setattr("loopscope.samples.samples", refuse)
    assert cli("samples") == (2, "", f"loopscope: {told}\n")


@pytest.mark.skipif(sys.platform == "win32", reason="a shell closes the streams")
@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("samples >&-", 0, b""),
        ("replay - <&-", 3, b"loopscope: /dev/null: is empty\n"),
        ("attach sample:enforced-stop <&- >&-", 0, b""),
        ("zzz <&- >&- 2>&-", 2, b""),
    ],
)
def test_a_stream_that_the_caller_closed_is_the_null_device(
    command: str, code: int, message: bytes, tmp_path: Path
) -> None:
    """A service without standard streams gets its exit code, and no file that is read takes the number of stdout."""
    shell = ["sh", "-c", f'exec "$0" -m loopscope {command}', sys.executable]
    process = subprocess.run(shell, cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE, check=False)
    assert (process.returncode, process.stderr) == (code, message)


def test_an_interrupt_is_exit_code_130(tmp_path: Path) -> None:
    """Ctrl-C while a pipe is read ends with one line; what came through the pipe before was printed at once."""
    process = _start("replay", "-", "--json", folder=tmp_path)
    assert process.stdin is not None
    assert process.stdout is not None
    batch = (
        b'{"kind":"batch","seq":%d,"ts":null,"thread_id":"t","run_id":"r","calls":[{"id":"1","name":"a","args":{}}]}\n'
    )
    process.stdin.write(b"".join(batch % seq for seq in range(3)))
    process.stdin.flush()
    assert process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
    assert (process.returncode, error) == (130, b"loopscope: interrupted\n")
