"""The recordings that come with loopscope: made again from their scripts, and judged as their authors expect."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from loopscope.cli import run
from loopscope.engine.events import Batch, DecisionMade, Header, Result, RunEnd, RunStart
from loopscope.recording.reader import read
from loopscope.samples import Sample as Shipped
from loopscope.samples import sample as shipped
from loopscope.samples import samples, samples_folder
from sample_runs.catalogue import NAMES, index, load
from sample_runs.stage.sample import Found, Sample
from sample_runs.stage.stage import make

SMALL = 200_000
FOREIGN = re.compile(r"/(tmp|home|root|work|Users|var|opt|usr)\b|[A-Z]:\\|Traceback")
"""What would tell of the machine that a sample was recorded on."""


def events_of(name: str) -> list[Any]:
    """The events of a shipped recording."""
    return [line.event for line in read(shipped(name).file)]


def decisions_of(name: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """What `loopscope replay` says of a sample."""
    assert run(["replay", f"sample:{name}", "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def first(decisions: Sequence[dict[str, Any]], action: str) -> Found | None:
    """The first decision of a kind, in the terms of the expectations."""
    found = next((decision for decision in decisions if decision["action"] == action), None)
    return None if found is None else Found(found["batch"], found["layer"])


@pytest.mark.parametrize("name", NAMES)
def test_a_script_makes_its_recording_again(name: str) -> None:
    """Running the graph gives the shipped file, byte for byte."""
    assert make(load(name)) == shipped(name).file.read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_shows_what_its_author_wrote(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The first warning and the first stop, written by hand, are what the engine finds."""
    sample: Sample = load(name)
    decisions = decisions_of(name, capsys)
    assert first(decisions, "warn") == sample.first_warning
    assert first(decisions, "hard_stop") == sample.first_stop


@pytest.mark.parametrize("name", NAMES)
def test_recorded_decisions_are_those_of_a_replay(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What was decided while it ran, `replay --verify` finds; without limits nothing was decided."""
    events = events_of(name)
    decided = [event for event in events if isinstance(event, DecisionMade)]
    assert bool(decided) == (events[0].policy is not None)
    assert events[0].policy is not None or not events[0].enforced
    assert run(["replay", f"sample:{name}", "--verify"]) == (0 if decided else 2)
    assert decided or "no recorded decisions" in capsys.readouterr().err


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_is_complete_and_clean(name: str) -> None:
    """One header, scopes that begin and end, usage of each model call, time that goes on; small, and of no machine."""
    file = shipped(name).file
    text = file.read_text("utf-8")
    assert len(text) < SMALL
    assert not FOREIGN.search(text)
    events = events_of(name)
    assert [isinstance(event, Header) for event in events] == [True] + [False] * (len(events) - 1)
    assert [event.seq for event in events[1:]] == list(range(1, len(events)))
    times = [event.ts for event in events[1:]]
    assert times == sorted(times)
    batches = [event for event in events if isinstance(event, Batch)]
    assert all(batch.usage and batch.usage.input_tokens and batch.usage.cost_usd and batch.text for batch in batches)
    begun = {event.scope for event in events if isinstance(event, RunStart)}
    assert {batch.scope for batch in batches} <= begun
    assert {event.scope for event in events if isinstance(event, RunEnd)} == begun


@pytest.mark.parametrize("name", NAMES)
def test_calls_have_results_unless_they_were_stopped(name: str) -> None:
    """Tools really ran: each call has one result, but those of a batch that the middleware stopped have none.

    A call that hands over to another agent ends its own loop, so that nobody is left to see its result there.
    """
    events = events_of(name)
    stopped = {e.batch_seq for e in events if isinstance(e, DecisionMade) and e.action == "hard_stop"}
    batches = [event for event in events if isinstance(event, Batch) and event.seq not in stopped]
    asked = {call.id for batch in batches for call in batch.calls}
    leaving = {call.id for batch in batches for call in batch.calls if str(call.name).startswith("hand_over_to_")}
    came = [event.call_id for event in events if isinstance(event, Result)]
    assert len(came) == len(set(came))
    assert asked - leaving <= set(came) <= asked


def test_the_index_is_the_scripts_hand_written_lines() -> None:
    """What `loopscope samples` reads without loading any script says the same as the scripts."""
    assert (samples_folder() / "index.json").read_text("utf-8") == index()
    assert [sample.name for sample in samples()] == [load(name).name for name in NAMES]


def test_every_sample_has_a_script_and_a_recording() -> None:
    """No file is left over, none is missing."""
    folder = samples_folder()
    assert {file.stem for file in folder.glob("*.jsonl")} == set(NAMES)
    assert {file.stem.replace("_", "-") for file in (folder / "scripts").glob("*.py")} == set(NAMES)


def test_every_summary_fits_on_one_line() -> None:
    """Name and summary of each sample stand beside each other on 140 columns."""
    width = max(len(sample.name) for sample in samples())
    long: list[Shipped] = [sample for sample in samples() if width + 2 + len(sample.summary) > 140]
    assert not long
