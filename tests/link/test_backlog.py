"""What viewers get that come late, come back, or read slowly: always a state and everything after it."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from loopscope.link.backlog import Backlog


def line(seq: int, size: int = 20) -> bytes:
    return json.dumps({"seq": seq, "pad": "x" * size}).encode() + b"\n"


def state(seq: int) -> bytes:
    """The whole state after an event: here, the sum of all numbers so far."""
    return json.dumps({"state": seq * (seq + 1) // 2, "after": seq}).encode() + b"\n"


def filled(events: int, limit: int, *, size: int = 20, broken: frozenset[int] = frozenset()) -> Backlog:
    backlog = Backlog(limit)
    backlog.open(0, state(0))
    for seq in range(1, events + 1):
        if seq in broken:
            backlog.open(seq, state(seq), broken=True)
            continue
        backlog.add(line(seq, size), seq)
        if seq % 7 == 0:
            backlog.add(json.dumps({"note": seq}).encode() + b"\n")
        if backlog.is_full or seq % 50 == 0:
            backlog.open(seq, state(seq))
    return backlog


class Reader:
    """Sums what it reads, as an engine folds events."""

    def __init__(self, total: int = 0, seq: int = 0) -> None:
        self.total, self.seq, self.position, self.gaps = total, seq, 0, 0

    def take(self, lines: list[bytes]) -> None:
        for raw in lines:
            message = json.loads(raw)
            if message.get("kind") == "gap":
                assert message["lost"] > 0
                self.gaps += 1
            elif "state" in message:
                self.total, self.seq = message["state"], message["after"]
            elif "note" not in message:
                assert message["seq"] > self.seq
                self.total, self.seq = self.total + message["seq"], message["seq"]

    def start(self, backlog: Backlog, since: int | None = None) -> Reader:
        self.position, lines = backlog.start(since)
        self.take(lines)
        return self

    def read(self, backlog: Backlog, room: int = 1 << 30) -> None:
        self.position, lines = backlog.read(self.position, room)
        self.take(lines)

    def read_all(self, backlog: Backlog, room: int = 100) -> Reader:
        while self.position < backlog.end:
            self.read(backlog, room)
        return self


def test_memory_is_bounded() -> None:
    """Old segments go, the newest stays, however long the process runs."""
    backlog = filled(5_000, 10_000)
    assert backlog.size <= 10_000 + 2_000
    assert Reader().start(backlog).read_all(backlog).total == 5_000 * 5_001 // 2


def test_a_late_viewer_gets_the_oldest_state_and_everything_after_it() -> None:
    """Without a gap: it asked for nothing that is gone."""
    backlog = filled(1_000, 10_000)
    reader = Reader().start(backlog)
    assert 0 < reader.seq < 1_000
    reader.read_all(backlog)
    assert (reader.total, reader.gaps) == (500_500, 0)


def test_a_returning_viewer_gets_only_what_is_new() -> None:
    """No state, no gap, and each event once."""
    backlog = filled(1_000, 10_000)
    reader = Reader(total=990 * 991 // 2, seq=990).start(backlog, 990)
    assert reader.seq == 990
    assert reader.read_all(backlog).total == 500_500
    assert reader.gaps == 0


def test_one_that_was_away_too_long_is_told_so() -> None:
    """A gap, then a whole state."""
    backlog = filled(1_000, 10_000)
    reader = Reader(total=1, seq=1).start(backlog, 1)
    assert reader.gaps == 1
    assert reader.read_all(backlog).total == 500_500


def test_one_that_knows_more_than_there_is_gets_nothing() -> None:
    """A number from the future is no reason to fail."""
    backlog = filled(10, 10_000)
    assert backlog.start(10**15).lines == []
    assert backlog.start(-(10**15)).lines != []


@given(st.integers(1, 400), st.integers(1, 400), st.frozensets(st.integers(2, 400), max_size=5), st.integers(20, 500))
def test_from_anywhere_the_state_is_the_same(events: int, since: int, broken: frozenset[int], room: int) -> None:
    """Late, returning at any event, over breaks, in pieces of any size: the end is one and the same."""
    backlog = filled(events, 3_000, broken=broken)
    since = min(since, events)
    late = Reader().start(backlog).read_all(backlog, room)
    back = Reader(total=since * (since + 1) // 2, seq=since).start(backlog, since).read_all(backlog, room)
    assert late.total == back.total == events * (events + 1) // 2


@given(st.lists(st.integers(0, 60), min_size=1, max_size=20), st.integers(20, 300))
def test_a_slow_viewer_ends_in_the_same_state(pieces: list[int], room: int) -> None:
    """One that falls behind what is kept goes on at the next whole state, told of the gap."""
    backlog = Backlog(2_000)
    backlog.open(0, state(0))
    reader = Reader().start(backlog)
    seq = 0
    for piece in pieces:
        for _ in range(piece):
            seq += 1
            backlog.add(line(seq), seq)
            if backlog.is_full:
                backlog.open(seq, state(seq))
        reader.read(backlog, room)
    assert reader.read_all(backlog, room).total == seq * (seq + 1) // 2


def test_a_segment_ends_by_count_too() -> None:
    """So that nobody has to fold more than some thousand events from a state on."""
    backlog = Backlog(1 << 30)
    backlog.open(0, state(0))
    added = 0
    while not backlog.is_full:
        added += 1
        backlog.add(line(added), added)
    assert added == 5_000
