"""The panes as plain text: the same numbers as on the screen, and nothing that acts on a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscope.engine.events import Call
from loopscope.recording.inert import inert
from loopscope.views import detect, inspector, scopes, text, timeline, topbar
from loopscope.views.cells import cell_len
from tests.session.support import session_of
from tests.views.support import Story, looping, texts


def test_every_pane_has_its_section() -> None:
    """In the order of the screen, each under its name, each with the screen's own lines."""
    session = looping().session()
    shown = text.render(session, width=100)
    assert [line for line in shown.splitlines() if line in ("Timeline", "Scopes", "Detect", "Inspect", "Why")] == [
        "Timeline",
        "Scopes",
        "Detect",
        "Inspect",
        "Why",
    ]
    for lines in (
        topbar.lines(session, 0, 1, 100),
        timeline.lines(session, 0, 5, 100),
        scopes.body(session, 100),
        detect.body(session, 100, dense=True),
        inspector.batch_lines(session, 100),
    ):
        assert "\n".join(texts(lines)) in shown
    assert "nearest settings that would not stop #5" in shown
    assert shown.endswith("\n")


def test_an_empty_recording() -> None:
    """Has no batch to inspect."""
    shown = text.render(session_of([]))
    assert "Inspect" not in shown
    assert "no batch with calls" in shown


def test_ascii() -> None:
    """For terminals and logs that have nothing else."""
    assert text.render(looping().session(), ascii_only=True).isascii()


HOSTILE = st.text(st.characters(), max_size=30) | st.sampled_from(
    [
        "\x1b[2J",
        "\x1b]0;title\x07",
        "\x9b31m",
        "[red]x[/red]",
        "[@click=app.quit]x",
        "\u202egnirts",
        "a\u200bb",
        "\0",
        "\ud800",
        "日" * 9,
    ]
)


@settings(max_examples=60)
@given(HOSTILE, HOSTILE, HOSTILE, HOSTILE, st.integers(20, 120))
def test_nothing_from_a_recording_acts_on_a_terminal(
    name: str, value: str, content: str, ident: str, width: int
) -> None:
    """Whatever names, arguments, results and ids are made of, every line is printable and in its width."""
    story = Story().in_scope(ident, value).start(name)
    story.batch(
        Call("1", name, {"query": value, ident: content}), Call("2", content, value), text=content, message_id=ident
    )
    story.result("1", content, status="error", error_type=name)
    for _ in range(3):
        story.call(name, {"query": value}, content)
    session = story.session()
    session.source = name
    shown = text.render(session, width=width)
    lines = shown.split("\n")
    assert all(line == inert(line) for line in lines)
    why = lines.index("Why")
    assert max(cell_len(line) for line in lines[:why]) <= max(width, len("REPLAY"))


@pytest.mark.parametrize("width", [40, 80, 160])
def test_lines_are_made_for_the_width(width: int) -> None:
    """Of whatever reads them."""
    assert max(map(cell_len, text.render(looping(30).session(), width=width).splitlines())) <= width
