from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from loopscope.errors import UnreadableInputError
from loopscope.sources import ThreadSummary, detect, events, threads
from tests.sources.langgraph_sqlite.graphs import ASK, answer, calls, database, loop, saved


def conversations(path: Path) -> Path:
    def several(saver: Any) -> None:
        for thread in ("b", "a"):
            config = {"configurable": {"thread_id": thread}}
            graph = loop([calls("x"), calls("y"), answer(), answer()]).compile(saver)
            graph.invoke(ASK, config)
            if thread == "b":
                graph.invoke(ASK, config)

    return saved(path, several)


def test_a_format_is_told_by_content_not_by_name(tmp_path: Path) -> None:
    """A checkpoint database is one under any name; a recording and what is no file are none."""
    path = conversations(tmp_path / "run.jsonl")
    assert detect(path) == "langgraph-sqlite"
    assert detect(str(path)) == "langgraph-sqlite"
    (tmp_path / "c.db").write_text('{"kind": "header", "format": "loopscope/1"}\n')
    (tmp_path / "empty.db").touch()
    for name in ("c.db", "empty.db", "none.db", "."):
        assert detect(tmp_path / name) is None


def test_events_come_from_the_reader_of_the_format(tmp_path: Path) -> None:
    """Whoever has a file of any known format asks in one place."""
    path = conversations(tmp_path / "c.db")
    problems: list[tuple[int, str]] = []
    assert len(list(events(path, "messages", problems))) == 1 + 7 + 3 + 7
    assert problems == []


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    """In one line."""
    (tmp_path / "x").write_text("hello")
    with pytest.raises(UnreadableInputError, match="x: no format that can be imported"):
        events(tmp_path / "x")


def test_the_conversations_of_a_file(tmp_path: Path) -> None:
    """Enough to choose one: how much happened in each, when, and how it ended."""
    first, second = threads(conversations(tmp_path / "c.db"))
    assert isinstance(first, ThreadSummary)
    assert (first.thread_id, first.runs, first.batches, first.status) == ("b", 2, 2, "completed")
    assert (second.thread_id, second.runs, second.batches, second.status) == ("a", 1, 2, "completed")
    assert first.started is not None
    assert second.ended is not None
    assert first.started < second.ended


def test_conversations_without_times(tmp_path: Path) -> None:
    """What is not known is none."""
    schema = "CREATE TABLE checkpoints (thread_id, checkpoint_id, checkpoint);"
    path = database(tmp_path / "c.db", schema=schema)
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO checkpoints VALUES (NULL, '1', '{}')")
    assert threads(path) == [ThreadSummary(None, 1, 0, None, None, "unknown")]
