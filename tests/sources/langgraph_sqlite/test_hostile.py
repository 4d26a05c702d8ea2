from __future__ import annotations

import json
import os
import pickle
import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import ormsgpack
import pytest

from loopscope.engine.events import Batch, RunEnd
from loopscope.errors import UnreadableInputError
from loopscope.sources.langgraph_sqlite import events
from loopscope.sources.langgraph_sqlite.readonly import MAX_VALUE
from tests.sources.langgraph_sqlite.graphs import (
    ASK,
    THREAD,
    answer,
    call,
    calls,
    chain,
    checkpoint,
    database,
    loop,
    message,
    named,
    pack,
    saved,
    told,
    unchanged,
)

FINE = message("ai", id="fine", tool_calls=[call("a")])


@pytest.mark.parametrize("code", range(8))
def test_what_a_file_names_is_neither_imported_nor_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """Every form in which a value can name code is read as data: no command runs, no module is loaded."""
    ran, loaded = tmp_path / "ran", tmp_path / "loaded"
    (tmp_path / "probe_of_import.py").write_text(f"open({str(loaded)!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)  # type: ignore[no-untyped-call, unused-ignore]
    command = f"touch {ran}"
    hostile = [
        named(code, "os", "system", command, "__call__"),
        named(code, "os", "system", [command], "__call__"),
        named(code, "subprocess", "run", {"args": command, "shell": True}, "__call__"),
        named(code, "probe_of_import", "anything", {}),
        named(code, "re", "compile", ["(a+)+$", 0]),
    ]
    folder = tmp_path / "db"
    folder.mkdir()
    path = database(
        folder / "c.db", chain(checkpoint([FINE, *hostile], other=hostile[0])),
        [{"checkpoint_id": "0", "channel": "messages", "value": pack(hostile)}],
    )  # fmt: skip
    with unchanged(folder):
        assert told(path)[:2] == ["r1 start", "r1 calls search(a)"]
    assert not ran.exists()
    assert not loaded.exists()
    assert "probe_of_import" not in sys.modules


@pytest.mark.parametrize("version", [1, 2])
def test_constructors_in_json_are_data_too(tmp_path: Path, version: int) -> None:
    """LangChain's JSON form names classes by path; of any version only the fields are taken."""
    ran = tmp_path / "ran"

    def made(path: list[str], **fields: Any) -> dict[str, Any]:
        return {"lc": version, "type": "constructor", "id": path, "kwargs": fields, "method": [None, "construct"]}

    said = made(["langchain_core", "messages", "AIMessage"], content="", id="1", tool_calls=[call("a")])
    evil = made(["os", "system"], command=f"touch {ran}")
    state = {"v": 1, "ts": "2024-01-01T00:00:00+00:00", "channel_values": {"messages": [said, evil]}}
    path = database(tmp_path / "c.db", [{"checkpoint_id": "0", "type": "json", "checkpoint": json.dumps(state)}])
    assert told(path)[1] == "r1 calls search(a)"
    assert not ran.exists()


class Bomb:
    """What a pickle runs when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (os.mkdir, (str(self.path),))


@pytest.mark.parametrize("kind", ["pickle", "json", None])
def test_pickles_are_never_loaded(tmp_path: Path, kind: str | None) -> None:
    """A pickled checkpoint is left out and the reason told, whatever it says that it is."""
    ran = tmp_path / "ran"
    rows = chain(pickle.dumps(Bomb(ran)), checkpoint([FINE]))
    rows[0]["type"] = kind
    rows[0]["metadata"] = pickle.dumps(Bomb(ran))
    problems: list[tuple[int, str]] = []
    assert told(database(tmp_path / "c.db", rows), problems=problems)[1] == "r1 calls search(a)"
    assert problems == [(1, "the checkpoint is pickled: never loaded, since loading runs what the file says")]
    assert not ran.exists()


def test_a_file_of_pickles_alone_is_refused_with_the_reason(tmp_path: Path) -> None:
    """Where nothing can be read, one line says why."""
    path = database(tmp_path / "c.db", [{"checkpoint_id": "0", "type": None, "checkpoint": pickle.dumps({})}])
    with pytest.raises(
        UnreadableInputError, match=r"c\.db: no checkpoint that can be read: row 1: the checkpoint is pickled"
    ):
        list(events(path))


NESTED = 1_000


@pytest.mark.parametrize("levels", [NESTED, 5_000_000])
def test_deep_nesting_costs_one_message_or_one_row(tmp_path: Path, levels: int) -> None:
    """A value that no stack can hold is left out where it is; everything around it is read."""
    deep = b"\x91" * levels + b"\xc0"
    within = ormsgpack.Ext(5, b"\x94\xa1m\xa1n" + deep + b"\xa1x")
    rows = chain(deep, b"\x81\xaechannel_values\x81\xa8messages" + deep, checkpoint([within, FINE]))
    problems: list[tuple[int, str]] = []
    assert told(database(tmp_path / "c.db", rows), problems=problems)[1] == "r1 calls search(a)"
    assert problems == [
        (1, "the checkpoint is nested too deeply"),
        (2, "the checkpoint is nested too deeply"),
        (3, "a message is nested too deeply"),
    ]


def test_objects_within_objects_are_cut(tmp_path: Path) -> None:
    """Each level of objects would cost another look at everything inside it."""
    bomb: Any = "x" * 1_000_000
    for _ in range(NESTED):
        bomb = ormsgpack.Ext(5, pack(bomb))
    began = time.perf_counter()
    assert told(database(tmp_path / "c.db", chain(checkpoint([FINE], state=bomb))))[1] == "r1 calls search(a)"
    assert time.perf_counter() - began < 5


def test_deep_arguments_are_kept_as_far_as_json_goes(tmp_path: Path) -> None:
    """Arguments nested deeper than any tool's are shown to a depth, and the call still counts."""
    deep: Any = "end"
    for _ in range(200):
        deep = {"in": deep}
    path = database(
        tmp_path / "c.db", chain(checkpoint([message("ai", id="1", tool_calls=[{**call("a"), "args": deep}])]))
    )
    (batch,) = (event for event in events(path) if isinstance(event, Batch))
    assert json.dumps(batch.calls[0].args).count("in") < 100


def test_arguments_that_are_no_json_become_json(tmp_path: Path) -> None:
    """Keys that are no text, bytes, and objects are shown as text; nothing of the file's types gets out."""
    odd = {1: b"\xff", "when": named(3, "datetime", "datetime", "2026-01-01", "fromisoformat"), None: [float("nan")]}
    path = database(
        tmp_path / "c.db", chain(checkpoint([message("ai", id="1", tool_calls=[{**call("a"), "args": odd}])]))
    )
    (batch,) = (event for event in events(path) if isinstance(event, Batch))
    args = batch.calls[0].args
    assert json.loads(json.dumps(args)) == args
    assert all(isinstance(key, str) for key in args)


def test_a_value_that_is_too_large_is_left_out(tmp_path: Path) -> None:
    """SQLite tells the size before the value is read; the rest of the file is as ever."""
    rows = chain(checkpoint([FINE]), b"")
    path = database(tmp_path / "c.db", rows)
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE checkpoints SET checkpoint = zeroblob(?) WHERE checkpoint_id = '1'", (MAX_VALUE + 1,)
        )
    problems: list[tuple[int, str]] = []
    assert told(path, problems=problems)[:2] == ["r1 start", "r1 calls search(a)"]
    assert problems == [(2, "the checkpoint holds 134,217,729 bytes, more than the 134,217,728 that are read")]


def test_a_long_argument_is_read_whole(tmp_path: Path) -> None:
    """Large is not hostile: a call with a long argument counts by all of it."""
    long = "x" * 5_000_000
    path = database(tmp_path / "c.db", chain(checkpoint([message("ai", id="1", tool_calls=[call(long)])])))
    (batch,) = (event for event in events(path) if isinstance(event, Batch))
    assert batch.calls[0].args == {"query": long}


@pytest.mark.parametrize(
    ("blob", "reason"),
    [
        (b"\xc1", "is damaged"),
        (b"", "is damaged"),
        (b"\xdd\xff\xff\xff\xff", "is damaged"),
        (checkpoint()[:-3], "is damaged"),
        (b"\x81\xa1a\xa1\xff", "is damaged"),
        (pack([1, 2]), "holds no checkpoint"),
        (pack("text"), "holds no checkpoint"),
        (17, "holds int where bytes should be"),
        (2.5, "holds float where bytes should be"),
        (None, "holds NoneType where bytes should be"),
        ("text", "is damaged"),
    ],
)
def test_a_damaged_checkpoint_is_left_out(tmp_path: Path, blob: Any, reason: str) -> None:
    """Whatever stands in the column: the row is reported, and those around it are read."""
    rows = chain(checkpoint([FINE]), blob, checkpoint([FINE, message("ai", id="2", tool_calls=[call("b")])]))
    problems: list[tuple[int, str]] = []
    lines = told(database(tmp_path / "c.db", rows), problems=problems)
    assert lines == ["r1 start", "r1 calls search(a)", "r1 calls search(b)", "r1 end completed"]
    ((row, why),) = problems
    assert row == 2
    assert why.startswith(f"the checkpoint {reason}")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("msgpack+aes", "is stored as msgpack+aes, which only the program that wrote it can read"),
        ("null", "holds no checkpoint"),
        ("bytes", "holds no checkpoint"),
        ("json", "is damaged"),
    ],
)
def test_other_kinds_of_values(tmp_path: Path, kind: str, expected: str) -> None:
    """Encrypted and empty values cannot be read, and the reason says so."""
    rows = [{"checkpoint_id": "0", "type": kind, "checkpoint": b"\xffx"}]
    with pytest.raises(UnreadableInputError) as caught:
        list(events(database(tmp_path / "c.db", rows)))
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_any_column_may_hold_anything(tmp_path: Path) -> None:
    """Numbers, bytes and nothing where text should be: rows are read as far as they make sense, and nothing fails."""
    odd: list[Any] = [b"\xff\xfe", 3, 2.5, None]
    fields = ("thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "type", "metadata")
    rows = [{"checkpoint_id": f"{field}{place}", "checkpoint": checkpoint([FINE]), field: value}
            for field in fields for place, value in enumerate(odd)]  # fmt: skip
    schema = (
        "CREATE TABLE checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, "
        "metadata); CREATE TABLE writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value);"
    )
    writes = [
        {"checkpoint_id": "x", field: value, "value": b"?"} for field in ("channel", "type", "idx") for value in odd
    ]
    problems: list[tuple[int, str]] = []
    found = list(events(database(tmp_path / "c.db", rows, writes, schema), problems=problems))
    assert sum(isinstance(event, Batch) for event in found) >= 4
    assert all("type" in why or "stored as" in why or "damaged" in why for _, why in problems)


def test_metadata_may_be_anything(tmp_path: Path) -> None:
    """Broken, deep or senseless metadata tell nothing, and break nothing."""
    states = [checkpoint([FINE])] * 6
    rows = chain(*states)
    deep = b"[" * 100_000
    for row, metadata in zip(
        rows, [b"{", deep, b"[1]", b'{"source": 7, "step": "x", "parents": 3}', b"\xff", None], strict=True
    ):
        row["metadata"] = metadata
    assert told(database(tmp_path / "c.db", rows)) == ["r1 start", "r1 calls search(a)", "r1 end completed"]


def test_names_of_namespaces_are_only_names(tmp_path: Path) -> None:
    """A namespace may be long, deep, and of separators alone; thousands of graphs may stand inside each other."""
    state = checkpoint([FINE])
    rows: list[dict[str, Any]] = [{"checkpoint_id": "p", "checkpoint_ns": "|" * 1_000_000, "checkpoint": state}]
    for depth in range(1_500):
        name = "|".join(["a"] * depth)
        metadata = json.dumps({"parents": {name.rpartition("|")[0]: str(depth - 1)}})
        rows.append({"checkpoint_id": str(depth), "checkpoint_ns": name, "checkpoint": state, "metadata": metadata})
    lines = told(database(tmp_path / "c.db", rows))
    assert sum("start in" in line for line in lines) == 1_499


def test_numbers_beyond_reason(tmp_path: Path) -> None:
    """Steps of thousands of digits and times at the end of the calendar tell nothing, and break nothing."""
    rows = chain(checkpoint([FINE]).replace(b"2026-01-02T03:04:05+00:00", b"9999-12-31T23:59:59-12:00"))
    rows[0]["metadata"] = b'{"step": ' + b"9" * 4_000 + b', "recursion_limit": true}'
    found = list(events(database(tmp_path / "c.db", rows)))
    assert found[0].created is None  # type: ignore[union-attr]
    assert isinstance(found[-1], RunEnd)
    assert found[-1].status == "completed"


def test_parents_in_a_circle(tmp_path: Path) -> None:
    """No program writes checkpoints that build on each other; whoever does has each of them read once."""
    said = [checkpoint([message("ai", id=str(place), tool_calls=[call(str(place))])]) for place in range(3)]
    rows = chain(*said)
    rows[0]["parent_checkpoint_id"] = "2"
    rows.append({"checkpoint_id": "self", "parent_checkpoint_id": "self", "checkpoint": checkpoint([FINE])})
    lines = told(database(tmp_path / "c.db", rows))
    assert sorted(line.partition(" ")[2] for line in lines if "calls" in line) == [
        "calls search(0)",
        "calls search(1)",
        "calls search(2)",
        "calls search(a)",
    ]


def test_writes_that_cannot_be_read_are_reported(tmp_path: Path) -> None:
    """A broken write is left out, and the others of its step are read."""
    writes = [
        {"checkpoint_id": "0", "idx": 0, "channel": "messages", "value": b"\xc1"},
        {
            "checkpoint_id": "0",
            "idx": 1,
            "channel": "messages",
            "value": pack([message("ai", id="2", tool_calls=[call("b")])]),
        },
    ]
    state = checkpoint([FINE], **{"branch:to:agent": None})
    problems: list[tuple[int, str]] = []
    lines = told(database(tmp_path / "c.db", chain(state), writes), problems=problems)
    assert lines[1:3] == ["r1 calls search(a)", "r1 calls search(b)"]
    assert problems[0][1].startswith("the write to messages is damaged")


def test_damaged_writes_are_reported(tmp_path: Path) -> None:
    """Checkpoints are told although the table beside them is beyond reading."""
    path = database(tmp_path / "c.db", chain(checkpoint([FINE], **{"branch:to:agent": None})))
    with sqlite3.connect(path) as connection:
        pages = connection.execute("SELECT rootpage FROM sqlite_master WHERE tbl_name = 'writes'").fetchall()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    data = bytearray(path.read_bytes())
    for (page,) in pages:
        data[(page - 1) * size : page * size] = b"\xff" * size
    path.write_bytes(data)
    problems: list[tuple[int, str]] = []
    assert told(path, problems=problems)[1] == "r1 calls search(a)"
    assert problems[0] == (1, "the writes of the checkpoint cannot be read: database disk image is malformed")


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.9])
def test_a_truncated_database(tmp_path: Path, kept: float) -> None:
    """A file that was cut off is read as far as SQLite can, or refused in one line; it never fails otherwise."""
    script = [*(calls(str(place)) for place in range(20)), answer()]
    path = saved(
        tmp_path / "whole.db", lambda saver: loop(script).compile(saver).invoke(ASK, {**THREAD, "recursion_limit": 99})
    )
    data = path.read_bytes()
    cut = tmp_path / "cut.db"
    cut.write_bytes(data[: int(len(data) * kept)])
    problems: list[tuple[int, str]] = []
    try:
        lines = told(cut, problems=problems)
    except UnreadableInputError as error:
        assert "\n" not in str(error)  # noqa: PT017 - one of two good ends
        return
    assert problems
    assert lines[0] == "r1 start"


def test_random_damage_never_fails_otherwise(tmp_path: Path) -> None:
    """Any byte may be wrong: what comes is events or one line of refusal."""
    path = saved(
        tmp_path / "whole.db", lambda saver: loop([calls("a"), calls("b"), answer()]).compile(saver).invoke(ASK, THREAD)
    )
    data = path.read_bytes()
    choice = random.Random(7)  # noqa: S311 - a seed, not a secret
    for round_ in range(60):
        damaged = bytearray(data)
        for _ in range(1 + round_ % 30):
            damaged[choice.randrange(16, len(damaged))] = choice.randrange(256)
        (tmp_path / "cut.db").write_bytes(damaged)
        try:
            list(events(tmp_path / "cut.db"))
        except UnreadableInputError as error:
            assert "\n" not in str(error)  # noqa: PT017 - one of two good ends


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("empty.db", b"", "empty file"),
        ("text.db", b"hello\n" * 10, "not an SQLite database"),
        ("almost.db", b"SQLite format 3\x00", ""),
        ("junk.db", b"SQLite format 3\x00" + bytes(range(256)) * 40, ""),
    ],
)
def test_what_is_no_database_is_refused(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    """One line, with the file and the reason."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UnreadableInputError) as caught:
        list(events(path))
    assert str(caught.value).startswith(f"{path}: {reason}")
    assert "\n" not in str(caught.value)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A folder, a pipe that nobody writes to, or nothing at all."""
    os.mkfifo(tmp_path / "pipe")
    for name, reason in (
        ("none", "No such file or directory"),
        (".", "not a file"),
        ("pipe", "not a file"),
        ("a\0b", "null"),
    ):
        with pytest.raises(UnreadableInputError, match=reason):
            list(events(os.path.join(tmp_path, name)))  # noqa: PTH118 - a Path cannot hold a null


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("CREATE TABLE other (x);", "an SQLite database without a table of LangGraph checkpoints"),
        (
            "CREATE TABLE checkpoints (id, name);",
            "not a LangGraph database: its table `checkpoints` has the columns id",
        ),
        (f"CREATE TABLE checkpoints ({', '.join(f'c{place}' for place in range(30))});", "c7, …; LangGraph's has"),
        ('CREATE TABLE checkpoints ("a\nb\x1b[2J");', r"a\nb\x1b[2J"),
        (
            "CREATE TABLE t (x); CREATE VIEW checkpoints AS SELECT 1 thread_id, 2 checkpoint_id, 3 checkpoint FROM t;",
            "without a table of LangGraph checkpoints",
        ),
    ],
)
def test_another_database_is_refused(tmp_path: Path, schema: str, reason: str) -> None:
    """Tables of other programs, and views, which would run what the file says; in one line that is safe to show."""
    with pytest.raises(UnreadableInputError) as caught:
        list(events(database(tmp_path / "c.db", schema=schema)))
    assert reason in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_database_without_checkpoints_is_refused(tmp_path: Path) -> None:
    """LangGraph's tables with nothing in them."""
    with pytest.raises(UnreadableInputError, match=r"no checkpoint that can be read$"):
        list(events(database(tmp_path / "c.db")))


def test_a_table_that_computes_is_not_asked_to(tmp_path: Path) -> None:
    """A generated column runs a function of the file's choice each time it is read, so it counts as none."""
    schema = (
        "CREATE TABLE checkpoints (thread_id, checkpoint_id, type AS ('msgpack'), metadata, "
        "checkpoint AS (printf('%.*c', 100000000, 'x')));"
    )
    path = tmp_path / "c.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(schema)
        connection.execute("INSERT INTO checkpoints (thread_id, checkpoint_id) VALUES ('t', '1')")
    with pytest.raises(
        UnreadableInputError, match="has the columns thread_id, checkpoint_id, metadata; LangGraph's has"
    ):
        list(events(path))


def test_the_reader_loads_no_framework(tmp_path: Path) -> None:
    """A viewer never imports LangGraph, LangChain or the serializer of the checkpoints."""
    path = saved(tmp_path / "c.db", lambda saver: loop([calls("a"), answer()]).compile(saver).invoke(ASK, THREAD))
    script = (
        "import sys; from loopscope.sources import events; print(len(list(events(sys.argv[1]))));"
        "print([name for name in sys.modules if name.split('.')[0] in "
        "('langgraph', 'langchain', 'langchain_core', 'langsmith', 'ormsgpack')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, path], capture_output=True, text=True, check=True, cwd=Path.cwd()
    )
    assert done.stdout.split("\n")[:2] == ["6", "[]"]
