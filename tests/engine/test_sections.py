"""The sections of a policy beyond the thresholds: how they are read, what is wrong with them, what they are as data."""

from __future__ import annotations

from typing import Any

import pytest

from loopscope.engine.policy import BOUNDED, DEFAULT, PRESETS, PROGRESS, Policy
from loopscope.engine.sections import Budget, Cycle, Pair, RepeatInBatch, Stagnation
from loopscope.errors import PolicyError


def test_sections_are_read_from_plain_data() -> None:
    """What is not named keeps its default; null is never; structs are taken as they are."""
    policy = Policy.parse(
        {
            "cycle": {"max_period": 4, "names": {"warn": 6, "hard_limit": None}},
            "error_streak": {"hard_limit": 5},
            "stagnation": Stagnation("score", "improves", 2),
            "repeat_in_batch": {"warn": 3},
            "budget": {
                "iterations": {"limit": 9},
                "cost_usd": {"limit": 1.5, "warn": 0.5},
                "tool_calls": {"limit": None},
            },
            "result_aware": True,
            "on_stop": "drain",
        }
    )
    assert policy.cycle == Cycle(4, Pair(), Pair(6, None))
    assert policy.error_streak == Pair(None, 5)
    assert policy.stagnation == Stagnation("score", "improves", 2, None)
    assert policy.repeat_in_batch == RepeatInBatch(3)
    assert policy.budget == {"iterations": Budget(9, 0.8), "cost_usd": Budget(1.5, 0.5)}
    assert (policy.result_aware, policy.on_stop) == (True, "drain")
    assert Policy.parse(policy.to_dict()) == policy
    assert Policy.parse({"cycle": {"max_period": None}}).cycle.active is False


def test_presets_differ_as_they_say() -> None:
    """`bounded` adds layers to DeerFlow's, `progress` looks at results and does not stop for stagnation alone."""
    undated = {name: policy for name, policy in PRESETS.items() if "-20" not in name}
    assert undated == {"deerflow": DEFAULT, "bounded": BOUNDED, "progress": PROGRESS}
    assert BOUNDED.to_dict() == DEFAULT.to_dict() | {
        "cycle": {"max_period": 6, "hash": {"warn": 3, "hard_limit": 5}, "names": {"warn": 6, "hard_limit": None}},
        "error_streak": {"warn": 3, "hard_limit": 5},
        "stagnation": {"witness": "results", "mode": "changes", "warn": 3, "hard_limit": 5},
        "repeat_in_batch": {"warn": 3},
    }
    slower = {"witness": "results", "mode": "changes", "warn": 3, "hard_limit": None}
    assert PROGRESS.to_dict() == BOUNDED.to_dict() | {"result_aware": True, "stagnation": slower}
    assert not DEFAULT.looks_at_results
    assert BOUNDED.looks_at_results
    assert DEFAULT.with_(result_aware=True).looks_at_results


@pytest.mark.parametrize(
    ("section", "value", "problem"),
    [
        ("cycle", 3, "cycle: must be a table, is 3"),
        ("cycle", {"max_perod": 3}, "cycle.max_perod: unknown setting, did you mean cycle.max_period?"),
        ("cycle", {"max_period": 1}, "cycle.max_period: must be at least 2, is 1"),
        ("cycle", {"max_period": "6"}, "cycle.max_period: must be a whole number from 1 or null, is '6'"),
        (
            "cycle",
            {"hash": {"warn": 4, "hard_limit": 3}},
            "hash.hard_limit: must be at least cycle.hash.warn (4), is 3",
        ),
        ("error_streak", {"warn": 0}, "error_streak.warn: must be a whole number from 1 or null, is 0"),
        ("error_streak", {"warn": True}, "error_streak.warn: must be a whole number from 1 or null, is True"),
        ("stagnation", {"witness": 3}, "stagnation.witness: must be the name of a witness, is 3"),
        ("stagnation", {"mode": "up"}, "mode: must be changes, increases, decreases, shrinks or improves, is 'up'"),
        ("stagnation", {"warn": 3, "hard_limit": 2}, "hard_limit: must be at least stagnation.warn (3), is 2"),
        ("repeat_in_batch", {"warn": 1.5}, "repeat_in_batch.warn: must be a whole number from 1 or null, is 1.5"),
        ("budget", {"tokens": {"limit": 3}}, "budget.tokens: unknown setting, did you mean budget."),
        ("budget", {"iterations": 3}, "budget.iterations: must be a table, is 3"),
        ("budget", {"iterations": {"limit": 0}}, "iterations.limit: must be a number above 0 or null, is 0"),
        ("budget", {"cost_usd": {"limit": float("inf")}}, "cost_usd.limit: must be a number above 0 or null, is inf"),
        ("budget", {"iterations": {"limit": 3, "warn": 2}}, "warn: must be a share above 0 and up to 1, is 2"),
        ("result_aware", 1, "result_aware: must be true or false, is 1"),
        ("on_stop", "stop", "on_stop: must be strip, interrupt or drain, is 'stop'"),
    ],
)
def test_a_problem_names_field_value_and_rule(section: str, value: Any, problem: str) -> None:
    """Each broken rule in one line, with the dotted name of the setting."""
    with pytest.raises(PolicyError) as caught:
        Policy.parse({section: value})
    assert problem in str(caught.value)


def test_all_problems_are_told_at_once() -> None:
    """Those of a section and those between thresholds."""
    with pytest.raises(PolicyError) as caught:
        Policy.parse(
            {"cycle": {"hash": {"warn": 0}, "names": 3}, "hard_limit": 1, "budget": {"iterations": {"limit": -1}}}
        )
    fields = [problem.field for problem in caught.value.problems]
    assert fields == ["cycle.hash.warn", "cycle.names", "budget.iterations.limit", "hard_limit"]


def test_a_recordings_policy_may_know_more() -> None:
    """Settings of a later version are passed over, those of this one are checked."""
    assert Policy.recorded({"hard_limit": 9, "telepathy": True}) == Policy(hard_limit=9)
    with pytest.raises(PolicyError):
        Policy.recorded({"hard_limit": 1, "telepathy": True})
