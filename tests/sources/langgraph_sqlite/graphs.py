"""Real LangGraph graphs with scripted models, real checkpoint databases, and what is told of them in short."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import ormsgpack
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from loopscope.engine.events import Batch, Event, Header, Result, RunEnd, RunStart
from loopscope.sources.langgraph_sqlite import events

Script = Iterable[AIMessage]
THREAD: Any = {"configurable": {"thread_id": "t"}}
ASK: Any = {"messages": [("user", "hi")]}


def calls(*queries: str, tool_name: str = "search") -> AIMessage:
    """An AI message with a call for each query, under ids of its own as a model gives them."""
    return AIMessage(
        "",
        id=f"lc_run--{uuid4()}",
        tool_calls=[{"name": tool_name, "args": {"query": query}, "id": f"call_{uuid4()}"} for query in queries],
    )


def answer(text: str = "done") -> AIMessage:
    """An AI message that ends the agent's loop."""
    return AIMessage(text, id=f"lc_run--{uuid4()}")


@tool
def search(query: str) -> str:
    """Finds something; fails for `boom`."""
    if query == "boom":
        raise ValueError(query)
    return f"found {query}"


def graph_of(state: Any) -> Any:
    """A graph to add nodes to. Its generic types tell a type checker nothing that a test would miss."""
    return StateGraph(state)


def wants_tools(state: Any) -> str:
    return "tools" if state["messages"][-1].tool_calls else END


def loop(script: Script, *, state: Any = MessagesState, tools: Any = None) -> Any:
    """The usual agent: a model that says what the script holds, and its tools, in a loop."""
    messages = iter(script)
    graph = graph_of(state)
    graph.add_node("agent", lambda _state: {"messages": [next(messages)]})
    graph.add_node("tools", tools or ToolNode([search], handle_tool_errors=False))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", wants_tools, ["tools", END])
    graph.add_edge("tools", "agent")
    return graph


class Model(GenericFakeChatModel):
    """A chat model that says what its script holds."""

    def bind_tools(self, *_: Any, **__: Any) -> Any:
        """The script has chosen already."""
        return self


def saved(path: Path, run: Callable[[SqliteSaver], object]) -> Path:
    """A database that LangGraph's own saver wrote."""
    with SqliteSaver.from_conn_string(str(path)) as saver:
        run(saver)
    return path


def told(path: Path, channel: str | None = None, problems: list[tuple[int, str]] | None = None) -> list[str]:
    """The events of a database, a line each, with short names for runs in order of appearance."""
    return short(events(path, channel, problems))


def short(found: Iterable[Event]) -> list[str]:
    names: dict[str | None, str] = {}
    lines: list[str] = []
    for event in found:
        if isinstance(event, Header):
            continue
        name = names.setdefault(event.run_id, f"r{len(names) + 1}")
        if isinstance(event, RunStart):
            inside = f" in {names[event.parent_run_id]}" if event.parent_run_id is not None else ""
            again = f" resumes {names[event.resume_of]}" if event.resume_of is not None else ""
            lines.append(f"{name} start{inside}{again}")
        elif isinstance(event, Batch):
            said = "+".join(f"{call.name}({_argument(call.args)})" for call in event.calls)
            lines.append(f"{name} calls {said}" if said else f"{name} says {event.text}")
        elif isinstance(event, Result):
            lines.append(f"{name} {event.status} {event.content}")
        elif isinstance(event, RunEnd):
            lines.append(f"{name} end {event.status}")
    return lines


def _argument(args: Any) -> str:
    return ",".join(map(str, args.values())) if isinstance(args, dict) else str(args)


def ends(path: Path) -> list[RunEnd]:
    return [event for event in events(path) if isinstance(event, RunEnd)]


def batches(path: Path, channel: str | None = None) -> list[Batch]:
    return [event for event in events(path, channel) if isinstance(event, Batch)]


def results(path: Path, channel: str | None = None) -> list[Result]:
    return [event for event in events(path, channel) if isinstance(event, Result)]


def pack(value: Any) -> bytes:
    """Bytes as LangGraph packs them."""
    return ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS)


def named(code: int, module: str, name: str, value: Any, method: str = "model_validate_json") -> ormsgpack.Ext:
    """An object as LangGraph packs it."""
    return ormsgpack.Ext(code, pack([module, name, value, method]))


def message(kind: str, **fields: Any) -> ormsgpack.Ext:
    """A LangChain message as LangGraph packs it: `ai`, `tool` or `human`."""
    name = {"ai": "AIMessage", "tool": "ToolMessage", "human": "HumanMessage"}[kind]
    return named(5, f"langchain_core.messages.{kind}", name, {"type": kind, "content": "", **fields})


def call(query: str, name: str = "search", key: str = "call_1") -> dict[str, Any]:
    return {"name": name, "args": {"query": query}, "id": key, "type": "tool_call"}


def checkpoint(messages: Sequence[Any] = (), **values: Any) -> bytes:
    """A checkpoint as LangGraph packs it, with a list of messages."""
    held = {"messages": list(messages), **values}
    return pack(
        {
            "v": 4,
            "ts": "2026-01-02T03:04:05+00:00",
            "id": "1",
            "channel_values": held,
            "channel_versions": dict.fromkeys((*held, "branch:to:agent"), 1),
            "versions_seen": {},
        }
    )


_SCHEMA = """
CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
  parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB,
  PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
  task_id TEXT NOT NULL, task_path TEXT NOT NULL DEFAULT '', idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT,
  value BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));
"""


def database(
    path: Path,
    rows: Iterable[Mapping[str, Any]] = (),
    writes: Iterable[Mapping[str, Any]] = (),
    schema: str = _SCHEMA,
) -> Path:
    """A database written by hand, to hold what no LangGraph would write."""
    connection = sqlite3.connect(path)
    connection.executescript(schema)
    for row in rows:
        _insert(connection, "checkpoints", {"thread_id": "t", "type": "msgpack", "metadata": b"{}", **row})
    for write in writes:
        _insert(connection, "writes", {"thread_id": "t", "task_id": "k", "idx": 0, "type": "msgpack", **write})
    connection.commit()
    connection.close()
    return path


def _insert(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> None:
    marks = ", ".join("?" * len(row))
    connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))  # noqa: S608 - own


def chain(*states: bytes) -> list[dict[str, Any]]:
    """The rows of checkpoints that follow each other."""
    return [
        {"checkpoint_id": str(place), "parent_checkpoint_id": str(place - 1) if place else None, "checkpoint": state}
        for place, state in enumerate(states)
    ]


def folder_state(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Everything that would tell of a change in a folder."""
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mode,
            path.stat().st_mtime_ns,
            sha256(path.read_bytes()).hexdigest(),
        )
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@contextmanager
def unchanged(folder: Path) -> Iterator[None]:
    """Fails if anything in the folder is another thing afterwards."""
    before, when = folder_state(folder), folder.stat().st_mtime_ns
    yield
    assert folder_state(folder) == before
    assert folder.stat().st_mtime_ns == when
