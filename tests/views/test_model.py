"""Lines: widths in cells, clipping, and what a click on a line leads to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loopscope.recording.inert import inert
from loopscope.views.cells import cell_len
from loopscope.views.model import Span, clip, crop, fit, line_width, link_at, marked, plain, spread


@given(st.text(), st.integers(0, 30))
def test_a_fitted_text_takes_exactly_its_cells(text: str, width: int) -> None:
    """Whatever a name is made of, the column behind it does not move."""
    for right in (False, True):
        assert cell_len(fit(inert(text), width, right=right)) == width


def test_a_long_text_ends_with_an_ellipsis() -> None:
    """What is left out is shown to be."""
    assert clip("abcdef", 4) == "abc…"
    assert clip("abcd", 4) == "abcd"
    assert clip("日本語", 5) == "日本…"
    assert clip("abc", 0) == ""


def test_a_clipped_text_has_no_space_before_its_ellipsis() -> None:
    """A word that ends just there does not leave a hole."""
    assert clip("ab cdef", 4) == "ab…"


def test_a_line_is_cropped_inside_its_spans() -> None:
    """Spans that fit stay, the next one is clipped, the rest goes; nothing is left over at the very edge."""
    line = (Span("ab"), Span("cdef", "warn"), Span("gh"))
    assert crop(line, 4) == (Span("ab"), Span("c…", "warn"))
    assert crop(line, 2) == (Span("ab"),)
    assert crop(line, 8) == line


def test_two_ends_of_a_line() -> None:
    """The right end stands at the edge; the left one gives way."""
    line = spread((Span("left"),), (Span("right"),), 12)
    assert plain(line) == "left   right"
    assert line_width(spread((Span("a long left"),), (Span("right"),), 12)) == 12


def test_a_cell_leads_where_its_span_does() -> None:
    """A click is looked up by cells, wide characters included."""
    line = (Span("日本 "), Span("#7", link=7), Span(" x"))
    assert [link_at(line, cell) for cell in (0, 4, 5, 6, 7, 99)] == [0, 0, 7, 7, 0, 0]


def test_a_mark_covers_every_span() -> None:
    """A chosen row is marked as a whole, and keeps its styles and links."""
    assert marked((Span("a", "warn", link=3),), "cursor") == (Span("a", "warn", "cursor", 3),)
