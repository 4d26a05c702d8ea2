"""Breaking lines, and references inside them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loopscope.views.cells import cell_len
from loopscope.views.flow import flow, linked, wrap
from loopscope.views.model import Span, line_width, plain


def test_words_are_kept_whole() -> None:
    """A line breaks at a space; a word that is longer than a line is cut."""
    assert wrap("a warning was given", 9) == ["a warning", "was given"]
    assert wrap("abcdefgh ij", 3) == ["abc", "def", "gh", "ij"]
    assert wrap("ab cdefgh", 3) == ["ab", "cde", "fgh"]
    assert wrap("", 5) == [""]


def test_a_wide_character_in_a_single_cell_is_not_lost() -> None:
    """However narrow the room is, a piece has a character: wrapping ends."""
    assert wrap("日本", 1) == ["日", "本"]


@given(st.text("ab 日 ́", max_size=80), st.integers(2, 20))
def test_no_wrapped_line_is_too_wide(text: str, width: int) -> None:
    """And nothing but spaces is lost."""
    lines = wrap(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_parts_flow_onto_as_few_lines_as_they_need() -> None:
    """Each further line is indented; no parts give no lines."""
    parts = [(Span("aaa"),), (Span("bbb"),), (Span("ccc"),)]
    assert [plain(line) for line in flow(parts, 9, indent=2)] == ["aaa   bbb", "  ccc"]
    assert [plain(line) for line in flow(parts, 6, gap=1)] == ["aaa", "bbb", "ccc"]
    assert flow([], 9) == []


def test_a_reference_leads_to_its_batch() -> None:
    """Only to one that exists; the text stays as it was."""
    line = linked("#1 and #12, not #99, not x#1 nor ##1", 20)
    assert [(span.text, span.link) for span in line if span.link] == [("#1", 1), ("#12", 12)]
    assert plain(line) == "#1 and #12, not #99, not x#1 nor ##1"
    assert line_width(linked("", 3)) == 0
