"""`loopscope tune`: limits over many recordings, policies side by side, and what is asked of labels and targets."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from loopscope.cli import options, progress, tune
from loopscope.cli.corpus import Found, find, read_labels, short_names
from loopscope.cli.measuring import Piece, Plan, jobs_for, measure, measure_all, on_cluster, pieces, whole
from loopscope.engine.policy import PRESETS, Policy
from loopscope.errors import MissingExtraError, UnreadableInputError, UsageError
from loopscope.session.grid import parse_grid
from tests.cli.conftest import Cli, Record

CASES = Path(__file__).parent.parent / "cases"
TRUTH = CASES / "TRUTH.tsv"

DEERFLOW = ("deerflow-2026-08-22", "deerflow-2026-04", "deerflow", "deerflow-2026-09-16")
MATRIX = {
    "01": "3/5 3/5 3/5 3/5", "02": "3/5 3/5 3/5 -/-", "03": "3/5 3/5 3/5 -/-", "04": "30/50 30/50 30/50 30/50",
    "05": "-/- 59/99 -/- -/-", "06": "30/50 30/50 30/50 30/50", "08": "3/5 3/5 -/- -/-", "09": "3/5 3/5 3/5 3/5",
    "10": "5/9 5/9 5/9 5/9", "11": "3/5 3/5 3/5 3/5", "12": "-/- -/- -/- -/-", "13": "4/6 4/6 4/6 4/6",
    "14": "3/5 3/5 3/5 3/5", "17": "-/- -/- -/- -/-", "18": "3/5 3/5 3/5 3/5", "19": "-/- -/- -/- -/-",
    "22": "5/9 5/9 5/9 5/9", "24": "3/5 3/5 3/5 3/5", "25": "4/62 4/62 4/50 30/50", "26": "5/9 5/9 5/9 5/9",
    "27": "5/9 5/9 5/9 5/9", "28": "-/- -/- -/- -/-", "31": "3/6 3/6 3/6 3/6", "33": "-/- -/- -/- -/-",
    "34": "-/- -/- -/- -/-", "35": "3/5 3/5 3/5 3/5", "37": "30/- 30/- 30/- 30/-", "39": "6/10 6/10 6/10 6/10",
}  # fmt: skip
"""First warning and first stop of each public case under `DEERFLOW`: what its own code gave for 2026-08-22, and a
second writing of its rules for the others."""


def data(cli: Cli, *arguments: object) -> Any:
    outcome = cli("tune", *arguments, "--json")
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


def said(verdict: dict[str, int | None]) -> str:
    return f"{verdict['first_warning'] or '-'}/{verdict['first_stop'] or '-'}"


def test_the_presets_are_what_deerflow_was(cli: Cli) -> None:
    """The matrix of the public cases under the rules of four dates: every cell is DeerFlow's own."""
    found = data(cli, CASES, *(part for name in DEERFLOW for part in ("--policy", name)))
    cases = [Path(recording["source"]).name[:2] for recording in found["recordings"]]
    columns = [[said(verdict) for verdict in policy["verdicts"]] for policy in found["policies"]]
    assert {case: " ".join(row) for case, row in zip(cases, zip(*columns, strict=True), strict=True)} == MATRIX
    assert [policy["name"] for policy in found["policies"]] == list(DEERFLOW)


def test_the_documentation_has_the_matrix() -> None:
    """Case by case, in the order of its columns."""
    page = (Path(__file__).parents[2] / "docs" / "tuning.md").read_text("utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| `")]
    found = {row[0][1:3]: row[2:] for row in rows if row[0][1:3].isdecimal()}
    columns = {case: dict(zip(DEERFLOW, row.split(), strict=True)) for case, row in MATRIX.items()}
    order = ("deerflow-2026-04", "deerflow-2026-08-22", "deerflow", "deerflow-2026-09-16")
    assert found == {case: [row[name] for name in order] for case, row in columns.items()}


def test_presets_are_compared_as_a_table(cli: Cli) -> None:
    """A row a run, a column a preset, what contradicts its label marked; totals below."""
    outcome = cli("tune", CASES, "--labels", TRUTH, "--presets")
    assert outcome.code == 0
    assert outcome.err == "loopscope: 28 files in folders passed over: no batch of tool calls in them\n"
    lines = outcome.out.splitlines()
    assert lines[0].split() == ["deerflow-", "deerflow-", "deerflow-"]
    assert lines[1].split() == ["deerflow", "2026-04", "2026-08-22", "2026-09-16", "bounded", "progress"]
    row = next(line for line in lines if line.startswith("08-once-per-run"))
    assert row.split()[1:] == ["ok", "-/-", "3/5", "!", "3/5", "!", "-/-", "-/-", "-/-"]
    totals = {line[:26].strip(): line[26:].split() for line in lines[-5:]}
    assert next(value for name, value in totals.items() if name.startswith("loops stopped"))[-6:] == [
        "14/20", "15/20", "14/20", "13/20", "16/20", "10/20",
    ]  # fmt: skip
    assert next(value for name, value in totals.items() if name.startswith("healthy stopped"))[-6:] == [
        "5/8", "6/8", "6/8", "4/8", "5/8", "0/8",
    ]  # fmt: skip


def test_a_comparison_without_labels_and_as_rows(cli: Cli, record: Record) -> None:
    """A row a verdict for programs; on a screen the runs that are warned and stopped are counted."""
    record(["a"] * 6)
    outcome = cli("tune", "run.jsonl", "--policy", "deerflow", "--policy", "progress", "--set", "hard_limit=4", "--csv")
    rows = list(csv.reader(io.StringIO(outcome.out)))
    assert rows == [
        ["recording", "label", "policy", "first_warning", "first_stop"],
        ["run.jsonl", "", "deerflow", "3", "4"],
        ["run.jsonl", "", "progress", "3", ""],
    ]
    text = cli("tune", "run.jsonl", "--policy", "deerflow", "--policy", "bounded").out
    assert "runs stopped" in text
    assert "loops" not in text


def test_a_sweep_as_text(cli: Cli) -> None:
    """What was swept, a heat map a slice, the plane, the front and the advice with its reasons."""
    outcome = cli("tune", CASES, "--labels", TRUTH)
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0] == "28 recordings (20 loops, 8 ok), 1,088 batches; 90 settings"
    assert [line for line in lines if line.startswith("tool_freq_hard_limit")] == [
        "tool_freq_hard_limit 30", "tool_freq_hard_limit 50", "tool_freq_hard_limit 100",
    ]  # fmt: skip
    assert "● 6           10           100                   10/20   0/8      341" in lines
    assert "· whatever stops 26-failing-test-and-a-new-file stops 27-growing-build-log too" in lines
    assert cli("tune", CASES / "01-same-shell-command.jsonl", "--ascii").out.isascii()


def test_no_setting_separates_a_failing_test_from_a_growing_log(cli: Cli, tmp_path: Path) -> None:
    """Cases 26 and 27 are alike to these layers, and that is said."""
    for name in ("26-failing-test-and-a-new-file", "27-growing-build-log"):
        shutil.copy(CASES / f"{name}.jsonl", tmp_path)
    (tmp_path / "labels.tsv").write_text("26-failing-test-and-a-new-file\tloop\n27-growing-build-log\tok\n")
    advice = data(
        cli, "*.jsonl", "--labels", "labels.tsv", "--grid", "hard_limit=3..12", "--grid", "window_size=10,20,40"
    )["advice"]
    assert advice["settings"] is None
    assert advice["reasons"][0].startswith("no setting of this grid separates the labels")
    assert advice["inseparable"] == [
        {"loop": "26-failing-test-and-a-new-file", "healthy": ["27-growing-build-log"]},
    ]


def test_json_and_csv_have_every_cell(cli: Cli, record: Record) -> None:
    """With what each does to each recording, the front and the advice."""
    record(["a"] * 6)
    record(["a", "b", "c"], name="fine.jsonl")
    Path("labels.tsv").write_text("run.jsonl\tloop\nfine\tok\n")
    arguments = (
        "run.jsonl",
        "fine.jsonl",
        "--labels",
        "labels.tsv",
        "--grid",
        "hard_limit=2..4",
        "--set",
        "warn_threshold=2",
    )
    found = data(cli, *arguments)
    assert found["recordings"] == [
        {"source": "run.jsonl", "label": "loop", "batches": 6},
        {"source": "fine.jsonl", "label": "ok", "batches": 3},
    ]
    assert found["base"]["warn_threshold"] == 2
    assert found["grid"] == {"hard_limit": [2, 3, 4]}
    assert [cell["settings"]["hard_limit"] for cell in found["cells"]] == [2, 3, 4]
    assert found["cells"][2]["verdicts"] == [
        {"first_warning": 2, "first_stop": 4},
        {"first_warning": None, "first_stop": None},
    ]
    assert found["advice"]["separates"]
    assert found["advice"]["settings"] == {"hard_limit": 4}
    rows = list(csv.DictReader(io.StringIO(cli("tune", *arguments, "--csv").out)))
    assert [(row["hard_limit"], row["stopped"], row["loops_not_stopped"], row["advised"]) for row in rows] == [
        ("2", "1", "0", "0"), ("3", "1", "0", "0"), ("4", "1", "0", "1"),
    ]  # fmt: skip


def test_pictures_are_written(cli: Cli, record: Record) -> None:
    """An SVG that is XML, a page that loads nothing; another file is not written over, and stdout takes one of them."""
    record(["a"] * 6)
    outcome = cli("tune", "run.jsonl", "--svg", "a.svg", "--html", "a.html", "--theme", "dark")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == "loopscope: wrote a.svg\nloopscope: wrote a.html\n"
    assert ET.parse("a.svg").getroot().tag.endswith("svg")  # noqa: S314 - our own
    assert "Content-Security-Policy" in Path("a.html").read_text()
    assert cli("tune", "run.jsonl", "--svg", "-").out.startswith("<svg ")
    assert cli("tune", "run.jsonl", "--presets", "--html", "-").out.startswith("<!doctype html>")
    outcome = cli("tune", "run.jsonl", "--svg", "run.jsonl")
    assert (outcome.code, outcome.err) == (
        2,
        "loopscope: run.jsonl: exists, and is neither a page nor a picture; name another file\n",
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--presets", "--grid", "hard_limit=3"], "a grid is laid over one policy"),
        (["--policy", "deerflow", "--policy", "bounded", "--grid", "hard_limit=3"], "a grid is laid over one policy"),
        (["--json", "--csv"], "stdout takes one of --json, --csv"),
        (["--svg", "-", "--html", "-"], "stdout takes one of --svg -, --html -"),
        (["--presets", "--svg", "a.svg"], "a comparison is a table"),
        (["--grid", "hard_limit=1..2"], "no combination of the grid is a valid policy"),
        (["--grid", "hard_limt=3"], "did you mean hard_limit?"),
        (["--policy", "deerflo"], "did you mean deerflow?"),
        (["--cluster", "slurm"], "must be dask or ray"),
        (["--labels", "none.tsv"], "none.tsv: cannot be read"),
    ],
)
def test_what_cannot_be_asked_is_refused(cli: Cli, record: Record, arguments: list[str], problem: str) -> None:
    """In one line, before anything is printed."""
    record(["a"] * 6)
    outcome = cli("tune", "run.jsonl", *arguments)
    assert outcome.code in {2, 3}
    assert outcome.out == ""
    assert problem in outcome.err
    assert outcome.err.count("\n") == 1


def test_more_than_fits_in_memory_is_refused(cli: Cli, record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is tried; recordings count too."""
    record(["a"] * 6)
    record(["a"] * 6, name="other.jsonl")
    monkeypatch.setattr(tune, "_MOST_VERDICTS", 9)
    outcome = cli("tune", "run.jsonl", "other.jsonl", "--grid", "hard_limit=3..7")
    assert (outcome.code, outcome.out) == (2, "")
    assert "10 verdicts are too many; 9 is the most" in outcome.err


def test_errors_of_one_recording_do_not_stop_the_rest(cli: Cli, record: Record) -> None:
    """It is told, and is what the command exits with; files of a folder that are no recordings are passed over."""
    record(["a"] * 6)
    Path("broken.jsonl").write_text("nonsense\n")
    Path("empty.jsonl").write_text('{"kind":"header","format":"loopscope/1","policy":null,"enforced":false}\n')
    outcome = cli("tune", "run.jsonl", "broken.jsonl", "empty.jsonl", "--json")
    assert outcome.code == 3
    assert len(json.loads(outcome.out)["recordings"]) == 1
    assert outcome.err.splitlines()[0].startswith("loopscope: broken.jsonl")
    assert outcome.err.splitlines()[1] == "loopscope: empty.jsonl: has no batch with tool calls"
    outcome = cli("tune", ".", "--json")
    assert (outcome.code, outcome.err) == (
        0,
        "loopscope: 2 files in folders passed over: no batch of tool calls in them\n",
    )
    outcome = cli("tune", "broken.jsonl", "empty.jsonl")
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err.splitlines()[-1] == "loopscope: tune: no recording with a batch of tool calls could be read"


def test_recordings_of_a_folder_that_cannot_be_read_are_named(cli: Cli, record: Record) -> None:
    """Some of them by name, as one would look for them among the runs otherwise."""
    record(["a"] * 6)
    for n in range(7):
        Path(f"later-{n}.jsonl").write_text('{"kind":"header","format":"loopscope/2","policy":null,"enforced":false}\n')
    outcome = cli("tune", ".", "--json")
    assert outcome.code == 0
    assert len(json.loads(outcome.out)["recordings"]) == 1
    told = outcome.err.splitlines()
    assert told[0].startswith("loopscope: ./later-0.jsonl:1: is loopscope/2, this version reads loopscope/1")
    assert told[5:] == ["loopscope: 2 more files in folders could not be read"]


@pytest.mark.parametrize(
    ("target", "code", "message"),
    [
        ("broken.jsonl", 3, "broken.jsonl: has no readable event; line 1 is not JSON"),
        ("empty.jsonl", 3, "empty.jsonl: has no batch with tool calls"),
        ("missing.jsonl", 3, "missing.jsonl: no such file"),
        ("sample:nope", 2, "there is no sample 'nope'"),
    ],
)
def test_the_only_recording_has_its_own_error(cli: Cli, target: str, code: int, message: str) -> None:
    """One line, and the exit code that the other verbs have for it."""
    Path("broken.jsonl").write_text("nonsense\n")
    Path("empty.jsonl").write_text('{"kind":"header","format":"loopscope/1","policy":null,"enforced":false}\n')
    outcome = cli("tune", target)
    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.err.startswith(f"loopscope: {message}")
    assert outcome.err.count("\n") == 1


def test_lines_that_cannot_be_read_are_counted(cli: Cli, record: Record) -> None:
    """The recording is used as far as it goes."""
    record(["a"] * 6, extra="nonsense\n")
    outcome = cli("tune", "run.jsonl", "--json")
    assert outcome.err == "loopscope: run.jsonl: 1 line could not be read; `loopscope replay` names them\n"


def test_the_grid_is_laid_over_what_the_recordings_ran_under(cli: Cli, record: Record) -> None:
    """Where they agree; else over the project's limits, which is said."""
    record(["a"] * 6, policy={"hard_limit": 9})
    assert data(cli, "run.jsonl", "--grid", "window_size=20")["base"]["hard_limit"] == 9
    record(["a"] * 6, policy={"hard_limit": 8}, name="other.jsonl")
    Path("loopscope.toml").write_text("hard_limit = 7\n")
    outcome = cli("tune", "run.jsonl", "other.jsonl", "--grid", "window_size=20", "--json")
    assert json.loads(outcome.out)["base"]["hard_limit"] == 7
    assert "the recordings ran under 2 policies; the grid is laid over the project's" in outcome.err
    assert data(cli, "run.jsonl", "other.jsonl", "--policy", "bounded", "--grid", "window_size=20")["base"]["cycle"]


def test_standard_input_is_read_once(cli: Cli, record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    """And its own policy counts."""
    record(["a"] * 6, policy={"hard_limit": 4})
    with Path("run.jsonl").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        found = data(cli, "-", "--grid", "hard_limit=4")
    assert found["cells"][0]["verdicts"] == [{"first_warning": 3, "first_stop": 4}]


def test_labels_without_a_recording_are_told(cli: Cli, record: Record) -> None:
    """A misspelt name would otherwise be a run without a label."""
    record(["a"] * 6)
    Path("labels.tsv").write_text("".join(f"typo{n}\tloop\n" for n in range(7)))
    outcome = cli("tune", "run.jsonl", "--labels", "labels.tsv", "--json")
    assert outcome.err == "loopscope: labels without a recording: typo0, typo1, typo2, typo3, typo4 and 2 more\n"


def test_labels_name_a_recording_in_any_way(tmp_path: Path) -> None:
    """Its path, its file's name, or that without its ending; a heading, comments, further columns are passed over."""
    file = tmp_path / "labels.tsv"
    file.write_text(
        "case\ttruth\tsource\n# no\n\nruns/a.jsonl\tloop\tx\nb.jsonl.gz\tok\nc\tloop\nsql-retry-storm\tok\n"
    )
    labels = read_labels(str(file))
    assert [labels.of(name) for name in ("runs/a.jsonl", "./runs/a.jsonl", "other/b.jsonl.gz", "x/c.jsonl")] == [
        "loop", "loop", "ok", "loop",
    ]  # fmt: skip
    assert labels.of("sample:sql-retry-storm") == "ok"
    assert labels.of("a.jsonl") is None
    assert labels.of("sample:swarm-handoff") == "loop", "a sample knows what it is"
    assert labels.of("sample:no-such") is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a\tloop\nb\tstuck\n", "labels.tsv:2: must be a recording, a tab, and loop or ok, is 'b\\\\tstuck'"),
        ("a loop\n", "labels.tsv:1: must be a recording"),
        ("a\tloop\na\tok\n", "labels.tsv:2: a is labelled loop and ok"),
    ],
)
def test_wrong_labels_name_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, problem: str) -> None:
    """So that a typo in a hundred lines is found."""
    monkeypatch.chdir(tmp_path)
    Path("labels.tsv").write_text(text)
    with pytest.raises(UsageError) as caught:
        read_labels("labels.tsv")
    assert problem in str(caught.value)


def test_labels_that_are_no_text(tmp_path: Path) -> None:
    """Are refused with their name."""
    (tmp_path / "labels.tsv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnreadableInputError, match="is not UTF-8"):
        read_labels(str(tmp_path / "labels.tsv"))


def test_targets_are_files_folders_patterns_and_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each once, those of a folder by name; a checkpoint file is found by what it holds."""
    monkeypatch.chdir(tmp_path)
    for name in ("b.jsonl", "a.jsonl.gz", "sub/c.jsonl", "sub/notes.txt", "sub/x.db"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("x")
    assert find(["b.jsonl", ".", "b.jsonl"]) == [
        Found("b.jsonl", named=True), Found("./a.jsonl.gz", named=False), Found("./b.jsonl", named=False),
        Found("./sub/c.jsonl", named=False),
    ]  # fmt: skip
    assert [found.target for found in find(["**/*.jsonl"])] == ["b.jsonl", "sub/c.jsonl"]
    assert [found.target for found in find(["s*"])] == ["sub/c.jsonl"]
    assert "sample:sql-retry-storm" in [found.target for found in find(["sample:*"])]
    for empty in ("none*", "sample:none*"):
        with pytest.raises(UsageError, match="no recording there"):
            find([empty])
    assert short_names(["x/a.jsonl", "y/b.jsonl.gz"]) == ["a", "b"]
    assert short_names(["x/a.jsonl", "y/a.jsonl"]) == ["x/a.jsonl", "y/a.jsonl"]


def test_little_work_is_done_here(tmp_path: Path) -> None:
    """Other processes are started where they are worth it: for much to read, or for many folds of it."""
    large = tmp_path / "large.jsonl"
    with large.open("wb") as file:
        file.truncate(50_000_000)
    small = str(CASES / "01-same-shell-command.jsonl")
    base, folded = Policy(), PRESETS["deerflow-2026-08-22"]
    grid = parse_grid(["hard_limit=3..12", "window_size=1..400"], base)

    def jobs(targets: list[str], plan: Plan) -> int:
        return jobs_for(pieces(targets, plan), plan)

    assert jobs([small, small], Plan(base, grid)) == 1
    assert jobs([str(large)], Plan(base, grid)) == 1
    assert jobs([str(large), small], Plan(base, grid)) == -1
    assert jobs([small, str(CASES / "05-search-fetch-alternation.jsonl")], Plan(folded, grid)) == -1
    assert jobs([small, small], Plan(base, policies=(folded, base))) == 1
    assert jobs([str(large)], Plan(folded, grid)) == -1, "many folds of one recording are shared too"


def test_much_work_on_one_recording_is_done_in_pieces() -> None:
    """Each decides some of the policies; put together they are the recording."""
    base = PRESETS["bounded"]
    plan = Plan(base, parse_grid(["hard_limit=3..12", "window_size=10..19"], base))
    target = str(CASES / "25-file-sweep-then-wrap.jsonl")
    work = [Piece(target, 0, 40), Piece(target, 40, 80), Piece(target, 80, 120)]
    (found,) = whole(measure_all(work, plan, None, 1))
    assert found == measure(Piece(target), plan)
    assert len(found.outcomes) == 100
    assert pieces([target, target], Plan(Policy(), parse_grid(["hard_limit=3..12"], Policy()))) == [
        Piece(target, 0, 10), Piece(target, 0, 10),
    ]  # fmt: skip


@pytest.mark.slow
def test_other_processes_give_the_same(cli: Cli) -> None:
    """In the same order, whatever finishes first."""
    assert data(cli, CASES, "--labels", TRUTH, "--jobs", "2") == data(cli, CASES, "--labels", TRUTH, "--jobs", "1")


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same() -> None:
    """Two real workers on this machine, told by their scheduler's address."""
    from distributed import LocalCluster

    plan = Plan(Policy(), parse_grid(["hard_limit=3..12"], Policy()))
    targets = [Piece(str(path)) for path in sorted(CASES.glob("0*.jsonl")) if "expected" not in path.name]
    here = list(measure_all(targets, plan, None, 1))
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)  # type: ignore[no-untyped-call]
    with cluster, on_cluster(f"dask={cluster.scheduler_address}"):
        there = list(measure_all(targets, plan, None, 1, cluster=True))
    assert there == here
    assert [found.target for found in there] == [piece.target for piece in targets]


def test_a_cluster_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """No scheduler, or no package: each says what to do."""
    monkeypatch.setattr("loopscope.cli.measuring._PATIENCE", 0.2)
    with pytest.raises(UsageError, match="no answer there"):
        on_cluster("dask=tcp://127.0.0.1:9")
    for address in ("127.0.0.1:9", "ray://127.0.0.1:9", "ray://[::1]:9", "127.0.0.1:99999"):
        with pytest.raises(UsageError, match=f"--cluster ray={re.escape(address)}: no answer there: "):
            on_cluster(f"ray={address}")
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match="pip install 'ray'"):
        on_cluster("ray")
    with pytest.raises(MissingExtraError, match=r"pip install 'loopscope\[cluster\]'"):
        on_cluster("dask")


def test_what_is_measured_of_a_recording_that_cannot_be_read() -> None:
    """The reason and its exit code, no exception: others go on."""
    found = measure(Piece("no/such/file.jsonl"), Plan(Policy(), policies=(Policy(),)))
    assert (found.batches, found.code) == (0, 3)
    assert "no/such/file.jsonl" in found.problem


def test_options_are_completed() -> None:
    """Settings of a grid, presets; files where none begins so."""
    import click

    context = click.Context(tune.command)
    parameter = tune.command.params[1]
    assert [item.value for item in tune._settings(context, parameter, "window")] == ["window_size="]
    assert "budget.cost_usd.limit=" in [item.value for item in tune._settings(context, parameter, "budget")]
    assert [item.value for item in options.complete_policy(context, parameter, "deerflow-2026-0")] == [
        "deerflow-2026-04", "deerflow-2026-08-22", "deerflow-2026-09-16",
    ]  # fmt: skip
    assert [item.type for item in options.complete_policy(context, parameter, "my")] == ["file"]


def test_a_long_job_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With a bar where it is known how much there is; the line is taken away at the end."""
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_EVERY", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress.Progress("recordings", 4) as line:
        line.at(1)
        line.at(4)
    with progress.Progress("events") as line:
        line.at(1200)
    shown = [part.rstrip() for part in capsys.readouterr().err.split("\r")]
    assert shown[1] == "loopscope: 1 of 4 recordings [######------------------]"
    assert shown[2] == "loopscope: 4 of 4 recordings [########################]"
    assert shown[5] == "loopscope: 1,200 events …"
    assert shown[-1] == ""


def test_cents_are_added_up_as_cents(cli: Cli) -> None:
    """In every form that a program reads; floats would tell of parts of a cent that nobody paid."""
    outcome = cli("tune", "sample:sql-retry-storm", "--grid", "hard_limit=6", "--csv")
    (row,) = csv.DictReader(io.StringIO(outcome.out))
    assert row["saved_cost_usd"] == "0.062211"
    outcome = cli("whatif", "sample:sql-retry-storm", "--set", "hard_limit=6", "--json")
    assert json.loads(outcome.out)["overrides"][0]["after_first_stop"]["cost_usd"] == 0.062211
