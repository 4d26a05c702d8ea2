"""Makes a big recording: many agents side by side, loops among ordinary work, and a few arguments that are huge.

    python -m benchmarks.big_recording PATH [--events 100000] [--bytes 1000000000] [--huge 50000000]

The same arguments give the same file. Nothing is kept in memory but one event.
"""

from __future__ import annotations

import argparse
import hashlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from loopscope.engine.events import (
    Batch,
    Call,
    Event,
    Graph,
    GraphEdge,
    GraphNode,
    Header,
    Result,
    RunEnd,
    RunStart,
    ScopeKey,
    Usage,
)
from loopscope.engine.policy import DEFAULT
from loopscope.recording.codec import encode

__all__ = ["EVENTS", "GIGABYTE", "HUGE", "events", "write"]

EVENTS = 100_000
GIGABYTE = 1_000_000_000
HUGE = 50_000_000
"""Characters of the one argument that is larger than any screen, pipe or patience."""

_WORDS = (
    "agent",
    "batch",
    "cache",
    "delta",
    "error",
    "fetch",
    "graph",
    "index",
    "join",
    "kernel",
    "limit",
    "merge",
    "node",
    "order",
    "parse",
    "query",
)
_TOOLS = ("bash", "read_file", "web_search", "write_file", "run_sql", "open_page", "list_files", "task")
_GRAPH = Graph(
    nodes=tuple(GraphNode(name, name) for name in ("__start__", "model", "tools", "__end__")),
    edges=(
        GraphEdge("__start__", "model"),
        GraphEdge("model", "tools", conditional=True),
        GraphEdge("model", "__end__", conditional=True),
        GraphEdge("tools", "model"),
    ),
)
_PREVIEW = 2_000
_FILLER = 1 << 22


class _Actor(NamedTuple):
    """One agent loop and its share of the work."""

    key: ScopeKey
    agent: str
    parent: ScopeKey | None
    weight: int


def _actors() -> list[_Actor]:
    """One very long run, a thread of forty runs beside each other, and a dozen threads with sub-agents."""
    found = [_Actor(ScopeKey("long-job", "run-0"), "lead", None, 240)]
    found += [_Actor(ScopeKey("shared", f"run-{n}"), "worker", None, 3) for n in range(40)]
    for n in range(12):
        lead = ScopeKey(f"order-{n:02}", "run-1")
        found.append(_Actor(lead, "lead", None, 6))
        found += [_Actor(ScopeKey(lead.thread_id, f"run-1/sub:{m}"), f"sub-{m}", lead, 2) for m in range(3)]
    return found


class _Maker:
    """Tells the run event by event."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - the same recording each time, no secret
        self.seq = 0
        self.ids = 0
        letters = self.random.choices(_WORDS, k=_FILLER // 6)
        self.filler = " ".join(letters)

    def common(self, key: ScopeKey) -> dict[str, Any]:
        self.seq += 1
        return {"seq": self.seq, "ts": 1_780_000_000 + self.seq / 4, "thread_id": key.thread_id, "run_id": key.run_id}

    def words(self, most: int) -> str:
        return " ".join(self.random.choices(_WORDS, k=self.random.randint(1, most)))

    def text(self, size: int) -> str:
        """So many characters that look like a file, from anywhere in the filler."""
        start = self.random.randrange(len(self.filler))
        found = self.filler[start : start + size]
        missing = size - len(found)
        return found + (self.filler * (missing // len(self.filler) + 1))[:missing] if missing else found

    def start(self, actor: _Actor) -> RunStart:
        thread_id, run_id = actor.parent or (None, None)
        return RunStart(
            agent=actor.agent, parent_thread_id=thread_id, parent_run_id=run_id, graph=_GRAPH, **self.common(actor.key)
        )

    def call(self, size: int) -> Call:
        """A call; of a few dozen distinct ones half of the time, so that runs repeat themselves and some loop."""
        self.ids += 1
        name = self.random.choice(_TOOLS)
        if size:
            args: dict[str, Any] = {"path": f"notes/{self.random.randrange(400)}.md", "content": self.text(size)}
            return Call(f"call_{self.ids:08}", "write_file", args)
        subject = str(self.random.randrange(6)) if self.random.random() < 0.5 else self.words(8)  # noqa: PLR2004
        return Call(f"call_{self.ids:08}", name, {"query": f"{name} {subject}", "limit": self.random.randrange(50)})

    def turn(self, actor: _Actor, size: int) -> Iterator[Event]:
        """A batch of one to three calls, and their results."""
        chance = self.random.random()
        count = 1 if chance < 0.8 else 2 if chance < 0.95 else 3  # noqa: PLR2004 - most batches have one call
        calls = (self.call(size), *(self.call(0) for _ in range(count - 1)))
        usage = Usage(self.random.randrange(500, 20_000), self.random.randrange(20, 900), self.random.random() / 20)
        said = self.words(30) if self.random.random() < 0.3 else None  # noqa: PLR2004
        yield Batch(
            calls=calls, message_id=f"msg_{self.seq:08}", node="model", text=said, usage=usage, model="some-model-4",
            **self.common(actor.key),
        )  # fmt: skip
        for call in calls:
            yield self.result(actor, call)

    def result(self, actor: _Actor, call: Call) -> Result:
        content = self.text(int(self.random.paretovariate(1.2) * 150) % 20_000)
        failed = self.random.random() < 0.05  # noqa: PLR2004
        return Result(
            call_id=call.id, name=call.name, status="error" if failed else "ok", content=content[:_PREVIEW],
            size=len(content), digest=hashlib.sha256(content.encode()).hexdigest()[:16],
            error_type="TimeoutError" if failed else None, duration_s=self.random.random(),
            **self.common(actor.key),
        )  # fmt: skip


def events(count: int = EVENTS, size: int = 0, huge: int = 0, seed: int = 1) -> Iterator[Event]:
    """The events of one recording.

    Args:
        count: about how many, the header included: the last turn is not cut.
        size: about how many bytes in all; what small events leave is filled with arguments of up to 4 MB.
        huge: characters of one argument in the middle; 0 for none.
        seed: another number gives another run.
    """
    maker = _Maker(seed)
    yield Header(format="loopscope/1", producer="benchmark", policy=DEFAULT.to_dict(), enforced=False)
    actors = _actors()
    for actor in actors:
        yield maker.start(actor)
    weights = [actor.weight for actor in actors]
    ends = len(actors)
    heavy_left = max(0, size - huge - count * 700)
    middle = count // 2
    while maker.seq < count - ends:
        actor = maker.random.choices(actors, weights)[0]
        left = max(1, count - ends - maker.seq)
        argument = _argument(maker.random, heavy_left / left)
        heavy_left = max(0, heavy_left - argument)
        if huge and maker.seq >= middle:
            actor, argument, huge = actors[0], huge, 0
        yield from maker.turn(actor, argument)
    for actor in actors:
        yield RunEnd(status="completed", **maker.common(actor.key))


def _argument(rng: random.Random, bytes_an_event: float) -> int:
    """How large an argument is to be: one in fifty is a file; in a heavy recording one in a hundred is a big one."""
    chance = rng.random()
    if bytes_an_event and chance < 0.01:  # noqa: PLR2004
        return min(4_000_000, int(rng.uniform(0.5, 1.5) * bytes_an_event * 230))
    return int(rng.uniform(2_000, 40_000)) if chance < 0.03 else 0  # noqa: PLR2004


def write(path: Path, count: int = EVENTS, size: int = 0, huge: int = 0, seed: int = 1) -> int:
    """Write a recording; arguments as for `events`. Gives back its bytes."""
    with path.open("wb") as file:
        _lines(file, events(count, size, huge, seed))
        return file.tell()


def _lines(file: BinaryIO, told: Iterator[Event]) -> None:
    for event in told:
        file.write(encode(event))
        file.write(b"\n")


def main() -> None:
    """Write the recording that the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--bytes", type=int, default=0, help="fill up to about this size with large arguments")
    parser.add_argument("--huge", type=int, default=0, help="characters of one huge argument")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    size = write(asked.path, asked.events, asked.bytes, asked.huge, asked.seed)
    print(f"{asked.path}: {size:,} bytes")


if __name__ == "__main__":
    main()
