"""The policy: its rules, its reading from plain data, and that every problem is told at once."""

from __future__ import annotations

from typing import Any

import pytest

from loopscope.engine.policy import Limits, Policy
from loopscope.engine.sections import Budget, Cycle, Pair
from loopscope.errors import PolicyError


def test_defaults_are_deerflows() -> None:
    """The numbers that DeerFlow ships."""
    assert Policy().to_dict() == {
        "warn_threshold": 3,
        "hard_limit": 5,
        "window_size": 20,
        "max_tracked_threads": 100,
        "tool_freq_warn": 30,
        "tool_freq_hard_limit": 50,
        "tool_freq_overrides": {},
    }


@pytest.mark.parametrize(
    ("mapping", "problem"),
    [
        ({"hard_limt": 3}, "hard_limt: unknown setting, did you mean hard_limit?"),
        ({"zzz": 3}, "zzz: unknown setting; known are budget, cycle, error_streak, hard_limit,"),
        ({"hard_limit": 2}, "hard_limit: must be at least warn_threshold (3), is 2"),
        ({"warn_threshold": 0}, "warn_threshold: must be a whole number from 1, is 0"),
        ({"window_size": True}, "window_size: must be a whole number, is True"),
        ({"window_size": 2.0}, "window_size: must be a whole number, is 2.0"),
        ({"tool_freq_hard_limit": 29}, "tool_freq_hard_limit: must be at least tool_freq_warn (30), is 29"),
        ({"tool_freq_overrides": [1]}, "tool_freq_overrides: must be a table of tools"),
        ({"tool_freq_overrides": {"bash": 3}}, "tool_freq_overrides.bash: must be {warn, hard_limit} or a pair"),
        ({"tool_freq_overrides": {"bash": {"warn": 3}}}, "tool_freq_overrides.bash.hard_limit: is missing"),
        (
            {"tool_freq_overrides": {"bash": {"warn": "3", "hard_limit": 4}}},
            "tool_freq_overrides.bash.warn: must be a whole",
        ),
        ({"tool_freq_overrides": {"bash": [4, 3]}}, "tool_freq_overrides.bash.hard_limit: must be at least"),
        (
            {"tool_freq_overrides": {"bash": {"wran": 3, "hard_limit": 4}}},
            "did you mean tool_freq_overrides.bash.warn?",
        ),
        ({"identity": "some"}, "identity: must be salient or full_args, is 'some'"),
        ({"identity_fields": 3}, "identity_fields: must be a table of tools"),
        ({"identity_fields": {"bash": []}}, "identity_fields.bash: must be a list of argument names"),
    ],
)
def test_a_problem_names_field_value_and_rule(mapping: dict[str, Any], problem: str) -> None:
    """Each broken rule in one line."""
    with pytest.raises(PolicyError) as caught:
        Policy.parse(mapping)
    assert problem in str(caught.value)
    assert caught.value.exit_code == 2


def test_every_problem_is_told_at_once() -> None:
    """An unknown name, a wrong type and a broken rule in one error."""
    with pytest.raises(PolicyError) as caught:
        Policy.parse({"hard_limt": 3, "window_size": "x", "tool_freq_warn": 0})
    assert [problem.field for problem in caught.value.problems] == ["hard_limt", "window_size", "tool_freq_warn"]


@pytest.mark.parametrize(
    ("mapping", "fields"),
    [
        ({"hard_limit": "x", "warn_threshold": 9}, ["hard_limit"]),
        (
            {"tool_freq_overrides": {"bash": {"warn": 0, "hard_limit": "x"}, "grep": [4, 3], "ls": 1, "cat": [0]}},
            ["bash.hard_limit", "ls", "cat", "bash.warn", "grep.hard_limit"],
        ),
        (
            {"cycle": {"max_period": 1, "hash": {"warn": 0, "hard_limit": True}, "names": 3}},
            ["hash.warn", "hash.hard_limit", "names", "max_period"],
        ),
        ({"stagnation": {"mode": "up", "witness": 1, "warn": 5, "hard_limit": 4}}, ["witness", "mode", "hard_limit"]),
        (
            {"budget": {"cost_usd": {"limit": -1, "warn": 2}, "tool_calls": {"warn": 0}}},
            ["tool_calls.warn", "cost_usd.limit", "cost_usd.warn"],
        ),
        (
            {"error_streak": {"warn": "x", "hard_limit": 0}, "identity_fields": {"a": [], "b": ""}},
            ["warn", "hard_limit", "a", "b"],
        ),
    ],
)
def test_a_wrong_part_hides_no_other_one(mapping: dict[str, Any], fields: list[str]) -> None:
    """Also where they are parts of one setting; a rule about two numbers is not told where one is wrong already."""
    with pytest.raises(PolicyError) as caught:
        Policy.parse(mapping)
    found = [problem.field for problem in caught.value.problems]
    assert [field.split(".", 1)[1] if "." in field else field for field in found] == fields


def test_problems_of_direct_construction() -> None:
    """A policy made in code is checked like one that is read."""
    with pytest.raises(PolicyError, match="hard_limit"):
        Policy(warn_threshold=6)
    with pytest.raises(PolicyError) as caught:
        Policy(window_size=0, error_streak=Pair(5, 3), budget={"tool_calls": Budget(-1)}, cycle=Cycle(max_period=1))
    found = [problem.field for problem in caught.value.problems]
    assert found == ["window_size", "cycle.max_period", "error_streak.hard_limit", "budget.tool_calls.limit"]


def test_overrides_as_tables_and_as_pairs() -> None:
    """DeerFlow's configuration has pairs, files have tables; both are the same."""
    table = Policy.parse({"tool_freq_overrides": {"bash": {"warn": 60, "hard_limit": 120}}})
    assert table == Policy.parse({"tool_freq_overrides": {"bash": (60, 120)}})
    assert table == Policy(tool_freq_overrides={"bash": Limits(60, 120)})
    assert table.frequency_window == 120
    assert table.frequency_limits("bash") == Limits(60, 120)
    assert table.frequency_limits("grep") == Limits(30, 50)


def test_round_trip_and_equality() -> None:
    """Plain data gives the same policy back, equal and of equal hash."""
    policy = Policy.parse(
        {"identity": "full_args", "identity_fields": {"ask": ["who"]}, "hard_limit": 9, "enabled": True}
    )
    assert Policy.parse(policy.to_dict()) == policy
    assert hash(Policy.parse(policy.to_dict())) == hash(policy)
    assert policy.with_(hard_limit=7).hard_limit == 7
    assert policy.with_(tool_freq_overrides={"a": Limits(1, 2)}).tool_freq_overrides == {"a": Limits(1, 2)}


def test_a_recorded_policy_may_have_settings_of_a_newer_version() -> None:
    """Recordings keep what they do not know; files of the user do not."""
    assert Policy.recorded({"hard_limit": 6, "future": {"x": 1}}) == Policy(hard_limit=6)
    with pytest.raises(PolicyError):
        Policy.recorded({"hard_limit": 1})


def test_frequency_window_is_the_largest_limit() -> None:
    """F is the largest of the window, the general hard limit and every override's."""
    assert Policy(window_size=70).frequency_window == 70
    assert Policy().frequency_window == 50
