"""Numbers as a person reads them."""

from __future__ import annotations

import pytest

from loopscope.views.words import amount, clock, in_words, money, plural, size, span_of_time, times


def test_plurals() -> None:
    """A count agrees with its noun."""
    assert [plural(1, "batch"), plural(2, "batch"), plural(1200, "call")] == ["1 batch", "2 batches", "1,200 calls"]
    assert plural(2, "child", "children") == "2 children"


def test_how_often() -> None:
    """Small counts have words."""
    assert [times(n) for n in (1, 2, 3)] == ["once", "twice", "3 times"]
    assert [in_words(n) for n in (1, 12, 13)] == ["one", "twelve", "13"]


@pytest.mark.parametrize(
    ("value", "said"),
    [(0, "0"), (9_999, "9,999"), (2.5, "2.5"), (61_240, "61.2k"), (1_300_000, "1.3M"), (2_000_000_000, "2.0G")],
)
def test_amounts_are_short(value: float, said: str) -> None:
    """Large counts lose what nobody reads."""
    assert amount(value) == said


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0 B"), (812, "812 B"), (4_100, "4.1 kB"), (52_400_000, "52.4 MB"), (3_000_000_000, "3.0 GB")],
)
def test_sizes(count: int, said: str) -> None:
    """Bytes in decimal units."""
    assert size(count) == said


def test_money() -> None:
    """Small sums keep the digits that tell them apart."""
    assert [money(26), money(0), money(0.0127)] == ["$26.00", "$0.00", "$0.0127"]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (72.48, "01:12.480"),
        (7384.5, "2:03:04.500"),
        (90061, "1d 1:01:01.000"),
        (-1.5, "-00:01.500"),
        (59.9999, "01:00.000"),
    ],
)
def test_a_clock(seconds: float, said: str) -> None:
    """Time since the beginning; what came before it has a minus."""
    assert clock(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.42, "0.42s"), (12.5, "12.5s"), (72, "1m12s"), (7500, "2h05m"), (273_600, "3d04h")]
)
def test_a_length_of_time(seconds: float, said: str) -> None:
    """Two units at most."""
    assert span_of_time(seconds) == said
