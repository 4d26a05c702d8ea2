from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import MessagesState
from langgraph.types import Command, interrupt

from loopscope.engine.events import Batch, Event, Result, RunEnd
from loopscope.engine.policy import DEFAULT
from loopscope.errors import UnreadableInputError, UsageError
from loopscope.recording.feed import Connection, Snapshotted
from loopscope.sources import follow
from loopscope.sources.langgraph_sqlite import events, growing
from loopscope.sources.langgraph_sqlite.growing import GrowingFile
from loopscope.sources.langgraph_sqlite.readonly import in_use
from tests.sources.langgraph_sqlite.graphs import ASK, THREAD, answer, calls, graph_of, loop, saved, told
from tests.sources.langgraph_sqlite.writing import Writer
from tests.sources.reading import Readings


def looped(saver: Any) -> None:
    """Two turns of one conversation."""
    graph = loop([calls("a"), calls("a", "b"), answer(), calls("c"), answer()]).compile(saver)
    graph.invoke(ASK, THREAD)
    graph.invoke(ASK, THREAD)


def forked(saver: Any) -> None:
    """A replay from an earlier checkpoint, and another way from one that was edited."""
    graph = loop([calls("a"), calls("a"), answer(), calls("a"), answer("other"), answer("third")]).compile(saver)
    graph.invoke(ASK, THREAD)
    first = [snapshot for snapshot in graph.get_state_history(THREAD) if snapshot.next == ("agent",)][::-1][0]
    graph.invoke(None, first.config)
    edited = graph.update_state(first.config, {"messages": [HumanMessage("rather this", id="h-2")]})
    graph.invoke(None, edited)


def failed(saver: Any) -> None:
    """A tool that raises, and another try."""
    tries = iter([False, True])

    def tools(_state: Any) -> Any:
        if not next(tries):
            raise OSError("down")
        return {"messages": []}

    graph = loop([calls("a"), answer()], tools=tools).compile(saver)
    with pytest.raises(OSError, match="down"):
        graph.invoke(ASK, THREAD)
    graph.invoke(None, THREAD)


def asked(saver: Any) -> None:
    """A person is asked, and answers."""

    def agent(_state: Any) -> Any:
        return {"messages": [answer(interrupt("sure?"))]}

    graph = graph_of(MessagesState)
    graph.add_node("agent", agent)
    graph.set_entry_point("agent")
    compiled = graph.compile(saver)
    compiled.invoke(ASK, THREAD)
    compiled.invoke(Command(resume="yes"), THREAD)


def nested(saver: Any) -> None:
    """A subgraph in a graph, twice."""
    inner = loop([calls("a"), answer("inner"), calls("a"), answer("again")]).compile()
    graph = graph_of(MessagesState)
    graph.add_node("before", lambda _state: {"messages": [answer("outer")]})
    graph.add_node("research", inner)
    graph.add_edge("before", "research")
    graph.set_entry_point("before")
    compiled = graph.compile(saver)
    compiled.invoke(ASK, THREAD)
    compiled.invoke(ASK, THREAD)


def two_threads(saver: Any) -> None:
    """Two conversations, the first of which goes on in the end."""
    graph = loop([calls("a"), answer(), calls("b"), answer(), calls("a"), answer()]).compile(saver)
    for name in ("t", "other", "t"):
        graph.invoke(ASK, {"configurable": {"thread_id": name}})


def unnamed(saver: Any) -> None:
    """Messages without ids, in a list of the program's own."""

    class State(TypedDict):
        log: list[Any]

    graph = graph_of(State)
    said = iter([1, 1, 2])

    def agent(state: Any) -> Any:
        call = {"id": "", "type": "function", "function": {"name": "f", "arguments": f'{{"n": {next(said)}}}'}}
        held = [*state.get("log", []), {"role": "assistant", "content": "", "tool_calls": [call]}]
        return {"log": held}

    graph.add_node("agent", agent)
    graph.set_entry_point("agent")
    graph.add_conditional_edges("agent", lambda state: "agent" if len(state["log"]) < 3 else "__end__")
    graph.compile(saver).invoke({"log": []}, THREAD)


def grows(source: Path, target: Path) -> Iterator[None]:
    """Write a database anew, row by row in the order in which it was written; after each row it may be read."""
    with sqlite3.connect(source) as old, sqlite3.connect(target) as new:
        new.execute("PRAGMA journal_mode=WAL")
        for (sql,) in old.execute("SELECT sql FROM sqlite_master WHERE type = 'table'"):
            new.execute(sql)
        new.commit()
        yield
        for row in old.execute("SELECT * FROM checkpoints ORDER BY rowid").fetchall():
            _copy(new, "checkpoints", row)
            yield
            where = "thread_id IS ? AND checkpoint_ns IS ? AND checkpoint_id IS ?"
            for write in old.execute(f"SELECT * FROM writes WHERE {where} ORDER BY rowid", row[:3]).fetchall():  # noqa: S608
                _copy(new, "writes", write)
            yield
    old.close()
    new.close()


def _copy(new: sqlite3.Connection, table: str, row: tuple[Any, ...]) -> None:
    new.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608 - own names
    new.commit()


def by_run(found: list[Event]) -> dict[tuple[str | None, str | None], list[str]]:
    """What happened in each run, but for how it ended."""
    runs: dict[tuple[str | None, str | None], list[str]] = {}
    for event in found:
        told = [getattr(event, field, None) for field in ("calls", "content", "text", "resume_of", "parent_run_id")]
        lines = runs.setdefault((event.thread_id, event.run_id), [])  # type: ignore[union-attr]
        if not isinstance(event, RunEnd):
            lines.append(f"{type(event).__name__} {told}")
    return runs


def ends_of(found: list[Event]) -> Counter[tuple[str | None, str]]:
    """How runs ended, but for those of which nothing tells that they have."""
    ends = [event for event in found if isinstance(event, RunEnd) and event.status != "unknown"]
    return Counter((end.run_id, end.status) for end in ends)


@pytest.mark.parametrize("program", [looped, forked, failed, asked, nested, two_threads, unnamed])
@pytest.mark.parametrize("every", [1, 3])
def test_read_while_it_grows_it_tells_what_it_tells_in_the_end(
    program: Callable[[Any], None], every: int, tmp_path: Path
) -> None:
    """Whatever is added between two looks: the same batches and results in the same runs, each once."""
    source = saved(tmp_path / "source.db", program)
    target = tmp_path / "target.db"
    found: list[Event] = []
    rows = grows(source, target)
    next(rows)
    feed = GrowingFile(target)
    for number, _ in enumerate(rows):
        if number % every == 0:
            found += feed._added()
    feed._mark = None
    found += feed._added()
    whole = list(events(source))[1:]
    assert by_run(found) == by_run(whole)
    assert ends_of(found) == ends_of(whole)
    seqs = [event.seq for event in found]  # type: ignore[union-attr]
    assert seqs == sorted(set(seqs))


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    """Writes `live.db`."""
    found = Writer(tmp_path / "live.db")
    yield found
    found.process.kill()
    found.process.communicate()


def test_a_program_is_followed_while_it_writes(writer: Writer, reading: Readings, tmp_path: Path) -> None:
    """Each batch is there before the next one is asked for; the program's files are what they are without a viewer."""
    path = tmp_path / "live.db"
    messages = reading(follow(path, policy=DEFAULT.with_(hard_limit=4)))
    assert messages.next(Snapshotted).state.policy["hard_limit"] == 4
    for query in ("a", "b", "a"):
        writer.say(query)
        assert [call.args for call in messages.next(Batch).calls] == [{"query": query}]
        assert messages.next(Result).content == f"found {query}"
    assert writer.end() == 0
    assert messages.next(RunEnd).status == "completed"
    assert [found.name for found in tmp_path.iterdir()] == ["live.db"]
    assert [line for line in told(path) if "calls" in line] == [f"r1 calls search({query})" for query in "aba"]
    messages.close()
    assert messages.rest() == []
    assert [found.name for found in tmp_path.iterdir()] == ["live.db"]


def test_a_program_that_is_killed_leaves_what_it_had_written(writer: Writer, reading: Readings, tmp_path: Path) -> None:
    """Nothing tells that it will not go on, so the run is not said to be over; the next program's are the next."""
    messages = reading(follow(tmp_path / "live.db"))
    writer.say("a")
    messages.next(Result)
    writer.process.kill()
    writer.process.wait()
    other = Writer(tmp_path / "live.db")
    other.say("b")
    assert messages.next(Batch).calls[0].args == {"query": "b"}
    assert other.end() == 0
    other.process.communicate()


def test_what_was_there_before_comes_first(reading: Readings, tmp_path: Path) -> None:
    """Then it waits, and `close` ends the waiting."""
    path = saved(tmp_path / "c.db", looped)
    messages = reading(follow(path))
    whole = list(events(path))[1:]
    found = [messages.one() for _ in (None, *whole)]
    assert by_run(found[1:]) == by_run(whole)  # type: ignore[arg-type]


def test_a_file_that_is_gone_ends_it(reading: Readings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may come back for a while; another file in its place is another one."""
    path, other = saved(tmp_path / "c.db", looped), saved(tmp_path / "other.db", failed)
    messages = reading(follow(path))
    messages.next(RunEnd)
    path.rename(tmp_path / "away.db")
    lost = messages.next(Connection)
    assert (lost.state, lost.reason) == ("lost", "No such file or directory")
    (tmp_path / "away.db").rename(path)
    assert messages.next(Connection).state == "back"
    monkeypatch.setattr(growing, "_PATIENCE", 0.05)
    other.replace(path)
    assert messages.next(Connection).state == "lost"
    ended = messages.next(Connection)
    assert (ended.state, "another file is in its place" in ended.reason) == ("ended", True)
    assert messages.rest() == []


def test_it_cannot_be_steered_and_says_why(tmp_path: Path) -> None:
    """Every verb has its reason; asking all the same is refused with it."""
    feed = follow(saved(tmp_path / "c.db", looped))
    assert set(feed.capabilities.values()) == {growing._WHY_NOT}
    with pytest.raises(UsageError, match=r"cannot pause: a checkpoint file can only be read.*listen"):
        feed.request("pause")
    assert feed.name == str(tmp_path / "c.db")


def test_only_what_grows_can_be_followed(tmp_path: Path) -> None:
    """A recording is read whole; what is no database, or has no such channel, is refused as when it is read."""
    (tmp_path / "run.jsonl").write_text('{"kind":"header","format":"loopscope/1"}\n')
    with pytest.raises(UsageError, match="only LangGraph checkpoint files can be followed"):
        follow(tmp_path / "run.jsonl")
    with pytest.raises(UnreadableInputError, match="No such file"):
        follow(tmp_path / "nothing.db")
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE a (b)").connection.close()
    with pytest.raises(UnreadableInputError, match="without a table of LangGraph checkpoints"):
        follow(tmp_path / "other.db")
    with pytest.raises(UsageError, match="no channel mesages; did you mean messages"):
        follow(saved(tmp_path / "c.db", looped), "mesages")


@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_looking_leaves_no_trace(tmp_path: Path, journal: str) -> None:
    """Whatever kind of journal it has, in use or not: no file appears, and none changes."""
    path = saved(tmp_path / "c.db", looped)
    with sqlite3.connect(path) as program:
        program.execute(f"PRAGMA journal_mode={journal}")
        program.execute("CREATE TABLE more (a)")
        program.commit()
        before = {found.name: found.read_bytes() for found in tmp_path.iterdir() if found.suffix != ".db-shm"}
        names = {found.name for found in tmp_path.iterdir()}
        with in_use(path) as connection:
            assert connection.execute("SELECT count(*) FROM checkpoints").fetchone()[0] > 0
            with pytest.raises(sqlite3.DatabaseError):
                connection.execute("DELETE FROM checkpoints")
        assert {found.name: found.read_bytes() for found in tmp_path.iterdir() if found.suffix != ".db-shm"} == before
        assert {found.name for found in tmp_path.iterdir()} == names
    program.close()
    names = {found.name for found in tmp_path.iterdir()}
    with in_use(path) as connection:
        assert connection.execute("SELECT count(*) FROM checkpoints").fetchone()[0] > 0
    assert {found.name for found in tmp_path.iterdir()} == names
