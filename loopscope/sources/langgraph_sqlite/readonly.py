"""Opens a foreign SQLite database so that neither it nor its folder changes, and so that nothing in it runs.

LangGraph's databases are written ahead: the newest checkpoints stand in `-wal`, often all of them, and SQLite reads
those only beside a `-shm` file that it writes. So a database with such a neighbour is copied into a private folder
and read there; one without is opened as immutable, which takes no locks and writes nothing. It stands apart since
none of it knows LangGraph.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from loopscope.errors import UnreadableInputError
from loopscope.recording.inert import inert

__all__ = ["FAILURES", "MAX_VALUE", "in_use", "is_sqlite", "opened"]

MAX_VALUE = 128 * 1024 * 1024
"""Bytes of one stored value that are read. A larger one is reported and left out."""
FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""What reading a damaged file raises: also SQLite's own message can hold bytes of it that are no text."""
_MAGIC = b"SQLite format 3\x00"
_WAL_HEADER = 32
_JOURNAL_MODE, _WRITTEN_AHEAD = 18, b"\x02"
"""Where a database says which kind of journal its programs keep."""
_CHUNK = 1 << 20
_ATTEMPTS = 8
_FUNCTIONS = frozenset({"count", "length", "max", "min"})


def is_sqlite(path: str | os.PathLike[str]) -> bool:
    """Whether this is a regular file that can be read and begins as an SQLite database does."""
    with suppress(OSError, ValueError):
        return _refusal(Path(path)) is None
    return False


@contextmanager
def opened(path: str | os.PathLike[str]) -> Iterator[sqlite3.Connection]:
    """An SQLite database on which nothing but reading is possible.

    Raises:
        UnreadableInputError: there is no such file, it is no SQLite database, or it cannot be opened.
    """
    name = os.fspath(path)
    with ExitStack() as stack:
        try:
            connection = _open(Path(path), stack)
        except (OSError, ValueError, *FAILURES) as error:
            raise UnreadableInputError(inert(f"{name}: {getattr(error, 'strerror', None) or error}")) from None
        try:
            yield connection
        except FAILURES as error:
            raise UnreadableInputError(inert(f"{name}: SQLite cannot read it: {error}")) from None


@contextmanager
def in_use(path: str | os.PathLike[str]) -> Iterator[sqlite3.Connection]:
    """As `opened`, for a moment's look at a database that a program may be writing: in place, not by a copy.

    SQLite notes its readers in the `-shm` file, so it is read in place only where the program's own is there. A
    connection that stays open would keep the program from tidying its log away when it ends, so let go of it soon.

    Raises:
        UnreadableInputError: as for `opened`.
    """
    real = Path(path).resolve()
    with ExitStack() as stack:
        try:
            connection = stack.enter_context(closing(_shared(real)))
        except (OSError, ValueError, *FAILURES):
            connection = stack.enter_context(opened(path))
        try:
            yield connection
        except FAILURES as error:
            raise UnreadableInputError(inert(f"{os.fspath(path)}: SQLite cannot read it: {error}")) from None


def _shared(real: Path) -> sqlite3.Connection:
    """A connection beside others; an error where making it would leave something behind, or where it can read nothing.

    At worst, where the program ends at this very moment, an empty log stays beside the database.
    """
    refusal = _refusal(real)
    if (
        refusal is None
        and _is_written_ahead(real)
        and not all(_beside(real, each).exists() for each in ("-wal", "-shm"))
    ):
        refusal = "nobody has it open"
    if refusal is not None:
        raise ValueError(refusal)
    connection = sqlite3.connect(f"{real.as_uri()}?mode=ro", uri=True, timeout=1.0, check_same_thread=False)
    try:
        _disarm(connection)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _is_written_ahead(real: Path) -> bool:
    with _descriptor(real) as source:
        return _read(source, _JOURNAL_MODE, 1) == _WRITTEN_AHEAD


def _open(path: Path, stack: ExitStack) -> sqlite3.Connection:
    refusal = _refusal(path)
    if refusal is not None:
        raise ValueError(refusal)
    # SQLite's neighbours stand beside the file itself, not beside a link to it.
    real = path.resolve()
    private = stack.enter_context(tempfile.TemporaryDirectory(prefix="loopscope-", ignore_cleanup_errors=True))
    connection = stack.enter_context(closing(_connect(real, Path(private))))
    _disarm(connection)
    return connection


def _refusal(path: Path) -> str | None:
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        return "not a file"
    if found.st_size == 0:
        return "empty file"
    with _descriptor(path) as source:
        return None if _read(source, 0, len(_MAGIC)) == _MAGIC else "not an SQLite database"


def _connect(real: Path, private: Path) -> sqlite3.Connection:
    if any(_beside(real, suffix).exists() for suffix in ("-wal", "-journal")):
        return sqlite3.connect(_copied(real, private), check_same_thread=False)
    return sqlite3.connect(f"{real.as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False)


def _disarm(connection: sqlite3.Connection) -> None:
    """Whatever the schema of a foreign file holds, reading is all that happens."""
    connection.text_factory = lambda data: data.decode("utf-8", "replace")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 2 * MAX_VALUE)
    for pragma in ("query_only = ON", "trusted_schema = OFF", "cell_size_check = ON"):
        connection.execute(f"PRAGMA {pragma}")
    connection.set_authorizer(_authorise)


def _authorise(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """Asked by SQLite while it prepares a statement."""
    allowed = (
        action in {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ}
        or (action == sqlite3.SQLITE_FUNCTION and second in _FUNCTIONS)
        or (action == sqlite3.SQLITE_PRAGMA and first == "table_xinfo")
    )
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _copied(real: Path, private: Path) -> Path:
    """A copy of a database that may be in use, with what was committed last.

    Frames are only added to a write-ahead log until it is reset, and a reset changes the salt in its header. So with
    equal headers before and after, the copy of the log holds everything that the copy of the database may lack.
    """
    copy = private / "copy.db"
    for _ in range(_ATTEMPTS):
        before = _state(real)
        for suffix in ("", "-wal", "-journal"):
            _copy(_beside(real, suffix), _beside(copy, suffix))
        if _state(real) == before:
            return copy
    raise OSError("it changes faster than it can be copied; try again when its program rests")


def _state(real: Path) -> tuple[bytes | int | None, ...]:
    """What changes when a copy that is being made loses its worth."""
    log = journal = changed = None
    with suppress(FileNotFoundError), _descriptor(_beside(real, "-wal")) as source:
        log = _read(source, 0, _WAL_HEADER)
    with suppress(FileNotFoundError):
        journal = _beside(real, "-journal").stat().st_mtime_ns
    if log is None:
        changed = real.stat().st_mtime_ns
    return log, journal, changed


def _copy(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    with suppress(FileNotFoundError), _descriptor(source) as origin, target.open("wb") as copy:
        offset = 0
        while chunk := _read(origin, offset, _CHUNK):
            copy.write(chunk)
            offset += len(chunk)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


@contextmanager
def _descriptor(path: Path) -> Iterator[int]:
    """A descriptor to read a file by: one that this process has open already, where there is one.

    Closing any descriptor of a file drops every POSIX lock that the process holds on it. In a notebook these are the
    locks of the agent's own connection, without which another process may write into a database that is in use.
    """
    held = _held(path)
    if held is not None:
        yield held
        return
    own = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        yield own
    finally:
        os.close(own)


def _held(path: Path) -> int | None:
    wanted = path.stat()
    with suppress(OSError):
        for entry in os.listdir("/dev/fd"):  # noqa: PTH208 - a Path for each would double the cost
            with suppress(OSError, ValueError):
                found = os.fstat(int(entry))
                if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
                    os.pread(int(entry), 1, 0)
                    return int(entry)
    return None


def _read(source: int, offset: int, size: int) -> bytes:
    if sys.platform == "win32":  # pragma: no cover - Windows has no pread, and none of these locks
        os.lseek(source, offset, os.SEEK_SET)
        return os.read(source, size)
    return os.pread(source, size, offset)
