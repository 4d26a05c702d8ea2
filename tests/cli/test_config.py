"""`loopscope config`: show, check, export and init."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from loopscope.engine.policy import Policy
from loopscope.settings import load_policy
from tests.cli.conftest import Cli, Record


def test_show_names_the_origin_of_each_limit(cli: Cli, tmp_path: Path) -> None:
    """File and line, flag or default, one limit a line."""
    (tmp_path / "loopscope.toml").write_text("\nhard_limit = 9\n")
    outcome = cli("config", "show", "--set", "tool_freq_overrides.bash.hard_limit=300")
    rows = {row.split()[0]: row.split(maxsplit=2)[1:] for row in outcome.out.splitlines()}
    assert rows["hard_limit"] == ["9", "loopscope.toml:2"]
    assert rows["tool_freq_overrides.bash.hard_limit"] == ["300", "--set tool_freq_overrides.bash.hard_limit=300"]
    assert rows["window_size"] == ["20", "default"]


def test_without_a_command_it_says_what_there_is(cli: Cli) -> None:
    """As `loopscope` itself does."""
    assert cli("config") == cli("config", "--help")
    assert cli("config").code == 0


def test_show_of_a_recording_is_what_it_would_be_replayed_under(cli: Cli, record: Record, tmp_path: Path) -> None:
    """Its own policy, with the flags over it; the project's file where it has none."""
    (tmp_path / "loopscope.toml").write_text("hard_limit = 9\n")
    entry = json.loads(cli("config", "show", record([], policy={"hard_limit": 7}), "--json").out)
    assert (entry["policy"]["hard_limit"], entry["origins"]["hard_limit"]) == (7, "recording")
    entry = json.loads(cli("config", "show", record([]), "--json", "--set", "window_size=8").out)
    assert (entry["policy"]["hard_limit"], entry["origins"]["hard_limit"]) == (9, "loopscope.toml:1")
    assert entry["origins"]["window_size"] == "--set window_size=8"


def test_check_tells_every_problem_of_every_file(cli: Cli, tmp_path: Path) -> None:
    """One a line, exit code 2; a file that is right is said to be."""
    (tmp_path / "good.toml").write_text("hard_limit = 9\n")
    (tmp_path / "bad.yaml").write_text("hard_limt: 9\nwindow_size: 0\n")
    outcome = cli("config", "check", "good.toml", "bad.yaml")
    assert (outcome.code, outcome.out) == (2, "good.toml: ok, 1 limit set\n")
    assert outcome.err.splitlines() == [
        "bad.yaml:1: hard_limt: unknown setting, did you mean hard_limit?",
        "bad.yaml:2: window_size: must be a whole number from 1, is 0",
    ]


def test_check_without_a_file_checks_the_projects(cli: Cli, tmp_path: Path) -> None:
    """Where there is none, it says how to begin one."""
    assert cli("config", "check") == (
        2,
        "",
        "loopscope: no loopscope.toml here or above; name a file, or begin one with `loopscope config init`\n",
    )
    (tmp_path / "pyproject.toml").write_text("[tool.loopscope]\nhard_limit = 9\n")
    assert cli("config", "check").out == "pyproject.toml: ok, 1 limit set\n"


@pytest.mark.parametrize("language", ["toml", "yaml", "json"])
def test_an_exported_policy_reads_back_as_it_was(cli: Cli, tmp_path: Path, language: str) -> None:
    """To stdout, or to a new file; one that exists is not overwritten."""
    flags = ["--set", "hard_limit=9", "--set", "tool_freq_overrides.my.tool.hard_limit=300"]
    printed = cli("config", "export", "--format", language, *flags)
    file = tmp_path / f"p.{language}"
    assert cli("config", "export", "--format", language, *flags, "-o", file.name).out == ""
    assert file.read_text() == printed.out
    assert load_policy(str(file)) == Policy.parse({"hard_limit": 9, "tool_freq_overrides": {"my.tool": [30, 300]}})
    again = cli("config", "export", "-o", file.name)
    assert (again.code, again.err) == (
        2,
        f"loopscope: {file.name} exists already; name another file, or overwrite it with --force\n",
    )
    assert cli("config", "export", "-o", file.name, "--force", "--format", language).code == 0
    assert load_policy(str(file)) == Policy()


def test_an_export_of_a_recording_is_its_policy(cli: Cli, record: Record) -> None:
    """As the lines of a program, too."""
    outcome = cli("config", "export", record([], policy={"hard_limit": 7}), "--format", "python")
    assert "'hard_limit': 7" in outcome.out


def test_init_writes_a_commented_file_that_sets_the_defaults(cli: Cli, tmp_path: Path) -> None:
    """Once: a second call needs --force."""
    outcome = cli("config", "init")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "wrote loopscope.toml\n")
    file = tmp_path / "loopscope.toml"
    assert load_policy(str(file)) == Policy()
    assert file.read_text().count("#") == 7
    assert cli("config", "init").code == 2
    assert cli("config", "init", "--force", "--set", "hard_limit=9").code == 0
    assert load_policy(str(file)) == Policy(hard_limit=9)
    assert cli("config", "init", "no/such/folder.toml").err.endswith("cannot be written: No such file or directory\n")


@pytest.mark.parametrize(
    ("language", "name"), [("toml", "new.toml"), ("yaml", "new.yaml"), ("json", "new.json"), ("python", "new.py")]
)
def test_an_export_says_what_it_changes_and_how_to_verify_it(
    cli: Cli, record: Record, language: str, name: str
) -> None:
    """Against what was loaded; the command can be run as it is told, and decides under the exported limits."""
    record(["a"] * 8, policy={"hard_limit": 4})
    told = cli("config", "export", "run.jsonl", "--set", "hard_limit=6", "--format", language, "-o", name).err
    lines = told.splitlines()
    assert lines[:3] == [f"wrote {name}", "against run.jsonl:", "  hard_limit 4 → 6"]
    words = shlex.split(lines[3].removeprefix("verify: "))
    assert words[0] == "loopscope"
    assert "hard_limit=6" in words if language == "python" else name in words
    shown = cli(*words[1:])
    assert shown.code == 0
    assert "6/6" in shown.out or "STOP" in shown.out


def test_an_export_without_a_recording_shows_the_limits(cli: Cli, tmp_path: Path) -> None:
    """Where nothing can be replayed, the file's own limits are shown; a program is run."""
    outcome = cli("config", "export")
    assert outcome.err == (
        "against the limits in force here:\n  nothing changes\n"
        "verify, once it is saved as loopscope.toml: loopscope config show --policy loopscope.toml\n"
    )
    (tmp_path / "loopscope.toml").write_text(outcome.out)
    assert cli("config", "show", "--policy", "loopscope.toml").code == 0
    told = cli("config", "export", "--format", "python", "--set", "hard_limit=9", "-o", "my limits.py").err
    assert told.splitlines()[1:] == [
        "against the limits in force here:", "  hard_limit 5 → 9", "verify: python 'my limits.py'",
    ]  # fmt: skip
