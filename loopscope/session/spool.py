"""Where the lines of a live run stand: a nameless temporary file, so that what is looked at later can be read again.

Apart from the reader of recordings, which reads what others wrote. Only batches and results are kept, since nothing
else is ever read again.
"""

from __future__ import annotations

import os
import tempfile
from typing import NamedTuple

from loopscope.engine.events import Batch, Event, Result
from loopscope.errors import UnreadableInputError
from loopscope.recording.codec import decode, encode

__all__ = ["Located", "Spool"]


class Located(NamedTuple):
    """An event, and where its line stands; of length 0 where it is not kept."""

    event: Event
    offset: int
    length: int


class Spool:
    """Keeps events on disk. One thread writes; any thread may read. The file goes with the process."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="loopscope-", buffering=0)  # noqa: SIM115 - lives as long as we do
        self._size = 0

    def keep(self, event: Event) -> Located:
        """Write an event down. On a full disk it is shown all the same, and cannot be read again."""
        if not isinstance(event, (Batch, Result)):
            return Located(event, self._size, 0)
        line = encode(event)
        self._file.seek(self._size)
        try:
            written = self._file.write(line)
        except OSError:
            return Located(event, self._size, 0)
        place = Located(event, self._size, len(line) if written == len(line) else 0)
        self._size += written or 0
        return place

    def read_at(self, offset: int, length: int) -> Event | None:
        """The event whose line begins at this byte.

        Raises:
            UnreadableInputError: if it was not kept.
        """
        if not length:
            raise UnreadableInputError("this line was not kept: no room for temporary files")
        try:
            return decode(_read(self._file.fileno(), offset, length))
        except (OSError, ValueError) as error:
            raise UnreadableInputError(f"this line cannot be read again: {error}") from None


def _read(fd: int, offset: int, length: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(fd, length, offset)
    os.lseek(fd, offset, os.SEEK_SET)
    return os.read(fd, length)
