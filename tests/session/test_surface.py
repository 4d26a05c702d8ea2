"""A session as a program uses it: records, pictures, pages, and what it calls itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import loopscope
from loopscope.errors import UsageError
from loopscope.session.session import Session
from loopscope.session.surface import Records
from tests.session.support import session_of
from tests.views.support import looping


@pytest.fixture
def session() -> Session:
    """Eight equal batches: warned at the third, stopped from the fifth on."""
    return looping(8).session()


def test_decisions_are_records(session: Session) -> None:
    """A plain mapping each, with the fields of `replay --json`."""
    found = session.decisions
    assert [(row["batch"], row["action"]) for row in found] == [
        (3, "warn"), (5, "hard_stop"), (6, "hard_stop"), (7, "hard_stop"), (8, "hard_stop"),
    ]  # fmt: skip
    assert found[0]["threshold"] == 3
    assert "hard_stop" in repr(found)


def test_records_as_text() -> None:
    """A table that says how much of it is not shown; a long cell is cut."""
    assert repr(Records()) == "no rows"
    many = Records({"n": n, "text": "x" * 99 if n else None} for n in range(70))
    lines = repr(many).splitlines()
    assert (lines[0].split(), lines[1], len(lines), lines[-1]) == (["n", "text"], "0", 62, "… 10 more")
    assert lines[2].endswith("…")


def test_tune_gives_a_record_a_cell(session: Session) -> None:
    """By text or by name; the settings, then what they do."""
    assert [row["first_stop"] for row in session.tune("hard_limit=4..6")] == [4, 5, 6]
    rows = session.tune(hard_limit=[4, 9], window_size="3,20")
    assert [(row["hard_limit"], row["window_size"], row["stopped"], row["saved_batches"]) for row in rows] == [
        (4, 3, False, 0), (4, 20, True, 4), (9, 3, False, 0), (9, 20, False, 0),
    ]  # fmt: skip
    assert [row["first_stop"] for row in session.tune(hard_limit=4)] == [4]
    assert session.tuning("hard_limit=4..6").grid.settings == ("hard_limit",)
    with pytest.raises(UsageError, match="name what is to be tried"):
        session.tune()


def test_export_draws_too(session: Session) -> None:
    """The page and the picture of `loopscope export`, at the cursor."""
    session.seek(3)
    assert session.export("html").lower().startswith("<!doctype html>")
    assert session.export("svg") == str(session.plot())


def test_plot_and_page(session: Session, tmp_path: Path) -> None:
    """The picture and the page of `loopscope export`; a file that cannot be written is one clear line."""
    session.open_at_first_stop()
    picture = session.plot(theme="dark")
    assert picture.startswith("<svg ")
    assert picture._repr_svg_() == str(picture)
    assert repr(picture) == "<a picture, as SVG>"
    assert "loopscope tune" in session.plot("hard_limit=4..6", window_size=[10, 20])
    written = session.to_html(tmp_path / "run.html")
    assert written.read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(UsageError, match="name a file that can be written"):
        session.to_html(tmp_path / "nowhere" / "run.html")


def test_what_it_calls_itself(session: Session) -> None:
    """Where it comes from, and how it stands."""
    session.seek(3)
    assert repr(session).endswith(": 8 batches, cursor on 3, 1 warned, 4 stopped>")


def test_what_a_notebook_shows_of_a_long_run_and_of_none() -> None:
    """The table ends, and says how much is missing; a run without batches has neither picture nor table."""
    data, _ = looping(90).session()._repr_mimebundle_()
    assert "36 more decisions" not in data["text/html"]
    assert "37 more decisions" in data["text/html"]
    empty, _ = session_of([])._repr_mimebundle_()
    assert "<img" not in empty["text/html"]
    assert "No warning and no stop." in empty["text/html"]
    assert empty["text/plain"].endswith("no batch with calls")


def test_without_the_library_s_door_it_is_text() -> None:
    """A session made of the parts alone draws nothing until it is asked to, and then finds what draws."""
    code = (
        "from loopscope.session.session import Session\n"
        "from loopscope.session.spool import Spool\n"
        "session = Session('parts', Spool())\n"
        "print(*session._repr_mimebundle_()[0])\n"
        "print(session.plot()[:4])\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == ["text/plain", "<svg"]
    assert loopscope.Session is Session
