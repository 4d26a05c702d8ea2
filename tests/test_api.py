"""`loopscope.open`: the same session as on the command line, from a program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import loopscope
from loopscope import Policy, Session
from loopscope.errors import PolicyError, UnreadableInputError, UsageError

SAMPLE = "sample:sql-retry-storm"


def test_a_recording_opens_at_its_first_stop(tmp_path: Path) -> None:
    """By the name of a sample, a path, or as text."""
    from loopscope.samples import sample

    copy = tmp_path / "run.jsonl"
    copy.write_bytes(sample("sql-retry-storm").file.read_bytes())
    for target in (SAMPLE, copy, str(copy)):
        session = loopscope.open(target)
        assert isinstance(session, Session)
        assert (len(session), session.cursor) == (20, 5)


@pytest.mark.parametrize(
    "policy",
    [Policy(hard_limit=7), {"hard_limit": 7}, "p.toml", Path("p.toml")],
    ids=["value", "mapping", "text", "path"],
)
def test_a_policy_can_be_given_in_each_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: Any) -> None:
    """In place of the recording's own and of the project's file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text("hard_limit = 7\n")
    (tmp_path / "loopscope.toml").write_text("hard_limit = 4\n")
    assert loopscope.open(SAMPLE, policy).cursor == 7
    assert loopscope.open(SAMPLE, "deerflow").cursor == 5


def test_limits_know_where_they_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """File and line, or the argument."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.toml").write_text("\nhard_limit = 7\n")
    assert loopscope.open(SAMPLE, "p.toml").where("hard_limit") == "p.toml:2"
    assert loopscope.open(SAMPLE, Policy(hard_limit=7)).where("hard_limit") == "policy="
    assert loopscope.open(SAMPLE).where("hard_limit") == "default"


def test_the_project_counts_for_a_recording_without_a_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on the command line."""
    (tmp_path / "loopscope.toml").write_text("hard_limit = 4\n")
    (tmp_path / "run.jsonl").write_text(
        '{"kind":"header","format":"loopscope/1","policy":{"hard_limit":3}}\n'
        '{"kind":"batch","seq":1,"ts":null,"thread_id":"t","run_id":"r","calls":[{"id":"1","name":"a","args":{}}]}\n'
    )
    monkeypatch.chdir(tmp_path)
    assert loopscope.open(SAMPLE).policy.hard_limit == 4
    session = loopscope.open("run.jsonl")
    assert (session.policy.hard_limit, session.where("hard_limit")) == (3, "recording")


def test_errors_say_what_is_wrong(tmp_path: Path) -> None:
    """Each of its class, so that a program can tell them apart."""
    with pytest.raises(UsageError, match="did you mean sample:sql-retry-storm"):
        loopscope.open("sample:sql-retry-strom")
    with pytest.raises(UnreadableInputError, match=r"missing\.jsonl"):
        loopscope.open(tmp_path / "missing.jsonl")
    with pytest.raises(PolicyError, match="hard_limit: must be at least warn_threshold"):
        loopscope.open(SAMPLE, {"hard_limit": 2})
