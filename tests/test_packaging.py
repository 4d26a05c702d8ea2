"""What a user installs: the wheel's content, and the command in an environment that has nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source distribution as an index would get it."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", folder, ROOT], check=True, stdout=subprocess.DEVNULL)
    [built] = folder.glob("*.whl")
    return built


@pytest.mark.slow
def test_the_wheel_holds_the_two_packages_and_the_samples(wheel: Path) -> None:
    """No other top-level name; type markers, styles, scripts and every sample are in."""
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.partition("/")[0] for name in names}
    assert {name for name in top if not name.endswith(".dist-info")} == {"loopscope", "loopscope_widgets"}
    (points,) = [name for name in names if name.endswith(".dist-info/entry_points.txt")]
    declared = zipfile.ZipFile(wheel).read(points).decode()
    assert "[pytest11]\nloopscope = loopscope.testing.plugin" in declared
    samples = {file.name for file in (ROOT / "sample_runs").glob("*.jsonl")}
    assert samples
    assert {f"loopscope/_sample_runs/{name}" for name in {*samples, "index.json"}} <= set(names)
    for package in ("loopscope", "widgets/loopscope_widgets"):
        for file in (ROOT / package).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                assert str(file.relative_to((ROOT / package).parent)) in names


@pytest.mark.slow
def test_the_command_runs_in_a_clean_environment(wheel: Path, tmp_path: Path) -> None:
    """Installed from the wheel with its dependencies and nothing else, away from the checkout."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    scripts = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    pip = [str(scripts / "python"), "-m", "pip", "install", "--quiet", "--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([*pip, str(wheel)], check=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def run(*arguments: str) -> str:
        return subprocess.run(
            arguments, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        ).stdout

    lines = run(str(scripts / "loopscope"), "replay", "sample:sql-retry-storm", "--json").splitlines()
    assert [json.loads(line)["action"] for line in lines][:5] == ["pass", "pass", "warn", "pass", "hard_stop"]
    assert "sql-retry-storm" in run(str(scripts / "loopscope"), "samples")
    assert "WHY" in run(str(scripts / "loopscope"), "attach", "sample:sql-retry-storm").upper()
    check = "from loopscope import *; import loopscope_widgets.terminal; print(LoopDetectionMiddleware.__module__)"
    assert run(str(scripts / "python"), "-c", check) == "loopscope.adapters.langchain\n"
