"""What a program writes, kept for the debugger: whatever it writes, and however much."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscope.session import output as module
from loopscope.session.output import Output


def written(*pieces: bytes) -> Output:
    """An output to which this was written, piece by piece."""
    output = Output()
    for piece in pieces:
        output.feed(piece)
    return output


def shown(output: Output) -> list[str]:
    """All lines that are kept."""
    return output.lines(0, len(output))


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        ((), []),
        ((b"one\ntwo",), ["one", "two"]),
        ((b"one\n", b"tw", b"o\n\n"), ["one", "two", ""]),
        ((b"a\r\nb\r\n",), ["a", "b"]),
        ((b"10%\r20%\r", b"30%"), ["30%"]),
        ((b"10%\r20%\r\n",), ["20%"]),
        (("é".encode()[:1], "é".encode()[1:]), ["é"]),
        ((b"\xff\x00\n",), [r"\xff\x00"]),
        ((b"\x1b[2J\x1b]0;t\x07",), [r"\x1b[2J\x1b]0;t\x07"]),
        ((b"a\tb",), ["a       b"]),
    ],
)
def test_lines_are_what_a_terminal_would_show_made_visible(pieces: tuple[bytes, ...], lines: list[str]) -> None:
    """Lines that are written over, cut in the middle of a character, or meant to act on a terminal."""
    output = written(*pieces)
    assert shown(output) == lines
    assert len(output) == len(lines)
    assert output.bytes == sum(map(len, pieces))
    assert output.dropped == 0


def test_a_part_of_the_lines() -> None:
    """As many as are asked for, from where it is asked, the unfinished one included."""
    output = written(b"a\nb\nc")
    assert output.lines(1, 1) == ["b"]
    assert output.lines(1, 9) == ["b", "c"]
    assert output.lines(2, 1) == ["c"]
    assert output.lines(3, 1) == []
    assert output.lines(9, 1) == []


def test_only_the_newest_lines_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says how many are gone; whether they came one by one or at once."""
    monkeypatch.setattr(module, "_LINES", 3)
    lines = [b"%d\n" % n for n in range(10)]
    for output in (written(*lines), written(b"".join(lines))):
        assert shown(output) == ["7", "8", "9"]
        assert output.dropped == 7
    output = written(b"".join(lines) + b"end")
    assert shown(output) == ["7", "8", "9", "end"]


def test_a_flood_takes_no_memory() -> None:
    """Neither long lines nor one that never ends: the beginning of a line is kept, and a million characters of all."""
    endless = written(*[b"x" * 100_000] * 100)
    (line,) = shown(endless)
    assert len(line) <= 2_000
    many = written(*[b"y" * 1_900 + b"\n"] * 2_000)
    assert len(many) * 1_900 <= 1 << 20
    assert many.dropped == 2_000 - len(many)


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_how_it_is_cut_into_pieces_does_not_matter(pieces: list[bytes]) -> None:
    """The same bytes are the same lines."""
    assert shown(written(*pieces)) == shown(written(b"".join(pieces)))
    assert all(line.isprintable() for line in shown(written(*pieces)))
