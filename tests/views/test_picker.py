"""The picker's rows: what was opened lately and the samples, each with the worst of its run."""

from __future__ import annotations

from loopscope.views import picker
from loopscope.views.model import line_width, plain
from tests.session.support import session_of
from tests.views.support import looping


def test_rows_under_their_titles() -> None:
    """Without recent ones there is no title for them; names and folders are shown as text."""
    rows = picker.entries(["/data/a\x1b[2J.jsonl"], [("storm", "A storm.")])
    assert [row.label for row in rows] == ["RECENT", r"a\x1b[2J.jsonl", "SAMPLES", "storm"]
    assert [row.target for row in rows] == ["", "/data/a\x1b[2J.jsonl", "", "sample:storm"]
    assert [row.note for row in rows] == ["", "/data", "", "A storm."]
    assert [row.label for row in picker.entries([], [])] == ["SAMPLES"]


def test_the_worst_of_a_run() -> None:
    """Over all of its scopes."""
    assert picker.state(looping(5).session()) == picker.State("stop", 5)
    assert picker.state(looping(3).session()) == picker.State("warn", 3)
    assert picker.state(looping(1).in_scope("t", "other").call("a", {}).session()) == picker.State("new", 2)
    assert picker.state(session_of([])) == picker.State("new", 0)


def test_lines() -> None:
    """A row that is not known yet has dots; one that cannot be read says why; the chosen one is marked."""
    rows = picker.entries([], [("a", "One."), ("b", "Two."), ("c", "Three.")])
    states = {
        "sample:a": picker.State("stop", 1),
        "sample:b": picker.State(problem="no readable \x07event here at all"),
    }
    lines = picker.draw(rows, states, 60, 3)
    texts = [plain(line) for line in lines]
    assert texts[0] == "SAMPLES"
    assert texts[1].split() == ["a", "■", "STOP", "1", "batch", "One."]
    assert r"no readable \x07event" in texts[2]
    assert texts[3].split() == ["c", "…", "Three."]
    assert all(span.mark == "cursor" for span in lines[3])
    assert max(map(line_width, lines)) <= 60


def test_what_runs_stands_first() -> None:
    """With its pid and for how long it can be attached to; whether it may be steered; its name made inert."""
    rows = [
        picker.running("a\x1b[2J", "/run/a.sock", 7, 90.0, control=True),
        picker.running("b", "127.0.0.1:9", 8, -1.0, control=False),
    ]
    entries = picker.entries([], [("storm", "A storm.")], rows)
    assert [row.label for row in entries] == ["RUNNING", r"a\x1b[2J", "b", "SAMPLES", "storm"]
    assert entries[1].target == "live:/run/a.sock"
    assert entries[1].note == "pid 7, listens for 1m30s"
    assert entries[2].note == "pid 8, listens for 0.00s, may only be observed"
