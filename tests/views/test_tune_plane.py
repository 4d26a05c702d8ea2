"""The plane of a sweep where there are more points than places."""

from __future__ import annotations

from loopscope.engine.policy import Policy
from loopscope.views import tune_lines
from loopscope.views.tune import Map
from tests.views.test_tune import swept, text


def test_of_points_in_one_place_the_one_that_matters_most_is_shown() -> None:
    """Today's limits and the front stay to be seen among all the others."""
    grid = ("hard_limit=1..18", "warn_threshold=1")
    sheet = Map(swept([("a", None, 18)], grid, Policy(warn_threshold=1, hard_limit=5)))
    lines = text(tune_lines.front(sheet, 80))
    signs = "".join(sign for line in lines for sign in line if sign in "●○◆·")
    assert (signs.count("◆"), signs.count("○")) == (1, 1)
    assert len(signs) < len(sheet.points())
