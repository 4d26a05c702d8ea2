"""What a signal does that asks the debugger to end: it leaves as by its key, so that the terminal is as it was found.

Apart from the application, which draws. A terminal that is gone cannot be given back: then the process ends all the
same.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress

__all__ = ["Ending"]

_NAMES = ("SIGTERM", "SIGHUP")
_GRACE = 3.0
"""Seconds for leaving; who asks again with SIGKILL would leave the terminal as it is."""
_KILLED = 128
"""What shells add to the number of the signal that ended a program."""


class Ending:
    """How a process that draws is asked to end.

    Args:
        leave: begins to leave; it is called in the event loop.
    """

    def __init__(self, leave: Callable[[], object]) -> None:
        self.told: Callable[[int], object] | None = None
        """Called with the number of the signal before anything else is done."""
        self._leave = leave
        self._number = 0
        self._last = threading.Timer(_GRACE, self._at_once)
        self._last.daemon = True

    def listen(self) -> None:
        """From now on, in the running event loop; what somebody else has put in charge of a signal stays."""
        loop = asyncio.get_running_loop()
        for number in (getattr(signal, name, None) for name in _NAMES):
            if number is not None and signal.getsignal(number) == signal.SIG_DFL:
                # Not everywhere, and only where the main thread draws.
                with suppress(RuntimeError, ValueError):
                    loop.add_signal_handler(number, self._asked, number)

    def settle(self) -> None:
        """The terminal is as it was.

        Raises:
            SystemExit: with the code that says so, where a signal ended it.
        """
        self._last.cancel()
        if self._number:
            raise SystemExit(_KILLED + self._number)

    def _asked(self, number: int) -> None:
        if self._number:
            return
        self._number = number
        self._last.start()
        if self.told is not None:
            self.told(number)
        self._leave()

    def _at_once(self) -> None:
        os._exit(_KILLED + self._number)
