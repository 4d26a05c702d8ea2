"""The pane of what a program writes."""

from __future__ import annotations

import pytest

from loopscope.session import output as module
from loopscope.session.output import Output
from loopscope.views import output as view
from loopscope.views.model import plain


def test_each_line_is_a_row_cut_to_the_width() -> None:
    """From the one that is asked for on."""
    output = Output()
    output.feed(b"first\n" + "表の名前".encode() + b"\nthird")
    assert [plain(line) for line in view.lines(output, 1, 2, 5)] == ["表の…", "third"]
    assert view.heading(output) == ""


def test_nothing_written_is_said() -> None:
    """In the first row, and in no other."""
    assert plain(view.lines(Output(), 0, 3, 80)[0]) == "nothing written yet"
    assert view.lines(Output(), 1, 3, 80) == []


def test_the_border_says_what_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there were more lines than are kept."""
    monkeypatch.setattr(module, "_LINES", 1)
    output = Output()
    output.feed(b"a\nb\nc\n")
    assert view.heading(output) == "2 earlier lines not kept"
