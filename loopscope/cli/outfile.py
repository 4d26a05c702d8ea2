"""The file that a verb writes: whole or not at all, for its owner alone, never over something that is not its like."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from loopscope.errors import UsageError
from loopscope.recording.inert import inert

__all__ = ["STDOUT", "written"]

STDOUT = "-"
_LOOK = 64


@contextmanager
def written(path: str, *, may_replace: Callable[[bytes], bool], otherwise: str) -> Iterator[BinaryIO]:
    """Where to write. The file appears when all was written; after an error it is as it was, or not there.

    Args:
        path: a file, `-` for stdout, or a device or pipe, which is written to as it is.
        may_replace: whether a file that is there already may go; it gets the file's first bytes.
        otherwise: what is wrong with a file that may not go, and what to do.

    Raises:
        UsageError: if it cannot be written, or must not be.
    """
    if path == STDOUT:
        yield sys.stdout.buffer
        return
    name = inert(path, 300)
    try:
        # What a link leads to is replaced, not the link.
        place = Path(os.path.realpath(path))
        if _is_special(place):
            with place.open("wb") as file:
                yield file
            return
        _check(place, name, may_replace, otherwise)
        with _beside(place) as file:
            yield file
            _check(place, name, may_replace, otherwise)
    except FileNotFoundError:
        raise UsageError(f"{name}: there is no such folder; make it first") from None
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        raise UsageError(f"{name}: {getattr(error, 'strerror', None) or error}") from None


def _is_special(place: Path) -> bool:
    with suppress(FileNotFoundError):
        mode = place.stat().st_mode
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    return False


def _check(place: Path, name: str, may_replace: Callable[[bytes], bool], otherwise: str) -> None:
    try:
        with place.open("rb") as file:
            start = file.read(_LOOK)
    except FileNotFoundError:
        return
    except IsADirectoryError:
        raise UsageError(f"{name}: is a directory; name a file in it") from None
    if not may_replace(start):
        raise UsageError(f"{name}: {otherwise}")


@contextmanager
def _beside(place: Path) -> Iterator[BinaryIO]:
    """A file beside the place that takes it when all is done."""
    number, draft = tempfile.mkstemp(prefix=".loopscope-", dir=place.parent)
    try:
        with open(number, "wb") as file:  # noqa: PTH123 - it is open already
            yield file
        os.replace(draft, place)  # noqa: PTH105 - the name is text already
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)  # noqa: PTH108 - as above
        raise
