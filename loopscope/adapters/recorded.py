"""A recording file that several middlewares of one process may share, each with a policy of its own.

Apart from the recorder since only adapters know which agents belong to one recording; two writers to one file would
mix their lines.
"""

from __future__ import annotations

import os
from os import PathLike

from loopscope.engine.events import Event
from loopscope.engine.policy import Policy
from loopscope.recording.bus import bus
from loopscope.recording.writer import Recorder

__all__ = ["Recording"]

_open: dict[str, Recording] = {}
"""The open recordings of this process, by absolute path."""


class Recording:
    """One open recording file. `put` never blocks and never raises."""

    __slots__ = ("_path", "_recorder", "_users", "policy")

    def __init__(self, path: str, policy: Policy) -> None:
        self._path = path
        self._recorder = Recorder(path, policy=policy, enforced=True)
        self._users = 0
        self.policy = policy
        """The policy in the file's header."""

    @classmethod
    def open(cls, path: str | PathLike[str], policy: Policy) -> Recording:
        """The recording to this file, which may be open already; `release` it once for each call."""
        absolute = os.path.abspath(path)  # noqa: PTH100 - a link is the name that the user chose
        with bus.lock:
            recording = _open.get(absolute)
            if recording is None:
                recording = _open[absolute] = cls(absolute, policy)
            recording._users += 1
            return recording

    def put(self, event: Event) -> None:
        """Queue an event."""
        self._recorder.put(event)

    def settle(self) -> None:
        """Wait a moment until what was queued is on its way to the disk."""
        self._recorder.settle()

    def release(self) -> None:
        """One user is done with it; with the last one the file is closed."""
        with bus.lock:
            self._users -= 1
            if self._users > 0:
                return
            _open.pop(self._path, None)
        self._recorder.close()
