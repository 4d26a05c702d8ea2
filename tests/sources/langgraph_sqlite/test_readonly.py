from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from loopscope.errors import UnreadableInputError
from loopscope.sources.langgraph_sqlite import events, readonly
from tests.sources.langgraph_sqlite.graphs import (
    ASK,
    THREAD,
    answer,
    calls,
    chain,
    checkpoint,
    database,
    loop,
    saved,
    told,
    unchanged,
)

RUN = ["r1 start", "r1 calls search(a)", "r1 ok found a", "r1 says done", "r1 end completed"]


def run(saver: Any) -> None:
    loop([calls("a"), answer()]).compile(saver).invoke(ASK, THREAD)


def left_open(path: Path) -> Path:
    """A database as a killed program leaves it: the checkpoints stand in the write-ahead log alone."""
    with SqliteSaver.from_conn_string(str(path.with_suffix(".live"))) as saver:
        saver.conn.execute("PRAGMA wal_autocheckpoint = 0")
        run(saver)
        shutil.copy(path.with_suffix(".live"), path)
        shutil.copy(f"{path.with_suffix('.live')}-wal", f"{path}-wal")
    return path


def test_a_closed_database_is_read_in_place(tmp_path: Path) -> None:
    """Nothing is written beside it, and nothing in it changes."""
    path = saved(tmp_path / "c.db", run)
    with unchanged(tmp_path):
        assert told(path) == RUN


def test_the_write_ahead_log_is_read(tmp_path: Path) -> None:
    """A file whose newest checkpoints were never written back is read with them, and stays as it was."""
    folder = tmp_path / "db"
    folder.mkdir()
    path = left_open(tmp_path / "c.db")
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", folder)
    with unchanged(folder):
        assert told(folder / "c.db") == RUN
    (folder / "c.db-wal").unlink()
    with pytest.raises(UnreadableInputError):
        told(folder / "c.db")


def test_a_database_in_use_is_read(tmp_path: Path) -> None:
    """While its program has it open: what was committed is told, no file changes, and the program goes on."""
    path = tmp_path / "c.db"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        run(saver)
        assert (tmp_path / "c.db-wal").exists()
        with unchanged(tmp_path):
            assert told(path) == RUN
        run(saver)
    assert len(told(path)) == 2 * len(RUN)


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    """Rights to read are enough."""
    folder = tmp_path / "db"
    folder.mkdir()
    path = left_open(tmp_path / "c.db")
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", folder)
        (folder / f"c.db{suffix}").chmod(0o400)
    folder.chmod(0o500)
    try:
        assert told(folder / "c.db") == RUN
    finally:
        folder.chmod(0o700)


def test_a_link_is_followed_to_its_log(tmp_path: Path) -> None:
    """The log stands beside the file, not beside the link."""
    path = left_open(tmp_path / "c.db")
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "link.db"
    link.symlink_to(path)
    assert told(link) == RUN


@pytest.mark.parametrize("name", ["with space.db", "what?mode=rw.db", "50%23#.db", "ünï.db", "-wal.db"])
def test_any_file_name_is_a_name(tmp_path: Path, name: str) -> None:
    """A name is no part of SQLite's address, whatever characters it has."""
    assert told(saved(tmp_path / "c.db", run).rename(tmp_path / name)) == RUN


def test_a_locked_database_is_read(tmp_path: Path) -> None:
    """Another program's exclusive lock keeps nobody from reading what was committed before."""
    path = saved(tmp_path / "c.db", run)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    script = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('BEGIN EXCLUSIVE'); c.execute('DELETE FROM checkpoints');"
        "print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as locker:
        assert locker.stdout is not None
        assert locker.stdin is not None
        assert locker.stdout.readline() == "locked\n"
        with unchanged(tmp_path):
            assert told(path) == RUN
        locker.stdin.close()


def test_locks_of_this_very_process_are_kept(tmp_path: Path) -> None:
    """In a notebook agent and reader are one process, which loses its locks by closing a file that it has open."""
    path = saved(tmp_path / "c.db", run)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        assert told(path) == RUN
        script = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"
        other = subprocess.run([sys.executable, "-c", script, path], capture_output=True, text=True, check=False)
    finally:
        holder.close()
    assert "database is locked" in other.stderr


def test_a_descriptor_that_cannot_read_is_not_used(tmp_path: Path) -> None:
    """A file that this process has open for writing alone is opened once more."""
    path = saved(tmp_path / "c.db", run)
    with path.open("ab"):
        assert told(path) == RUN


def test_the_copy_is_private_and_goes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy is in a folder that only its owner may enter, and for as long as it is read, however that ends."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    path = left_open(tmp_path / "c.db")
    found = events(path)
    next(found)
    (private,) = scratch.iterdir()
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert (private / "copy.db").exists()
    found.close()  # type: ignore[attr-defined]
    assert list(scratch.iterdir()) == []


def test_a_log_that_is_reset_during_the_copy_is_copied_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that writes its log back and begins it anew between the two copies would leave them not fitting."""
    path = tmp_path / "c.db"
    copies = []
    with SqliteSaver.from_conn_string(str(path)) as saver:
        run(saver)
        copy = readonly._copy

        def disturbed(source: Path, target: Path) -> None:
            copies.append(source.name)
            copy(source, target)
            if len(copies) == 1:
                saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                run(saver)

        monkeypatch.setattr(readonly, "_copy", disturbed)
        assert len(told(path)) == 2 * len(RUN)
    assert copies.count("c.db") == 2


def test_a_file_that_never_rests_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a few attempts one line says what to do."""
    path = left_open(tmp_path / "c.db")
    copy = readonly._copy

    def disturbed(source: Path, target: Path) -> None:
        copy(source, target)
        if source.name.endswith("-wal"):
            source.write_bytes(os.urandom(64))

    monkeypatch.setattr(readonly, "_copy", disturbed)
    with pytest.raises(UnreadableInputError, match="changes faster than it can be copied; try again"):
        told(path)


def test_an_unfinished_transaction_is_undone_in_the_copy(tmp_path: Path) -> None:
    """A rollback journal beside the file means that a program died while writing: its half is not read."""
    path = database(tmp_path / "c.db", chain(checkpoint()))
    script = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('PRAGMA cache_size = 1'); c.execute('PRAGMA cache_spill = 1'); c.execute('BEGIN IMMEDIATE');"
        "c.executemany('INSERT INTO writes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',"
        " [('t', '', '0', 'k', '', i, 'messages', 'msgpack', b'x' * 3000) for i in range(400)]);"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script, path], check=True)
    assert (tmp_path / "c.db-journal").stat().st_size > 0
    problems: list[tuple[int, str]] = []
    with unchanged(tmp_path):
        assert told(path, problems=problems) == ["r1 start", "r1 end completed"]
    assert problems == []


def test_nothing_can_be_written(tmp_path: Path) -> None:
    """The connection refuses everything but reading, whoever asks."""
    path = database(tmp_path / "c.db", chain(checkpoint()))
    with readonly.opened(path) as connection:
        for statement in (
            "DELETE FROM checkpoints",
            "ATTACH ':memory:' AS x",
            "PRAGMA journal_mode = DELETE",
            "SELECT hex('a')",
        ):
            with pytest.raises(sqlite3.DatabaseError):
                connection.execute(statement)
        assert connection.execute("SELECT count(*) FROM checkpoints").fetchone() == (1,)
