"""Why a batch got its verdict: the lines of each kind of verdict, and that the nearest settings really are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Header, PolicySet
from loopscope.engine.nearest import Step, changed, fold_scope, nearest_changes
from loopscope.engine.policy import Limits, Policy
from loopscope.engine.texts import stop_text
from loopscope.errors import PolicyError
from loopscope.session.session import Session
from loopscope.session.timeline import Origin
from tests.engine.support import batch
from tests.engine.test_detector import policies
from tests.session.support import session_of


def tools(*names: str, policy: Policy | None = None) -> Session:
    """One batch a name, each with other arguments."""
    stream = [batch(n, (name, {"query": str(n)})) for n, name in enumerate(names, 1)]
    return session_of(stream, Origin(policy or Policy()))


def test_a_frequency_stop_names_its_tool_and_its_batches() -> None:
    """The counted batches are those with the tool, the limit is the tool's own where it has one."""
    policy = Policy(tool_freq_overrides={"grep": Limits(2, 3)})
    session = tools("grep", "bash", "grep", "grep", "grep", policy=policy)
    explanation = session.explain(4)
    assert explanation.headline == "STOP tool_frequency grep 3/3"
    assert explanation.lines[:3] == (
        "rule tool_frequency counted grep 3 times in the last 50 calls: #1 #3 #4",
        "hard limit is 3: tool_freq_overrides.grep.hard_limit (default)",
        "a warning was delivered before #4 (assumed: the recording does not tell), then grep came once more",
    )
    assert explanation.lines[4] == (
        "nearest settings that would not stop #4: tool_freq_overrides.grep.hard_limit >= 4 "
        "(then stopped first at #5, from 5 on never)"
    )


def test_a_stop_without_a_warning_says_so() -> None:
    """Where warning and stop are one number, no warning can have been given."""
    session = tools("a", "a", policy=Policy(warn_threshold=5, tool_freq_warn=2, tool_freq_hard_limit=2))
    assert session.explain(2).lines[2] == "no warning was given before"


def test_a_warning_tells_that_the_model_is_told() -> None:
    """Its nearest setting is a higher limit; a second warning of the same tool tells of the first."""
    policy = Policy(tool_freq_warn=2, tool_freq_hard_limit=3, window_size=3)
    session = tools("a", "a", "b", "b", "c", "a", "a", policy=policy)
    assert session.row(7).state == "warn"
    lines = session.explain(7).lines
    assert lines[1] == "warning limit is 2: tool_freq_warn (default)"
    assert lines[2:4] == (
        "the model is told before its next turn",
        "a warning was delivered before #3 (assumed: the recording does not tell), then a came 2 times more",
    )
    assert lines[4] == "effect: none on this batch; the warning is put before the model's next turn"
    assert lines[5].startswith("nearest settings that would not warn #7: tool_freq_warn >= 3 (no stop")


def test_a_pass_tells_the_distance_to_the_next_limit() -> None:
    """One more identical batch, several, or the way from the warning to the stop."""
    same = [batch(n, ("bash", {"command": "ls"})) for n in range(1, 5)]
    session = session_of(same)
    assert session.explain(1).lines[1] == "warns after 2 more identical batches: warn_threshold is 3 (default)"
    assert session.explain(1).lines[-1] == (
        "nearest settings that would warn or stop #1: warn_threshold <= 1 (no stop in this scope); "
        "or tool_freq_warn <= 1 (no stop in this scope, warnings 1 → 2)"
    )
    assert session.explain(2).lines[1] == "warns after one more identical batch: warn_threshold is 3 (default)"
    assert session.explain(2).lines[-1].startswith("nearest settings that would warn or stop #2: warn_threshold <= 2")
    assert session.explain(4).lines[1] == "stops after one more identical batch: hard_limit is 5 (default)"
    assert session.explain(4).headline == "PASS A seen 4 times"
    assert (
        session.explain(4)
        .lines[-1]
        .startswith("nearest settings that would warn or stop #4: hard_limit <= 4 (then stopped first at #4, from ")
    )


def test_past_its_warning_a_tool_is_nearest_to_its_hard_limit() -> None:
    """Its own one, where it has limits of its own."""
    run = tools(*["read"] * 35, *["bash"] * 4, policy=Policy(tool_freq_overrides={"bash": Limits(2, 9)}))
    nearest = [(change.setting, change.value, change.verdict) for change in run.explain(35).changes]
    assert ("tool_freq_hard_limit", 35, "hard_stop") in nearest
    nearest = [(change.setting, change.value, change.verdict) for change in run.explain(39).changes]
    assert ("tool_freq_overrides.bash.hard_limit", 4, "hard_stop") in nearest


def test_long_evidence_is_cut() -> None:
    """Of many counted batches the newest are named."""
    session = tools(*["read"] * 50)
    assert session.explain(50).lines[0].endswith("calls: … #39 #40 #41 #42 #43 #44 #45 #46 #47 #48 #49 #50")


def test_policies_that_change_on_the_way_are_folded_as_they_were() -> None:
    """A nearest setting is laid over each policy that was in force."""
    stream: list[Any] = [batch(n, ("bash", {"command": "ls"})) for n in range(1, 7)]
    stream.insert(3, PolicySet(seq=9, ts=None, thread_id=None, run_id=None, policy={"hard_limit": 6}))
    session = session_of(stream)
    assert session.first_stop() == 6
    assert session.explain(6).changes[0].value == 7


@given(
    policies(), st.lists(st.lists(st.sampled_from(["a:1", "a:2", "b:1", "c:1"]), min_size=1, max_size=3), max_size=40)
)
@settings(max_examples=100)
def test_every_nearest_setting_does_what_it_says(policy: Policy, run: list[list[str]]) -> None:
    """The named value changes the verdict as it says, its neighbour does not, and the outcome is the fold's."""
    stream = [
        batch(n, *[(call[0], {"query": call[2]}) for call in calls], scope=("t", None))
        for n, calls in enumerate(run, 1)
    ]
    session = session_of(stream, Origin(policy))
    steps = [
        Step(
            n,
            event,
            LoopDetector(policy).identify(event).hash,
            tuple(c.name for c in event.calls if c.name),
            policy,
            n == 1,
        )
        for n, event in enumerate(stream, 1)
    ]
    for index, step in enumerate(steps):
        decision = session.timeline.decisions[index]
        for change in nearest_changes(steps, index, decision):
            folded = list(fold_scope(steps, change.setting, change.value))
            assert folded[index].action == change.verdict != decision.action
            stops = [d.batch for d in folded if d.action == "hard_stop"]
            assert (change.effect.stops, change.effect.first_stop) == (len(stops), stops[0] if stops else None)
            towards = -1 if change.value > change.before else 1
            if change.value + towards != change.before:
                nearer = list(fold_scope(steps, change.setting, change.value + towards))
                assert nearer[index].action == decision.action
            if change.never is not None:
                assert all(d.action != "hard_stop" for d in fold_scope(steps, change.setting, change.never))
        assert step.number == decision.batch


def test_where_another_tool_stops_whatever_the_limit_is_no_value_is_named() -> None:
    """A limit of one tool does not help where another tool, or another layer, stops too."""
    policy = Policy(
        tool_freq_warn=1, tool_freq_hard_limit=90, tool_freq_overrides={"a": Limits(1, 2), "b": Limits(1, 1)}
    )
    session = tools("a", "a", "b", policy=policy)
    (change,) = session.explain(2).changes
    assert (change.setting, change.value, change.never) == ("tool_freq_overrides.a.hard_limit", 3, None)
    both = session_of([batch(1, ("a", {})), batch(2, ("a", {}), ("b", {}))], Origin(policy))
    assert [found.setting for found in both.explain(2).changes] == []


def test_a_limit_that_an_earlier_policy_forbids_is_not_named() -> None:
    """A single setting is laid over the whole run; where it breaks a rule of what was in force, it is no way out."""
    stream: list[Any] = [batch(n, ("bash", {"command": "ls"})) for n in range(1, 4)]
    stream.insert(0, Header(format="loopscope/1", policy={"warn_threshold": 2, "hard_limit": 2}))
    stream.insert(3, PolicySet(seq=9, ts=None, thread_id=None, run_id=None, policy={"hard_limit": 9}))
    session = session_of(stream)
    assert [session.row(n).state for n in (1, 2, 3)] == ["new", "stop", "warn"]
    assert [change.setting for change in session.explain(3).changes] == ["window_size"]


def test_the_same_batch_twice_in_the_mark_of_a_small_window() -> None:
    """A window of one batch re-arms nothing that was never marked."""
    session = tools("a", "b", policy=Policy(window_size=1))
    assert session.explain(1).lines[0] == "rule identical_call_set counted A once in the last 1 batches: #1"
    assert [session.row(n).state for n in (1, 2)] == ["new", "new"]


def test_the_text_of_a_stop_names_count_and_limit() -> None:
    """The model reads what stopped it, with the counter."""
    decision = tools(*["a"] * 2, policy=Policy(tool_freq_warn=2, tool_freq_hard_limit=2)).timeline.decisions[1]
    assert "a was called 2 times (limit 2)" in stop_text(decision, ["a"])
    same = session_of([batch(n, *[(name, {"query": "x"}) for name in "abcdeb"]) for n in range(1, 6)])
    text = stop_text(same.timeline.decisions[4], list("abcdeb"))
    assert text.startswith("[FORCED STOP]")
    assert "the same tool calls (a, b, c, d, …) came 5 times with the same arguments (limit 5)" in text


def test_a_value_that_breaks_a_rule_is_no_way_out() -> None:
    """A warning limit cannot rise above its hard limit."""
    session = tools("a", policy=Policy(warn_threshold=5, tool_freq_warn=1, tool_freq_hard_limit=1, window_size=1))
    explanation = session.explain(1)
    assert [change.setting for change in explanation.changes] == ["tool_freq_hard_limit"]
    warned = tools("a", "b", policy=Policy(warn_threshold=1, hard_limit=1, window_size=1))
    assert warned.explain(2).decision.action == "hard_stop"
    with pytest.raises(PolicyError):
        changed(Policy(), "warn_threshold", 6)
