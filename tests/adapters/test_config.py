from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, Field

from loopscope import LoopDetectionMiddleware, Policy
from loopscope.engine.policy import Limits
from loopscope.errors import PolicyError

SECTION = """
loop_detection:
  enabled: true
  warn_threshold: 2
  hard_limit: 4
  window_size: 10
  max_tracked_threads: 50
  tool_freq_warn: 20
  tool_freq_hard_limit: 40
  tool_freq_overrides:
    bash: {warn: 150, hard_limit: 300}
"""
POLICY = Policy(
    warn_threshold=2, hard_limit=4, window_size=10, max_tracked_threads=50, tool_freq_warn=20, tool_freq_hard_limit=40,
    tool_freq_overrides={"bash": Limits(150, 300)},
)  # fmt: skip


def test_the_defaults_are_deerflows() -> None:
    """3, 5, 20, 100, 30, 50 and no overrides."""
    assert LoopDetectionMiddleware().policy == Policy()


def test_the_names_and_the_order_are_deerflows() -> None:
    """By keyword or by position, overrides as pairs or as tables."""
    named = LoopDetectionMiddleware(
        warn_threshold=2,
        hard_limit=4,
        window_size=10,
        max_tracked_threads=50,
        tool_freq_warn=20,
        tool_freq_hard_limit=40,
        tool_freq_overrides={"bash": (150, 300)},
    )
    placed = LoopDetectionMiddleware(2, 4, 10, 50, 20, 40, {"bash": {"warn": 150, "hard_limit": 300}})
    assert named.policy == placed.policy == POLICY


def test_a_deerflow_section_is_read_as_it_is() -> None:
    """The YAML's mapping, `enabled` included."""
    assert LoopDetectionMiddleware.from_config(yaml.safe_load(SECTION)["loop_detection"]).policy == POLICY


class Override(BaseModel):
    """One tool's limits."""

    warn: int
    hard_limit: int


class Section(BaseModel):
    """As DeerFlow's own settings class, with a field that a policy does not know."""

    enabled: bool = True
    warn_threshold: int = 2
    hard_limit: int = 4
    window_size: int = 10
    max_tracked_threads: int = 50
    tool_freq_warn: int = 20
    tool_freq_hard_limit: int = 40
    tool_freq_overrides: dict[str, Override] = Field(
        default_factory=lambda: {"bash": Override(warn=150, hard_limit=300)}
    )
    log_level: str = "info"


@dataclass
class Plain:
    """An application's own settings, some of them unset."""

    warn_threshold: int = 2
    hard_limit: int = 4
    tool_freq_overrides: dict[str, Any] | None = field(default=None)


def test_the_object_of_a_section_is_read_by_its_attributes() -> None:
    """Of any class; what a policy does not know is not its business."""
    assert LoopDetectionMiddleware.from_config(Section()).policy == POLICY
    assert LoopDetectionMiddleware.from_config(Plain()).policy == Policy(warn_threshold=2, hard_limit=4)


def test_a_policy_can_be_given_whole_and_changed() -> None:
    """Single thresholds lie above it."""
    assert LoopDetectionMiddleware(policy=POLICY).policy is POLICY
    assert LoopDetectionMiddleware(hard_limit=9, policy=POLICY).policy == POLICY.with_(hard_limit=9)


@pytest.mark.parametrize(
    ("make", "fields"),
    [
        (lambda: LoopDetectionMiddleware(warn_threshold=0, hard_limit=-1), {"warn_threshold", "hard_limit"}),
        (
            lambda: LoopDetectionMiddleware(tool_freq_overrides={"bash": (5, 2)}),
            {"tool_freq_overrides.bash.hard_limit"},
        ),
        (lambda: LoopDetectionMiddleware.from_config({"hard_limt": 3}), {"hard_limt"}),
        (lambda: LoopDetectionMiddleware.from_config({"hard_limit": "3"}), {"hard_limit"}),
    ],
)
def test_a_wrong_value_is_named(make: Callable[[], Any], fields: set[str]) -> None:
    """All at once, when the middleware is made and not when it runs."""
    with pytest.raises(PolicyError) as raised:
        make()
    assert fields <= {problem.field for problem in raised.value.problems}
