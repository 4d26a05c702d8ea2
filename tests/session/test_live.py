"""A session that grows from a feed: states, gaps, held batches and what becomes of the connection."""

from __future__ import annotations

import os
from typing import Any

import pytest

from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, Call, Event, PolicySet, Result, RunStart, Warned
from loopscope.engine.policy import DEFAULT, Policy
from loopscope.engine.snapshot import Snapshot
from loopscope.errors import UnreadableInputError
from loopscope.recording.feed import Connection, Held, Place, Released, Snapshotted, Status
from loopscope.session.live import LiveSession
from loopscope.session.session import Session
from loopscope.session.spool import Spool

PLACE = {"ts": 1.0, "thread_id": "t", "run_id": "r"}
AWARE = DEFAULT.with_(result_aware=True, warn_threshold=2, hard_limit=4, error_streak={"warn": 2, "hard_limit": 3})


class Run:
    """An engine and its events."""

    def __init__(self, policy: Policy = DEFAULT) -> None:
        self.detector = LoopDetector(policy, assume_delivery=False)
        self.events: list[Event] = []

    def tell(self, kind: Any, **fields: Any) -> None:
        """One event."""
        event = kind(seq=len(self.events) + 1, **{**PLACE, **fields})
        self.detector.observe(event)
        self.events.append(event)

    def batch(self, *, answered: bool = True, status: str = "ok") -> None:
        """A batch of one call, and its result."""
        self.tell(Batch, calls=(Call(f"c{self.detector.batches}", "ls", {}),), message_id=f"m{self.detector.batches}")
        for text in self.detector.pending(self.events[-1].scope):  # type: ignore[union-attr]
            self.tell(Warned, state="delivered", text=text)
        if answered:
            self.result(self.detector.batches - 1, status)

    def result(self, number: int, status: str = "ok") -> None:
        """The result of an earlier batch's call."""
        self.tell(Result, call_id=f"c{number}", status=status, content="same", digest="d")

    def state(self, **more: Any) -> Snapshotted:
        """The state now."""
        return Snapshotted(seq=len(self.events), state=self.detector.snapshot(), **more)


def states(session: Session, run: Run) -> tuple[Snapshot, Snapshot, Snapshot]:
    """The state of the session, that of a fold of what it keeps, and that of the engine."""
    folded = session.timeline.detector_at(len(session))
    session.timeline.pass_over(folded, len(session))
    return session.timeline.detector.snapshot(), folded.snapshot(), run.detector.snapshot()


@pytest.mark.parametrize("policy", [DEFAULT, AWARE])
def test_from_the_beginning(policy: Policy) -> None:
    """Numbers, decisions and state are the engine's; limits come from the process."""
    run = Run(policy)
    live = LiveSession("bot", enforced=True)
    live.take([run.state(runs=(RunStart(seq=0, agent="planner", **PLACE),))])  # type: ignore[arg-type]
    for _ in range(5):
        run.batch()
    live.take(run.events)
    session = live.session
    assert (len(session), live.missed) == (5, 0)
    assert session.where("warn_threshold") == "the process"
    assert session.scopes[0].agent == "planner"
    assert session.header is not None
    assert session.header.enforced
    first, second, real = states(session, run)
    assert first.scopes == second.scopes
    assert [scope.warnings for scope in first.scopes] == [scope.warnings for scope in real.scopes]
    session.seek(2)
    assert session.explain().batch == 2


@pytest.mark.parametrize("policy", [DEFAULT, AWARE])
def test_a_viewer_that_comes_late(policy: Policy) -> None:
    """Its batches begin with 1 and get the decisions of the engine, whose older calls still get results."""
    run = Run(policy)
    for _ in range(2):
        run.batch(status="error")
    run.batch(answered=False)
    before = len(run.events)
    live = LiveSession("bot")
    live.take([run.state()])
    run.result(2, "error")
    run.batch(status="error")
    run.batch()
    live.take(run.events[before:])
    session = live.session
    engine = LoopDetector(policy, assume_delivery=False)
    real = [decision for event in run.events for decision in engine.observe(event) if decision.at == "batch"]
    assert [session.row(n).decision.action for n in (1, 2)] == [decision.action for decision in real[3:]]
    assert [session.row(n).decision.batch for n in (1, 2)] == [1, 2]
    first, second, there = states(session, run)
    assert first.scopes == second.scopes == there.scopes
    assert first.batches == there.batches == 5
    session.seek(2)
    assert all(record.batch < 3 for record in session.state.warnings)
    assert session.explain(search=True).batch == 2
    assert session.whatif(DEFAULT.with_(warn_threshold=2, hard_limit=3)).baseline.stops >= 0


def test_how_much_of_the_past_is_there() -> None:
    """From the state that comes first to the newest event of then; what comes after is no past."""
    run = Run()
    run.batch()
    opening = run.state()
    run.batch()
    live = LiveSession("agent", newest=4)
    shares = [live.share]
    for message in (opening, *run.events[2:], Status(paused=True)):
        live.take([message])
        shares.append(live.share)
    assert shares == [0.0, 0.0, 0.5, None, None]
    assert LiveSession("agent").share is None


def test_a_gap_replaces_the_state_and_keeps_what_is_shown() -> None:
    """Numbers go on; the engine's own are larger by what was lost."""
    run = Run()
    live = LiveSession("bot")
    live.take([run.state()])
    run.batch()
    live.take(run.events)
    for _ in range(3):
        run.batch()
    live.take([run.state()])
    before = len(run.events)
    run.batch()
    live.take(run.events[before:])
    session = live.session
    assert len(session) == 2
    assert (session.row(2).decision.batch, session.row(2).decision.hash_count) == (2, 5)
    first, second, real = states(session, run)
    assert first.scopes == second.scopes == real.scopes
    assert not session.timeline.whole(session.timeline.scopes[session.timeline.scope_of(2)].batches)


def test_states_and_policies_that_cannot_be_taken() -> None:
    """Of another version, or with limits that break a rule: noted, and the rest goes on."""
    run = Run()
    live = LiveSession("bot")
    foreign = run.state()
    live.take([Snapshotted(seq=0, state=Snapshot(99, 0, False, DEFAULT.to_dict(), (), (), ()))])
    live.take([PolicySet(seq=1, policy={"warn_threshold": 9, "hard_limit": 1}, **PLACE)])  # type: ignore[arg-type]
    assert len(live.session.problems) == 2
    live.take([foreign])
    run.batch()
    live.take(run.events)
    assert len(live.session) == 1


def held(number: int, **fields: Any) -> Held:
    """A batch before the gate."""
    values = {"calls": (Call("c0", "ls", {}),), "reason": "pause", "message_id": "m0", **PLACE, **fields}
    return Held(hold=number, **values)


def test_what_is_held_and_paused() -> None:
    """Told, told again, released; a batch that is accounted is no longer held, whoever tells first."""
    run = Run()
    live = LiveSession("bot")
    live.take([run.state(held=(held(1),), status=Status(paused=True))])
    assert live.paused
    first = live.holds()
    assert first is not None
    assert live.holds(first.scope) is first
    assert live.holds(first.scope._replace(run_id="other")) is None
    live.take([held(2, run_id="r2"), Released(hold=2, ts=1.0, verdict="judge"), held(3, message_id=None)])
    run.batch()
    live.take(run.events)
    assert list(live.held) == [3]
    paused: list[bool] = []
    for status in (Status(), Status(scopes=(Place("t", "r"),))):
        live.take([Released(hold=3, ts=1.0, verdict="pass"), status])
        paused.append(live.paused)
    assert paused == [False, True]


def test_the_connection() -> None:
    """Lost, back, ended; nothing is held by a process that cannot be reached."""
    live = LiveSession("bot")
    live.take([Run().state(held=(held(1),)), Connection(state="lost", reason="it dropped")])
    assert (live.state, live.reason, live.held, live.drops) == ("lost", "it dropped", {}, 1)
    live.take([Connection(state="back")])
    assert live.state == "live"
    live.take([Connection(state="ended", reason="gone")])
    assert (live.state, live.drops) == ("ended", 1)
    live.leave("left")
    assert live.state == "detached"


class Full:
    """A disk without room."""

    def __init__(self, taken: int | None) -> None:
        self._taken = taken

    def seek(self, _place: int) -> None:
        """Anywhere."""

    def write(self, _data: bytes) -> int | None:
        """Nothing, or too little."""
        if self._taken is None:
            raise OSError(28, "No space left on device")
        return self._taken


@pytest.mark.parametrize("taken", [None, 3])
def test_a_full_disk(taken: int | None) -> None:
    """What cannot be kept cannot be read again, and that is all."""
    spool = Spool()
    spool._file = Full(taken)  # type: ignore[assignment]
    place = spool.keep(Batch(seq=1, calls=(Call("c", "ls", {}),), **PLACE))  # type: ignore[arg-type]
    with pytest.raises(UnreadableInputError):
        spool.read_at(place.offset, place.length)


def test_lines_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no pread, too; a closed file is an error of ours."""
    spool = Spool()
    events = [Batch(seq=n, calls=(Call("c", "ls", {}),), **PLACE) for n in range(3)]  # type: ignore[arg-type]
    places = [spool.keep(event) for event in events]
    assert [spool.read_at(place.offset, place.length) for place in places] == events
    monkeypatch.delattr(os, "pread")
    assert spool.read_at(places[1].offset, places[1].length) == events[1]
    spool._file.close()
    with pytest.raises(UnreadableInputError):
        spool.read_at(places[1].offset, places[1].length)
