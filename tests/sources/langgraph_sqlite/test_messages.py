from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from loopscope.engine.events import Call, Usage
from loopscope.errors import UsageError
from loopscope.sources.langgraph_sqlite import channels, events
from loopscope.sources.langgraph_sqlite.messages import Logged, Message, Output, Said, read_logged, read_message
from loopscope.sources.langgraph_sqlite.unpack import Named, Opaque, Undecodable, Unpacker
from tests.sources.langgraph_sqlite.graphs import (
    call,
    chain,
    checkpoint,
    database,
    message,
    named,
    pack,
    results,
    short,
    told,
)

WANTED = (Call("c", "look", {"query": "q"}),)
ARGUMENTS = '{"query": "q"}'


def ai(**fields: Any) -> Named:
    return Named("langchain_core.messages.ai", "AIMessage", {"content": "", **fields})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (ai(tool_calls=[{"name": "look", "args": {"query": "q"}, "id": "c"}]), WANTED),
        (Named("my.own", "Answer", {"type": "ai", "content": "", "tool_calls": [call("q", "look", "c")]}), WANTED),
        (ai(tool_calls=[], invalid_tool_calls=[{"name": "look", "args": "{", "id": "c", "error": "x"}]), ()),
        (
            ai(
                tool_calls=[],
                additional_kwargs={"tool_calls": [{"id": "c", "function": {"name": "look", "arguments": "{"}}]},
            ),
            (),
        ),
        (
            ai(additional_kwargs={"tool_calls": [{"id": "c", "function": {"name": "look", "arguments": ARGUMENTS}}]}),
            (Call("c", "look", ARGUMENTS),),
        ),
        (
            ai(content=["thinking", {"type": "tool_use", "id": "c", "name": "look", "input": {"query": "q"}}]),
            WANTED,
        ),
        (
            ai(additional_kwargs={"function_call": {"name": "look", "arguments": ARGUMENTS}}),
            (Call(None, "look", ARGUMENTS),),
        ),
        ({"role": "assistant", "content": None, "function_call": {"name": "look"}}, (Call(None, "look", None),)),
        ({"role": "assistant", "content": "", "tool_calls": [call("q", "look", "c")]}, WANTED),
        ({"type": "ai", "data": {"content": "", "tool_calls": [call("q", "look", "c")]}}, WANTED),
        (ai(tool_calls=[Named("langchain_core.messages", "ToolCall", call("q", "look", "c")), "odd", None]), WANTED),
        (ai(tool_calls=[{"name": 7, "args": None, "id": True}]), (Call(None, "7", None),)),
    ],
)
def test_calls_in_every_form(value: object, expected: tuple[Call, ...]) -> None:
    """Calls of LangChain, OpenAI and Anthropic, of today and of old; what LangChain lists as calls are the calls."""
    found = read_message(value)
    assert isinstance(found, Said)
    assert found.calls == expected


@pytest.mark.parametrize(
    "value",
    [
        None,
        "text",
        7,
        {},
        {"role": "assistant"},
        {"role": "referee", "content": "x"},
        {"type": ["ai"], "content": "x"},
        {"content": "x"},
        Named("langchain_core.messages.ai", "AIMessage", "no fields"),
        Named("my.own", "Report", {"content": "x"}),
        Opaque("x"),
    ],
)
def test_what_is_no_message_is_none(value: object) -> None:
    """Only what names a role that is known, and holds something, is a message."""
    assert read_message(value) is None


def test_other_messages_are_told_apart() -> None:
    """Messages of people and of the system are neither calls nor results."""
    assert read_message({"role": "user", "content": "x", "id": "u"}) == Message("u")
    assert read_message(Named("m", "RemoveMessage", {"content": "", "id": "r"})) == Message("r")


def test_the_text_of_a_message() -> None:
    """The text blocks are its text; calls and thoughts stand elsewhere."""
    blocks = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "one"}, "two", {"type": "tool_use"}]
    for content, expected in ((blocks, "one\ntwo"), ("plain", "plain"), (None, ""), (7, "")):
        found = read_message(ai(content=content))
        assert isinstance(found, Said)
        assert found.text == expected


@pytest.mark.parametrize(
    ("fields", "usage", "model"),
    [
        ({"usage_metadata": {"input_tokens": 3, "output_tokens": 0}}, Usage(3, 0), None),
        ({"usage_metadata": {"input_tokens": "3", "output_tokens": -1}}, Usage(), None),
        ({"usage_metadata": "none", "response_metadata": "none"}, None, None),
        ({"response_metadata": {"model": "m", "token_usage": {"cost": 0.5}}}, Usage(cost_usd=0.5), "m"),
        ({"response_metadata": {"model_name": "", "model_id": "b", "total_cost": True}}, None, "b"),
    ],
)
def test_usage_and_model(fields: dict[str, Any], usage: Usage | None, model: str | None) -> None:
    """What the model told of itself, where it makes sense."""
    found = read_message(ai(**fields))
    assert isinstance(found, Said)
    assert (found.usage, found.model) == (usage, model)


def test_a_result_of_blocks() -> None:
    """Content blocks of a result become its text, and its own id is not the call's."""
    value = {
        "role": "tool",
        "id": "m",
        "tool_call_id": "c",
        "name": "look",
        "content": [{"type": "text", "text": "x"}, {"n": 1}],
    }
    assert read_message(value) == Output("m", "c", "look", 'x\n{"n": 1}', failed=False, error_type=None)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"tool": "look", "args": {"query": "q"}, "id": "c"}, Logged(WANTED[0], None)),
        ({"tool_name": "look", "tool_input": {"query": "q"}}, Logged(Call("else", "look", {"query": "q"}), None)),
        (
            Named(
                "my.own",
                "Entry",
                {"name": "look", "parameters": {"query": "q"}, "tool_call_id": "c", "result": {"n": 1}},
            ),
            Logged(WANTED[0], Output(None, "c", "look", '{"n": 1}', failed=False, error_type=None)),
        ),
        (
            {"name": "look", "error": "gone", "result": None},
            Logged(Call("else", "look", None), Output(None, "else", "look", "gone", failed=True, error_type=None)),
        ),
        ({"name": "look"}, None),
        ({"args": {}}, None),
        ("look", None),
    ],
)
def test_entries_of_a_log_of_calls(entry: object, expected: Logged | None) -> None:
    """A program's own record of a call, in the words that such records use."""
    assert read_logged(entry, "else") == expected


def test_a_channel_is_asked_for_by_name(tmp_path: Path) -> None:
    """`--channel` reads one channel alone, a single message in it too."""
    state = checkpoint(
        [message("ai", id="1", tool_calls=[call("a")])],
        reply=message("ai", id="2", tool_calls=[call("b")]),
        history=[{"tool": "look", "args": {"query": "c"}}, "odd"],
    )
    path = database(tmp_path / "c.db", chain(state))
    assert told(path)[1] == "r1 calls search(a)"
    assert told(path, "reply")[1] == "r1 calls search(b)"
    assert told(path, "history")[1] == "r1 calls look(c)"
    assert channels(path) == {"messages": True, "reply": False, "history": False}


def test_a_list_that_was_to_be_overwritten(tmp_path: Path) -> None:
    """A step that was cut off had replaced the whole list: what is new in it happened."""
    said = [message("ai", id=key, tool_calls=[call(key)]) for key in "ab"]
    replaced = named(2, "langgraph.types", "Overwrite", {"value": said, "type": "__overwrite__"})
    writes = [{"checkpoint_id": "0", "channel": "messages", "value": pack(replaced)}]
    path = database(tmp_path / "c.db", chain(checkpoint(said[:1], **{"branch:to:agent": None})), writes)
    assert told(path)[1:3] == ["r1 calls search(a)", "r1 calls search(b)"]


def test_a_channel_is_asked_for_in_what_was_written_too(tmp_path: Path) -> None:
    """A step that was cut off may have written to several channels."""
    state = checkpoint([], **{"branch:to:agent": None})
    writes = [
        {
            "checkpoint_id": "0",
            "idx": place,
            "channel": channel,
            "value": pack([message("ai", id=channel, content=channel)]),
        }
        for place, channel in enumerate(("notes", "messages"))
    ]
    path = database(tmp_path / "c.db", chain(state), writes)
    assert told(path)[1:3] == ["r1 says notes", "r1 says messages"]
    assert told(path, "messages")[1:2] == ["r1 says messages"]


def test_a_channel_that_is_not_there(tmp_path: Path) -> None:
    """The nearest name is offered, else the names that there are; every thread and subgraph is asked."""
    rows = [
        *chain(checkpoint([message("human", id="1")])),
        {"thread_id": "u", "checkpoint_id": "0", "checkpoint": checkpoint(notes=[])},
        {"thread_id": "u", "checkpoint_ns": "sub:1", "checkpoint_id": "1", "checkpoint": checkpoint(inner=[])},
        {"thread_id": "v", "checkpoint_id": "0", "checkpoint": b"broken"},
    ]
    path = database(tmp_path / "c.db", rows)
    with pytest.raises(UsageError, match=r"c\.db: no channel mesages; did you mean messages\?$"):
        list(events(path, "mesages"))
    with pytest.raises(UsageError, match=r"no channel zzz; there are inner, messages, notes$"):
        list(events(path, "zzz"))
    assert told(path, "inner")[-1] == "r2 end completed"


def test_a_file_without_any_channel(tmp_path: Path) -> None:
    """Where no checkpoint can be read there is nothing to offer."""
    with pytest.raises(UsageError, match=r"no channel messages$"):
        list(events(database(tmp_path / "c.db", chain(b"broken")), "messages"))


def test_equal_messages_with_ids_are_two(tmp_path: Path) -> None:
    """An id that is new is a message that is new, equal or not."""
    said = [message("ai", id=str(place), tool_calls=[call("a")]) for place in range(3)]
    path = database(tmp_path / "c.db", chain(*(checkpoint(said[: place + 1]) for place in range(3))))
    assert told(path) == ["r1 start", *["r1 calls search(a)"] * 3, "r1 end completed"]


def test_a_message_that_changes_is_told_as_it_first_was(tmp_path: Path) -> None:
    """Who takes the calls out of a message under its id does not undo that the model made them."""
    states = (
        checkpoint([message("ai", id="1", tool_calls=[call("a")])]),
        checkpoint([message("ai", id="1", tool_calls=[], content="stopped")]),
    )
    assert told(database(tmp_path / "c.db", chain(*states))) == ["r1 start", "r1 calls search(a)", "r1 end completed"]


def test_lists_without_ids_that_are_written_whole(tmp_path: Path) -> None:
    """A step that was cut off wrote its whole list again: only what it added is new."""
    first, second = ({"role": "assistant", "content": name} for name in "ab")
    state = checkpoint([first, first], **{"branch:to:agent": None})
    writes = [{"checkpoint_id": "0", "channel": "messages", "value": pack([first, first, second, first])}]
    path = database(tmp_path / "c.db", chain(state), writes)
    assert [line for line in told(path) if "says" in line] == ["r1 says a", "r1 says a", "r1 says b", "r1 says a"]


def test_results_find_their_calls_across_subgraphs_only_within_a_run(tmp_path: Path) -> None:
    """Ids of calls may come again in other runs of a thread; a result stays in its own."""
    first = [message("ai", id="1", tool_calls=[call("a")])]
    second = [*first, message("tool", id="2", tool_call_id="call_1", content="x")]
    rows = chain(checkpoint(first), checkpoint(second))
    rows[1]["metadata"] = b'{"source": "input"}'
    assert "r2 ok x" in told(database(tmp_path / "c.db", rows))


def test_a_result_without_a_call(tmp_path: Path) -> None:
    """A result that names no call is told where it came."""
    path = database(tmp_path / "c.db", chain(checkpoint([message("tool", id="1", content="x")])))
    assert [result.call_id for result in results(path)] == [None]


def test_a_parent_that_is_missing(tmp_path: Path) -> None:
    """Pruned files begin in the middle, and subgraphs may stand in them without the graph around them."""
    state = checkpoint([message("ai", id="1", tool_calls=[call("a")])])
    rows = [
        {"checkpoint_id": "5", "parent_checkpoint_id": "4", "checkpoint": state},
        {
            "checkpoint_id": "6",
            "checkpoint_ns": "a:1|b:2",
            "checkpoint": state,
            "metadata": b'{"parents": {"a:1": "0"}}',
        },
    ]
    assert told(database(tmp_path / "c.db", rows)) == [
        "r1 start",
        "r1 calls search(a)",
        "r1 end completed",
        "r2 start",
        "r2 end completed",
    ]


def test_the_tables_of_early_2024(tmp_path: Path) -> None:
    """JSON in untyped columns, without namespaces; writes without paths."""
    schema = (
        "CREATE TABLE checkpoints (thread_id TEXT, thread_ts TEXT, parent_ts TEXT, checkpoint BLOB, metadata BLOB);"
        "CREATE TABLE writes (thread_id TEXT, thread_ts TEXT, task_id TEXT, idx INTEGER, channel TEXT, value BLOB);"
    )
    said = (
        '{"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"], "kwargs": '
        '{"content": "", "id": "1", "additional_kwargs": {"function_call": {"name": "look", "arguments": "{}"}}}}'
    )
    state = '{"v": 1, "ts": "2024-05-01T00:00:00+00:00", "channel_values": {"messages": [%s]}, "channel_versions": {}}'
    rows = [
        {
            "thread_ts": "2024-05-01T00:00:00+00:00",
            "checkpoint": (state % "").encode(),
            "metadata": b'{"source": "input", "step": -1}',
        },
        {
            "thread_ts": "2024-05-01T00:00:01+00:00",
            "parent_ts": "2024-05-01T00:00:00+00:00",
            "checkpoint": (state % said).encode(),
        },
    ]
    old = [{key: value for key, value in row.items() if key != "type"} for row in rows]
    path = tmp_path / "c.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(schema)
        for row in old:
            connection.execute(
                "INSERT INTO checkpoints VALUES ('t', ?, ?, ?, ?)",
                (row["thread_ts"], row.get("parent_ts"), row["checkpoint"], row.get("metadata")),
            )
        connection.execute(
            "INSERT INTO writes VALUES ('t', '2024-05-01T00:00:01+00:00', 'k', -1, '__error__', '\"ValueError()\"')"
        )
    assert told(path) == ["r1 start", "r1 calls look({})", "r1 end error"]


def test_tables_of_other_ages(tmp_path: Path) -> None:
    """What a table lacks is done without: metadata, writes, or all but what makes a checkpoint."""
    schema = "CREATE TABLE checkpoints (thread_id, checkpoint_id, checkpoint);"
    path = tmp_path / "c.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(schema)
        connection.execute("INSERT INTO checkpoints VALUES ('t', '1', '{\"ts\": \"never\", \"channel_values\": 3}')")
    found = list(events(path))
    assert short(found) == ["r1 start", "r1 end unknown"]
    assert found[0].created is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("kind", "blob", "expected"),
    [
        ("null", b"", None),
        ("empty", b"", None),
        ("bytes", b"\x00", b"\x00"),
        ("bytearray", b"\x01", b"\x01"),
        ("json", '{"a": 1}', {"a": 1}),
        (None, b'{"lc": 1, "type": "constructor", "id": ["a", "b", "C"], "args": [1]}', Named("a.b", "C", [1])),
        (None, b'{"lc": 1, "type": "constructor", "id": []}', {"lc": 1, "type": "constructor", "id": []}),
        ("msgpack", pack(named(6, "numpy", "x", 1)), Opaque("is an object of kind 6")),
        ("msgpack", pack(named(42, "a", "b", 1)), Opaque("is an object of kind 42")),
        ("msgpack", b"\xc7\x02\x05\x91\x01", Opaque("is an object of kind 5")),
        ("msgpack", b"\xc7\x04\x05\x93\x01\x02\x03", Opaque("is an object of kind 5")),
    ],
)
def test_values_of_every_kind(kind: str | None, blob: object, expected: object) -> None:
    """Each kind that LangGraph stores, and objects that are not of its making."""
    assert Unpacker().value(kind, blob) == expected


def test_deep_json_is_refused() -> None:
    """As deep msgpack is."""
    with pytest.raises(Undecodable, match="is nested too deeply"):
        Unpacker().value("json", b"[" * 100_000)


def test_what_comes_again_is_read_once() -> None:
    """The same bytes give the very same object, until too much is remembered."""
    unpacker = Unpacker()
    once, again = (unpacker.value("msgpack", pack(message("ai", id="1"))) for _ in range(2))
    assert once is again
    for place in range(5):
        unpacker.value("msgpack", pack(message("ai", id=str(place), content="x" * 10_000_000)))
    assert unpacker.value("msgpack", pack(message("ai", id="1"))) is not once
