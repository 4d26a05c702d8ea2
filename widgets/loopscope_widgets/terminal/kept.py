"""The breakpoints of each recording, kept from one session to the next in the user's state folder.

One small file a recording, so that two viewers of different recordings never meet. What cannot be read is as if it were
not there, and what cannot be written is not kept: breakpoints are worth no error.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from loopscope.engine.breakpoints import Breakpoint, parse
from loopscope.errors import UsageError
from loopscope.targets import state_folder

__all__ = ["MOST", "breakpoints_of", "keep_breakpoints"]

MOST = 200
"""Recordings whose breakpoints are kept; those that were changed longest ago go first."""
_SAMPLE = "sample:"


class _Kept(msgspec.Struct):
    """One file."""

    recording: str
    breakpoints: list[Breakpoint]


def _name(source: str) -> str | None:
    """What a recording is known by; None for what has no name that lasts, such as the standard input."""
    if source.startswith(_SAMPLE):
        return source
    try:
        return str(Path(source).resolve()) if Path(source).is_file() else None
    except (OSError, ValueError, RuntimeError):
        return None


def _folder() -> Path:
    return state_folder() / "breakpoints"


def _file(name: str) -> Path:
    import hashlib  # noqa: PLC0415 - OpenSSL takes time to load, and few keep breakpoints

    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return _folder() / f"{digest}.json"


def breakpoints_of(source: str) -> list[Breakpoint]:
    """The breakpoints that this recording had when it was last looked at."""
    name = _name(source)
    if name is None or not _folder().is_dir():
        return []
    try:
        kept = msgspec.json.decode(_file(name).read_bytes(), type=_Kept)
    except (OSError, ValueError):
        return []
    return [point for point in kept.breakpoints if kept.recording == name and _is_valid(point)]


def _is_valid(point: Breakpoint) -> bool:
    try:
        return parse(str(point)) == msgspec.structs.replace(point, enabled=True, one_shot=False)
    except UsageError:
        return False


def keep_breakpoints(source: str, points: Sequence[Breakpoint]) -> None:
    """Keep these for the next session, if the recording has a name and the folder can be written."""
    name = _name(source)
    if name is None:
        return
    file = _file(name)
    with suppress(OSError, ValueError):
        if not points:
            file.unlink(missing_ok=True)
            return
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = file.with_suffix(f".{os.getpid()}")
        draft.write_bytes(msgspec.json.encode(_Kept(name, list(points))))
        draft.replace(file)
        _prune()


def _prune() -> None:
    files = sorted(_folder().glob("*.json"), key=lambda file: file.stat().st_mtime)
    for file in files[:-MOST]:
        file.unlink(missing_ok=True)
