"""Rails: every way is drawn, ways back on the left, ways ahead on the right, too many are a table."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loopscope.views.rails import Rail, rails


def drawn(count: int, *ways: tuple[int, int]) -> list[str]:
    """The rows as a person sees them, nodes as their numbers."""
    layout = rails(count, [Rail(*way, taken=True) for way in ways])
    assert layout is not None
    found: list[str] = []
    for row in range(count):
        found.append(f"{layout.left[2 * row]}{row}{layout.right[2 * row]}".rstrip())
        found.append(f"{layout.left[2 * row + 1]}{layout.below[row]}{layout.right[2 * row + 1]}".rstrip())
    return found


def test_a_loop_goes_up_on_the_left() -> None:
    """Down the middle, back on the rail."""
    assert drawn(3, (0, 1), (1, 2), (2, 1)) == [
        "   0",
        "   ▼",
        "╭─▶1",
        "│  ▼",
        "│  2",
        "╰──╯",
    ]


def test_a_node_that_leads_to_itself() -> None:
    """Its rail begins and ends at its own two rows."""
    assert drawn(1, (0, 0)) == ["╭─▶0", "╰──╯"]


def test_a_way_that_skips_nodes_goes_down_on_the_right() -> None:
    """With the way to the next node beside it."""
    assert drawn(3, (0, 1), (0, 2)) == [
        " 0",
        " ├─╮",
        " 1 │",
        "   │",
        " 2◀╯",
        "",
    ]


def test_rails_that_overlap_have_lanes_of_their_own() -> None:
    """The shortest is innermost; one that begins where another ends may not share its lane."""
    assert drawn(3, (1, 0), (2, 0)) == [
        "╭─┬─▶0",
        "│ │",
        "│ │  1",
        "│ ╰──╯",
        "│    2",
        "╰────╯",
    ]


def test_too_many_rails_are_no_rails() -> None:
    """What nobody could follow is left to a table."""
    assert (
        rails(20, [Rail(19 - i, i, taken=False) for i in range(10)] + [Rail(19, i, taken=False) for i in range(10)])
        is None
    )


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.tuples(st.just(n), st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=6))
    )
)
def test_every_row_is_as_wide_as_its_side(case: tuple[int, set[tuple[int, int]]]) -> None:
    """For any ways the rows line up, and each way ends in an arrow."""
    count, ways = case
    layout = rails(count, [Rail(*way, taken=False) for way in ways])
    assert layout is not None
    assert {len(row) for row in layout.left} == {layout.width}
    assert len({len(row) for row in layout.right}) == 1
    heads = sum(row.count("▶") for row in layout.left) + sum(row.count("◀") for row in layout.right)
    targets = {("back", t) for s, t in ways if t <= s} | {("ahead", t) for s, t in ways if t > s + 1}
    assert heads == len(targets)
