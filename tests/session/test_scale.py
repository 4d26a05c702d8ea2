from __future__ import annotations

import random
import threading
import time
import tracemalloc
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.big_recording import write
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import PolicySet
from loopscope.errors import PolicyError
from loopscope.session import timeline
from loopscope.session.loading import HEAVY, Loading
from loopscope.session.session import Lane, Session
from loopscope.session.timeline import SNAPSHOT_EVERY
from loopscope.settings import Choice
from loopscope.targets import open_session, start_session
from tests.session.support import Line, Memory
from tests.views.support import looping

PATIENCE = 120.0


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six thousand events of ninety agents, one of them with an argument of a few megabytes."""
    path = tmp_path_factory.mktemp("big") / "big.jsonl"
    write(path, count=6_000, huge=4 * HEAVY)
    return path


def take_all(loading: Loading, seconds: float = 0.01) -> None:
    """Read ahead in one thread and take in here, in slices, as a screen does."""
    something = threading.Event()
    reader = threading.Thread(target=loading.read, args=(something.set,), daemon=True)
    reader.start()
    end = time.monotonic() + PATIENCE
    more = False
    while not loading.done and loading.error is None:
        assert more or something.wait(end - time.monotonic())
        something.clear()
        more = loading.take(seconds)
    reader.join(PATIENCE)
    assert not reader.is_alive()


def begin(loading: Loading) -> None:
    """The first batches, and no more than a little beyond."""
    while len(loading.session) < 3:
        assert not loading.begin(0.0)


def verdicts(session: Session) -> list[object]:
    return [session.timeline.verdict(number) for number in range(1, len(session) + 1)]


def test_what_is_read_ahead_is_what_is_read_at_once(big: Path) -> None:
    """Same batches, hashes, verdicts, problems and cursor, also where the line of a batch is heavy."""
    whole = open_session(big, Choice.of())
    loading = start_session(big, Choice.of())
    assert max(whole.timeline.batches.length) > HEAVY
    begin(loading)
    assert len(loading.session) < len(whole)
    take_all(loading)
    session = loading.session
    assert loading.share == 1.0
    assert verdicts(session) == verdicts(whole)
    assert (session.cursor, session.lane, session.problems) == (whole.cursor, whole.lane, whole.problems)


def test_a_part_of_it_answers_as_the_whole_does(big: Path) -> None:
    """Wherever the reading stands: states, verdicts, reasons, sightings and results of what is there are final."""
    whole = open_session(big, Choice.of())
    loading = start_session(big, Choice.of())
    rng = random.Random(3)  # noqa: S311 - the same places each time
    looks = 0
    while not loading.begin(0.0):
        session = loading.session
        if rng.random() < 0.2 and len(session):
            number = rng.randint(1, len(session))
            session.seek(number)
            whole.seek(number)
            assert session.row(number) == whole.row(number)
            assert session.state.spent == whole.state.spent
            assert session.state.scope is not None
            assert whole.state.scope is not None
            assert session.state.scope.hashes.dump() == whole.state.scope.hashes.dump()
            assert session.batch(number) == whole.batch(number)
            assert session.explain(search=False).lines == whole.explain(search=False).lines
            same = [n for n in whole.sightings(number) if n <= len(session)]
            assert list(session.sightings(number)) == same
            looks += 1
    assert looks > 5


def test_a_cursor_that_somebody_moved_stays_where_it_is(big: Path) -> None:
    """To the first stop by itself, and not away from where a person looks."""
    loading = start_session(big, Choice.of())
    begin(loading)
    loading.session.seek(3)
    take_all(loading)
    assert loading.session.cursor == 3
    assert loading.session.first_stop() == open_session(big, Choice.of()).cursor


def test_a_lane_that_somebody_chose_stays(big: Path) -> None:
    """The same for what the timeline shows."""
    loading = start_session(big, Choice.of())
    begin(loading)
    key = loading.session.timeline.scope_of(1)
    lane = Lane(key.thread_id, None, whole_thread=True)
    loading.session.select(lane)
    take_all(loading)
    assert loading.session.lane == lane


def test_a_policy_in_it_that_breaks_a_rule_ends_the_reading(tmp_path: Path) -> None:
    """Told as it would be where all is read at once."""
    path = tmp_path / "run.jsonl"
    write(path, count=900)
    bad = b'{"kind":"policy","seq":9999,"ts":null,"thread_id":null,"run_id":null,"policy":{"hard_limit":0}}\n'
    path.write_bytes(path.read_bytes() + bad)
    with pytest.raises(PolicyError) as told:
        open_session(path, Choice.of())
    loading = start_session(path, Choice.of())
    loading.begin(0.0)
    take_all(loading)
    assert not loading.done
    assert str(loading.error) == str(told.value)


def test_nobody_looks_any_longer(big: Path) -> None:
    """The thread that reads ends, however much there is left."""
    loading = start_session(big, Choice.of())
    reader = threading.Thread(target=loading.read, args=(lambda: None,), daemon=True)
    reader.start()
    loading.leave()
    reader.join(PATIENCE)
    assert not reader.is_alive()
    assert not loading.done


def test_what_cannot_be_read_in_another_thread_is_read_at_once(big: Path) -> None:
    """As a database; `begin` reads all of it then."""
    whole = start_session(big, Choice.of())
    loading = Loading(whole.session, whole._lines, whole._reading, ahead=False)
    assert loading.begin(0.0)
    assert loading.done


@pytest.mark.parametrize("number", [1, SNAPSHOT_EVERY - 1, SNAPSHOT_EVERY, SNAPSHOT_EVERY + 1, 2_000])
def test_a_seek_folds_no_more_than_what_lies_behind_a_snapshot(
    big: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the recording is."""
    session = open_session(big, Choice.of())
    folded = 0
    fold = LoopDetector.fold

    def counting(*arguments: object) -> object:
        nonlocal folded
        folded += 1
        return fold(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(LoopDetector, "fold", counting)
    session.seek(number)
    assert session.state.n == number
    assert folded <= SNAPSHOT_EVERY


def test_a_batch_is_kept_in_a_kilobyte(tmp_path: Path) -> None:
    """Its results counted in, and whatever they and its arguments weigh: those stay in the file."""
    path = tmp_path / "run.jsonl"
    write(path, count=8_000, size=40_000_000)
    open_session("sample:sql-retry-storm", Choice.of())  # what is loaded once is not counted
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        session = open_session(path, Choice.of())
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert kept / len(session) < 1_200


def test_the_first_stop_is_that_of_all_verdicts(big: Path) -> None:
    """It is kept as batches come, and is what a look at all of them finds."""
    session = open_session(big, Choice.of())
    stops = [number for number in session.timeline.notable if session.timeline.verdict(number).action == "hard_stop"]
    assert stops[0] == session.first_stop()
    assert looping(3).session().first_stop() is None


class _Lines(NamedTuple):
    """Lines of a policy that breaks a rule, told as they stand."""

    share: float | None = None
    problems: tuple[tuple[int, str], ...] = ()


def test_a_policy_that_nobody_looked_at_before_ends_the_taking_in() -> None:
    """Its lines come from somewhere that reads no policies; what was taken in before stays."""
    events = [*looping(3).events, PolicySet(seq=99, ts=None, thread_id=None, run_id=None, policy={"hard_limit": 0})]
    lines = iter([Line(event, position, 1) for position, event in enumerate(events)])
    session = Session("memory", Memory(events))
    loading = Loading(session, lines, _Lines())
    take_all(loading)
    assert isinstance(loading.error, PolicyError)
    assert not loading.done
    assert len(session) == 3
    assert not loading.take(0.01)


def test_large_states_are_kept_less_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They take longer to write than the batches between them to fold; what they are made for comes out the same."""
    path = tmp_path / "run.jsonl"
    write(path, count=6_000)
    often = open_session(path, Choice.of("bounded")).timeline
    monkeypatch.setattr(timeline, "_A_BATCH", 64)
    seldom = open_session(path, Choice.of("bounded")).timeline
    assert len(often._snapshots) == len(often) // SNAPSHOT_EVERY
    assert 1 < len(seldom._snapshots) < len(often._snapshots) / 2
    for number in (SNAPSHOT_EVERY + 1, len(often) - 1, len(often)):
        assert seldom.detector_at(number).snapshot() == often.detector_at(number).snapshot()
