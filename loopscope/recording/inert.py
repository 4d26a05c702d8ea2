r"""The one function that makes text from outside safe to draw: what is not a visible character is shown as one.

Apart because every screen, message and table passes through it. Controls, escape sequences, bidirectional and
zero-width characters, lone surrogates, private and unassigned characters become escapes such as `\x1b` or `\u202e`, so
that text can neither act on a terminal nor look like what it is not. Letters, wide characters and accents stay.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["MARKS", "inert", "inert_lines"]

MARKS = 4
"""Combining characters that one character may carry; Indic and Vietnamese need up to four, a flood has hundreds."""

_JAMO = "\u1160-\u11ff\ud7b0-\ud7ff"
_ODD = re.compile(rf"(?:[^ -~\w]|[\u115f{_JAMO}\u3164\uffa0])+")
"""Runs in which something may have to be shown: all but plain ASCII, letters and digits, plus blank letters."""
_JOINED = re.compile(f"[{_JAMO}]")
"""Letters that are drawn into the one before them, as combining marks are."""
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]",
)
"""Characters that Python calls printable and Unicode says to draw as nothing (Default_Ignorable_Code_Point)."""
_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_EMOJI_STYLE = "\ufe0f"
_WIDE_SPACE = "\u3000"


def inert(text: str, limit: int | None = None) -> str:
    r"""The text as one line of printable characters; a newline is shown as `\n`.

    Args:
        text: anything, of any length.
        limit: the most characters to give back, at least 1; longer text is cut, and `…` is its last character.
    """
    cut = limit is not None and len(text) > limit
    if cut:
        text = text[:limit]
    if not (text.isascii() and text.isprintable()):
        text = _ODD.sub(_shown, text)
    if limit is not None and (cut or len(text) > limit):
        return text[: limit - 1] + "…"
    return text


def inert_lines(text: str, limit: int | None = None) -> list[str]:
    """The text as lines of printable characters, split where it has newlines, its tabs as spaces.

    Args:
        text: anything, of any length.
        limit: the most characters to read of the text; where it is longer, the last line ends with `…`.
    """
    cut = limit is not None and len(text) > limit
    lines = [inert(line.removesuffix("\r").expandtabs(4)) for line in text[:limit].split("\n")]
    if cut:
        lines[-1] += "…"
    return lines


def _shown(run: re.Match[str]) -> str:
    """The run with every character visible, and no more marks than a character may carry."""
    shown: list[str] = []
    base = run.start() > 0
    marks = 0
    before = ""
    for character in run[0]:
        if _joins(character) and base:
            marks += 1
            if marks <= MARKS:
                shown.append(character)
            elif marks == MARKS + 1:
                shown.append("…")
        else:
            shown.append(_visible(character, before))
            base, marks = True, 0
        before = character
    return "".join(shown)


def _joins(character: str) -> bool:
    if _BLANK.match(character):
        return False
    return unicodedata.category(character)[0] == "M" or (
        _JOINED.match(character) is not None and character.isprintable()
    )


def _visible(character: str, before: str) -> str:
    if character == _EMOJI_STYLE and unicodedata.category(before or "a") == "So":
        return ""
    if character == _WIDE_SPACE:
        return "  "
    drawn = character.isprintable() and not _BLANK.match(character) and not _joins(character)
    return character if drawn else _escape(character)


def _escape(character: str) -> str:
    if character > "\uffff":
        return f"\\U{ord(character):08x}"
    if character > "\xff":
        return f"\\u{ord(character):04x}"
    return _NAMED.get(character) or f"\\x{ord(character):02x}"
