"""A batch of megabytes at the cursor: a thread reads it, and the screen says so until it is there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from loopscope.engine.events import Call
from loopscope.recording.codec import encode
from loopscope.session.session import Session
from loopscope.settings import Choice
from loopscope.targets import open_session
from loopscope.views import sight
from loopscope_widgets.terminal.screens.plain import PlainText
from tests.views.support import Story
from tests.widgets.support import debugging, screen_of, settled, shown
from tests.widgets.test_debugger import until


@pytest.fixture
def weighty(tmp_path: Path) -> Session:
    """Three batches, the second one with an argument of a few megabytes; the cursor on the first."""
    story = Story().call("search", {"query": "tls"}, "nothing")
    story.batch(Call("w", "write_file", {"path": "notes.md", "content": "all of it " * 400_000})).result("w", "written")
    story.call("search", {"query": "tls"}, "nothing")
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"".join(encode(event) + b"\n" for event in story.events if event is not None))
    session = open_session(path, Choice.of())
    session.seek(1)
    return session


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Until it is set, nothing is read in a thread."""
    found = threading.Event()
    look = sight.look

    def held(session: Session, number: int) -> sight.Sight | None:
        if threading.current_thread() is not threading.main_thread():
            found.wait(120)
        return look(session, number)

    monkeypatch.setattr(sight, "look", held)
    yield found
    found.set()


async def test_it_says_that_it_reads_and_draws_when_it_has(weighty: Session, gate: threading.Event) -> None:
    """Keys work meanwhile; only the beginning of the argument is drawn, and how long it is."""
    async with debugging(weighty) as pilot:
        await pilot.press("n")
        assert "4.0 MB, being read …" in "\n".join(shown(pilot))
        await pilot.press("n")
        assert "search" in "\n".join(shown(pilot))
        await pilot.press("N")
        gate.set()
        await until(pilot, lambda: "being read" not in "\n".join(shown(pilot)), "it was never read")
        text = "\n".join(shown(pilot))
        assert 'path: "notes.md"' in text
        assert "all of it all of it" in text


async def test_what_is_copied_waits_until_it_is_read(weighty: Session, gate: threading.Event) -> None:
    """Then it is in the clipboard, cut; a copy of what one has left meanwhile is not made."""
    async with debugging(weighty) as pilot:
        await pilot.press("n", "y")
        assert "reading it to copy it" in list(pilot.app._notifications)[-1].message
        assert not isinstance(pilot.app.screen, PlainText)
        gate.set()
        await until(pilot, lambda: isinstance(pilot.app.screen, PlainText), "it was never copied")
        assert "4,000,000 characters" in pilot.app.clipboard
        assert len(pilot.app.clipboard) < 200_000


async def test_events_within_it_are_stepped_before_it_is_read(weighty: Session, gate: threading.Event) -> None:
    """As many as there are afterwards: what one looks at stays the same."""
    async with debugging(weighty) as pilot:
        await pilot.press("n", "s", "s")
        assert "EVENTS #2" in "\n".join(shown(pilot))
        looked_at = screen_of(pilot).inspect.event
        gate.set()
        await until(pilot, lambda: 'write_file({"content"' in "\n".join(shown(pilot)), "it was never read")
        assert screen_of(pilot).inspect.event == looked_at
        await settled(pilot)
