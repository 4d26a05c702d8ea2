"""The debugger on a recording that is still being read: what is there can be looked at, the rest comes in between.

A thread reads ahead; what it has read is taken in here, between two keys, in slices that no key has to wait for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from textual.message import Message

from loopscope.session.loading import Loading
from loopscope_widgets.terminal.screens.debug import DebugScreen

__all__ = ["LoadingScreen"]

_SLICE = 0.012
"""Seconds for taking in at a time: well below a frame."""
_PAUSE = 0.004
"""Seconds between two slices."""
_SCOPES = 1
_EVERY = 0.3
"""Seconds between two pictures of how far it is."""


class LoadingScreen(DebugScreen):
    """One recording with its panes, from the first lines on. It ends where the rest cannot be read.

    Args:
        loading: what is read.
        when_read: called once, when all of it is.
    """

    class Arrived(Message):
        """There is something to take in."""

    def __init__(self, loading: Loading, when_read: Callable[[], None] | None = None) -> None:
        super().__init__(loading.session)
        self.unread = loading
        self._when_read = when_read
        self._told_where = False
        self._drawn_at = time.monotonic()
        self._drawn = (self.session.cursor, self.session.lane)
        self._tell_share()

    def on_mount(self) -> None:
        """Begin to read. The thread must not keep the program from ending: a pipe may never say anything again."""
        threading.Thread(target=self.unread.read, args=(self._arrived,), daemon=True, name="loopscope-read").start()

    def on_unmount(self) -> None:
        """Nobody looks any longer."""
        self.unread.leave()

    def _arrived(self) -> None:
        """Also called in the thread that reads."""
        try:
            self.post_message(self.Arrived())
        except RuntimeError:  # the program is about to end
            self.unread.leave()

    def on_loading_screen_arrived(self) -> None:
        """Take in a slice, and let the keys have their turn before the next one."""
        more = self.unread.take(_SLICE)
        if self.unread.error is not None:
            self.app.exit()
        elif self.unread.done:
            self._finish()
        elif time.monotonic() - self._drawn_at > _EVERY:
            self._draw()
        if more:
            # Not at once: a screen draws when it has nothing to do.
            self.set_timer(_PAUSE, self._arrived)

    def _draw(self) -> None:
        """How far it is; and everything, where the cursor has gone to what came."""
        self._tell_share()
        self._drawn_at = time.monotonic()
        if (self.session.cursor, self.session.lane) != self._drawn:
            self.journal.forget()
            self.moved()
            return
        self.top.show()
        self.strip.show()
        for pane in (self.pane(_SCOPES), self.decisions):
            if not pane.has_focus:  # the keys may have chosen a row there
                pane.show()

    def _finish(self) -> None:
        """All of it is there, and what takes a search can begin."""
        self._tell_share()
        self._draw()
        self.moved()
        self._say_where()
        if self._when_read is not None:
            self._when_read()

    def _tell_share(self) -> None:
        share = self.unread.share
        self.still = "REPLAY" if self.unread.done else "READING" if share is None else f"READING {share:.0%}"
        if self._playing is None:
            self.top.mode = self.still

    def moved(self, event: int | None = None) -> None:
        """Draw everything anew."""
        self._drawn = (self.session.cursor, self.session.lane)
        super().moved(event)

    def _look_for_nearest(self) -> None:
        """Not while every event that comes would call for another search."""
        if self.unread.done:
            super()._look_for_nearest()

    def _say_where(self) -> None:
        """Once, when all of it is there: that may be before the first picture is."""
        if self.unread.done and not self._told_where:
            self._told_where = True
            super()._say_where()
