"""Bytes of a recording from wherever they come: a file, a pipe, gzip, and a copy to read again what cannot be rewound.

Apart from the reader, which only sees pieces of plain bytes and can ask for a stretch of them once more.
"""

from __future__ import annotations

import difflib
import os
import stat
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, BinaryIO

from loopscope.errors import UnreadableInputError
from loopscope.recording.inert import inert

__all__ = ["CHUNK", "Source"]

CHUNK = 1 << 18
"""Bytes that are read, or unpacked, in one go."""
_GZIP = b"\x1f\x8b"
_ANY_GZIP_HEADER = 31


class Source:
    """The bytes of one input, read once from start to end, and again in stretches where that was asked for.

    Args:
        origin: a path, or a binary file object (which stays open).
        keep: copy what cannot be rewound (pipes, gzip, file objects) to a nameless file while it is read.

    Raises:
        UnreadableInputError: where a path cannot be opened.
    """

    def __init__(self, origin: str | os.PathLike[str] | BinaryIO, *, keep: bool = False) -> None:
        self._lock = threading.Lock()
        self._again: IO[bytes] | None = None
        self._copying = False
        self.damage: str | None = None
        """What is wrong with compressed data, once the end of what can be unpacked was reached."""
        self._keep = keep
        self._path: str | None = None
        if isinstance(origin, (str, os.PathLike)):
            self._path = os.fspath(origin)
            self.name = inert(self._path, 300)
            self._file = _open(self._path, self.name)
        else:
            self.name = inert(str(getattr(origin, "name", "the input")), 300)
            self._file = origin

    def chunks(self) -> Iterator[bytes]:
        """The bytes in pieces of any size, unpacked where they are gzip, whatever the name says.

        Raises:
            UnreadableInputError: where reading fails.
        """
        try:
            pieces = iter(_reading(self._file), b"")
            first = next(pieces, b"")
            first += next(pieces, b"") if len(first) == 1 else b""
            if first.startswith(_GZIP):
                pieces, first = self._unpacked(first, pieces), b""
            elif self._path is not None and stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
                self._again = open(self._path, "rb", buffering=0)  # noqa: SIM115, PTH123 - closed by close()
            self._copying = self._keep and self._again is None
            if self._copying:
                self._again = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed by close()
            yield from self._copied(first)
            for piece in pieces:
                yield from self._copied(piece)
        except OSError as error:
            raise UnreadableInputError(f"{self.name}: {error.strerror or error}") from error

    @property
    def share(self) -> float | None:
        """How much of the input was read, 0 to 1; None where nobody knows how long it is. Safe from any thread."""
        if self._path is None:
            return None
        try:
            size = os.fstat(self._file.fileno()).st_size
            return min(1.0, self._file.tell() / size) if size else None
        except (OSError, ValueError):
            return None

    def stretch(self, offset: int, length: int) -> bytes:
        """Some bytes once more, counted after unpacking. Safe from any thread.

        Raises:
            UnreadableInputError: where they are not there, or were not kept.
        """
        with self._lock:
            if self._again is None:
                raise UnreadableInputError(f"{self.name}: cannot be read twice")
            self._again.seek(offset)
            data = _exactly(self._again, length)
        if len(data) < length:
            raise UnreadableInputError(f"{self.name}: is shorter than it was")
        return data

    def close(self) -> None:
        """Give back what was opened here."""
        if self._path is not None:
            self._file.close()
        if self._again is not None:
            self._again.close()

    def _copied(self, piece: bytes) -> Iterator[bytes]:
        if self._copying and self._again is not None:
            with self._lock:
                self._again.seek(0, os.SEEK_END)
                self._again.write(piece)
        if piece:
            yield piece

    def _unpacked(self, first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
        """Members of gzip one after the other; stops at damage, never unpacks more than a chunk at once."""
        data, member = first, zlib.decompressobj(_ANY_GZIP_HEADER)
        try:
            while data := data or next(rest, b""):
                if member.eof:
                    if data[:1] == b"\0":
                        return
                    member = zlib.decompressobj(_ANY_GZIP_HEADER)
                if piece := member.decompress(data, CHUNK):
                    yield piece
                data = member.unused_data if member.eof else member.unconsumed_tail
        except zlib.error as error:
            self.damage = f"compressed data is damaged ({error})"
        else:
            self.damage = None if member.eof else "compressed data ends early"


def _open(path: str, name: str) -> BinaryIO:
    try:
        return open(path, "rb", buffering=0)  # noqa: PTH123 - the path is text already
    except FileNotFoundError:
        raise UnreadableInputError(f"{name}: no such file{_nearest(path)}") from None
    except IsADirectoryError:
        raise UnreadableInputError(f"{name}: is a directory; name a recording in it") from None
    except (OSError, ValueError) as error:
        raise UnreadableInputError(f"{name}: {getattr(error, 'strerror', None) or error}") from None


def _nearest(path: str) -> str:
    """A hint at the file that was meant, where one beside it has nearly the same name."""
    place = Path(path)
    try:
        near = difflib.get_close_matches(place.name, os.listdir(place.parent), n=1)  # noqa: PTH208 - names are enough
    except OSError:
        return ""
    return f", did you mean {inert(str(place.parent / near[0]), 300)}?" if near else ""


def _reading(file: BinaryIO) -> Callable[[], bytes]:
    """A read of whatever is there, without waiting for a full chunk where the file can do that."""
    read: Callable[[int], bytes] = getattr(file, "read1", file.read)
    return lambda: read(CHUNK) or b""


def _exactly(file: IO[bytes], length: int) -> bytes:
    parts: list[bytes] = []
    while length > 0 and (part := file.read(length)):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)
