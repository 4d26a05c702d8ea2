"""`loopscope completion`: scripts that shells take, and what they complete."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "widgets")])}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_calls_us_back(cli: Cli, shell: str) -> None:
    """It names our variable, which the program answers to."""
    outcome = cli("completion", shell)
    assert (outcome.code, outcome.err) == (0, "")
    assert f"_LOOPSCOPE_COMPLETE={shell}_complete" in outcome.out


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash to complete in")
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("loopscope repl", ["replay"]),
        ("loopscope replay --fail-on ", ["warn", "stop"]),
        ("loopscope replay x --ver", ["--verify"]),
        ("loopscope attach sample:sql-r", ["sql-retry-storm"]),
        ("loopscope attach samp", None),
        ("loopscope replay x --policy deerflow-2026-0", [f"deerflow-2026-{day}" for day in ("04", "08-22", "09-16")]),
        ("loopscope tune x --grid window", ["window_size="]),
        ("loopscope config ", ["show", "check", "export", "init"]),
    ],
)
def test_bash_completes(cli: Cli, tmp_path: Path, line: str, expected: list[str] | None) -> None:
    """A real bash, with words broken at colons as it does when a person types."""
    program = tmp_path / "loopscope"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m loopscope "$@"\n')
    program.chmod(0o755)
    asked = f"COMP_LINE={line!r}; COMP_POINT=${{#COMP_LINE}}; COMPREPLY=(); compopt() {{ :; }}"
    complete = f'_loopscope_completion "{program}"\nprintf "%s\\n" "${{COMPREPLY[@]}}"'
    script = f"{cli('completion', 'bash').out}\n{asked}\n{complete}"
    done = subprocess.run(
        ["bash", "-c", script], env=os.environ | ENVIRONMENT, capture_output=True, text=True, check=True
    )
    found = done.stdout.split()
    if expected is None:
        assert all(name.startswith("sample:") for name in found)
        assert "sample:sql-retry-storm" in found
    else:
        assert sorted(found) == sorted(expected)
    assert done.stderr == ""


def test_files_are_left_to_the_shell() -> None:
    """A target that is no sample is a file."""
    asked = {"_LOOPSCOPE_COMPLETE": "bash_complete", "COMP_WORDS": "loopscope replay run", "COMP_CWORD": "2"}
    done = subprocess.run(
        [sys.executable, "-m", "loopscope"],
        env=os.environ | ENVIRONMENT | asked,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "file,run\n")
