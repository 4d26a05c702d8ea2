"""The folder in which the processes of one user can be found: private, that user's own, and no link.

Apart from discovery, which trusts what is in it. A folder that anybody else could write to is not used, whatever its
name.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from loopscope.errors import CannotAttachError
from loopscope.link.process import own_uid
from loopscope.recording.inert import inert

__all__ = ["LONGEST_PATH", "folders", "open_folder"]

LONGEST_PATH = 100
"""Bytes of a socket's path: the platforms take 104 to 108."""
_NAME_ROOM = 24
"""What a socket's own name takes of that."""


def folders() -> list[Path]:
    """The folders that exist and are safe to trust, most likely first."""
    return [folder for folder in _candidates() if flaw(folder) is None]


def open_folder() -> Path:
    """The folder to put a new endpoint into, made where it is missing.

    Raises:
        CannotAttachError: where there is none that is safe; the message says of each what is wrong with it.
    """
    problems: list[str] = []
    for folder in _candidates():
        if len(os.fsencode(folder)) + _NAME_ROOM > LONGEST_PATH:
            problems.append(f"{folder}: its path is too long for a socket")
            continue
        problem = _made(folder) or flaw(folder)
        if problem is None:
            return folder
        problems.append(f"{folder}: {problem}")
    raise CannotAttachError(inert("no private folder for the endpoint: " + "; ".join(problems), 600))


def flaw(folder: Path) -> str | None:
    """Why others could meddle with this folder; None where they cannot."""
    try:
        own, above = folder.lstat(), folder.parent.stat()
    except OSError as error:
        return error.strerror or str(error)
    if not stat.S_ISDIR(own.st_mode):
        return "is no folder (a link is not followed)"
    uid = own_uid()
    if uid is None:
        return None
    if own.st_uid != uid:
        return f"belongs to user {own.st_uid}, not to {uid}"
    if own.st_mode & 0o077:
        return f"is open to others; close it with: chmod 700 {folder}"
    return _replaceable(above, uid)


def _replaceable(above: os.stat_result, uid: int) -> str | None:
    sticky_or_closed = above.st_mode & stat.S_ISVTX or not above.st_mode & 0o022
    return None if above.st_uid in (0, uid) and sticky_or_closed else "is in a folder that others may write to"


def _candidates() -> Iterator[Path]:
    """Where to look, in the order of choice, each place once."""
    uid = own_uid()
    found: list[Path] = []
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if uid is None:
        found.append(Path(tempfile.gettempdir()) / "loopscope")
    else:
        if Path(runtime).is_absolute() and _is_ours(Path(runtime), uid):
            found.append(Path(runtime) / "loopscope")
        standard = Path(f"/run/user/{uid}")
        if sys.platform == "linux" and _is_ours(standard, uid):
            found.append(standard / "loopscope")
        found += [Path(place) / f"loopscope-{uid}" for place in (tempfile.gettempdir(), "/tmp")]  # noqa: S108 - checked
    yield from dict.fromkeys(found)


def _is_ours(folder: Path, uid: int) -> bool:
    """Whether it is this user's, or was made for it: nothing is put into the folder of somebody else."""
    try:
        return folder.stat().st_uid in (0, uid)
    except OSError:
        return False


def _made(folder: Path) -> str | None:
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return None
    except OSError as error:
        return error.strerror or str(error)
    return None
