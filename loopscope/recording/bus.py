"""The process's observers: adapters publish events here, recorders and links listen.

Apart from both, so that an adapter loads nothing of a debugger and costs next to nothing while nobody listens. The lock
is the adapters' too: they hold it from `next_seq` to `publish`, which makes the order of publication the order of seq.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from loopscope.engine.events import Event

__all__ = ["Bus", "Observer", "bus"]

Observer: TypeAlias = Callable[[Event], object]

_log = logging.getLogger("loopscope")


class _Subscription:
    """One observer's place in the list; two subscriptions of one observer are two places."""

    __slots__ = ("observer", "settle")

    def __init__(self, observer: Observer, settle: Callable[[], object] | None) -> None:
        self.observer = observer
        self.settle = settle


class Bus:
    """Hands each event to every observer, in the order of publication, on the thread that publishes.

    Observers must be quick and keep I/O to threads of their own, since they run under the lock. One that raises is
    dropped, and the log says so once; the publisher never sees it.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """Hold it from `next_seq` to `publish`. Read it anew each time: a forked child has a fresh one."""
        self.active = False
        """Whether anybody listens; where nobody does, no event need be made."""
        self._observers: tuple[_Subscription, ...] = ()
        self._waiting: deque[Event] = deque()
        self._publishing = False
        self._seq = itertools.count(1)

    def next_seq(self) -> int:
        """The next number of the process, from 1, never given twice."""
        return next(self._seq)

    def subscribe(self, observer: Observer, settle: Callable[[], object] | None = None) -> Callable[[], None]:
        """Call `observer(event)` for every event from now on, until the function given back is called (once or more).

        Args:
            observer: called under the lock.
            settle: called by `settle()`, outside the lock.
        """
        subscription = _Subscription(observer, settle)
        with self.lock:
            self._set((*self._observers, subscription))
        return lambda: self._drop(subscription)

    def publish(self, event: Event) -> None:
        """Give the event to every observer. Never raises what an observer raised.

        An event published by an observer waits until every observer has had the one before it.
        """
        with self.lock:
            self._waiting.append(event)
            if self._publishing:
                return
            self._publishing = True
            try:
                while self._waiting:
                    self._deliver(self._waiting.popleft())
            finally:
                self._publishing = False

    def settle(self) -> None:
        """Give recorders a moment to have what was published on its way to the disk. Never raises what one raised.

        For adapters, without the lock, between a batch and its tools: a tool may take the whole process down.
        """
        for subscription in self._observers:
            if subscription.settle is not None:
                self._guarded(subscription, subscription.settle)

    def _deliver(self, event: Event) -> None:
        for subscription in self._observers:
            self._guarded(subscription, subscription.observer, event)

    def _guarded(self, subscription: _Subscription, function: Callable[..., object], *event: Event) -> None:
        try:
            function(*event)
        except Exception:  # noqa: BLE001 - whatever is wrong with an observer, the run goes on
            self._drop(subscription)
            with contextlib.suppress(Exception):
                _log.exception("an observer of events failed and is no longer called: %r", subscription.observer)

    def _drop(self, subscription: _Subscription) -> None:
        with self.lock:
            self._set(tuple(other for other in self._observers if other is not subscription))

    def _set(self, observers: tuple[_Subscription, ...]) -> None:
        self._observers = observers
        self.active = bool(observers)

    def after_fork(self) -> None:
        """Make the bus usable in a forked child, whose parent's other threads may have held the lock."""
        self.lock = threading.RLock()
        self.active = bool(self._observers)
        self._waiting.clear()
        self._publishing = False


bus = Bus()
"""The one bus of this process."""

if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows cannot fork
    os.register_at_fork(after_in_child=bus.after_fork)
