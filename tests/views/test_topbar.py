"""The bar at the top: what is looked at, and the verdict in words, at every width."""

from __future__ import annotations

import pytest

from loopscope.engine.policy import Policy
from loopscope.session.session import Lane, Session
from loopscope.session.timeline import Origin
from loopscope.views import topbar
from loopscope.views.model import line_width
from tests.session.support import Memory, session_of
from tests.views.support import Story, looping, texts


def bar(session: Session, width: int) -> str:
    """The bar as text."""
    (line,) = texts(topbar.lines(session, 0, 1, width))
    return line


def test_a_wide_bar_says_everything() -> None:
    """Program, mode, source, scope, batch, time, verdict, and where the limits come from."""
    assert bar(looping().session(), 160).split("   ") == [
        " loopscope",
        "REPLAY memory",
        "scope t/r",
        "batch 5/6",
        "t+00:08.000",
        "■ STOP identical_call_set A 5/5",
        "limits defaults",
    ]


def test_a_narrow_bar_keeps_what_matters_most() -> None:
    """Where the cursor is and the verdict stay; labels go first, then the scope, then the source."""
    session = looping().session()
    assert bar(session, 80) == " REPLAY memory   t/r   5/6   ■ STOP identical_call_set A 5/5"
    session.source = "/runs/a-very-long-name-of-a-recording.jsonl"
    assert bar(session, 80) == " a-very-long-name-of-a-recordi…   t/r   5/6   ■ STOP identical_call_set A 5/5"
    assert bar(session, 60) == " a-very-long-nam…   5/6   ■ STOP identical_call_set A 5/5"
    assert bar(session, 50) == " a-ver…   5/6   ■ STOP identical_call_set A 5/5"
    live = texts(topbar.lines(session, 0, 1, 80, "PAUSED"))[0]
    assert live == " PAUSED a-very-long-name-of-a-…   t/r   5/6   ■ STOP identical_call_set A 5/5"
    assert bar(session, 140).startswith(" REPLAY a-very-long-name-of-a-recording.jsonl   scope t/r")


def test_a_long_scope_gives_way_to_a_short_source() -> None:
    """The longer of the two names is clipped first, and both where both are long."""
    session = Story().in_scope("thread-" * 6, "run-" * 6).call("a", {}).session()
    assert " memory   thread-thread-thread-thread-t…   1/1" in bar(session, 70)
    session.source = "recording-" * 6
    assert " recording-recordi…   thread-thread-thr…   1/1" in bar(session, 70)


@pytest.mark.parametrize("width", [20, 40, 60, 80, 110, 140, 200])
def test_the_bar_is_never_wider_than_the_screen(width: int) -> None:
    """Whatever the names are."""
    session = Story().in_scope("日本" * 40, "r").call("日本語" * 9, {"q": "日"}).session()
    session.source = "/x/" + "録" * 60
    (line,) = topbar.lines(session, 0, 1, width)
    assert line_width(line) <= width


def test_the_verdict_of_every_state() -> None:
    """New and repeated batches pass; a warning says of what."""
    session = looping().session()
    verdicts = []
    for number in (1, 2, 3, 5):
        session.seek(number)
        verdicts.append(topbar.verdict(session).text)
    assert verdicts == [
        "· PASS A seen once",
        "= PASS A seen 2 times",
        "▲ WARN identical_call_set A 3/3",
        "■ STOP identical_call_set A 5/5",
    ]


def test_a_recording_without_batches() -> None:
    """There is nothing to judge, and that is said."""
    assert bar(session_of([]), 80) == " REPLAY memory   all scopes   0/0   no batch with calls yet"


def test_a_recording_without_times_shows_none() -> None:
    """No time is made up."""
    session = looping(timed=False).session()
    assert topbar.elapsed(session, 2) is None
    assert "t+" not in bar(session, 160)


def test_names_of_scopes() -> None:
    """A dash stands for what a scope does not have; a whole thread is called one."""
    assert topbar.scope_name("t", None) == "t/-"
    assert topbar.scope_name(None, "r") == "-/r"
    assert topbar.lane_name(Lane("t", None, whole_thread=True)) == "thread t"
    assert topbar.lane_name(None) == "all scopes"


def origins(**places: str) -> Session:
    """A session whose settings came from these places."""
    return Session("x", Memory([]), Origin(Policy()), places)


def test_where_the_limits_come_from() -> None:
    """The file by its name, flags by their number, the recording, the defaults."""
    assert topbar.config(origins()) == "defaults"
    assert topbar.config(origins(hard_limit="/etc/loopscope.toml:14")) == "loopscope.toml"
    assert topbar.config(origins(hard_limit="--set hard_limit=9", warn_threshold="--set warn_threshold=2")) == (
        "defaults +2 set"
    )
    assert topbar.config(origins(hard_limit="bounded")) == "bounded"
    assert topbar.config(looping(policy=Policy(hard_limit=6)).session()) == "recording"


def test_limits_of_every_layer_count() -> None:
    """A file that sets a budget alone is where the limits come from."""
    policy = Policy().with_(budget={"tool_calls": {"limit": 9}})
    session = Session("x", Memory([]), Origin(policy), {"budget.tool_calls.limit": "/etc/loopscope.toml:2"})
    assert topbar.config(session) == "loopscope.toml"
