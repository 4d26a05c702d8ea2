"""A run as the output of a notebook's cell without a widget: complete, and with nothing that runs or is loaded."""

from __future__ import annotations

from loopscope.views.web.cell import cell
from tests.views.support import Story, looping


def test_a_looping_run() -> None:
    """The picture, why the batch at the cursor was stopped, and a row for each warning and stop."""
    text = cell(looping(6).session())
    assert text.startswith("<div>")
    assert 'src="data:image/svg+xml;base64,' in text
    assert "Why #5" in text
    assert text.count("<tr>") == 1 + 3
    assert "#3" in text
    assert "<script" not in text


def test_many_decisions_are_counted() -> None:
    """Fifty are shown; how many more there are is said."""
    text = cell(looping(60).session())
    assert text.count("<tr>") == 1 + 50 + 1
    assert "7 more decisions" in text


def test_what_has_no_decision_says_so() -> None:
    """A healthy run has a picture and its reasons; a recording without batches has neither."""
    healthy = cell(Story().call("a", {}, "x").session())
    assert "No warning and no stop." in healthy
    assert "<img" in healthy
    assert "<img" not in cell(Story().session())
