"""Breakpoints of a live run: called one thing here and another in the process that judges them."""

from __future__ import annotations

import pytest

from loopscope.engine.breakpoints import Breakpoint, parse
from loopscope.recording.feed import BreakpointState, Status
from loopscope.session.live import LiveSession
from tests.session.test_live import Run


def late(before: int = 3, seen: int = 2) -> LiveSession:
    """A viewer that came when some batches were decided, and saw some."""
    run = Run()
    for _ in range(before):
        run.batch()
    live = LiveSession("bot")
    live.take([run.state()])
    known = len(run.events)
    for _ in range(seen):
        run.batch()
    live.take(run.events[known:])
    return live


def in_force(live: LiveSession, *states: BreakpointState) -> None:
    """The process says that these are."""
    live.take([Status(breakpoints=states)])


def test_batches_are_told_by_the_numbers_of_the_process() -> None:
    """And come back as those that are shown here, on or off, and with their hits."""
    live = late()
    assert live.missed == 3
    live.session.breakpoints += [Breakpoint("batch", at_least=2), Breakpoint("stop")]
    first, second = live.breakpoints_to_tell()
    assert (str(first), str(second)) == ("batch 5", "stop")
    off = Breakpoint("batch", at_least=5, enabled=False)
    in_force(live, BreakpointState(off, 4), BreakpointState(second))
    assert live.breakpoints_told() == {Breakpoint("batch", at_least=2, enabled=False): 4, Breakpoint("stop"): 0}


def test_letters_are_told_as_hashes() -> None:
    """Of the scope that is looked at; what is no letter there is told as it is."""
    live = late()
    session = live.session
    session.breakpoints[:] = [parse("hash A >= 3"), parse("hash C"), parse("hash 0123456789ab")]
    assert [str(point) for point in live.breakpoints_to_tell()] == ["hash A >= 3", "hash C", "hash 0123456789ab"]
    session.seek(1)
    told = live.breakpoints_to_tell()
    digest = session.row(1).hash
    assert [str(point) for point in told] == [f"hash {digest} >= 3", "hash C", "hash 0123456789ab"]
    in_force(live, *(BreakpointState(point) for point in told))
    assert list(live.breakpoints_told()) == session.breakpoints
    assert live.breakpoint_name(f"hash {digest} >= 3") == "hash A >= 3"


def test_those_that_another_viewer_set_have_their_names_here() -> None:
    """By the numbers that are shown."""
    live = late()
    in_force(live, BreakpointState(Breakpoint("batch", at_least=9), 1), BreakpointState(parse("tool bash")))
    assert {str(point): hits for point, hits in live.breakpoints_told().items()} == {"batch 6": 1, "tool bash": 0}


@pytest.mark.parametrize(("text", "name"), [("batch 5", "batch 2"), ("stop", "stop"), ("of a later version", None)])
def test_a_hit_is_told_by_the_name_it_has_here(text: str, name: str | None) -> None:
    """What makes no sense here is told as it is."""
    assert late().breakpoint_name(text) == (name or text)


def test_the_limits_of_a_file_are_the_viewers_own() -> None:
    """Their origins are told, and not the process, of which there is none."""
    run = Run()
    live = LiveSession("c.db", origins={"hard_limit": "--set hard_limit=4"}, what="file")
    live.take([run.state()])
    assert live.session.where("hard_limit") == "--set hard_limit=4"
    assert live.session.where("warn_threshold") == "default"
