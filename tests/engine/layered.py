"""Random runs for the layers: policies with limits that are reached, and streams of events that go round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from loopscope.engine.events import Batch, Call, Control, Event, Result, RunStart, ScopeKey, Usage, Witness
from loopscope.engine.policy import Limits, Policy
from loopscope.engine.sections import COUNTERS, Budget, Cycle, Pair, RepeatInBatch, Stagnation

TOOLS = ("bash", "read")
SCOPES = (ScopeKey("t", "lead"), ScopeKey("t", "lead/a"), ScopeKey("t", "lead/b"), ScopeKey("u", None))
MODES = ("changes", "increases", "decreases", "shrinks", "improves")


def pairs(most: int = 4) -> st.SearchStrategy[Pair]:
    """Two limits, each set or not, in order."""

    def ordered(numbers: tuple[int | None, int]) -> Pair:
        warn, more = numbers
        return Pair(warn, None if more == 0 else (warn or 0) + more)

    limit = st.integers(1, most) | st.none()
    return st.tuples(limit, st.integers(0, 3)).map(ordered)


def limits(most: int = 5) -> st.SearchStrategy[tuple[int, int]]:
    """Two limits, both set."""
    return st.tuples(st.integers(1, most), st.integers(0, 4)).map(lambda pair: (pair[0], sum(pair)))


@st.composite
def policies(draw: st.DrawFn, *, eviction: bool = True, budgets: bool = True) -> Policy:
    """Small limits over all layers, each of which may be off or, where it cannot be, out of reach."""
    warn, hard = draw(limits()) if draw(st.booleans()) else (40, 40)
    often, too_often = draw(limits(9)) if draw(st.booleans()) else (90, 90)
    own = {
        tool: Limits(*draw(limits(9)))
        for tool in draw(st.sets(st.sampled_from(TOOLS), max_size=1 if often < 90 else 0))
    }
    witness = draw(st.sampled_from(["results", "last_error", "score", "todo", "mixed"]))
    mode: Any = draw(st.sampled_from(MODES))
    stagnation = draw(pairs())
    shares = st.sampled_from([0.25, 0.5, 0.8, 1])
    counters = draw(st.lists(st.sampled_from(COUNTERS), max_size=2 if budgets else 0, unique=True))
    return Policy(
        warn_threshold=warn,
        hard_limit=hard,
        window_size=draw(st.integers(1, 12)),
        max_tracked_threads=draw(st.integers(1, 4)) if eviction and draw(st.booleans()) else 100,
        tool_freq_warn=often,
        tool_freq_hard_limit=too_often,
        tool_freq_overrides=own,
        result_aware=draw(st.booleans()),
        cycle=Cycle(draw(st.sampled_from([2, 3, 4, None])), draw(pairs()), draw(pairs())),
        error_streak=draw(pairs()),
        stagnation=Stagnation(witness, mode, stagnation.warn, stagnation.hard_limit),
        repeat_in_batch=RepeatInBatch(draw(st.sampled_from([None, 2, 3]))),
        budget={counter: Budget(draw(st.sampled_from([2, 5, 9, 20])), draw(shares)) for counter in counters},
    )


class Move(NamedTuple):
    """One turn of an agent: a batch, what its calls bring and when."""

    scope: int
    calls: tuple[tuple[str | None, str, str | None], ...]
    """Tool, argument and id of each call."""
    brings: tuple[tuple[str, bool] | None, ...]
    """For each call the digest and whether it failed; None: no result ever comes."""
    late: int
    """Turns after which the results come, the last call's first where it is not 0."""
    wait: float | None
    """Seconds since the event before; None: it has no time."""
    usage: Usage | None
    score: int | None
    """The witness that is told, before the results where it is odd."""


ARGUMENTS = st.sampled_from("ab")
IDS = st.sampled_from(["1", "2", "3", None])
DIGESTS = st.sampled_from("xxyz")
USAGES = st.none() | st.builds(
    Usage, st.none() | st.integers(0, 3), st.none() | st.integers(0, 3), st.none() | st.sampled_from([0.25, 1.5])
)


@st.composite
def moves(draw: st.DrawFn, scopes: tuple[int, ...], *, late: bool = True) -> Move:
    """A turn; most have one call whose result comes at once."""
    size = draw(st.sampled_from([1, 1, 1, 2, 2, 3, 0]))
    usual, failed = draw(st.booleans()), draw(st.booleans())
    calls: list[tuple[str | None, str, str | None]] = []
    brings: list[tuple[str, bool] | None] = []
    for position in range(size):
        tool = draw(st.sampled_from(["bash", "bash", "read", None]))
        calls.append((tool, draw(ARGUMENTS), str(position) if usual else draw(IDS)))
        comes = usual or draw(st.integers(0, 3)) > 0
        brings.append((draw(DIGESTS), failed if usual else draw(st.booleans())) if comes else None)
    return Move(
        scope=draw(st.sampled_from(scopes)),
        calls=tuple(calls),
        brings=tuple(brings),
        late=draw(st.integers(0, 3)) if late and not usual else 0,
        wait=draw(st.sampled_from([1.0, 1.0, 0.0, 20.0, 60.0, None])),
        usage=draw(USAGES),
        score=draw(st.none() | st.integers(0, 3)),
    )


@st.composite
def streams(draw: st.DrawFn, *, late: bool = True) -> list[Event]:
    """A run that goes round among a few turns, with scopes that begin, end up under others, and are reset."""
    scopes = draw(st.sampled_from([(0,), (0, 0, 1), (0, 0, 0, 1, 1, 2, 3)]))
    pool = draw(st.lists(moves(scopes, late=late), min_size=1, max_size=4))
    turns = st.sampled_from(range(len(pool)))
    phases = draw(
        st.lists(st.tuples(st.lists(turns, min_size=1, max_size=3), st.integers(1, 7)), min_size=1, max_size=6)
    )
    order = [turn for block, times in phases for turn in block * times]
    resets = draw(st.sets(st.integers(5, 40), max_size=1)) if draw(st.booleans()) else set()
    stream = list(draw(starts()))
    stream.extend(Writer(pool).write(order[:60], resets))
    return [msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(stream, 1)]


@st.composite
def starts(draw: st.DrawFn) -> Iterator[Event]:
    """Some scopes are told to have a parent, one may be told to have itself above it."""
    found: list[Event] = []
    for child, parent in ((1, 0), (2, draw(st.sampled_from([0, 1]))), (0, 3), (3, 0)):
        if draw(st.booleans()):
            key, above = SCOPES[child], SCOPES[parent] if draw(st.integers(0, 3)) else ScopeKey(None, None)
            found.append(
                RunStart(
                    seq=0,
                    ts=draw(st.sampled_from([0.0, None])),
                    thread_id=key.thread_id,
                    run_id=key.run_id,
                    agent=None,
                    parent_thread_id=above.thread_id,
                    parent_run_id=above.run_id,
                )
            )
    return iter(found)


class Writer:
    """Turns into events, late results among them."""

    def __init__(self, pool: list[Move]) -> None:
        self.pool = pool
        self.clock = 0.0
        self.due: list[tuple[int, list[Event]]] = []

    def write(self, order: list[int], resets: set[int]) -> Iterator[Event]:
        for turn, index in enumerate(order):
            if turn in resets:
                key = SCOPES[0] if turn % 2 else ScopeKey(None, None)
                yield Control(seq=0, ts=None, thread_id=key.thread_id, run_id=key.run_id, action="reset")
            yield from self.turn(self.pool[index], turn)
            ready = [events for when, events in self.due if when <= turn]
            self.due = [(when, events) for when, events in self.due if when > turn]
            for events in ready:
                yield from events

    def turn(self, move: Move, turn: int) -> Iterator[Event]:
        key = SCOPES[move.scope]
        self.clock += move.wait or 0.0
        ts = None if move.wait is None else self.clock
        where: dict[str, Any] = {"seq": 0, "thread_id": key.thread_id, "run_id": key.run_id}
        calls = tuple(Call(call_id, name, {"query": argument}) for name, argument, call_id in move.calls)
        yield Batch(**where, ts=ts, calls=calls, usage=move.usage)
        results: list[Event] = [
            Result(
                **where,
                ts=ts,
                call_id=call.id,
                status="error" if brought[1] else "ok",
                content=f"{brought[0]} at line {turn}",
                digest=brought[0],
            )
            for call, brought in zip(calls, move.brings, strict=True)
            if brought is not None
        ]
        told: list[Event] = []
        if move.score is not None:
            mixed = move.score if move.score < 2 else [str(move.score)]
            values = {"score": move.score, "todo": list(range(move.score)), "mixed": mixed}
            told = [Witness(**where, ts=ts, values=values)]
        if move.score is not None and move.score % 2:
            yield from told
            told = []
        if move.late:
            self.due.append((turn + move.late, [*results[::-1], *told]))
        else:
            yield from results
            yield from told
