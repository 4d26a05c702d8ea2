"""Databases that real programs of strangers left: they stand beside the project where they are there at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopscope.engine.detector import Decision, LoopDetector
from loopscope.engine.events import Batch, RunEnd
from loopscope.errors import UnreadableInputError
from loopscope.sources.langgraph_sqlite import events
from tests.conftest import ROOT
from tests.sources.langgraph_sqlite.graphs import told, unchanged

RECORDINGS = ROOT.parent / "shared" / "recordings" / "langgraph_sqlite"

pytestmark = pytest.mark.skipif(
    not RECORDINGS.is_dir(), reason="the recordings of other people's programs are not ours to ship, and not here"
)


def test_a_real_stuck_run() -> None:
    """Asked for the time, an agent looked at the clock four times until its user cancelled it."""
    detector = LoopDetector()
    decisions: list[Decision] = []
    ends = []
    with unchanged(RECORDINGS):
        for event in events(RECORDINGS / "huygiangit96_checkpoints.db"):
            decisions += detector.observe(event)
            if isinstance(event, RunEnd):
                ends.append((event.status, event.reason))
    assert [(decision.hash_count, decision.action) for decision in decisions] == [
        (1, "pass"),
        (2, "pass"),
        (3, "warn"),
        (4, "pass"),
    ]
    assert len({decision.hash for decision in decisions}) == 1
    assert ends == [("completed", None), ("cancelled", "CancelledError()")]


def test_a_real_file_whose_newest_part_is_in_the_log() -> None:
    """With its write-ahead log the conversation has 44 AI messages, though summaries left 12 messages in its state."""
    with unchanged(RECORDINGS):
        said = [event for event in events(RECORDINGS / "minibot_checkpoints.db") if isinstance(event, Batch)]
    assert len(said) == 44
    assert sum(bool(batch.calls) for batch in said) == 4


def test_a_real_file_of_2024() -> None:
    """The old tables are read; this graph kept no messages."""
    problems: list[tuple[int, str]] = []
    lines = told(RECORDINGS / "darkfennertrader_legacy_checkpoints.sqlite", problems=problems)
    assert lines == ["r1 start", "r1 end unknown"]
    assert "--channel" in problems[0][1]


def test_another_programs_checkpoints() -> None:
    """A table of that name that is not LangGraph's is refused in one line."""
    with pytest.raises(UnreadableInputError) as caught:
        list(events(RECORDINGS / "NOT_langgraph_taurob.db"))
    assert "not a LangGraph database" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_none_of_them_is_touched(tmp_path: Path) -> None:
    """Read without their folder being writable at all."""
    for path in RECORDINGS.glob("*.db"):
        copy = tmp_path / path.name
        copy.write_bytes(path.read_bytes())
    with unchanged(tmp_path):
        assert len(told(tmp_path / "minibot_checkpoints.db")) > 100
