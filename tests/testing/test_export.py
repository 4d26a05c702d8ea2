from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from loopscope.errors import UsageError
from loopscope.testing import NotBoundedError
from loopscope.testing.export import Wish, exported
from tests.adapters.bounded import sql
from tests.adapters.scripted import DONE, ScriptedModel
from tests.cli.conftest import Cli, Record, cli, record

__all__ = ["cli", "record"]

ROOT = Path(__file__).parents[2]
SAMPLE = "sample:sql-retry-storm"


def made(source: str, graph: Any) -> Any:
    """Run the test that a source has, on a graph."""
    space: dict[str, Any] = {}
    exec(compile(source, "exported", "exec"), space)  # noqa: S102 - it is what the test is of
    (test,) = [value for name, value in space.items() if name.startswith("test_")]
    return test(graph)


def source_of(target: str, *, at: int | None = None, policy: Any = None, **wish: Any) -> str:
    """The source for a target."""
    from loopscope import open as opened

    session = opened(target, policy)
    number = at or session.first_stop() or session.timeline.notable[0]
    return exported(
        session, number, Wish(**{"graph": None, "value": "go", "within": None, "asynchronous": False} | wish)
    )


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_the_sample_as_a_test_fails_before_the_fix_and_passes_after_it(asynchronous: bool) -> None:
    """No model is asked: those of the graph would answer something else."""
    source = source_of(SAMPLE, asynchronous=asynchronous)
    with pytest.raises(NotBoundedError, match="counter"):
        made(source, sql.unguarded([DONE]))
    made(source, sql.guarded(ScriptedModel(script=[DONE]), asynchronous=asynchronous))
    assert 'fail={"run_sql": "no such column: custmer"}' in source
    assert "within=4," in source


def test_a_loop_without_failures_gives_back_the_same_for_ever() -> None:
    """Every turn of it over and over; what came back most often is what it gets."""
    source = source_of("sample:search-fetch-alternation", policy="bounded")
    assert "returns(" in source
    assert "model=TURNS * 20," in source
    compile(source, "exported", "exec")


def test_hostile_recordings_make_a_test_that_says_nothing_of_its_own(record: Record, tmp_path: Path) -> None:
    """Quotes, escapes, other scripts and lone surrogates stay within literals."""
    from loopscope.testing.export import _literal

    values: list[Any] = [
        '"""',
        "'''\\",
        "\x1b]0;x\x07",
        "\U0001f600",
        "\ud800",
        {"a\nb": [1, None, True, ("x",)]},
        float("inf"),
    ]
    for value in values:
        text = _literal(value)
        assert text.isascii()
        assert text.isprintable()
        assert eval(text) == value  # noqa: S307 - it is what the test is of
    results = [
        {"kind": "result", "seq": 10 * n + 1, "ts": None, "thread_id": "t", "run_id": "r", "call_id": f"c{n}",
         "name": 'x"""\nimport os', "status": "error", "content": '"""\nraise SystemExit'}
        for n in range(1, 6)
    ]  # fmt: skip
    name = record(['"""\n1'] * 5, name='run""".jsonl', tool='x"""\nimport os')
    lines = Path(tmp_path, name).read_text().splitlines()
    mixed = [lines[0], *(line for pair in zip(lines[1:], map(json.dumps, results), strict=True) for line in pair)]
    Path(tmp_path, name).write_text("\n".join(mixed))
    source = source_of(str(tmp_path / name))
    assert source.isascii()
    assert "\nimport os" not in source
    assert "\nraise" not in source
    compile(source, "exported", "exec")


def test_the_command_writes_a_file_and_says_how_to_run_it(cli: Cli) -> None:
    """It replaces an earlier one and nothing else."""
    for _ in range(2):
        done = cli("export-test", SAMPLE, "--graph", "shop.agents:graph", "-o", "test_loop.py", "--within", "3")
        assert (done.code, done.out) == (0, "")
        assert "test_loop.py: a test for batch 5 of sample:sql-retry-storm; run it with pytest" in done.err
    text = Path("test_loop.py").read_text()
    assert "from shop.agents import graph\n" in text
    assert "within=3," in text
    Path("mine.py").write_text("x = 1\n")
    done = cli("export-test", SAMPLE, "-o", "mine.py")
    assert (done.code, Path("mine.py").read_text()) == (2, "x = 1\n")
    assert "is no such test" in done.err


def test_what_cannot_be_a_test_is_told(cli: Cli, record: Record) -> None:
    """In one line, with what to do."""
    calm = cli("export-test", record(["a", "b"]))
    assert (calm.code, calm.out) == (2, "")
    assert "no batch was warned or stopped; name the loop's last batch with --at N" in calm.err
    silent = cli("export-test", record(["a"] * 5))
    assert "has a result" in silent.err
    assert silent.code == 2
    odd = cli("export-test", SAMPLE, "--graph", "my agent")
    assert (odd.code, odd.out) == (2, "")
    assert "MODULE:GRAPH" in odd.err
    with pytest.raises(UsageError, match="--graph x"):
        source_of(SAMPLE, graph="x")


@pytest.mark.slow
def test_pytest_runs_it_with_the_plugin(tmp_path: Path) -> None:
    """As a user would: the fixtures, and the exported file on a graph before and after its fix."""
    (tmp_path / "conftest.py").write_text(
        "import pytest\nfrom tests.adapters.bounded import sql\n"
        "from tests.adapters.scripted import DONE, ScriptedModel\n"
        "@pytest.fixture(params=['before', 'after'])\n"
        "def graph(request):\n"
        "    return sql.unguarded([DONE]) if request.param == 'before' else sql.guarded(ScriptedModel(script=[DONE]))\n"
    )
    (tmp_path / "test_exported.py").write_text(source_of(SAMPLE))
    (tmp_path / "test_fixtures.py").write_text(
        "def test_fixtures(bounded_run, abounded_run):\n"
        "    from loopscope import testing\n"
        "    assert (bounded_run, abounded_run) == (testing.bounded_run, testing.abounded_run)\n"
    )
    installed = any(each.name == "loopscope" for each in entry_points(group="pytest11"))
    plugin = [] if installed else ["-p", "loopscope.testing.plugin"]
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        "/dev/null",
        "--rootdir",
        str(tmp_path),
        "-o",
        f"pythonpath={ROOT}",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *plugin, str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "test_exported.py::test_run_sql_fails_and_the_loop_ends[before]" in done.stdout
    assert "step 2 of 7, counter: " in done.stdout
