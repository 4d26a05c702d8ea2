"""Rails: a graph as text, one node a row. Ways back are rails on the left, ways ahead on the right.

Boxes and diagonals are hard to read in a terminal once there are loops; here every loop is a line that goes up on the
left, and that is what a debugger of loops must show.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Rail", "Rails", "lanes", "rails"]

UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8
_BOX = {
    0: " ", UP: "│", DOWN: "│", UP | DOWN: "│", LEFT: "─", RIGHT: "─", LEFT | RIGHT: "─",
    DOWN | RIGHT: "╭", DOWN | LEFT: "╮", UP | RIGHT: "╰", UP | LEFT: "╯",
    UP | DOWN | RIGHT: "├", UP | DOWN | LEFT: "┤", LEFT | RIGHT | DOWN: "┬", LEFT | RIGHT | UP: "┴",
    UP | DOWN | LEFT | RIGHT: "┼",
}  # fmt: skip
MOST_LANES = 12
"""Rails on one side; a graph with more is a table."""


class Rail(NamedTuple):
    """A way between two rows."""

    source: int
    target: int
    taken: bool


class Rails(NamedTuple):
    """Two rows of text a node: the node's own, and the one below it."""

    left: list[str]
    right: list[str]
    below: list[str]
    """What stands under the node in the row below it: a way down, or nothing."""
    width: int
    """Cells of the left side."""


def rails(count: int, ways: Sequence[Rail]) -> Rails | None:
    """Lay out the ways between `count` rows; None where there are too many to read."""
    down = {way.source for way in ways if way.target == way.source + 1}
    back = lanes([way for way in ways if way.target <= way.source])
    ahead = lanes([way for way in ways if way.target > way.source + 1])
    most = max([0, *(lane + 1 for lane in [*back.values(), *ahead.values()])])
    if most > MOST_LANES:
        return None
    left_lanes = max([0, *(lane + 1 for lane in back.values())])
    right_lanes = max([0, *(lane + 1 for lane in ahead.values())])
    left = _Grid(2 * count, 2 * left_lanes + 1)
    right = _Grid(2 * count, 2 * right_lanes + 1)
    for way, lane in back.items():
        _draw_back(left, way, 2 * (left_lanes - 1 - lane))
    for way, lane in ahead.items():
        _draw_ahead(right, way, 2 * lane + 1)
    below = [_stem(row in down, left, right, 2 * row + 1) for row in range(count)]
    return Rails(left.lines(), right.lines(), below, left.width)


def lanes(ways: list[Rail]) -> dict[Rail, int]:
    """A lane for each way, the shortest innermost; ways in one lane do not touch."""
    given: dict[Rail, int] = {}
    for way in sorted(ways, key=lambda way: (abs(way.source - way.target), way)):
        low, high = sorted((way.source, way.target))
        taken = {lane for other, lane in given.items() if min(other[:2]) <= high and max(other[:2]) >= low}
        given[way] = next(lane for lane in range(len(given) + 1) if lane not in taken)
    return given


class _Grid:
    """Cells as sets of directions, so that lines that meet join."""

    def __init__(self, height: int, width: int) -> None:
        self.cells = [[0] * width for _ in range(height)]
        self.heads: dict[tuple[int, int], str] = {}
        self.width = width

    def across(self, row: int, start: int, end: int) -> None:
        for column in range(start, end + 1):
            self.cells[row][column] |= (LEFT if column > start else 0) | (RIGHT if column < end else 0)

    def along(self, column: int, top: int, bottom: int) -> None:
        for row in range(top, bottom + 1):
            self.cells[row][column] |= (UP if row > top else 0) | (DOWN if row < bottom else 0)

    def lines(self) -> list[str]:
        return [
            "".join(self.heads.get((y, x)) or _BOX[cell] for x, cell in enumerate(row))
            for y, row in enumerate(self.cells)
        ]


def _draw_back(grid: _Grid, way: Rail, column: int) -> None:
    """From below its source, up the rail, into its target."""
    last = grid.width - 1
    source, target = 2 * way.source + 1, 2 * way.target
    grid.along(column, target, source)
    grid.across(source, column, last)
    grid.across(target, column, last)
    grid.heads[target, last] = "▶"


def _draw_ahead(grid: _Grid, way: Rail, column: int) -> None:
    """From below its source, down the rail, into its target."""
    source, target = 2 * way.source + 1, 2 * way.target
    grid.along(column, source, target)
    grid.across(source, 0, column)
    grid.across(target, 0, column)
    grid.heads[target, 0] = "◀"


def _stem(down: bool, left: _Grid, right: _Grid, row: int) -> str:  # noqa: FBT001 - three facts of one cell
    """The cell below a node's name: where its ways part."""
    directions = (DOWN if down else 0) | (LEFT if left.cells[row][-1] & LEFT or left.cells[row][-1] == RIGHT else 0)
    directions |= RIGHT if right.cells[row][0] & RIGHT else 0
    if not directions:
        return " "
    return "▼" if directions == DOWN else _BOX[directions | UP]
