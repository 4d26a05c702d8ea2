"""Sweeps: look-ups that equal a plain replay, for random policies and runs, and where no look-up can tell."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, Call, Event
from loopscope.engine.policy import BOUNDED, PRESETS, PROGRESS, Policy
from loopscope.session.sweep import Outcome, Sweeper
from loopscope.session.timeline import Origin
from tests.engine.support import batch
from tests.engine.test_detector import RUNS, events, policies
from tests.session.support import Line, session_of


def replayed(stream: list[Any], policy: Policy) -> Outcome:
    """The same, decided event by event as in production, and counted by hand."""
    detector = LoopDetector(policy)
    first_warning: dict[Any, int] = {}
    first_stop: dict[Any, int] = {}
    saved = [0, 0, 0, 0.0]
    for event in stream:
        for decision in detector.observe(event):
            if decision.scope in first_stop:
                saved[0] += 1
                saved[1] += len(event.calls)
                saved[2] += 0 if event.usage is None else event.usage.input_tokens + event.usage.output_tokens
                saved[3] += 0.0 if event.usage is None else event.usage.cost_usd
            elif decision.action == "hard_stop":
                first_stop[decision.scope] = decision.batch
            elif decision.action == "warn":
                first_warning.setdefault(decision.scope, decision.batch)
    stops, warnings = first_stop.values(), first_warning.values()
    return Outcome(min(warnings, default=None), min(stops, default=None), *saved)  # type: ignore[arg-type]


@given(policies(), st.lists(policies(), min_size=1, max_size=6), RUNS)
@settings(max_examples=200)
def test_look_ups_equal_a_replay(baseline: Policy, cells: list[Policy], run: Any) -> None:
    """For random policies and runs: first warning, first stop and savings, also where scopes are evicted."""
    stream = events(run)
    sweeper = Sweeper(session_of(stream, Origin(baseline)).timeline)
    for cell in cells:
        policy = cell.with_(max_tracked_threads=baseline.max_tracked_threads)
        assert sweeper.outcome(policy) == replayed(stream, policy)
        assert sweeper.outcome(cell) == replayed(stream, cell), "also where other scopes are evicted"


@given(policies(), policies(), st.sampled_from(list(PRESETS)), RUNS)
@settings(max_examples=100)
def test_the_rules_of_other_times_equal_a_replay(baseline: Policy, limits: Policy, preset: str, run: Any) -> None:
    """What look-ups cannot tell is folded: early returns, shared histories; unbounded counts are looked up."""
    rules = ("severity_first", "scope", "tool_freq_window", "read_window")
    policy = limits.with_(**{name: getattr(PRESETS[preset], name) for name in rules})
    stream = events(run)
    session = session_of(stream, Origin(baseline))
    assert Sweeper(session.timeline, session).outcome(policy) == replayed(stream, policy)
    unbounded = limits.with_(tool_freq_window="unbounded", max_tracked_threads=baseline.max_tracked_threads)
    assert Sweeper(session.timeline).outcome(unbounded) == replayed(stream, unbounded)


def test_layers_beyond_counting_are_folded() -> None:
    """A preset with more layers gives what its replay gives."""
    stream: list[Event] = [batch(n, ("ab"[n % 2], {"query": str(n % 2)})) for n in range(1, 12)]
    for policy in (BOUNDED, PROGRESS):
        assert Sweeper(session_of(stream).timeline).outcome(policy) == replayed(stream, policy)


@pytest.mark.parametrize(
    "other", [{"identity": "full_args"}, {"identity_fields": {"a": ["n"]}}, {"read_window": "exact"}]
)
def test_another_identity_is_read_again(other: dict[str, Any]) -> None:
    """The arguments are needed; what was folded under the run's own identity is not reused."""
    pages: list[Event] = [
        batch(n, ("read_file", {"path": "/a", "start_line": n, "end_line": n + 40}), scope=("t", "pages"))
        for n in range(1, 8)
    ]
    same: list[Event] = [batch(n, ("a", {"query": "x", "n": n})) for n in range(10, 17)]
    stream = pages + same
    session = session_of(stream)
    policy = Policy(**other)
    assert Sweeper(session.timeline, session).outcome(policy) == replayed(stream, policy)
    assert Sweeper(session.timeline, session).outcome(policy) != replayed(stream, Policy())
    assert Sweeper(session.timeline, session).outcome(Policy()) == replayed(stream, Policy())


def test_a_run_that_began_in_the_middle_is_folded() -> None:
    """Its first counts come from a state that no row here tells."""
    stream: list[Event] = [batch(n, ("a", {"query": "x"})) for n in range(1, 4)]
    detector = LoopDetector()
    for event in stream:
        detector.observe(event)
    session = session_of([])
    session.timeline.restore(detector.snapshot())
    session.append([Line(batch(4, ("a", {"query": "x"})), 0, 1), Line(batch(5, ("a", {"query": "x"})), 1, 1)])
    assert Sweeper(session.timeline).outcome(Policy()).first_stop == 2


def test_batches_without_usage_save_no_tokens() -> None:
    """What a recording does not tell is not made up."""
    stream = [Batch(seq=n, ts=None, thread_id="t", run_id="r", calls=(Call("a", "x", {}),)) for n in range(1, 7)]
    outcome = Sweeper(session_of(stream).timeline).outcome(Policy(hard_limit=4))
    assert outcome == Outcome(3, 4, 2, 2, 0, 0.0)
