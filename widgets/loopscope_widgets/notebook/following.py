"""A live run behind a widget: a thread reads its feed, another takes in what came and lets the widget draw it.

Ten times a second at most, so that a fast agent costs the kernel no more than a slow one. Apart from the widget, which
knows no threads but its own.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from loopscope.engine.events import ScopeKey
from loopscope.recording.feed import Feed, Message, Verb
from loopscope.session.live import LiveSession
from loopscope.views import live as view
from loopscope.views.frame import Live
from loopscope.views.topbar import scope_name

__all__ = ["Following"]

_REST = 0.1
"""Seconds between two frames."""
_ENOUGH = 20_000
"""Messages that wait before no more are read."""
_SAID: dict[str, str] = {
    "pause": "paused: the next batch is held before its tools run",
    "continue": "goes on",
    "next": "",
    "passOnce": "asked: let the held batch pass once",
    "stop": "asked: stop the run at its next batch",
}


class Following:
    """Follows one feed until it ends or `close` is called.

    Args:
        feed: what is looked at.
        live: its session.
    """

    def __init__(self, feed: Feed, live: LiveSession) -> None:
        self.feed = feed
        self.live = live
        self.following = True
        """The cursor goes with the newest batch."""
        self.lock = threading.RLock()
        """Held while the session changes."""
        self._inbox: deque[Message] = deque()
        self._came = threading.Event()
        self._over = threading.Event()
        self._left = threading.Event()
        self._listeners: list[Callable[[], None]] = []
        self._threads = [
            threading.Thread(target=target, name=f"loopscope {name}", daemon=True)
            for name, target in (("feed", self._read), ("frames", self._draw))
        ]

    def start(self) -> None:
        """Begin to read."""
        for thread in self._threads:
            thread.start()

    def listen(self, changed: Callable[[], None]) -> None:
        """Call this whenever something came."""
        self._listeners.append(changed)

    def close(self, timeout: float = 2.0) -> None:
        """Leave; what came stays, and the agent goes on."""
        self._left.set()
        self._came.set()
        self.feed.close()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(timeout)

    def drain(self, timeout: float = 2.0) -> None:
        """Wait until all is taken in that a feed which has ended told."""
        self._threads[1].join(timeout)

    def state(self) -> Live:
        """How it stands, for a frame."""
        live = self.live
        mode = view.mode(live)
        held = live.holds()
        return Live(
            mode=mode,
            words=view.MODES[mode],
            held="" if held is None else f"{scope_name(*held.scope)}  {view.held_label(live, held)}",
            denied=self._denied("pause"),
            following=self.following,
        )

    def act(self, verb: str) -> str:
        """What a button asks for; what was done, in words.

        Raises:
            LoopscopeError: if the target refuses it.
        """
        if verb == "follow":
            self.following = True
            with self.lock:
                if len(self.live.session):
                    self.live.session.seek(len(self.live.session))
            return "follows the newest batch"
        if verb not in _SAID:
            return ""
        known: Verb = verb  # type: ignore[assignment]  # it is a key of what is said
        if why := self._denied(known):
            return f"cannot {verb}: {why}"
        self.feed.request(known, self._scope() if verb in ("passOnce", "stop") else None)
        return _SAID[verb]

    def _scope(self) -> ScopeKey | None:
        """What an act is about: whoever is held, else the scope at the cursor."""
        held, session = self.live.holds(), self.live.session
        if held is not None:
            return held.scope
        return session.timeline.scope_of(session.cursor) if session.cursor else None

    def _denied(self, verb: Verb) -> str:
        if self.live.state != "live":
            return self.live.reason or "the run is over"
        return self.feed.capabilities.get(verb, "this target cannot do it")

    def _read(self) -> None:
        try:
            for message in self.feed:
                self._inbox.append(message)
                self._came.set()
                while len(self._inbox) > _ENOUGH and not self._left.wait(_REST):
                    pass
        finally:
            self._over.set()
            self._came.set()

    def _draw(self) -> None:
        while not self._left.is_set():
            self._came.wait()
            self._came.clear()
            over = self._over.is_set()
            self._take()
            for changed in list(self._listeners):
                changed()
            if over and not self._inbox:
                return
            self._left.wait(_REST)

    def _take(self) -> None:
        with self.lock:
            session = self.live.session
            while self._inbox:
                self.live.take([self._inbox.popleft()])
            if len(session) and (self.following or not session.cursor):
                session.seek(len(session))
