"""A foreign file as the lines of a recording, so that whoever reads recordings reads it as well.

Apart from the formats, which give events and know nothing of lines. Nothing is written unless lines are to be read
again; then the recording's reader keeps them in its nameless temporary file.
"""

from __future__ import annotations

import io
import os
from collections.abc import Generator, Iterator

from loopscope.engine.events import Event
from loopscope.recording.codec import encode
from loopscope.recording.reader import Line, LineProblem, Reader
from loopscope.sources import events

__all__ = ["ForeignReader"]


class ForeignReader(Reader):
    """Reads a file of any format that can be imported; offsets and line numbers are those of its recording.

    Args:
        path: the file.
        channel: as for `sources.events`.
        keep: as for `Reader`.

    Raises:
        UnreadableInputError: it is of no known format; while iterating, where nothing in it can be read.
        UsageError: while iterating, where it has no such channel.
    """

    def __init__(self, path: str | os.PathLike[str], channel: str | None = None, *, keep: bool = False) -> None:
        self._found: list[tuple[int, str]] = []
        self._encoded = _Encoded(os.fspath(path), events(path, channel, self._found))
        super().__init__(io.BufferedReader(self._encoded), keep=keep)

    def __iter__(self) -> Iterator[Line]:
        yield from super().__iter__()
        self.problems.extend(LineProblem(0, f"row {row}: {reason}" if row else reason) for row, reason in self._found)

    def close(self) -> None:
        """Also let go of the foreign file."""
        super().close()
        self._encoded.close()


class _Encoded(io.RawIOBase):
    """Events as bytes, each encoded when it is asked for."""

    def __init__(self, name: str, told: Iterator[Event]) -> None:
        self.name = name
        self._told = told
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # any writable buffer
        if not self._left:
            event = next(self._told, None)
            self._left = b"" if event is None else encode(event) + b"\n"
        count = min(len(buffer), len(self._left))
        buffer[:count], self._left = self._left[:count], self._left[count:]
        return count

    def close(self) -> None:
        if isinstance(self._told, Generator):
            self._told.close()
        super().close()
