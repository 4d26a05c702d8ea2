"""A recording, event by event: streamed, forgiving where a crash or another producer was at work, exact about the rest.

Apart from the session, which keeps offsets and reads single lines again when somebody looks at them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, Self

from loopscope.engine.events import FORMAT, Event, Header
from loopscope.errors import NoRecordingError, UnreadableInputError
from loopscope.recording.chunks import Source
from loopscope.recording.codec import decode, is_newer
from loopscope.recording.inert import inert

__all__ = ["LONGEST", "PROBLEMS", "Line", "LineProblem", "Reader", "read"]

LONGEST = 1 << 28
"""Bytes of the longest line that is read: 256 MiB."""
PROBLEMS = 1_000
"""Problems that are kept with their reason; `Reader.skipped` counts all bad lines."""

_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_BEFORE_ALL = -(1 << 63)
_SPACE = re.compile(r"[ \t\r\n]*")
_object_at = json.JSONDecoder().raw_decode


class Line(NamedTuple):
    """One event and where it stands."""

    event: Event | None
    """None where the kind is unknown to this version."""
    offset: int
    """Bytes before it, after unpacking."""
    length: int
    """Bytes of it, without the newline."""
    number: int
    """Its line in the file, from 1; several events can share one."""
    raw: bytes | None
    """Its bytes, only where the kind is unknown."""


class LineProblem(NamedTuple):
    """What is wrong with one line, in text that is safe to draw."""

    number: int
    reason: str


class _Piece(NamedTuple):
    number: int
    offset: int
    data: bytes
    ended: bool
    """Whether a newline follows: the last line of a crashed recorder has none."""


class Reader:
    """Iterate it once for the events of a recording; then `problems` and `skipped` tell what was wrong with it.

    Args:
        origin: a path, or a binary file object (which stays open). gzip is unpacked, whatever the name.
        keep: make `read_at` work for what cannot be rewound too, by a copy in a nameless temporary file.

    Raises:
        UnreadableInputError: where a path cannot be opened; while iterating, where reading fails, where there is no
            event to be read, and where a header is of a newer major version. The message is one line.
    """

    def __init__(self, origin: str | os.PathLike[str] | BinaryIO, *, keep: bool = False) -> None:
        self._source = Source(origin, keep=keep)
        self.name = self._source.name
        """What to call the input in messages."""
        self.problems: list[LineProblem] = []
        """The first 1,000 problems: bad lines, and events out of order (which are kept)."""
        self.skipped = 0
        """Lines of which something could not be read."""
        self.truncated = False
        """Whether the last line was cut off, as a crash leaves it; that is no problem."""
        self._binary = False
        self._last_seq = _BEFORE_ALL

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close what was opened here; `read_at` no longer works then."""
        self._source.close()

    @property
    def share(self) -> float | None:
        """How much of the input was read, 0 to 1; None where nobody knows how long it is. Safe from any thread."""
        return self._source.share

    def read_at(self, offset: int, length: int) -> Event | None:
        """The event of a line once more. Safe from any thread.

        Raises:
            UnreadableInputError: where the file changed since, or where it was not kept.
        """
        try:
            return decode(self.raw_at(offset, length))
        except ValueError:
            raise UnreadableInputError(f"{self.name}: was changed since it was opened") from None

    def raw_at(self, offset: int, length: int) -> bytes:
        """The bytes of a line once more; errors as for `read_at`."""
        return self._source.stretch(offset, length)

    def __iter__(self) -> Iterator[Line]:
        found = False
        piece: _Piece | None = None
        for piece in self._pieces():
            number, offset, data, _ = piece
            try:
                event = decode(data)
            except ValueError as error:
                for line in self._several(piece, str(error)):
                    found = found or line.event is not None
                    yield line
                continue
            if event is None:
                yield Line(None, offset, len(data), number, data)
                continue
            found = True
            self._check(event, number)
            yield Line(event, offset, len(data), number, None)
        if self._source.damage is not None:
            self._problem(piece.number if piece else 1, self._source.damage)
        if not found:
            raise NoRecordingError(f"{self.name}: {self._nothing(piece)}")

    def _check(self, event: Event, number: int) -> None:
        """Whether the header can be read, and whether the event comes after the one before it."""
        if isinstance(event, Header):
            self._last_seq = _BEFORE_ALL
            try:
                newer = is_newer(event)
            except ValueError as error:
                raise UnreadableInputError(f"{self.name}:{number}: {inert(str(error), 200)}") from None
            if newer:
                was = inert(event.format, 40)
                raise UnreadableInputError(
                    f"{self.name}:{number}: is {was}, this version reads {FORMAT}; update loopscope"
                )
            return
        if event.seq <= self._last_seq:
            self._problem(number, f"seq {event.seq} comes after {self._last_seq}")
        self._last_seq = event.seq

    def _several(self, piece: _Piece, reason: str) -> Iterator[Line]:
        """The events of a line that is not just one: blank, several objects, a byte order mark, cut off, or bad."""
        number, offset, data, ended = piece
        bad: str | None = None
        for start, end, complete in _objects(data):
            part = data[start:end]
            try:
                event = decode(part)
            except ValueError as error:
                if not ended and not complete and part.startswith(b"{"):
                    self.truncated = True
                else:
                    bad = bad or (reason if len(part) == len(data) else str(error))
                continue
            if event is not None:
                self._check(event, number)
            yield Line(event, offset + start, end - start, number, part if event is None else None)
        if bad is not None:
            self.skipped += 1
            self._problem(number, bad)

    def _problem(self, number: int, reason: str) -> None:
        if len(self.problems) < PROBLEMS:
            self.problems.append(LineProblem(number, inert(reason, 200)))

    def _nothing(self, last: _Piece | None) -> str:
        """Why there is no event, in one clause."""
        if self._binary:
            return "is no recording: its content is binary"
        if self.problems:
            return f"has no readable event; line {self.problems[0].number} {self.problems[0].reason}"
        if self.truncated:
            return "has no readable event: its only line is cut off"
        return "is empty" if last is None else "has no event"

    def _pieces(self) -> Iterator[_Piece]:
        """The lines as bytes, without their newlines; one that is too long is a problem and left out."""
        number, offset, parts, size = 1, 0, list[bytes](), 0
        for chunk in self._source.chunks():
            if offset == size == 0:
                self._look_at_start(chunk)
            head, *lines = chunk.split(b"\n")
            parts.append(head)
            size += len(head)
            if lines:
                yield self._joined(number, offset, parts, size, ended=True)
                number, offset, tail = number + 1, offset + size + 1, lines.pop()
                for data in lines:
                    yield _Piece(number, offset, data, True)
                    number, offset = number + 1, offset + len(data) + 1
                parts, size = [tail], len(tail)
            if size > LONGEST:
                parts = []
        if size:
            yield self._joined(number, offset, parts, size, ended=False)

    def _joined(self, number: int, offset: int, parts: list[bytes], size: int, *, ended: bool) -> _Piece:
        if size <= LONGEST:
            return _Piece(number, offset, b"".join(parts), ended)
        self.skipped += 1
        self._problem(number, f"is longer than {LONGEST:,} bytes")
        return _Piece(number, offset, b"", ended)

    def _look_at_start(self, chunk: bytes) -> None:
        if chunk.startswith(_UTF_16):
            raise UnreadableInputError(f"{self.name}: is UTF-16; save it as UTF-8")
        self._binary = b"\0" in chunk


def read(origin: str | os.PathLike[str] | BinaryIO) -> Iterator[Line]:
    """The events of a recording, where problems with single lines do not matter; errors as for `Reader`."""
    with Reader(origin) as reader:
        yield from reader


def _objects(data: bytes) -> Iterator[tuple[int, int, bool]]:
    """Where each JSON value of a line begins and ends, in bytes; the last one may be no JSON, and is False then."""
    text = data.decode("utf-8", "surrogateescape")
    start = len(_BOM) if data.startswith(_BOM) else 0
    at = 1 if start else 0
    while (begin := _SPACE.match(text, at).end()) < len(text):  # type: ignore[union-attr]
        try:
            end, complete = _object_at(text, begin)[1], True
        except (ValueError, RecursionError):
            end, complete = len(text), False
        start += begin - at
        stop = start + len(text[begin:end].encode("utf-8", "surrogateescape"))
        yield start, stop, complete
        start, at = stop, end
