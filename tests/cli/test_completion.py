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


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_calls_us_back(cli: Cli, shell: str) -> None:
    """It names our variable, which the program answers to."""
    outcome = cli("completion", shell)
    assert (outcome.code, outcome.err) == (0, "")
    assert f"_LOOPSCOPE_COMPLETE={shell}_complete" in outcome.out


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash to check the script's syntax")
def test_bash_takes_the_script(cli: Cli) -> None:
    """It is evaluated by a real shell."""
    script = cli("completion", "bash").out
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("loopscope re", "plain,replay"),
        ("loopscope replay --fail-on ", "plain,warn"),
        ("loopscope attach sample:sql", "plain,sample:sql"),
    ],
)
def test_verbs_options_and_samples_are_completed(words: str, expected: str) -> None:
    """As the shell would ask."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "widgets")]),
        "_LOOPSCOPE_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-m", "loopscope"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert expected in done.stdout
