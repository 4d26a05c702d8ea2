"""The overrides that are being tried: what can be changed, in which steps, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscope.engine.policy import BOUNDED, DEFAULT, PRESETS, PROGRESS, Policy
from loopscope.errors import PolicyError
from loopscope.session import draft as drafts
from loopscope.session.draft import MOST_COLUMNS, Draft, Path, changes, get, kind, put, tools_of
from tests.engine.support import batch
from tests.session.support import session_of

ROWS = drafts.settings(Draft.of(DEFAULT), ["bash", "web.search"])
COUNTS = ("warn_threshold", "hard_limit", "window_size", "tool_freq_warn", "tool_freq_hard_limit")


def test_the_settings_that_are_asked_for_most_come_first() -> None:
    """Then the tools of the run, the other layers, the budgets."""
    assert [path[0] for path in ROWS[:6]] == [*COUNTS, "identity"]
    assert ROWS[6:8] == [("tool_freq_overrides", "bash", "warn"), ("tool_freq_overrides", "bash", "hard_limit")]
    assert ("cycle", "hash", "hard_limit") in ROWS
    assert ("budget", "cost_usd", "limit") in ROWS
    assert len(ROWS) == len(set(ROWS))
    assert ("on_stop",) not in ROWS


def test_what_a_policy_sets_beyond_that_has_a_row_too() -> None:
    """Fields of the identity, the share of a budget that warns, and tools that the run never called."""
    policy = DEFAULT.with_(
        identity_fields={"find": ["query"]},
        budget={"tool_calls": {"limit": 9, "warn": 0.5}},
        tool_freq_overrides={"rare": {"warn": 2, "hard_limit": 3}},
    )
    rows = drafts.settings(Draft.of(DEFAULT).take(policy), [])
    assert {("identity_fields", "find"), ("budget", "tool_calls", "warn")} <= set(rows)
    assert ("tool_freq_overrides", "rare", "warn") in rows
    assert str(get(policy, ("identity_fields", "find"))) == "['query']"
    assert [kind(path) for path in (("identity_fields", "find"), ("budget", "tool_calls", "warn"))] == ["other"] * 2
    with pytest.raises(PolicyError, match="has no steps; a preset sets it"):
        Draft.of(policy).step(("identity_fields", "find"), 1)


@pytest.mark.parametrize("path", ROWS, ids=".".join)
def test_every_setting_can_be_changed_and_reset(path: Path) -> None:
    """Up by a step, and back as it was."""
    draft = Draft.of(DEFAULT)
    up = draft.step(path, 1)
    assert get(up.policy, path) != get(DEFAULT, path)
    assert up.changed
    assert up.reset(path) == draft
    assert not up.reset(path).changed


@pytest.mark.parametrize(
    ("path", "before", "by", "after"),
    [
        (("hard_limit",), 5, 10, 15),
        (("warn_threshold",), 3, -10, 1),
        (("cycle", "hash", "warn"), None, 1, 3),
        (("cycle", "hash", "warn"), None, -1, None),
        (("cycle", "names", "hard_limit"), None, 1, 5),
        (("cycle", "hash", "warn"), 2, -10, 1),
        (("cycle", "hash", "warn"), 1, -1, None),
        (("identity",), "salient", 10, "full_args"),
        (("result_aware",), False, -1, True),
        (("stagnation", "witness"), "of the program", 1, "last_error"),
        (("stagnation", "mode"), "changes", -1, "improves"),
        (("budget", "tool_calls", "limit"), None, 1, 50),
        (("budget", "tool_calls", "limit"), None, -1, None),
        (("budget", "tool_calls", "limit"), 200, 1, 210),
        (("budget", "tool_calls", "limit"), 1, -1, None),
        (("budget", "cost_usd", "limit"), 1.0, -1, 0.9),
        (("budget", "cost_usd", "limit"), 0.01, -1, None),
        (("tool_freq_overrides", "bash", "hard_limit"), 50, 1, 51),
    ],
)
def test_steps(path: Path, before: Any, by: int, after: Any) -> None:
    """Counts by one, choices in turn, budgets in their two leading digits; what can be off is, below the least."""
    policy = put(DEFAULT, path, before) if before != get(DEFAULT, path) else DEFAULT
    assert get(Draft.of(policy).step(path, by).policy, path) == after


def test_what_breaks_a_rule_is_refused_with_the_rule() -> None:
    """And nothing is changed."""
    with pytest.raises(PolicyError, match=r"hard_limit: must be at least warn_threshold \(3\), is 2"):
        Draft.of(DEFAULT).with_(("hard_limit",), 2)
    with pytest.raises(PolicyError, match="hard_limit"):
        Draft.of(DEFAULT).take(Policy(warn_threshold=8, hard_limit=9)).reset(("hard_limit",))


def test_a_tool_has_the_general_limits_until_it_has_its_own() -> None:
    """One changed limit brings the other one along; reset takes both away."""
    path = ("tool_freq_overrides", "web.search", "hard_limit")
    draft = Draft.of(DEFAULT).with_(path, 300)
    assert draft.policy.tool_freq_overrides["web.search"].warn == DEFAULT.tool_freq_warn
    assert draft.reset(path).policy == DEFAULT
    own = Draft.of(draft.policy).with_(path, 400)
    assert get(own.reset(path).policy, path) == 300


def test_columns_side_by_side() -> None:
    """A further one begins as the active one; they are turned, dropped, and never more than can be seen."""
    draft = Draft.of(DEFAULT).take(BOUNDED).beside().take(PROGRESS).beside().with_(("hard_limit",), 9)
    assert [draft.name(column) for column in range(3)] == ["bounded", "progress", "override 3"]
    assert draft.active == 2
    assert draft.turn(1).policy == BOUNDED
    assert draft.turn(-1).policy == PROGRESS
    assert draft.without().columns == (BOUNDED, PROGRESS)
    assert draft.without().without().without() == Draft.of(DEFAULT)
    full = draft.beside()
    assert len(full.columns) == MOST_COLUMNS
    assert full.beside() == full
    assert Draft.of(DEFAULT).name(0) == "override"
    assert Draft.of(Policy(hard_limit=9)).take(DEFAULT).name(0) == "deerflow"


@given(st.sampled_from(list(PRESETS.values())), st.sampled_from(list(PRESETS.values())))
@settings(max_examples=30)
def test_changes_lead_from_one_policy_to_the_other(before: Policy, after: Policy) -> None:
    """Each of them set, in any order that the rules allow."""
    policy = before
    for path in changes(before, after):
        policy = put(policy, path, get(after, path))
    assert policy == after
    assert (changes(before, after) == []) == (before == after)


def test_tools_by_how_often_they_were_called() -> None:
    """Without those that have no name."""
    calls: list[list[str | None]] = [["grep"], ["bash", "bash"], [None], ["grep", "bash"]]
    session = session_of([batch(n, *[(name, {}) for name in each]) for n, each in enumerate(calls, 1)])
    assert tools_of(session.timeline) == ["bash", "grep"]
