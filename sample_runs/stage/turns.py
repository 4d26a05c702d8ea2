"""Lets agents in parallel threads take turns, so that what is recorded of them comes in one order each time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Turns"]

_PATIENCE = 30.0


class Turns:
    """One goes on at a time, in a fixed round; whoever is done leaves the round.

    Args:
        names: all who take part, in order.
    """

    def __init__(self, *names: str) -> None:
        self._round = list(names)
        self._moved = threading.Condition()

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Wait for one's first turn, and leave the round in the end."""
        with self._moved:
            self._await(name)
        try:
            yield
        finally:
            with self._moved:
                self._round.remove(name)
                self._moved.notify_all()

    def next(self, name: str) -> None:
        """End one's turn, and wait for the next one."""
        with self._moved:
            self._round.append(self._round.pop(0))
            self._moved.notify_all()
            self._await(name)

    def _await(self, name: str) -> None:
        if not self._moved.wait_for(lambda: self._round[0] == name, timeout=_PATIENCE):
            raise TimeoutError(f"{name} never got its turn; {self._round[0]} holds it")
