"""Export: each form reads back as the limits, and the window says what changes and how to verify it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from loopscope.cli import run
from loopscope.engine.policy import BOUNDED, DEFAULT, PRESETS, Policy
from loopscope.settings import load_policy
from loopscope.views import exporting
from loopscope.views.exporting import KINDS, Export
from loopscope.views.model import line_width, plain
from tests.views.support import texts

TOML, YAML, PYTHON = KINDS
OWN = DEFAULT.with_(hard_limit=8, tool_freq_overrides={"web.search": {"warn": 3, "hard_limit": 400}})


def export(kind: exporting.Kind, after: Policy = OWN, source: str = "runs/a run.jsonl", file: str = "") -> Export:
    return Export(kind, source, file or kind.file, DEFAULT, after)


@pytest.mark.parametrize("policy", [OWN, *PRESETS.values()], ids=["own", *PRESETS])
def test_each_form_reads_back(policy: Policy, tmp_path: Path) -> None:
    """TOML and Python whole; DeerFlow's section as far as DeerFlow has such settings, under its own name."""
    file = tmp_path / "loopscope.toml"
    file.write_text(exporting.text(TOML, policy), "utf-8")
    assert load_policy(str(file)) == policy
    file = tmp_path / "config.yaml"
    file.write_text(exporting.text(YAML, policy), "utf-8")
    names = ("warn_threshold", "hard_limit", "window_size", "max_tracked_threads", "tool_freq_warn",
             "tool_freq_hard_limit", "tool_freq_overrides")  # fmt: skip
    assert load_policy(str(file)) == Policy(**{name: getattr(policy, name) for name in names})
    assert exporting.text(YAML, policy).startswith("loop_detection:\n  warn_threshold: ")
    scope: dict[str, Any] = {}
    exec(exporting.text(PYTHON, policy), scope)  # noqa: S102 - what is exported is a program
    assert scope["policy"] == policy


def test_the_window_says_what_changes_and_how_to_see_it() -> None:
    """Forms, differences to what decided the run, the command, the text with its indents."""
    text = texts(exporting.body(export(TOML), 78))
    assert text[0].startswith("[TOML]  YAML   Python ")
    assert " hard_limit 5 → 8" in text
    assert " tool_freq_overrides.web.search.warn off → 3" in text or any("web.search" in line for line in text)
    assert " loopscope replay 'runs/a run.jsonl' --policy loopscope.toml" in text
    assert "hard_limit = 8" in text
    yaml = texts(exporting.body(export(YAML), 78))
    assert "  hard_limit: 8" in yaml
    assert " nothing changes" in texts(exporting.body(export(TOML, DEFAULT), 78))


def test_what_deerflow_cannot_say_is_told() -> None:
    """And not called a change of the file."""
    text = texts(exporting.body(export(YAML, BOUNDED), 78))
    assert text[3:5] == [" nothing changes", " DeerFlow's section cannot say this, it is left out:"]
    assert any(line.strip() == "error_streak.warn off → 3" for line in text)


@pytest.mark.parametrize("after", [OWN, BOUNDED, DEFAULT.with_(identity_fields={"a b": ["x"]})])
def test_the_command_of_a_program_sets_the_same_limits(after: Policy, capsys: pytest.CaptureFixture[str]) -> None:
    """It can be run as it is told."""
    told = exporting.command(export(PYTHON, after, source="sample:once-per-run"))
    words = shlex.split(told)
    assert words[:3] == ["loopscope", "whatif", "sample:once-per-run"]
    assert run([*words[1:], "--json"]) == 0
    import json

    assert Policy.parse(json.loads(capsys.readouterr().out)["overrides"][0]["policy"]) == after
    assert exporting.command(export(PYTHON, DEFAULT)) == "loopscope replay 'runs/a run.jsonl'"


@pytest.mark.parametrize("width", [1, 20, 60, 100])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_it_fits_and_hostile_names_are_seen(kind: exporting.Kind, width: int) -> None:
    """Of tools, of recordings, of files."""
    odd = "\x1b[2J\u202e" * 9
    policy = DEFAULT.with_(tool_freq_overrides={odd: {"warn": 1, "hard_limit": 2}})
    for line in exporting.body(export(kind, policy, source=odd, file=odd), width):
        assert line_width(line) <= width
        assert plain(line).isprintable()
