"""Where breakpoints hold: the same as asking each batch, forwards and backwards, in any order of questions."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscope.engine.breakpoints import Breakpoint, Moment, hits, parse
from loopscope.engine.events import Event, Result
from loopscope.engine.policy import BOUNDED, Policy
from loopscope.session.letters import letter_name
from loopscope.session.session import Lane, Session
from loopscope.session.timeline import Origin
from tests.engine.support import batch
from tests.session.support import session_of
from tests.views.support import Story

TEXTS = [
    "stop", "warn", "layer identical_call_set", "layer tool_frequency", "scope t", "scope t/r1", "tool find",
    "tool cat", "hash A", "hash B >= 2", "batch 3", "batch 2.5", "pending", "argument x", "usage batches >= 4",
    "usage tool_calls >= 3",
]  # fmt: skip
CALLS = st.lists(st.tuples(st.sampled_from(["find", "cat"]), st.sampled_from("xyz")), min_size=1, max_size=2)
RUNS = st.lists(st.tuples(st.sampled_from(["r1", "r2"]), CALLS), max_size=25)
POINTS = st.lists(st.tuples(st.sampled_from(TEXTS), st.booleans()), min_size=1, max_size=3)


def run_of(steps: list[tuple[str, list[tuple[str, str]]]]) -> Session:
    events: list[Event] = []
    for n, (run, calls) in enumerate(steps, 1):
        events.append(batch(n, *[(name, {"query": query}) for name, query in calls], scope=("t", run)))
    return session_of(events, Origin(Policy(warn_threshold=2, hard_limit=3, tool_freq_warn=4, tool_freq_hard_limit=6)))


def asked(session: Session, point: Breakpoint, number: int) -> bool:
    """What the engine's predicate says of one batch."""
    timeline = session.timeline
    row = session.row(number)
    whole = session.batch(number)
    scope = timeline.detector_at(number).scope(timeline.scope_of(number))
    return hits(point, Moment(row.decision, whole.calls if whole else (), row.names, scope, letter_name(row.letter)))


@given(RUNS, POINTS, st.integers(0, 26), st.sampled_from([1, -1]), st.sampled_from([None, Lane("t", "r1")]))
@settings(max_examples=120)
def test_a_search_finds_what_asking_every_batch_finds(
    steps: Any, written: Any, cursor: int, direction: int, lane: Lane | None
) -> None:
    """The nearest batch of the lane on that side; of two breakpoints at it the first one."""
    session = run_of(steps)
    session.lane, session.cursor = lane, min(cursor, len(session))
    for text, enabled in written:
        point = parse(text)
        session.breakpoints.append(Breakpoint(point.kind, point.subject, point.at_least, enabled=enabled))
    beyond = [n for n in session.batches if (n > session.cursor if direction > 0 else n < session.cursor)]
    expected = next(
        (
            (number, point)
            for number in (beyond if direction > 0 else reversed(beyond))
            for point in session.breakpoints
            if asked(session, point, number)
        ),
        None,
    )
    halt = session.next_halt(direction)
    assert (None if halt is None else (halt.number, halt.point)) == expected


@given(RUNS, st.sampled_from(TEXTS), st.integers(0, 25))
@settings(max_examples=80)
def test_all_hits_are_known_however_they_were_looked_for(steps: Any, text: str, part: int) -> None:
    """In one go or in two, as the run was or as it grew."""
    session, point = run_of(steps), parse(text)
    assert session.halts.look([point], min(part, len(session)))
    assert session.halts.look([point], len(session))
    known = session.halts.known(point)
    assert known is not None
    assert list(known) == [n for n in range(1, len(session) + 1) if asked(session, point, n)]


def test_what_is_not_known_is_not_waited_for() -> None:
    """Nobody has looked; then the run has grown; on and off does not matter."""
    session, point = run_of([("r1", [("find", "x")])] * 5), parse("hash A >= 2")
    assert session.halts.known(point) is None
    session.halts.look([point], 5)
    assert list(session.halts.known(parse("once hash A >= 2")) or ()) == [2, 3, 4, 5]
    more = session_of([batch(6, ("find", {"query": "x"}), scope=("t", "r1"))])
    session.timeline.append(_Again(more.timeline, session))
    assert session.halts.known(point) is None
    session.halts.look([point], 6)
    assert list(session.halts.known(point) or ())[-1] == 6


class _Again:
    """A further batch of the same hash."""

    def __init__(self, _: object, session: Session) -> None:
        self.event = batch(len(session) + 1, ("find", {"query": "x"}), scope=("t", "r1"))
        self.offset, self.length = 0, 1


def test_a_verdict_that_a_result_brings_is_found_when_it_has_come() -> None:
    """Five failures in a row stop the fifth batch, at its result: the batch was looked at before."""
    story = Story(BOUNDED)
    for n in range(5):
        story.call("find", {"query": str(n)}, "no", status="error")
    last = story.events.pop()
    assert isinstance(last, Result)
    session, point = story.session(), parse("layer error_streak")
    session.halts.look([point], 5)
    assert list(session.halts.known(point) or ()) == [3]
    session._store.events.append(last)  # type: ignore[attr-defined]
    session.timeline.append(_Line(last, len(story.events)))
    session.halts.look([point], 5)
    assert list(session.halts.known(point) or ()) == [3, 5]


class _Line:
    """A line that comes later."""

    def __init__(self, event: Event, offset: int) -> None:
        self.event, self.offset, self.length = event, offset, 1


def test_a_search_that_nobody_wants_ends() -> None:
    """Without a halt; what was looked at stays known."""
    session = run_of([("r1", [("find", str(n))]) for n in range(600)])
    session.breakpoints.append(parse("batch 590"))
    asks: list[bool] = []

    def wanted() -> bool:
        asks.append(True)
        return len(asks) < 2

    session.cursor = 1
    assert session.next_halt(1, wanted) is None
    assert len(asks) == 2
    halt = session.next_halt(1)
    assert halt is not None
    assert halt.number == 590


def test_a_one_shot_is_off_after_it_was_hit() -> None:
    """In the list that the caller has, too."""
    session = run_of([("r1", [("find", "x")])] * 5)
    points = session.breakpoints
    points += [parse("once hash A >= 2"), parse("batch 4")]
    session.cursor = 1
    assert str(session.run_to_breakpoint()) == "hash A >= 2"
    assert (session.cursor, [point.enabled for point in points]) == (2, [False, True])
    assert str(session.run_to_breakpoint()) == "batch 4"
    assert session.run_to_breakpoint() is None
    assert session.cursor == 4


@pytest.mark.parametrize("text", ["argument x", "pending", "usage batches >= 250", "tool find"])
def test_a_long_run_is_walked_over_once(text: str) -> None:
    """However often one searches back and forth, no line is read and no batch is folded twice."""
    session = run_of([("r1", [("find", str(n % 7))]) for n in range(300)])
    session.breakpoints.append(parse(text))
    session.cursor = 300
    session.run_to_breakpoint(-1)
    store = session._store
    reads = store.reads  # type: ignore[attr-defined]
    known = session.halts._found[parse(text)]
    detector = known.detector
    for _ in range(5):
        session.run_to_breakpoint(-1)
        session.run_to_breakpoint(1)
    assert store.reads - reads <= 1  # type: ignore[attr-defined]
    assert known.detector is detector
    assert bisect_right(known.numbers, 300) == len(known.numbers)
