"""Writes a recording while the agent runs, without ever being in its way: a bounded queue and one thread.

A line is made when its event is put, so that later changes to arguments do not matter, and is with the operating
system a moment later; `settle` waits for that moment. When the disk stalls or fails, lines wait; when too many wait,
events are dropped, counted, and noted as a `gap` where they are missing (SPEC §5).
"""

from __future__ import annotations

import atexit
import datetime as dt
import errno
import logging
import os
import threading
import time
from collections.abc import Mapping
from typing import Any, Self

import loopscope
from loopscope.engine.events import FORMAT, Event, Gap, Header
from loopscope.engine.policy import Policy
from loopscope.recording.appending import Appending
from loopscope.recording.codec import encode
from loopscope.recording.inert import inert
from loopscope.recording.outbox import Outbox

__all__ = ["CAPACITY", "Recorder", "recorder_for"]

CAPACITY = 16 << 20
"""Bytes of lines that wait for the disk at most; what comes after is dropped."""
_CHUNK = 1 << 20
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0
_log = logging.getLogger("loopscope")


class Recorder:
    """Appends events to a recording. `put` never blocks and never raises.

    Args:
        path: the file, made for its owner alone (0600); its folder must exist, and `{pid}` stands for the number of the
            process. An existing recording gets a new segment.
        policy: what runs live, for the header; None where nothing decides.
        enforced: whether decisions are applied to the run.
        producer: who writes, for the header.
        capacity: bytes of lines that may wait for the disk.

    Raises:
        UsageError: where the file cannot be written to.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        policy: Policy | Mapping[str, Any] | None = None,
        enforced: bool = False,
        producer: str | None = None,
        capacity: int = CAPACITY,
    ) -> None:
        self._template = os.path.abspath(path)  # noqa: PTH100 - as text, and symbolic links stay
        self._policy = dict(policy.to_dict() if isinstance(policy, Policy) else policy) if policy is not None else None
        self._enforced = enforced
        self._producer = producer or f"loopscope {loopscope.__version__}"
        self._capacity = capacity
        self.users = 1
        """How many share it, each of whom closes it: see `recorder_for`."""
        self._thread: threading.Thread | None
        self._file: Appending | None
        self._gap: Gap | None
        self._begin()
        self._open()
        _sharing.recorders.add(self)

    @property
    def path(self) -> str:
        """The file of this process."""
        return self._template.replace("{pid}", str(os.getpid()))

    @property
    def policy(self) -> dict[str, Any] | None:
        """The policy in the header, as plain data."""
        return self._policy

    def put(self, event: Event) -> None:
        """Queue an event as it is now. Never blocks, never raises an Exception; safe from any thread."""
        try:
            line = encode(event) + b"\n"
            with self._outbox.lock:
                if self._thread is None and not self._outbox.closing:
                    self._open()
                if self._outbox.closing:
                    self.lost += 1
                    return
                if self._outbox.has_room(line):
                    self._note_gap()
                    self._outbox.put(line)
                else:
                    self._drop(event)
        except Exception:  # noqa: BLE001 - no memory, no thread, no file: the agent goes on all the same
            self._outbox.closing = self._outbox.closing or self._thread is None
            self.lost += 1

    def settle(self, timeout: float = 0.01) -> bool:
        """Wait until all that was put is with the operating system; whether it is.

        Nobody waits while the disk is known to stall or fail: after one time-out, not until the queue was empty.

        Args:
            timeout: seconds to wait at most.
        """
        return self._outbox.settle(timeout)

    def close(self, timeout: float = 2.0) -> bool:
        """Write what is left and close the file, with the last of its users; whether all was written.

        Args:
            timeout: seconds to wait at most.
        """
        with self._outbox.lock:
            self.users -= 1
            if self.users > 0:
                return True
            self._deadline = time.monotonic() + timeout
            self._outbox.closing = True
            self._outbox.wake()
            thread, self._thread = self._thread, None
        _sharing.recorders.discard(self)
        if thread is not None:
            thread.join(timeout)
            left = self._outbox.waiting
            self.lost += left
            if left:
                _log.warning("recording %s: the last %d events are not in it", inert(self.path), left)
        return self.lost == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self) -> None:
        """As nothing had been recorded yet."""
        self.lost = 0
        """Events that were dropped so far."""
        self._outbox = Outbox(self._capacity)
        self._thread = None
        self._file = None
        self._gap = None
        self._deadline = float("inf")

    def _open(self) -> None:
        self._file = Appending(self.path)
        thread = threading.Thread(target=self._run, args=(self._file,), name="loopscope-recorder", daemon=True)
        thread.start()
        self._thread = thread

    def _drop(self, event: Event) -> None:
        self.lost += 1
        seq, ts = (0, None) if isinstance(event, Header) else (event.seq, event.ts)
        self._gap = Gap(seq=seq, ts=ts, thread_id=None, run_id=None, lost=self._gap.lost + 1 if self._gap else 1)
        if not self._outbox.waiting:
            self._note_gap()

    def _note_gap(self) -> None:
        """Tell what is missing here, under the number of the last event that is."""
        if self._gap is not None:
            self._outbox.put(encode(self._gap) + b"\n")
            self._gap = None

    def _run(self, file: Appending) -> None:
        """The thread: the header, then lines until there are no more, or no way to write them."""
        outbox = self._outbox
        lines: list[bytes] = []
        while self._write(file, b"".join(lines)):
            with outbox.lock:
                outbox.written(lines)
                self._note_gap()
            lines = outbox.take(_CHUNK)
            if not lines:
                break
        file.close()

    def _write(self, file: Appending, lines: bytes) -> bool:
        """Write whole lines, for as long as it takes; False where the recorder is closed and there is no way."""
        head, done, pause = b"", 0, 0.0
        while True:
            last_try = self._outbox.closing
            try:
                if file.ready():
                    head = b"\n" * file.needs_newline() + self._header()
                    done = lines.rfind(b"\n", 0, done) + 1
                if not head and done == len(lines):
                    return True
                count = file.write(head + lines[done:])
                head, done, pause = head[count:], done + max(0, count - len(head)), 0.0
            except OSError as error:
                if not self._wait(error, pause, last_try=last_try):
                    return False
                pause = min(max(2 * pause, _FIRST_PAUSE), _LONGEST_PAUSE)

    def _wait(self, error: OSError, pause: float, *, last_try: bool) -> bool:
        """After a failure: whether to try again, and when. Once closed, only a full pipe is worth another try."""
        self._outbox.stall()
        full_pipe = error.errno == errno.EAGAIN
        if pause == 0.0 and not full_pipe:
            _log.warning("recording %s: %s; trying again", inert(self.path), error.strerror)
        if last_try and (not full_pipe or time.monotonic() > self._deadline):
            return False
        self._outbox.pause(max(pause, _FIRST_PAUSE))
        return True

    def _header(self) -> bytes:
        created = dt.datetime.now(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        header = Header(
            format=FORMAT, producer=self._producer, created=created, policy=self._policy, enforced=self._enforced
        )
        return encode(header) + b"\n"

    def forked(self) -> None:
        """In a child process: the file is the parent's, and so is what was queued; `{pid}` names one of our own."""
        inherited = self._file
        self._begin()
        self._outbox.closing = "{pid}" not in self._template
        if inherited is not None:
            inherited.close()

    def is_at(self, path: str) -> bool:
        """Whether this is an open recorder to the path."""
        return not self._outbox.closing and os.path.realpath(self._template) == os.path.realpath(path)


class _Sharing:
    """The recorders of this process that are open."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.recorders: set[Recorder] = set()

    def close_all(self) -> None:
        """At the end of the program: nothing more comes."""
        for recorder in list(self.recorders):
            recorder.users = 1
            recorder.close()

    def after_fork(self) -> None:
        """In a child process."""
        self.lock = threading.Lock()
        for recorder in list(self.recorders):
            recorder.forked()


def recorder_for(
    path: str | os.PathLike[str],
    *,
    policy: Policy | Mapping[str, Any] | None = None,
    enforced: bool = False,
    producer: str | None = None,
) -> Recorder:
    """The recorder to this file, which somebody in this process may have open already: close it once for each call.

    The header is that of the first one; whoever shares a recorder under another policy tells it in `policy` events.
    Arguments and errors as for `Recorder`.
    """
    with _sharing.lock:
        for recorder in _sharing.recorders:
            if recorder.is_at(os.path.abspath(path)):  # noqa: PTH100 - as text
                recorder.users += 1
                return recorder
        return Recorder(path, policy=policy, enforced=enforced, producer=producer)


_sharing = _Sharing()
atexit.register(_sharing.close_all)
if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows cannot fork
    os.register_at_fork(after_in_child=_sharing.after_fork)
