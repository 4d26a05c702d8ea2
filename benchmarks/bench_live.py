"""What a live link costs the agent: listening, one viewer, one that is stuck, pausing, and going on again.

The agents are real graphs under the tap. What a batch costs is the processor time of the whole process, the link's own
thread included, so that what else the machine does counts little; the least of many runs counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from benchmarks.frame import Figure
from loopscope import Policy, tap
from loopscope.engine.events import ScopeKey
from loopscope.link.client import Client, connect
from loopscope.link.endpoint import Link, listen

_TURNS = 50
_RUNS = 12
_ROUNDS = 3
_VIEWER = 500.0
"""Microseconds that a batch may cost more."""
_HELD = 64
_STILL, _AGAIN, _FULL, _BESIDE = 0.01, 50.0, 0.9, 1.2
"""The bars: share of a processor, milliseconds, and multiples of the yardsticks."""
_BEGUN = 5
_NEVER = Policy(warn_threshold=10**9, hard_limit=10**9, tool_freq_warn=10**9, tool_freq_hard_limit=10**9)


def figures() -> list[Figure]:
    """All figures of the link."""
    found = _costs()
    with listen("benchmark", control=True) as link, connect(link.entry, control=True) as viewer:
        found += [*asyncio.run(_held_and_released(link, viewer)), asyncio.run(_one_of_three(viewer))]
        found.append(asyncio.run(_many_held(link, viewer)))
    return found


def _costs() -> list[Figure]:
    graph = _looping()
    spent: dict[str, list[float]] = {"alone": [], "listening": [], "watched": [], "stuck": []}

    def measure(what: str) -> None:
        spent[what] += [_processor_time(graph) for _ in range(_RUNS)]

    _processor_time(graph)
    for _ in range(_ROUNDS):
        measure("alone")
        with listen("benchmark") as link:
            measure("listening")
            for what, reads in (("watched", True), ("stuck", False)):
                with _viewer(link, reads=reads):
                    measure(what)
    least = {what: min(times) / _TURNS * 1e6 for what, times in spent.items()}
    yardstick = f"{least['alone']:.0f} us: the same with the tap and no link, nobody watching"
    words = {"listening": "nobody attached", "watched": "one viewer", "stuck": "one viewer that does not read"}
    return [
        Figure(
            f"processor time of a batch, listening, {said}",
            f"+{least[what] - least['alone']:.0f} us",
            yardstick,
            f"<= +{_VIEWER:.0f} us",
            least[what] - least["alone"] <= _VIEWER,
        )
        for what, said in words.items()
    ]


def _processor_time(graph: Any) -> float:
    start = time.process_time()
    graph.invoke({"messages": [("user", "go")]}, {"recursion_limit": 10_000})
    return time.process_time() - start


@contextlib.contextmanager
def _viewer(link: Link, *, reads: bool) -> Iterator[None]:
    """`loopscope attach --json` beside us, whose output is thrown away, or goes into a pipe that nobody empties."""
    command = [sys.executable, "-m", "loopscope", "attach", str(os.getpid()), "--json"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL if reads else subprocess.PIPE) as viewer:
        _until(lambda: link.viewers > 0)
        try:
            yield
        finally:
            viewer.kill()
    _until(lambda: link.viewers == 0)


async def _held_and_released(link: Link, viewer: Client) -> list[Figure]:
    """One run is held for a while, then let go ten times."""
    ran: list[float] = []
    graph = _looping(ran)
    viewer.request("pause")
    running = asyncio.create_task(graph.ainvoke({"messages": [("user", "go")]}, {"recursion_limit": 10_000}))
    await _auntil(lambda: bool(link.gate.held()))
    start, cpu = time.perf_counter(), time.process_time()
    await asyncio.sleep(3)
    share = (time.process_time() - cpu) / (time.perf_counter() - start)
    waits = []
    for _ in range(10):
        ran.clear()
        start = time.perf_counter()
        await asyncio.to_thread(viewer.request, "next")
        await _auntil(lambda: bool(ran and link.gate.held()))
        waits.append((ran[0] - start) * 1e3)
    viewer.request("continue")
    await running
    middle = sorted(waits)[len(waits) // 2]
    return [
        Figure("a paused run: share of one processor", f"{share:.2%}", "", f"<= {_STILL:.0%}", share <= _STILL),
        Figure(
            "from asking to go on until the tool runs, median of 10",
            f"{middle:.1f} ms",
            f"at most {max(waits):.1f} ms",
            f"<= {_AGAIN:.0f} ms",
            middle <= _AGAIN,
        ),
    ]


async def _one_of_three(viewer: Client) -> Figure:
    """How fast two runs are while a third one is held, beside all three, each with a tool that takes its time."""
    counts = dict.fromkeys("abc", 0)

    async def running(name: str) -> None:
        def count() -> None:
            counts[name] += 1

        graph = _looping(on_tool=count, rest=0.01, turns=10**6)
        config = {"configurable": {"thread_id": "t"}, "recursion_limit": 10**7}
        await graph.ainvoke({"messages": [("user", "go")]}, config, context={"run_id": name})

    tasks = [asyncio.create_task(running(name)) for name in counts]
    await _auntil(lambda: min(counts.values()) > _BEGUN)
    together = await _speed(counts)
    held = ScopeKey("t", "a")
    await asyncio.to_thread(viewer.request, "pause", held)
    apart = await _speed(counts)
    await asyncio.to_thread(viewer.request, "continue", held)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    ratio = min(apart[name] / together[name] for name in "bc")
    yardstick = f"{together['b']:.0f} batches/s: all three run"
    what = "two runs while a third is paused"
    return Figure(what, f"{apart['b']:.0f} batches/s = {ratio:.2f} x", yardstick, f">= {_FULL} x", ratio >= _FULL)


async def _speed(counts: dict[str, int], seconds: float = 1.5) -> dict[str, float]:
    before = dict(counts)
    start = time.perf_counter()
    await asyncio.sleep(seconds)
    took = time.perf_counter() - start
    return {name: (counts[name] - before[name]) / took for name in counts}


async def _many_held(link: Link, viewer: Client) -> Figure:
    """How long one run takes while 64 others are held on the same event loop, beside the time that it takes alone."""

    async def run(name: str, turns: int = _TURNS) -> float:
        start = time.perf_counter()
        config = {"configurable": {"thread_id": name}, "recursion_limit": 10_000}
        await _looping(turns=turns).ainvoke({"messages": [("user", "go")]}, config, context={"run_id": name})
        return time.perf_counter() - start

    alone = min([await run("free") for _ in range(8)])
    await asyncio.to_thread(viewer.request, "pause")
    held = [asyncio.create_task(run(f"held {number}", 1)) for number in range(_HELD)]
    await _auntil(lambda: len(link.gate.held()) == _HELD)
    await asyncio.to_thread(viewer.request, "continue", ScopeKey("free", "free"))
    beside = min([await run("free") for _ in range(8)])
    await asyncio.to_thread(viewer.request, "continue")
    await asyncio.gather(*held)
    ratio = beside / alone
    yardstick = f"{alone * 1e3:.0f} ms: the same run alone"
    what = "one run while 64 others are held on its event loop"
    return Figure(what, f"{beside * 1e3:.0f} ms = {ratio:.2f} x", yardstick, f"<= {_BESIDE} x", ratio <= _BESIDE)


def _looping(
    ran: list[float] | None = None, *, on_tool: Callable[[], object] = int, rest: float = 0.0, turns: int = _TURNS
) -> Any:
    """The usual two nodes, under a tap; it calls a tool so many times.

    Args:
        ran: gets the time of each call.
        on_tool: called with each call.
        rest: seconds that the tool takes.
        turns: how many calls.
    """

    @tool
    async def bash(command: str) -> str:
        """Run a command."""
        if ran is not None:
            ran.append(time.perf_counter())
        on_tool()
        await asyncio.sleep(rest)
        return command

    @tool("bash")
    def blocking(command: str) -> str:
        """Run a command."""
        return command

    asked = iter(range(turns))

    def agent(_: Any) -> dict[str, Any]:
        nonlocal asked
        number = next(asked, None)
        if number is None:
            asked = iter(range(turns))
            return {"messages": [AIMessage("done")]}
        call = {"name": "bash", "args": {"command": f"step {number}"}, "id": str(uuid.uuid4())}
        return {"messages": [AIMessage("", tool_calls=[call])]}

    alone = ran is None and on_tool is int and not rest
    graph: Any = StateGraph(MessagesState)
    graph.add_node("agent", agent)
    graph.add_node("tools", ToolNode([blocking if alone else bash]))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    return graph.compile().with_config(callbacks=[tap(policy=_NEVER)])


def _until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.005)


async def _auntil(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - another thread brings it about
        await asyncio.sleep(0.001)
