"""The file behind a recorder: opened so that it never blocks, checked before each write, found again when it was lost.

Apart from the recorder, which deals with queues and threads. All here is done on the recorder's own thread, but for the
first opening, whose errors are the user's to see.
"""

from __future__ import annotations

import errno
import os
import stat

from loopscope.errors import UsageError
from loopscope.recording.inert import inert

__all__ = ["Appending"]

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_OWNER_ONLY = 0o600
_KEEP_OPEN = frozenset({errno.EAGAIN, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EINTR})
"""After these errors the file is still the right one; only its disk, or the reader of the pipe, has to make room."""
_LOOK = 4096


class Appending:
    """A file that is appended to, made for its owner alone where it is made.

    Args:
        path: where; the folder must exist. A pipe without a reader is waited for, not an error.

    Raises:
        UsageError: where the path cannot be written, or holds something that is no recording.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = -1
        self._identity: tuple[int, int] | None = None
        self._begins = True
        self._dirty_end = False
        name = inert(path, 300)
        if path.endswith(".gz"):
            raise UsageError(f"{name}: recordings are written plain; name it {name.removesuffix('.gz')}")
        try:
            self._open()
        except (OSError, ValueError) as error:
            if getattr(error, "errno", None) != errno.ENXIO:
                raise UsageError(f"{name}: {_why(path, error)}") from None

    def ready(self) -> bool:
        """Make the file ready for writing; whether it is another one than before, so that a header is due.

        Raises:
            OSError: where it cannot be opened.
        """
        if self._fd >= 0 and not self._is_ours():
            self._fd = -1
        elif self._fd >= 0 and os.fstat(self._fd).st_nlink == 0:
            self.close()
        if self._fd < 0:
            before = self._identity
            self._open()
            found = os.fstat(self._fd)
            same = self._identity == before and stat.S_ISREG(found.st_mode) and found.st_size > 0
            self._begins = self._begins or not same
        begins, self._begins = self._begins, False
        return begins

    def write(self, data: bytes | memoryview) -> int:
        """Write once; how many bytes were taken.

        Raises:
            OSError: where nothing was. The file is opened anew at the next `ready`, where that may help.
        """
        try:
            return os.write(self._fd, data)
        except OSError as error:
            if error.errno not in _KEEP_OPEN:
                self.close()
            raise

    def needs_newline(self) -> bool:
        """Whether what was in the file when it was opened does not end with a whole line; tells it once."""
        dirty, self._dirty_end = self._dirty_end, False
        return dirty

    def close(self) -> None:
        """Close the file if it is still the one that was opened: the program may have closed it and got its number."""
        if self._fd >= 0 and self._is_ours():
            os.close(self._fd)
        self._fd = -1

    def _open(self) -> None:
        fd = os.open(self._path, _FLAGS, _OWNER_ONLY)
        found = os.fstat(fd)
        self._dirty_end = False
        if stat.S_ISREG(found.st_mode) and found.st_size:
            try:
                first, last = _ends(self._path, found.st_size)
            except OSError:
                first, last = b"{", b""
            if not first.startswith(b"{"):
                os.close(fd)
                raise OSError(errno.EEXIST, "exists and is no recording; name another file")
            self._dirty_end = last != b"\n"
        self._fd, self._identity = fd, (found.st_dev, found.st_ino)

    def _is_ours(self) -> bool:
        try:
            found = os.fstat(self._fd)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._identity


def _ends(path: str, size: int) -> tuple[bytes, bytes]:
    """The beginning of a file, without what may stand before the first object, and its last byte."""
    with open(path, "rb") as file:  # noqa: PTH123 - the path is text already
        first = file.read(_LOOK).removeprefix(b"\xef\xbb\xbf").lstrip()
        file.seek(size - 1)
        return first or b"{", file.read(1)


def _why(path: str, error: OSError | ValueError) -> str:
    folder = os.path.dirname(path) or "."  # noqa: PTH120 - the path is text already
    if isinstance(error, FileNotFoundError) and not os.path.isdir(folder):  # noqa: PTH112 - same
        return f"the folder {inert(folder, 300)} does not exist; make it first"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
