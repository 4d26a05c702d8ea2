"""The messages of the protocol: versions, and what is no message."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscope.engine.events import Gap
from loopscope.link.lines import Lines
from loopscope.link.refusal import RefusedError
from loopscope.link.wire import (
    Answer,
    Bye,
    Hello,
    Summary,
    Welcome,
    encode,
    negotiate,
    read_from_agent,
    read_hello,
    read_request,
)

JUNK = [
    b"",
    b"\0",
    b"GET / HTTP/1.1\r",
    b"\xff\xfe\x00",
    b"[" * 60_000,
    b'{"kind":"hello","version":' + b"[" * 3_000,
    b'{"kind":"request","id":1,"verb":"pause","arguments":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    b'{"kind":"hello","version":"1"}',
    b'{"kind":"hello","version":1.5}',
    b'{"kind":"hello"}',
    b'{"kind":"bye"}',
    b'{"kind":1}',
    b"null",
    b"{}",
]


@pytest.mark.parametrize("line", JUNK, ids=range(len(JUNK)))
def test_junk_is_refused_in_one_short_line(line: bytes) -> None:
    """Whatever it is; what the refusal says of it is safe to draw."""
    for read in (read_hello, read_request):
        with pytest.raises(RefusedError) as caught:
            read(line)
        assert caught.value.code == "malformed"
        assert len(str(caught.value)) <= 200
        assert str(caught.value).isprintable()


@given(st.binary(max_size=200))
def test_bytes_are_a_message_or_an_error(line: bytes) -> None:
    """And nothing else, on either side."""
    for read in (read_hello, read_request):
        with pytest.raises(RefusedError):
            read(line)
    with contextlib.suppress(ValueError):
        read_from_agent(line)


@pytest.mark.parametrize(
    ("version", "oldest", "agreed", "upgrade"),
    [
        (1, 1, 1, None),
        (10**9, 1, 1, None),
        (0, 0, None, "where you typed"),
        (-5, -5, None, "where you typed"),
        (10**9, 10**9, None, "environment of the agent"),
        (2, 2, None, "environment of the agent"),
    ],
)
def test_versions_are_negotiated_down_or_the_side_to_upgrade_is_named(
    version: int, oldest: int, agreed: int | None, upgrade: str | None
) -> None:
    """A newer viewer that still speaks ours is let in."""
    hello = Hello(version=version, oldest=oldest)
    if upgrade is None:
        assert negotiate(hello) == agreed
        return
    with pytest.raises(RefusedError, match=upgrade):
        negotiate(hello)


def test_every_message_of_an_agent_comes_back_equal() -> None:
    """Events too; and a kind that a later version may send is passed over."""
    welcome = Welcome(
        version=1, session="s", pid=1, name="n", python="3", loopscope="0", started=0.0, control=False,
        capabilities={"pause": "no"}, summary=Summary(batches=3),
    )  # fmt: skip
    for message in (
        welcome,
        Answer(id=3, ok=True, result={"a": [1]}),
        Bye(code="ended", reason="x"),
        Gap(seq=1, ts=None, thread_id=None, run_id=None, lost=2),
    ):
        assert read_from_agent(encode(message).rstrip(b"\n")) == message
    assert read_from_agent(b'{"kind":"hologram","x":1}') is None
    assert read_from_agent(b'{"kind":"answer","id":1,"ok":true,"new":1}') == Answer(id=1, ok=True)


@pytest.mark.parametrize("line", [b"[" * 100_000, b'{"kind":"bye"}', b'{"kind":"batch"}', b"\xff"])
def test_what_breaks_the_protocol_is_an_error_for_a_viewer_too(line: bytes) -> None:
    """So that it can pass over it."""
    with pytest.raises(ValueError, match=r"\w"):
        read_from_agent(line)


@given(st.lists(st.binary(max_size=30).map(lambda data: data.replace(b"\n", b" "))), st.integers(1, 9))
def test_lines_are_cut_wherever_the_pieces_end(lines: list[bytes], size: int) -> None:
    """A line may come in any number of pieces, and a piece may hold any number of lines."""
    data = b"".join(line + b"\n" for line in lines)
    cutter = Lines()
    found = [line for start in range(0, len(data), size) for line in cutter.cut(data[start : start + size])]
    assert found == lines


def test_a_line_that_memory_cannot_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it is kept any further."""
    monkeypatch.setattr("loopscope.link.lines.LONGEST", 10)
    cutter = Lines()
    assert cutter.cut(b"12345\n12345") == [b"12345"]
    with pytest.raises(ValueError, match="longer"):
        cutter.cut(b"678901")
