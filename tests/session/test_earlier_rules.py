"""Sessions under rules that DeerFlow had at other times: runs of a thread that share a history, unbounded counts."""

from __future__ import annotations

from typing import Any

import pytest

from loopscope.engine.events import Control, Event, Result, ScopeKey, Witness
from loopscope.engine.policy import BOUNDED, PRESETS, Policy
from loopscope.session.session import Session
from loopscope.session.timeline import Origin
from loopscope.views.text import render
from tests.engine.support import batch
from tests.session.support import session_of

AUGUST, APRIL = PRESETS["deerflow-2026-08-22"], PRESETS["deerflow-2026-04"]


def once_per_run(runs: int, policy: Policy, *, other: bool = False) -> Session:
    """`git status` once in each run, maybe with something else before it."""
    stream: list[Event] = []
    for n in range(1, runs + 1):
        if other:
            stream.append(batch(10 * n, ("bash", {"command": f"step {n}"}), scope=("t", f"r{n}")))
        stream.append(batch(10 * n + 1, ("bash", {"command": "git status"}), scope=("t", f"r{n}")))
    session = session_of(stream, Origin(policy))
    session.open_at_first_stop()
    return session


def test_an_explanation_counts_the_runs_of_the_thread() -> None:
    """Its batches, its warning and its nearest settings are those of the whole thread."""
    session = once_per_run(6, AUGUST)
    assert session.cursor == 5
    lines = session.explain().lines
    assert lines[0] == "rule identical_call_set counted A 5 times in the last 20 batches: #1 #2 #3 #4 #5"
    assert "hard_limit >= 6 (then stopped first at #6, from 7 on never)" in lines[-1]
    session = once_per_run(6, AUGUST.with_(scope="run"))
    assert session.first_stop() is None


def test_scopes_of_a_shared_history_are_not_taken_for_forgotten() -> None:
    """The engine keeps one state for the thread; every run of it has that."""
    session = once_per_run(3, AUGUST)
    assert [info.evicted for info in session.scopes] == [False, False, False]
    assert session_of([]).scopes == []


@pytest.mark.parametrize("policy", [AUGUST, APRIL])
def test_the_whole_view_can_be_drawn(policy: Policy) -> None:
    """Also of hashes that this run never had."""
    session = once_per_run(6, policy, other=True)
    text = ""
    for number in range(1, len(session) + 1):
        session.seek(number)
        text = render(session)
    assert ("whole history" in text) == (policy is APRIL)
    assert str(1 << 62) not in text.replace(",", "")


def test_results_that_come_in_another_run_count() -> None:
    """Nearest settings of a layer that looks at results are searched over the runs of the thread."""
    policy = BOUNDED.with_(scope="thread", warn_threshold=50, hard_limit=50, tool_freq_hard_limit=60)
    stream: list[Event] = []
    for n in range(1, 8):
        place: dict[str, Any] = {"ts": None, "thread_id": "t", "run_id": f"r{n}"}
        stream.append(batch(10 * n, ("bash", {"command": f"step {n}"}), scope=("t", f"r{n}")))
        stream.append(Witness(seq=10 * n + 1, **place, values={"score": 1}))
        stream.append(Result(seq=10 * n + 2, **place, call_id=f"c{10 * n}-0", status="error", content="no"))
    session = session_of(stream, Origin(policy))
    assert session.open_at_first_stop() == 5
    assert "error_streak.hard_limit >= 6" in session.explain().lines[-1] or session.explain().changes
    reset = Control(seq=33, ts=None, thread_id="t", run_id="r7", action="reset")
    forgets = [*stream[:9], reset, *stream[9:]]
    session = session_of(forgets, Origin(policy))
    assert session.first_stop() is None
    session.seek(3)
    assert session.explain().changes, "the first three batches, which warn, are searched up to the reset"


def test_a_reset_of_one_run_ends_the_search_in_its_thread() -> None:
    """What came before it is not counted in any run."""
    stream: list[Event] = [batch(n, ("a", {"query": "x"}), scope=("t", f"r{n % 2}")) for n in range(1, 8)]
    stream.insert(2, Control(seq=0, ts=None, thread_id="t", run_id="r0", action="reset"))
    session = session_of(stream, Origin(AUGUST))
    assert session.open_at_first_stop() == 7
    assert "in the last 20 batches: #3 #4 #5 #6 #7" in session.explain().lines[0]
    assert session.state.key == ScopeKey("t", "r1")
