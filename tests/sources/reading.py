"""A feed that is read as the debugger reads it, for tests of what can be followed."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

from loopscope.engine.events import Batch
from loopscope.recording.feed import Feed, Message

__all__ = ["PATIENCE", "Reading", "Readings"]

PATIENCE = 120
"""Seconds to wait for another process on a busy machine."""


class Reading:
    """A feed that is read in a thread; it begins at once."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.found: list[Message] = []
        """What was asked for so far."""
        self._messages: queue.Queue[Message | None] = queue.Queue()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        for message in self.feed:
            self._messages.put(message)
        self._messages.put(None)

    def one(self) -> Message:
        """The next message."""
        message = self._messages.get(timeout=PATIENCE)
        assert message is not None
        self.found.append(message)
        return message

    def next(self, kind: type[Any]) -> Any:
        """The next message of this kind."""
        while not isinstance(message := self.one(), kind):
            pass
        return message

    def rest(self) -> list[Message]:
        """What comes until the feed is over."""
        return list(iter(lambda: self._messages.get(timeout=PATIENCE), None))

    def queries(self) -> list[str]:
        """What was searched for in the batches so far."""
        calls = [call for message in self.found if isinstance(message, Batch) for call in message.calls]
        return [call.args["query"] for call in calls]

    def close(self) -> None:
        """Stop looking."""
        self.feed.close()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


Readings = Callable[[Feed], Reading]
