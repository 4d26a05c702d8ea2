"""`loopscope explain`: which batch is explained, and the lines of the session."""

from __future__ import annotations

import json

import pytest

from loopscope.api import open as open_session
from tests.cli.conftest import Cli, Record


def test_the_first_stop_is_explained(cli: Cli, record: Record) -> None:
    """The session's own lines, numbered, under the verdict; the flag is named as the origin of the limit."""
    name = record(["select 1"] * 8)
    outcome = cli("explain", name, "--set", "hard_limit=6")
    head, *lines = outcome.out.splitlines()
    assert (outcome.code, head) == (0, "run.jsonl: batch 6 of 8, STOP identical_call_set A 6/6")
    assert [line[:3] for line in lines] == [f"{number:>2} " for number in range(1, len(lines) + 1)]
    assert "--set hard_limit=6" in outcome.out


@pytest.mark.parametrize(("batches", "expected"), [(8, 5), (4, 3), (2, 2)])
def test_without_a_stop_the_first_warning_or_the_last_batch_is(
    cli: Cli, record: Record, batches: int, expected: int
) -> None:
    """There is always something to say."""
    assert f"run.jsonl: batch {expected} of {batches}, " in cli("explain", record(["select 1"] * batches)).out


def test_any_batch_can_be_named(cli: Cli, record: Record) -> None:
    """`--at N`; outside the recording it is a usage error with the numbers that there are."""
    name = record(["select 1"] * 4)
    assert "batch 2 of 4, PASS" in cli("explain", name, "--at", "2").out
    for number in ("0", "5", "-1"):
        assert cli("explain", name, "--at", number) == (
            2,
            "",
            f"loopscope: --at {number}: run.jsonl has batches 1 to 4\n",
        )


def test_json_holds_the_same_lines(cli: Cli, record: Record) -> None:
    """For programs: batch, verdict, lines and the decision as `replay --json` prints it."""
    name = record(["select 1"] * 5)
    entry = json.loads(cli("explain", name, "--json").out)
    assert entry["lines"] == list(open_session(name).explain(5).lines)
    assert entry["batch"] == 5
    assert entry["decision"] == cli("replay", name, "--json").lines[4]


def test_a_recording_without_batches_has_nothing_to_explain(cli: Cli, record: Record) -> None:
    """Said in one line, exit code 2."""
    outcome = cli("explain", record([]))
    assert (outcome.code, outcome.err) == (2, "loopscope: run.jsonl has no batch with tool calls to explain\n")


def test_bad_lines_are_told_here_too(cli: Cli, record: Record) -> None:
    """What could not be read may be why a verdict surprises."""
    outcome = cli("explain", record(["select 1"] * 5, extra="not json\n"))
    assert outcome.code == 0
    assert outcome.err.startswith("loopscope: run.jsonl:7: ")
