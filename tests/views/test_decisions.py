"""The log of decisions: rows where they are visible, a filter, and what came of each."""

from __future__ import annotations

from typing import Any

import pytest

from loopscope.engine.events import Event, Header, Usage, Warned
from loopscope.engine.policy import Limits, Policy
from loopscope.session.session import Lane, Session
from loopscope.session.timeline import Origin
from loopscope.settings import Choice
from loopscope.targets import open_session
from loopscope.views import decisions
from loopscope.views.model import line_width, link_at, plain
from tests.engine.support import batch
from tests.session.support import session_of
from tests.views.support import Story, looping


def same(seq: int, run: str = "r") -> Any:
    return batch(seq, ("bash", {"command": "ls"}), scope=("t", run))


def rows(session: Session, width: int = 130, text: str = "") -> list[str]:
    log = decisions.Log(session)
    log.filter = text
    return [plain(line).rstrip() for line in log.lines(0, 99, width)]


def test_a_row_for_each_warning_and_stop() -> None:
    """Number, time, scope, rule, subject, count, verdict and what came of it; the cursor's is pointed at."""
    session = open_session("sample:sql-retry-storm", Choice.of())
    session.open_at_first_stop()
    found = rows(session)
    assert len(found) == len(decisions.Log(session)) == 17
    assert found[0].split()[0] == "3"
    assert found[0].split()[2:] == [
        "revenue-questio…", "identical_call_set", "A", "3/3", "▲", "WARN", "told", "before", "#4",
        "(assumed)",
    ]  # fmt: skip
    assert found[1].split()[:2] == ["5", "▶"]
    assert found[1].endswith("■ STOP   only watched: tools ran")
    assert plain(decisions.heading(130)).split() == [
        "#",
        "time",
        "scope",
        "rule",
        "subject",
        "count",
        "verdict",
        "effect",
    ]


def test_what_is_said_of_the_rows() -> None:
    """How many there are or that nothing matches, and why there is no next one."""
    session = session_of([same(n) for n in range(1, 6)])
    session.seek(5)
    log = decisions.Log(session)
    assert decisions.counted(log).startswith("2 decisions; words of any column")
    assert decisions.no_match(session, log, 1) == "no decision after batch 5 in t/r"
    log.filter = "warn"
    assert decisions.counted(log) == "1 match"
    assert decisions.no_match(session, log, -1) == "nothing that matches warn before batch 5 in t/r"
    log.filter = "budget"
    assert decisions.counted(log) == "nothing matches"
    assert plain(decisions.nothing(log)) == "nothing matches budget; esc shows all"
    assert plain(decisions.nothing(decisions.Log(session_of([])))) == "no warning and no stop"


def test_narrow_rows_leave_out_time_and_scope() -> None:
    """And are never wider than asked for."""
    session = session_of([same(n) for n in range(1, 6)])
    session.seek(1)
    log = decisions.Log(session)
    (warned, stopped) = log.lines(0, 9, 80)
    assert line_width(warned) <= 80
    assert "t/r" not in plain(warned)
    assert link_at(stopped, 5) == 5


def test_a_filter_leaves_what_has_all_its_words() -> None:
    """In any column, in any case; matches can be stepped through."""
    policy = Policy(tool_freq_overrides={"grep": Limits(2, 3)})
    stream = [*[same(n) for n in range(1, 6)], *[batch(n, ("grep", {"query": str(n)})) for n in range(6, 9)]]
    session = session_of(stream, Origin(policy))
    session.seek(1)
    log = decisions.Log(session)
    assert list(log.numbers) == [3, 5, 7, 8]
    log.filter = "GREP"
    assert list(log.numbers) == [7, 8]
    log.filter = "grep stop"
    assert list(log.numbers) == [8]
    log.filter = "#3"
    assert list(log.numbers) == [3]
    log.filter = "nothing of the kind"
    assert len(log) == 0
    log.filter = ""
    assert (log.match(1, 1), log.match(5, 1), log.match(8, 1), log.match(5, -1), log.match(3, -1)) == (
        3,
        7,
        None,
        3,
        None,
    )
    assert (log.place(5), log.place(6), log.place(1)) == (1, 1, -1)


def test_the_log_is_of_the_lane() -> None:
    """Another scope's decisions are not in it, until its thread is shown."""
    session = session_of([*[same(n) for n in range(1, 6)], *[same(n, "other") for n in range(6, 10)]])
    log = decisions.Log(session)
    assert list(log.numbers) == [3, 5, 8]
    session.select(Lane("t", "other"))
    assert list(log.numbers) == [8]
    session.select(Lane("t", whole_thread=True))
    assert list(log.numbers) == [3, 5, 8]


def told(*states: Any) -> str:
    """What is said of a warning whose way was this."""
    stream: list[Event] = [Header(format="loopscope/1", enforced=True), *[same(n) for n in range(1, 4)]]
    stream += [Warned(seq=9, ts=None, thread_id="t", run_id="r", state=state, text="x") for state in states[:-1]]
    if states[-1]:
        stream.append(same(4))
    session = session_of(stream)
    return decisions.entry(session, 3).effect


def test_what_became_of_a_warning() -> None:
    """As the recording tells it, else as it is assumed."""
    assert told("queued", "delivered", True) == "told before #4"
    assert told("queued", "delivered", False) == "told"
    assert told("queued", "dropped", False) == "dropped before the model's next turn"
    assert told("queued", False) == "queued"
    assert told(False) == "queued"
    assert told(True) == "told before #4 (assumed)"


def test_an_enforced_stop_removed_its_calls() -> None:
    """Where decisions were applied."""
    session = session_of([Header(format="loopscope/1", enforced=True), *[same(n) for n in range(1, 6)]])
    assert decisions.entry(session, 5).effect == "calls removed"


def test_hostile_names_are_inert() -> None:
    """Tools, threads and runs come from outside."""
    policy = Policy(tool_freq_warn=1, tool_freq_hard_limit=1)
    session = session_of([batch(1, ("\x1b]0;evil\x07", {}), scope=("\x9b2J", "\u202e"))], Origin(policy))
    text = "".join(rows(session))
    assert text.isprintable()
    assert "evil" in text


def test_a_budget_is_told_as_its_gauge_has_it() -> None:
    """Money and time in their units, short."""
    policy = Policy().with_(budget={"cost_usd": {"limit": 0.12}})
    story = Story(policy)
    for n in range(3):
        story.call("a", {"path": f"{n}"}, usage=Usage(1, 1, 0.05))
    session = story.session()
    assert [line.split("cost_usd")[1].split()[0] for line in rows(session)] == ["$0.1000/$0.0…", "$0.1500/$0.1…"]
    assert "$0.1500/$0.1200" in rows(session, 160)[1]


def test_no_effect_where_it_would_be_a_few_letters() -> None:
    """The subject has its room."""
    (warned, stopped) = rows(session_of([same(n) for n in range(1, 6)]), 60)
    assert warned.endswith("▲ WARN")
    assert plain(decisions.heading(60)).rstrip().endswith("verdict")
    assert stopped.split() == ["5", "identical_call_set", "A", "5/5", "■", "STOP"]
    assert line_width(decisions.Log(session_of([same(n) for n in range(1, 6)])).lines(0, 1, 56)[0]) == 56


@pytest.mark.parametrize("typed", ["stop a", "warn t", "A 3", "t/r  stop", "nothing such"])
def test_a_filter_that_is_typed_leaves_what_it_leaves_at_once(typed: str) -> None:
    """Letter by letter, also where one goes back."""
    session = looping(9).session()
    log = decisions.Log(session)
    for end in [*range(len(typed) + 1), 3, 1, 0, len(typed)]:
        log.filter = typed[:end]
        fresh = decisions.Log(session)
        fresh.filter = typed[:end]
        assert list(log.numbers) == list(fresh.numbers)
