"""A live run's bar, and the batch that stands before the gate."""

from __future__ import annotations

from typing import Any

import pytest

from loopscope.engine.decision import Decision
from loopscope.engine.events import Batch, Call
from loopscope.engine.policy import DEFAULT
from loopscope.engine.snapshot import Snapshot
from loopscope.recording.feed import Connection, Held, Snapshotted, Status
from loopscope.session.live import LiveSession
from loopscope.views import live as view
from loopscope.views.model import line_width, plain

PLACE = {"ts": 1.0, "thread_id": "t", "run_id": "r"}


def running(*messages: Any) -> LiveSession:
    """A run with one batch."""
    live = LiveSession("bot")
    state = Snapshot(1, 0, False, DEFAULT.to_dict(), (), (), ())
    live.take([Snapshotted(seq=0, state=state), Batch(seq=1, calls=(Call("c", "ls", {"path": "/"}),), **PLACE)])  # type: ignore[arg-type]
    live.session.seek(1)
    live.take(messages)
    return live


def waiting(**fields: Any) -> Held:
    """A batch before the gate."""
    values = {"calls": (Call("c", "ls", {"path": "/\x1b[2J"}),), "reason": "pause", **PLACE, **fields}
    return Held(hold=values.pop("hold", 1), **values)


def decided(action: str, count: int, run: str = "r") -> Decision:
    """A verdict."""
    return Decision(2, 0, "t", run, "abc", count, action, "identical_call_set", None, count, count)  # type: ignore[arg-type]


def text(live: LiveSession, width: int = 140, *, control: bool = True) -> list[str]:
    """What is held, as text."""
    lines = view.held(live, width, control=control)
    assert all(line_width(line) <= width for line in lines)
    return [plain(line) for line in lines]


@pytest.mark.parametrize(
    ("messages", "mode"),
    [
        ([], "LIVE"),
        ([Status(paused=True)], "PAUSED"),
        ([Status(paused=True), Connection(state="lost")], "DISCONNECTED"),
        ([Connection(state="ended")], "ENDED"),
    ],
)
def test_the_bar_says_the_mode_first(messages: list[Any], mode: str) -> None:
    """At every width; the rest is that of a recording."""
    live = running(*messages)
    for width in (30, 80, 160):
        bar = plain(view.bar(live, width))
        assert bar.startswith(f" {mode}")
        assert "REPLAY" not in bar
        assert line_width(view.bar(live, width)) <= width
    assert "1/1" in plain(view.bar(live, 160))
    assert "loopscope" not in plain(view.bar(live, 160))


def test_the_bar_says_how_far_the_past_is_read() -> None:
    """Until all that there was is there; a connection that is lost says that instead."""
    live = LiveSession("bot", newest=8)
    live.take([Snapshotted(seq=4, state=Snapshot(1, 0, False, DEFAULT.to_dict(), (), (), ()))])
    live.take([Batch(seq=7, calls=(Call("c", "ls", {}),), **PLACE)])  # type: ignore[arg-type]
    assert plain(view.bar(live, 120)).startswith(" LIVE (reading 75%) bot  ")
    live.take([Connection(state="lost")])
    assert plain(view.bar(live, 120)).startswith(" DISCONNECTED bot  ")
    live.take([Connection(state="back"), Batch(seq=8, calls=(Call("d", "ls", {}),), **PLACE)])  # type: ignore[arg-type]
    assert "reading" not in plain(view.bar(live, 120))


@pytest.mark.parametrize("width", [60, 80, 160])
def test_control_is_told_in_a_word(width: int) -> None:
    """Behind the name of what is looked at, so that no colour is needed to tell it."""
    live = running()
    bar = view.bar(live, width, control=True)
    assert plain(bar).startswith(f" LIVE {live.session.source}  CONTROL")
    assert line_width(bar) <= width
    assert "CONTROL" not in plain(view.bar(live, width))


def test_detached() -> None:
    """The viewer's own doing."""
    live = running()
    live.leave("you have detached")
    assert plain(view.bar(live, 80)).startswith(" DETACHED")


def test_what_is_held_and_the_verdict_it_would_get() -> None:
    """Calls, verdict, keys; where it is held for a breakpoint, which."""
    first, second = text(running(waiting(decision=decided("hard_stop", 5), reason="breakpoint", breakpoint="stop")))
    assert first.startswith(r" HELD before its tools run  t/r  ls(")
    assert "\x1b" not in first
    assert "would be ■ STOP identical_call_set" in first
    assert second.startswith(" breakpoint stop   n let it go")
    assert text(running()) == []


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_the_verdict_has_its_room_at_every_width(width: int) -> None:
    """A long scope gives way, then the words, then the calls."""
    run = "cf06a14b07f35bdab3c8dc42502bb527"
    live = running(waiting(decision=decided("hard_stop", 5, run=run), run_id=run))
    first, _ = view.held(live, width, control=True)
    assert plain(first).endswith("would be ■ STOP identical_call_set abc 5/5")
    assert line_width(first) == width
    assert plain(first).startswith(" HELD before its tools run  t/" if width == 160 else " HELD")
    assert " ls(" in plain(first)


@pytest.mark.parametrize(
    ("decision", "said"),
    [
        (None, "verdict not known"),
        (decided("warn", 3), "▲ WARN"),
        (decided("pass", 2), "= PASS"),
        (decided("pass", 1, run="new"), "· PASS"),
    ],
)
def test_every_verdict(decision: Decision | None, said: str) -> None:
    """Also of a scope that has made no batch yet."""
    run = decision.run_id if decision is not None else "r"
    first, _ = text(running(waiting(decision=decision, run_id=run)))
    assert said in first


def test_several_are_held_and_one_only_looks() -> None:
    """The first is shown and the others are counted; who may not steer is told how to."""
    first, second = text(running(waiting(), waiting(hold=2), waiting(hold=3)), control=False)
    assert "and 2 more batches" in first
    assert "attach with --control" in second
    assert len(text(running(waiting()), width=40)) == 2
