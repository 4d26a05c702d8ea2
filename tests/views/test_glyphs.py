"""Glyphs: one cell each, and each with a stand-in for terminals that have nothing but ASCII."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loopscope.recording.inert import inert
from loopscope.views import glyphs
from loopscope.views.cells import cell_len
from loopscope.views.glyphs import GLYPH, in_ascii, line_in_ascii
from loopscope.views.model import Span


def test_every_glyph_takes_one_cell() -> None:
    """So that a strip of them is a grid, in both alphabets."""
    assert {cell_len(glyph) for glyph in (*GLYPH.values(), *glyphs._OURS)} == {1}
    assert len(glyphs._OURS) == len(glyphs._THEIRS)
    assert glyphs._THEIRS.isascii()


def test_the_states_in_ascii() -> None:
    """As the documentation gives them."""
    assert in_ascii("".join(GLYPH.values())) == ".=!X#"


@given(st.text())
def test_ascii_takes_the_same_cells(text: str) -> None:
    """Swapping glyphs never moves a column, whatever else stands in the line."""
    text = inert(text)
    assert in_ascii(text).isascii()
    assert cell_len(in_ascii(text)) == cell_len(text)


def test_a_line_keeps_its_styles_in_ascii() -> None:
    """Only the text is swapped."""
    assert line_in_ascii((Span("■ 日", "stop", link=4),)) == (Span("X ??", "stop", link=4),)
