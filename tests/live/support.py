"""A process with a real agent in it, and a viewer's session of it."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from loopscope.engine.snapshot import Snapshot
from loopscope.link.follow import Follow
from loopscope.session.live import LiveSession

PROGRAM = Path(__file__).with_name("agent.py")
PATIENCE = 120.0


class Agent:
    """The process. What it says is read in the background."""

    def __init__(self, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(PROGRAM), *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self.process.pid
        self.said: list[str] = []
        self._states: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        until(lambda: "listening" in self.said)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("state "):
                self._states.put(line)
            else:
                self.said.append(line.strip())

    @property
    def tools(self) -> int:
        """How many tools it has run."""
        return sum(line.startswith("tool") for line in self.said)

    def state(self) -> tuple[int, Snapshot]:
        """The state of its engine, and a number that no earlier event has."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        _, seq, text = self._states.get(timeout=PATIENCE).split(" ", 2)
        return int(seq), msgspec.json.decode(text, type=Snapshot)

    def end(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.communicate()


class Viewer:
    """A session that follows, fed by a thread as the debugger's is; call `take` to see what came.

    Args:
        feed: a process that nobody follows yet.
        first: called before it does: an agent that waits for a viewer is still there where it began.
    """

    def __init__(self, feed: Follow, first: Callable[[Follow], object] = bool) -> None:
        self.feed = feed
        first(feed)
        self.live = LiveSession(feed.name)
        self._inbox: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        for message in self.feed:
            self._inbox.put(message)

    def take(self) -> None:
        """Take in what came."""
        while not self._inbox.empty():
            self.live.take([self._inbox.get()])  # type: ignore[list-item]

    def until(self, true: Callable[[LiveSession], object]) -> None:
        """Take in what comes until this is true."""

        def now() -> object:
            self.take()
            return true(self.live)

        until(now)

    def close(self) -> None:
        """Leave."""
        self.feed.close()
        self._thread.join(PATIENCE)


def until(true: Callable[[], object]) -> None:
    """Wait for something that another process does."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.005)
