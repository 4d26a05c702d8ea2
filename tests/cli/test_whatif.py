"""`loopscope whatif`: what differs, on a screen and for programs, and that nothing differs under the same limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loopscope.cli import run
from loopscope.samples import samples

CASES = Path(__file__).parent.parent / "cases"


def test_one_limit_against_the_runs_own(capsys: pytest.CaptureFixture[str]) -> None:
    """The batches that differ, totals on both sides, what the first stop would have saved, and what is not certain."""
    assert run(["whatif", "sample:sql-retry-storm", "--set", "hard_limit=8"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "sample:sql-retry-storm: 20 batches"
    assert out[2].split() == ["5", "STOP", "identical_call_set", "5/5", "·"]
    assert [line.split()[0] for line in out[2:5]] == ["5", "6", "7"]
    assert out[5].split("  ")[0:2] == ["warned", "1 (first at #3)"]
    assert "16 (first at #5)" in out[6]
    assert "13 (first at #8)" in out[6]
    assert out[7].startswith("after its first stop at #8 came 12 batches, 12 calls, ")
    assert out[8] == "After #3 the model might have acted differently: the recording cannot know."


def test_several_policies_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    """Each has a column and notes of its own."""
    assert run(["whatif", str(CASES / "39-edit-and-test.jsonl"), "--policy", "bounded", "--policy", "progress"]) == 0
    out = capsys.readouterr().out
    assert "bounded" in out.splitlines()[1]
    assert "progress" in out.splitlines()[1]
    assert "progress: After #" in out


@pytest.mark.parametrize("sample", [sample.name for sample in samples()])
def test_under_its_own_limits_nothing_differs(sample: str, capsys: pytest.CaptureFixture[str]) -> None:
    """For every sample."""
    assert run(["whatif", f"sample:{sample}", "--set", "hard_limit=5", "--json"]) == 0
    data: Any = json.loads(capsys.readouterr().out)
    assert data["overrides"][0]["differing"] == []
    assert data["overrides"][0]["first_difference"] is None
    assert data["overrides"][0]["notes"] == []


def test_json_has_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Totals, every differing batch with both decisions, savings, notes, and the policy that was tried."""
    assert run(["whatif", "sample:sql-retry-storm", "--set", "hard_limit=8", "--json"]) == 0
    data: Any = json.loads(capsys.readouterr().out)
    assert data["baseline"] == {"warnings": 1, "stops": 16, "first_warning": 3, "first_stop": 5}
    (override,) = data["overrides"]
    assert override["name"] == "hard_limit=8"
    assert override["policy"]["hard_limit"] == 8
    assert override["override"]["first_stop"] == 8
    assert [differs["batch"] for differs in override["differing"]] == [5, 6, 7]
    assert override["after_first_stop"]["batches"] == 12
    assert (override["first_difference"], override["certain_until"]) == (5, 3)


def test_very_many_differences_are_cut(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A table for people ends somewhere; JSON does not."""
    lines = [{"kind": "header", "format": "loopscope/1", "enforced": False}]
    for n in range(1, 301):
        call = {"id": f"c{n}", "name": "x", "args": {"query": "same"}}
        lines.append({"kind": "batch", "seq": n, "ts": None, "thread_id": "t", "run_id": "r", "calls": [call]})
    path = tmp_path / "long.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    assert run(["whatif", str(path), "--set", "window_size=2"]) == 0
    out = capsys.readouterr().out
    assert "more; --json has all of them" in out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "name what to change"),
        (["--set", "hard_limit=2"], "hard_limit: must be at least warn_threshold (3), is 2"),
        (["--policy", "progres"], "did you mean progress?"),
    ],
)
def test_a_wrong_override_is_refused(arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In one line, exit code 2."""
    assert run(["whatif", "sample:once-per-run", *arguments]) == 2
    captured = capsys.readouterr()
    assert problem in captured.err
    assert captured.out == ""
