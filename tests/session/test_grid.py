"""Grids: settings and values, and the policies that come of them."""

from __future__ import annotations

from typing import Any

import pytest

from loopscope.engine.policy import BOUNDED, Policy
from loopscope.errors import UsageError
from loopscope.session.grid import Grid, default_grid, parse_grid


@pytest.mark.parametrize(
    ("texts", "settings_", "values"),
    [
        (["hard_limit=3..6"], ("hard_limit",), ((3, 4, 5, 6),)),
        (["window_size=10,20,40", "hard_limit=5..9..2"], ("window_size", "hard_limit"), ((10, 20, 40), (5, 7, 9))),
        (["hard_limit=5,5..6,7"], ("hard_limit",), ((5, 6, 7),)),
        (["tool_freq_overrides.bash.hard_limit=60"], ("tool_freq_overrides.bash.hard_limit",), ((60,),)),
        (["hard_limit=1..2"], ("hard_limit",), ((1, 2),)),
    ],
)
def test_grids(texts: list[str], settings_: tuple[str, ...], values: Any) -> None:
    """Ranges, steps and lists."""
    assert parse_grid(texts, Policy()) == Grid(settings_, values)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("hard_limit", "must be NAME=3..12"),
        ("=3", "must be NAME=3..12"),
        ("hard_limit=x", "must be NAME=3..12"),
        ("hard_limit=9..3", "must be NAME=3..12"),
        ("hard_limit=1..9..0", "must be NAME=3..12"),
        ("hard_limit=1..2..3..4", "must be NAME=3..12"),
        ("hard_limit=1..99999999", "must be NAME=3..12"),
        ("hard_limit=1..99999999", "99,999,999 are too many"),
        ("hard_limit=3.5,4", "must be NAME=3..12"),
        ("hard_limit=3...5", "must be NAME=3..12"),
        ("budget.cost_usd.limit=0.1..0.5", "must be NAME=3..12"),
        ("budget.cost_usd.limit=0.0", "must be"),
        ("hard_limt=3", "did you mean hard_limit?"),
        ("cycle.hsh.warn=3", "there is no setting"),
        ("identity.x=3", "there is no setting"),
        ("budget.tool_calls.warn=1", "there is no setting"),
        ("budget.toolcalls.limit=1", "there is no setting"),
        ("identity=1", "must be salient or full_args"),
        ("hard_limit=0", "must be a whole number from 1"),
    ],
)
def test_a_wrong_grid_is_refused(text: str, problem: str) -> None:
    """In one line that names the text."""
    with pytest.raises(UsageError) as caught:
        parse_grid([text], Policy())
    assert problem in str(caught.value)
    assert repr(text) in str(caught.value)


def test_too_large_a_grid_is_refused() -> None:
    """Before any work is done."""
    with pytest.raises(UsageError, match="too many"):
        parse_grid(["hard_limit=1..2000", "window_size=1..2000"], Policy())


def test_cells_are_the_valid_policies() -> None:
    """A hard limit below its warning is none; limits of tools and of other layers can be swept too."""
    grid = parse_grid(["warn_threshold=3..6", "hard_limit=4..6"], Policy())
    assert [cell.values for cell in grid.cells(Policy())] == [
        (3, 4), (3, 5), (3, 6), (4, 4), (4, 5), (4, 6), (5, 5), (5, 6), (6, 6),
    ]  # fmt: skip
    tools = parse_grid(["tool_freq_overrides.bash.warn=5", "tool_freq_overrides.bash.hard_limit=9"], Policy())
    (cell,) = tools.cells(Policy())
    assert cell.policy.frequency_limits("bash").hard_limit == 9
    cycles = parse_grid(["cycle.hash.hard_limit=5..6"], BOUNDED)
    assert [cell.policy.cycle.hash.hard_limit for cell in cycles.cells(BOUNDED)] == [5, 6]


def test_a_setting_named_twice_is_refused() -> None:
    """Its values belong together."""
    with pytest.raises(UsageError, match="named twice"):
        parse_grid(["hard_limit=3", "hard_limit=9"], Policy())


def test_a_value_that_only_fits_with_others_is_kept() -> None:
    """A hard limit below today's warning is fine where the warning is swept too."""
    grid = parse_grid(["hard_limit=1..2", "warn_threshold=1"], Policy())
    assert [cell.values for cell in grid.cells(Policy())] == [(1, 1), (2, 1)]


def test_budgets_can_be_swept() -> None:
    """Also one that the policy does not have; the share that warns stays."""
    grid = parse_grid(["budget.tool_calls.limit=10,20"], Policy())
    assert [cell.policy.budget["tool_calls"].limit for cell in grid.cells(Policy())] == [10, 20]
    base = Policy.parse({"budget": {"tool_calls": {"limit": 5, "warn": 0.5}}})
    assert [cell.policy.budget["tool_calls"].warn for cell in grid.cells(base)] == [0.5, 0.5]


def test_money_is_swept_in_parts() -> None:
    """So are the shares that warn; no step adds up to a number that nobody wrote."""
    grid = parse_grid(["budget.cost_usd.limit=0.05,0.1..0.4..0.1,2"], Policy())
    assert grid.values == ((0.05, 0.1, 0.2, 0.3, 0.4, 2),)
    assert [cell.policy.budget["cost_usd"].limit for cell in grid.cells(Policy())] == [0.05, 0.1, 0.2, 0.3, 0.4, 2]
    base = Policy.parse({"budget": {"cost_usd": {"limit": 0.5}}})
    shares = parse_grid(["budget.cost_usd.warn=0.5..0.9..0.2"], base)
    assert [cell.policy.budget["cost_usd"].warn for cell in shares.cells(base)] == [0.5, 0.7, 0.9]
    assert shares.now(base) == (0.8,)


def test_the_bases_own_values_are_known() -> None:
    """None for a limit that is off."""
    names = ("hard_limit", "cycle.hash.warn", "tool_freq_overrides.bash.hard_limit", "budget.tool_calls.limit")
    grid = Grid(names, ((1,),) * 4)
    assert grid.now(Policy()) == (5, None, 50, None)
    base = BOUNDED.with_(tool_freq_overrides={"bash": [6, 7]}, budget={"tool_calls": {"limit": 9}}, cycle=BOUNDED.cycle)
    assert grid.now(base) == (5, 3, 7, 9)


def test_the_grid_of_those_who_name_none_surrounds_the_base() -> None:
    """Every one of its values can be valid."""
    base = Policy(warn_threshold=6, hard_limit=8, tool_freq_warn=60, tool_freq_hard_limit=90)
    grid = default_grid(base)
    assert grid.settings == ("hard_limit", "window_size", "tool_freq_hard_limit")
    assert grid.values == (tuple(range(6, 16)), (10, 20, 40), (60, 90, 180))
    assert len(list(grid.cells(base))) == 90
