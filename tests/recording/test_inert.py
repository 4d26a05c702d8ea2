from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscope.recording.inert import MARKS, inert, inert_lines

ANYTHING = st.text(st.characters(codec=None))
HOSTILE = st.text(
    st.sampled_from(
        "\x1b[]0;?hlmPq\\\x07\x9b\x9d\x90\n\r\t\x00\x08\x7f\u202e\u2066\u2069\u200b\u200d\ufeff\ud800\u0301\u3164a界é"
    ),
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b]0;owned\x07", r"\x1b]0;owned\x07"),
        ("\x1b[2J\x1b[31m", r"\x1b[2J\x1b[31m"),
        ("\x9b2J\x90q\x9c", r"\x9b2J\x90q\x9c"),
        ("a\nb\r\n\tc", r"a\nb\r\n\tc"),
        ("nul\x00 del\x7f bs\x08", r"nul\x00 del\x7f bs\x08"),
        ("user\u202etxt.exe", r"user\u202etxt.exe"),
        ("\u2066a\u2069", r"\u2066a\u2069"),
        ("zero\u200bwidth\ufeff", r"zero\u200bwidth\ufeff"),
        ("soft\u00adhyphen nbsp\u00a0.", r"soft\xadhyphen nbsp\xa0."),
        ("line\u2028paragraph\u2029", r"line\u2028paragraph\u2029"),
        ("lone \ud800 surrogate", r"lone \ud800 surrogate"),
        ("private \ue000 and \U000f0000", r"private \ue000 and \U000f0000"),
        ("tag \U000e0041", r"tag \U000e0041"),
        ("filler \u3164 \u115f \uffa0", r"filler \u3164 \u115f \uffa0"),
        ("joiner\u034f variation\ufe01 \U000e0100", r"joiner\u034f variation\ufe01 \U000e0100"),
        ("\u0301first", r"\u0301first"),
        ("界隈で。日本　語", "界隈で。日本  語"),
        ("naïve e\u0301 — “quoted” … 🙂", "naïve e\u0301 — “quoted” … 🙂"),
        ("✔\ufe0f ok", "✔ ok"),
        ("1\ufe0f", r"1\ufe0f"),
        ("हिन्दी ภาษาไทย العربية", "हिन्दी ภาษาไทย العربية"),
        ("\u1112\u1161\u11ab", "\u1112\u1161\u11ab"),
        ("", ""),
    ],
)
def test_what_cannot_be_seen_is_shown_as_an_escape(text: str, shown: str) -> None:
    """Each class of dangerous character has a visible form, and honest text is left alone."""
    assert inert(text) == shown


@given(ANYTHING | HOSTILE)
def test_the_result_is_printable_whatever_comes(text: str) -> None:
    """No control, format, surrogate, private or unassigned character and no line break is left."""
    shown = inert(text)
    assert shown.isprintable()
    assert inert(shown) == shown


def test_every_single_character_is_printable_afterwards() -> None:
    """All 1,114,112 code points, each between two letters."""
    for start in range(0, sys.maxunicode + 1, 0x4000):
        shown = inert("x".join(map(chr, range(start, min(start + 0x4000, sys.maxunicode + 1)))))
        assert shown.isprintable()
        assert not any(
            unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} for character in shown
        )


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_plain_ascii_is_given_back_as_it_is(text: str) -> None:
    """The common case costs no copy."""
    assert inert(text) is text


def test_a_flood_of_combining_marks_is_cut() -> None:
    """A character keeps its first marks; the rest of the flood is one ellipsis."""
    assert inert("a" + "\u0301" * 500 + "b") == "a" + "\u0301" * MARKS + "…b"
    assert inert("\u1112" + "\u1161" * 500) == "\u1112" + "\u1161" * MARKS + "…"


@given(ANYTHING | HOSTILE, st.integers(1, 12))
def test_no_more_than_the_limit_comes_back(text: str, limit: int) -> None:
    """Cut text ends with an ellipsis; text that fits is whole."""
    shown, whole = inert(text, limit), inert(text)
    assert len(shown) <= limit
    assert shown == whole or shown.endswith("…")
    if len(whole) <= limit and len(text) <= limit:
        assert shown == whole


def test_a_huge_text_costs_what_is_shown() -> None:
    """Fifty megabytes of escapes come back as forty characters."""
    shown = inert("\x1b" * 50_000_000, 40)
    assert shown == "\\x1b" * 9 + "\\x1…"


def test_lines_are_split_at_newlines_alone() -> None:
    """CRLF is one line break, a lone CR and the exotic breaks are shown, tabs are spaces."""
    assert inert_lines("a\r\nb\tc\n\nd\re\x0bf\u2028g") == ["a", "b   c", "", r"d\re\x0bf\u2028g"]


def test_lines_say_where_they_were_cut() -> None:
    """The last line that is shown ends with an ellipsis when there was more."""
    assert inert_lines("abc\ndefgh", 6) == ["abc", "de…"]
    assert inert_lines("abc\nde", 6) == ["abc", "de"]


@given(ANYTHING | HOSTILE)
def test_every_line_is_printable(text: str) -> None:
    """What holds for one line holds for each of several."""
    lines = inert_lines(text)
    assert len(lines) == text.count("\n") + 1
    assert all(line.isprintable() for line in lines)
