"""Bars: as long as the count is near its limit, with both ticks where they belong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscope.views.bars import bar
from loopscope.views.model import line_width, plain


@pytest.mark.parametrize(
    ("count", "drawn"),
    [
        (0, "     ┊   ┃"),
        (1, "▉    ┊   ┃"),
        (5, "████▌┊   ┃"),
        (6, "█████╋   ┃"),
        (7, "█████╋▎  ┃"),
        (10, "█████╋███┃"),
        (25, "█████╋███┃"),
    ],
)
def test_a_bar_grows_by_eighths_of_a_cell(count: int, drawn: str) -> None:
    """Nine cells for ten; the warning's tick at six is crossed once it is passed; a full bar stays full."""
    assert plain(bar(count, 6, 10, 10, "bar_repeat")) == drawn


def test_one_of_many_is_still_seen() -> None:
    """A count that is not zero never looks like zero."""
    assert plain(bar(1, 500, 10_000, 10, "bar_ok"))[0] == "▏"


def test_a_warning_at_the_limit_has_no_tick_of_its_own() -> None:
    """Where both limits are one, the hard tick stands for both."""
    assert plain(bar(2, 4, 4, 9, "bar_repeat")) == "████    ┃"


def test_the_hard_tick_says_that_it_is_reached() -> None:
    """It takes the colour of a stop; before that it is quiet."""
    assert bar(4, 3, 5, 9, "bar_warn")[-1].style == "dim"
    assert bar(5, 3, 5, 9, "bar_stop")[-1].style == "bar_stop"


@given(st.integers(0, 300), st.integers(1, 100), st.integers(0, 100), st.integers(3, 60))
def test_a_bar_takes_exactly_its_cells(count: int, warn: int, more: int, width: int) -> None:
    """Whatever the numbers are, what stands behind it stays in its column."""
    assert line_width(bar(count, warn, warn + more, width, "bar_ok")) == width
