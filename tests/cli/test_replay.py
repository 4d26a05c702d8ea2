"""`loopscope replay`: the exact lines, the policies, the findings and the verification."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import to_builtins
from rich.cells import cell_len

from loopscope.engine.detector import LoopDetector
from loopscope.engine.policy import Policy
from loopscope.recording.reader import Reader
from tests.cli.conftest import Cli, Record

TESTS = Path(__file__).parents[1]
SAME = ["select 1"] * 6
BAD_POLICY = {"kind": "policy", "seq": 999, "ts": None, "thread_id": None, "run_id": None, "policy": {"window_size": 0}}


def _actions(lines: list[Any]) -> list[str]:
    return [line["action"] for line in lines]


@pytest.mark.parametrize(
    "name", ["conformance/000", "conformance/007", "conformance/019", "cases/01-same-shell-command"]
)
def test_the_lines_are_those_of_the_conformance_recordings(cli: Cli, name: str) -> None:
    """Every field of every line, under the recording's own policy or the defaults, and nothing on stderr."""
    outcome = cli("replay", TESTS / f"{name}.jsonl", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    expected = [json.loads(line) for line in (TESTS / f"{name}.expected.jsonl").read_text("utf-8").splitlines()]
    assert outcome.lines == expected


def test_a_policy_file_gives_the_same_as_the_header_that_holds_it(cli: Cli) -> None:
    """`--policy` with the recording's own limits changes nothing."""
    recording = TESTS / "conformance/003.jsonl"
    assert cli("replay", recording, "--json", "--policy", TESTS / "conformance/003.policy.json") == cli(
        "replay", recording, "--json"
    )


def test_a_line_has_exactly_these_keys_in_this_order(cli: Cli, record: Record) -> None:
    """The format is a contract, byte for byte."""
    first = cli("replay", record(SAME), "--json").out.splitlines()[0]
    assert first == (
        '{"kind":"decision","batch":1,"seq":10,"thread_id":"t","run_id":"r","hash":"' + json.loads(first)["hash"] + '",'
        '"hash_count":1,"action":"pass","layer":null,"tool":null,"count":null,"threshold":null,"at":"batch"}'
    )


def test_several_targets_name_their_source_and_number_anew(cli: Cli, record: Record) -> None:
    """Each line says which file it belongs to, in the order of the command line."""
    names = [record(SAME[:2], name="a.jsonl"), record(SAME[:1], name="b.jsonl")]
    outcome = cli("replay", *names, "--json")
    assert [(line["source"], line["batch"]) for line in outcome.lines] == [
        ("a.jsonl", 1),
        ("a.jsonl", 2),
        ("b.jsonl", 1),
    ]


def test_text_from_a_recording_cannot_act_on_the_terminal(cli: Cli, record: Record) -> None:
    """Escapes, bidirectional marks and lone surrogates leave as escapes, as JSON that reads back the same."""
    evil = "\x1b]0;owned\x07\u202e\x9b31m"
    name = record(["x"] * 3, tool=evil)
    for arguments in (["--json"], []):
        outcome = cli("replay", name, "--set", "tool_freq_warn=2", "--set", "warn_threshold=5", *arguments)
        assert outcome.code == 0
        assert outcome.out.replace("\n", "").isprintable()
        assert evil not in outcome.out
    assert json.loads(cli("replay", name, "--json", "--set", "tool_freq_warn=2").out.splitlines()[1])["tool"] == evil


def test_a_lone_surrogate_in_an_id_is_given_back(cli: Cli, tmp_path: Path) -> None:
    """What another producer wrote is neither lost nor a crash."""
    call = '{"id":"1","name":"a","args":{}}'
    line = f'{{"kind":"batch","seq":1,"ts":null,"thread_id":"\\ud800","run_id":"r","calls":[{call}]}}\n'
    (tmp_path / "run.jsonl").write_text(line)
    assert cli("replay", "run.jsonl", "--json").lines[0]["thread_id"] == "\ud800"
    assert cli("replay", "run.jsonl").code == 0


def test_gzip_and_stdin_are_read(cli: Cli, record: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`.jsonl.gz`, and `-` for a pipe, plain or packed."""
    name = record(SAME)
    plain = cli("replay", name, "--json")
    packed = gzip.compress((tmp_path / name).read_bytes())
    (tmp_path / "run.jsonl.gz").write_bytes(packed)
    assert cli("replay", "run.jsonl.gz", "--json") == plain
    for data in (packed, (tmp_path / name).read_bytes()):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        assert cli("replay", "-", "--json") == plain


def test_bad_lines_are_told_with_their_numbers(cli: Cli, record: Record) -> None:
    """On stderr, one a line; the rest is decided and the exit code is 0."""
    name = record(SAME[:2], extra='{"kind":"batch"\n{"kind":"of_a_later_version","seq":3}\nnot json\n')
    outcome = cli("replay", name, "--json")
    assert (outcome.code, len(outcome.lines)) == (0, 2)
    assert [line.split(": ", 2)[1] for line in outcome.err.splitlines()] == ["run.jsonl:4", "run.jsonl:6"]


def test_many_bad_lines_are_counted(cli: Cli, record: Record) -> None:
    """A hundred are told, the others as a number."""
    outcome = cli("replay", record(SAME[:1], extra="{]\n" * 1_500), "--json")
    assert (
        outcome.err.splitlines()[-1] == "loopscope: run.jsonl: and 1,400 more lines of which something cannot be read"
    )
    assert len(outcome.err.splitlines()) == 101


def test_flags_beat_the_recording_which_beats_the_project(cli: Cli, record: Record, tmp_path: Path) -> None:
    """The precedence of the policies, seen in the first stop."""

    def first_stop(*arguments: str) -> int:
        return _actions(cli("replay", *arguments, "--json").lines).index("hard_stop") + 1

    name = record(SAME, policy={"hard_limit": 6})
    bare = record(SAME, name="bare.jsonl")
    (tmp_path / "p.toml").write_text("hard_limit = 3\n")
    assert first_stop(bare) == 5
    (tmp_path / "loopscope.toml").write_text("hard_limit = 4\n")
    assert first_stop(bare) == 4
    assert first_stop(name) == 6
    assert first_stop(name, "--policy", "p.toml") == 3
    assert first_stop(name, "--policy", "p.toml", "--set", "hard_limit=4") == 4
    assert first_stop(name, "--set", "hard_limit=5") == 5


def test_a_flag_also_lies_over_policies_in_the_middle_of_a_recording(cli: Cli, record: Record, tmp_path: Path) -> None:
    """`--set` changes its one limit in every policy that comes."""
    event = BAD_POLICY | {"seq": 35, "policy": {"warn_threshold": 1, "hard_limit": 9}}
    name = record(SAME, policy={"hard_limit": 8})
    lines = (tmp_path / name).read_text().splitlines()
    (tmp_path / name).write_text("\n".join([*lines[:4], json.dumps(event), *lines[4:]]))
    assert "hard_stop" not in _actions(cli("replay", name, "--json").lines)
    assert _actions(cli("replay", name, "--json", "--set", "hard_limit=5").lines).index("hard_stop") == 4
    assert _actions(cli("replay", name, "--json", "--policy", "deerflow").lines).index("hard_stop") == 4


def test_a_flag_may_fit_the_recording_alone(cli: Cli, record: Record, tmp_path: Path) -> None:
    """`--set hard_limit=2` breaks a rule with the default warning, and none with the recording's own."""
    name = record(SAME, policy={"warn_threshold": 1, "hard_limit": 4})
    assert _actions(cli("replay", name, "--json", "--set", "hard_limit=2").lines)[:2] == ["warn", "hard_stop"]
    assert cli("explain", name, "--set", "hard_limit=2").code == 0
    second = '{"kind":"header","format":"loopscope/1"}\n'
    (tmp_path / name).write_text((tmp_path / name).read_text() + second)
    assert cli("replay", name, "--json", "--set", "hard_limit=2").code == 2


def test_a_wrong_policy_is_exit_code_2_with_its_place(cli: Cli, record: Record, tmp_path: Path) -> None:
    """A flag, a line of a file, or a line of the recording is named; nothing goes to stdout."""
    (tmp_path / "p.toml").write_text("\nhard_limt = 3\n")
    name = record(SAME, policy={"hard_limit": 6})
    broken = record([], name="broken.jsonl", extra=json.dumps(BAD_POLICY) + "\n")
    for arguments, message in [
        ([name, "--set", "hard_limit=2"], "--set hard_limit=2: hard_limit: must be at least warn_threshold (3), is 2"),
        ([name, "--policy", "p.toml"], "p.toml:2: hard_limt: unknown setting, did you mean hard_limit?"),
        ([name, "--policy", "deerflo"], "deerflo: no such policy file or preset; did you mean deerflow?"),
        ([broken], "broken.jsonl:2: window_size: must be a whole number from 1, is 0"),
    ]:
        assert cli("replay", "--json", *arguments) == (2, "", f"loopscope: {message}\n")


@pytest.mark.parametrize(
    ("batches", "fail_on", "code"), [(2, "warn", 0), (3, "warn", 1), (5, "warn", 1), (4, "stop", 0), (5, "stop", 1)]
)
def test_fail_on_turns_findings_into_exit_code_1(
    cli: Cli, record: Record, batches: int, fail_on: str, code: int
) -> None:
    """`warn` counts warnings and stops, `stop` only stops; the lines are the same."""
    name = record(SAME[:batches]) if batches < 6 else ""
    outcome = cli("replay", name, "--json", "--fail-on", fail_on)
    assert (outcome.code, len(outcome.lines), outcome.err) == (code, batches, "")


def test_of_several_targets_the_worst_code_counts_and_all_are_read(cli: Cli, record: Record) -> None:
    """An unreadable recording does not hide the findings of the others."""
    outcome = cli("replay", "missing.jsonl", record(SAME), "--json", "--fail-on", "stop")
    assert (outcome.code, len(outcome.lines)) == (3, 6)
    assert outcome.err.startswith("loopscope: missing.jsonl: ")


def _with_decisions(path: Path, **changed: Any) -> None:
    """Writes the decisions of a replay into a recording, as the middleware does; `changed` alters that of batch 3."""
    detector = LoopDetector()
    lines = []
    with Reader(path) as reader:
        for line in reader:
            assert line.event is not None
            lines.append(reader.raw_at(line.offset, line.length).decode())
            for decision in detector.observe(line.event):
                entry = to_builtins(decision) | {"seq": 1 + decision.seq, "batch_seq": decision.seq, "ts": None}
                del entry["batch"]
                lines.append(json.dumps(entry | (changed if decision.batch == 3 else {})))
    path.write_text("\n".join(lines) + "\n")


def test_verify_is_content_with_equal_decisions(cli: Cli, record: Record, tmp_path: Path) -> None:
    """Exit code 0; the project's file does not count, since it did not when the run was recorded."""
    _with_decisions(tmp_path / record(SAME))
    (tmp_path / "loopscope.toml").write_text("hard_limit = 4\n")
    outcome = cli("replay", "run.jsonl", "--verify", "--json")
    assert (outcome.code, len(outcome.lines), outcome.err) == (0, 6, "")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"action": "pass"}, "batch 3 (seq 30): action was 'pass', replays as 'warn'"),
        ({"count": 4}, "batch 3 (seq 30): count was 4, replays as 3"),
        ({"hash": "0"}, "batch 3 (seq 30): hash was '0', replays as "),
        ({"run_id": "x"}, "batch 3 (seq 30): run_id was 'x', replays as 'r'"),
        ({"batch_seq": 77}, "the recorded decision for seq 77 has no batch"),
        ({"kind": "unknown"}, "batch 3 (seq 30): replays as warn, none recorded"),
    ],
)
def test_verify_tells_the_first_difference(
    cli: Cli, record: Record, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    """Exit code 5 and one line: which batch, which field, both values."""
    _with_decisions(tmp_path / record(SAME), **change)
    outcome = cli("replay", "run.jsonl", "--verify", "--json")
    assert outcome.code == 5
    assert outcome.err.startswith(f"loopscope: run.jsonl: {message}")
    assert outcome.err.count("\n") == 1


def test_verify_forgives_what_a_crash_or_a_gap_lost(cli: Cli, record: Record, tmp_path: Path) -> None:
    """The last batch's decision may be cut off; before a `gap` it may be among what was dropped."""
    path = tmp_path / record(SAME[:3])
    _with_decisions(path)
    lines = path.read_text().splitlines()
    gap = '{"kind":"gap","seq":5000,"ts":null,"thread_id":null,"run_id":null,"lost":1}'
    for kept in (lines[:-1], [*lines[:-1], gap]):
        path.write_text("\n".join(kept))
        assert cli("replay", "run.jsonl", "--verify").code == 0


def test_verify_needs_recorded_decisions_and_no_other_policy(cli: Cli, record: Record) -> None:
    """Both are usage errors that say what to leave out."""
    name = record(SAME)
    assert cli("replay", name, "--verify", "--json").err == (
        "loopscope: run.jsonl has no recorded decisions to verify; replay it without --verify\n"
    )
    outcome = cli("replay", name, "--verify", "--set", "hard_limit=9")
    assert (outcome.code, outcome.out) == (2, "")
    assert "leave out --policy and --set" in outcome.err


def test_people_get_a_table_and_a_summary(cli: Cli, record: Record) -> None:
    """One row a batch with time, scope, tools, hash, count and verdict; then the totals."""
    outcome = cli("replay", record(SAME))
    rows = outcome.out.splitlines()
    assert rows[0] == "run.jsonl"
    assert rows[3].split() == [
        "3",
        "00:02.000",
        "t/r",
        "sql",
        rows[1].split()[4],
        "x3",
        "WARN",
        "identical_call_set",
        "3/3",
    ]
    assert rows[2].endswith("x2   repeat")
    assert rows[-1] == "6 batches in 1 scope: 1 warning (first at 3), 2 stops (first at 5)"


def test_the_columns_of_the_table_stay_in_line(cli: Cli, tmp_path: Path) -> None:
    """However long a run takes, and however wide the characters of a name are."""
    lines = ['{"kind":"header","format":"loopscope/1"}']
    for seq, (days, name) in enumerate(
        [(0, "sql"), (0.5, "検索" * 20), (1.25, "e\u0301"), (12, "x" * 90), (400.5, "")]
    ):
        calls = [{"id": f"c{seq}", "name": name, "args": {}}]
        common = {"kind": "batch", "seq": seq, "ts": 1e9 + days * 86400, "thread_id": "t", "run_id": name}
        lines.append(json.dumps(common | {"calls": calls}))
    (tmp_path / "long.jsonl").write_text("\n".join(lines))
    rows = cli("replay", "long.jsonl").out.splitlines()[1:-1]
    assert [row[:6].strip() for row in rows] == list("12345")
    assert [row[8:20].strip() for row in rows] == [
        "00:00.000",
        "12:00:00.000",
        "1d 6:00:00",
        "12d 0:00:00",
        "400d 12:00",
    ]
    assert len({cell_len(row[: row.index(" x1")]) for row in rows}) == 1


def test_a_recording_without_batches_is_an_empty_table(cli: Cli, record: Record) -> None:
    """Nothing to decide is no error."""
    assert cli("replay", record([])).out == "run.jsonl\n0 batches in 0 scopes: 0 warnings, 0 stops\n"
    assert cli("replay", record([]), "--json") == (0, "", "")


def test_replayed_decisions_equal_the_engine(cli: Cli, record: Record) -> None:
    """The command line adds nothing to the engine and takes nothing away."""
    name = record([f"select {n % 3}" for n in range(30)])
    with Reader(name) as reader:
        detector = LoopDetector(Policy(window_size=7))
        actions = [d.action for line in reader if line.event for d in detector.observe(line.event)]
    assert _actions(cli("replay", name, "--json", "--set", "window_size=7").lines) == actions
