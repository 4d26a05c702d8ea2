"""What is written of a policy reads back as the same policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscope.engine.policy import PRESETS, Limits, Policy
from loopscope.export import FORMATS, to_python, to_toml, to_yaml
from loopscope.settings import load_policy

_NUMBERS = st.integers(1, 1000)
_NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
_LIMITS = st.tuples(_NUMBERS, _NUMBERS).map(lambda pair: Limits(min(pair), max(pair)))


def _policy(numbers: list[int], **fields: Any) -> Policy:
    warn, hard, tool_warn, tool_hard, window, threads = numbers
    return Policy(
        warn_threshold=min(warn, hard),
        hard_limit=max(warn, hard),
        tool_freq_warn=min(tool_warn, tool_hard),
        tool_freq_hard_limit=max(tool_warn, tool_hard),
        window_size=window,
        max_tracked_threads=threads,
        **fields,
    )


_POLICIES = st.builds(
    _policy,
    st.lists(_NUMBERS, min_size=6, max_size=6),
    tool_freq_overrides=st.dictionaries(_NAMES, _LIMITS, max_size=3),
    identity=st.sampled_from(["salient", "full_args"]),
    identity_fields=st.dictionaries(_NAMES, st.lists(_NAMES, min_size=1, max_size=3).map(tuple), max_size=3),
    read_window=st.sampled_from(["buckets", "exact"]),
    tool_freq_window=st.sampled_from(["limits", "unbounded"]),
    severity_first=st.booleans(),
    scope=st.sampled_from(["run", "thread"]),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("policies")


@pytest.mark.parametrize("language", ["toml", "yaml", "json"])
@given(policy=_POLICIES)
def test_a_written_file_reads_back_as_the_same_policy(folder: Path, language: str, policy: Policy) -> None:
    """Whatever the tools and arguments are called."""
    file = folder / f"p.{language}"
    file.write_text(FORMATS[language](policy), "utf-8")
    assert load_policy(str(file)) == policy


@pytest.mark.parametrize("preset", list(PRESETS))
@pytest.mark.parametrize("language", ["toml", "yaml", "json"])
def test_a_preset_reads_back_as_it_was(tmp_path: Path, language: str, preset: str) -> None:
    """With every layer, and with limits that are off."""
    file = tmp_path / f"p.{language}"
    policy = PRESETS[preset].with_(budget={"cost_usd": {"limit": 2.5}, "tool_calls": {"limit": 100, "warn": 0.5}})
    file.write_text(FORMATS[language](policy), "utf-8")
    assert load_policy(str(file)) == policy


@given(policy=_POLICIES)
def test_the_written_program_builds_the_same_policy(policy: Policy) -> None:
    """The lines run as they stand."""
    scope: dict[str, Any] = {}
    exec(to_python(policy), scope)  # noqa: S102 - running what was written is the behaviour under test
    assert scope["policy"] == policy


def test_toml_names_every_setting_and_takes_notes() -> None:
    """A reader sees the limits that are in force, each under its explanation."""
    text = to_toml(
        Policy(tool_freq_overrides={"bash": Limits(60, 300)}),
        {"hard_limit": "stops the run", "identity_fields": "none yet", "tool_freq_overrides": "single tools"},
    )
    assert text == (
        "warn_threshold = 3\n# stops the run\nhard_limit = 5\nwindow_size = 20\nmax_tracked_threads = 100\n"
        "tool_freq_warn = 30\ntool_freq_hard_limit = 50\n\n# single tools\n[tool_freq_overrides]\n"
        "bash = { warn = 60, hard_limit = 300 }\n"
    )


def test_yaml_is_deerflows_section() -> None:
    """Its own settings under its own key; ours, which it has not, below a note."""
    text = to_yaml(Policy(hard_limit=6))
    assert text.splitlines()[:3] == ["loop_detection:", "  warn_threshold: 3", "  hard_limit: 6"]
    assert "#" not in text
    assert "  # loopscope's own: DeerFlow has no such settings\n  severity_first: false\n" in to_yaml(
        Policy(severity_first=False)
    )
