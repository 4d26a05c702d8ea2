"""The debugger in a terminal: Textual draws here what `loopscope.views` computes and `loopscope.session` holds.

`run` is the one way in; the command line calls it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loopscope.recording.feed import Feed
    from loopscope.session.live import LiveSession
    from loopscope.session.loading import Loading
    from loopscope.session.output import Output
    from loopscope.session.session import Session
    from loopscope_widgets.terminal.screens.debug import DebugScreen

__all__ = ["run"]

_TURN = 0.0005
"""Seconds after which a thread that reads or searches gives way to the keys, where Python's own 5 ms add up."""


def run(  # noqa: PLR0913 - each is an option of the command line
    session: Session | None,
    *,
    feed: Feed | None = None,
    live: LiveSession | None = None,
    theme: str | None = None,
    ascii: bool = False,  # noqa: A002 - the flag's name
    no_color: bool = False,
    opener: Callable[[str], Session] | None = None,
    control: bool = False,
    loading: Loading | None = None,
    output: Output | None = None,
    told: Callable[[int], object] | None = None,
) -> None:
    """Open the debugger on a session, or the picker where there is none, and return when the user quits.

    Args:
        session: what to show; its cursor is where the screen opens.
        feed: where it goes on, for a live run; it is read, and closed at the end.
        live: the live run whose session this is, with a feed.
        theme: `dark`, `light` or the name of a Textual theme; dark if it is None.
        ascii: draw with ASCII characters alone.
        no_color: as NO_COLOR: greys, underlined warnings, reversed stops.
        control: ask the running processes that are picked for leave to steer.
        opener: reads the recordings that are picked later; by default each under its own policy.
        loading: the rest of the recording whose session this is; it is read while one looks.
        output: what a program that the feed begins has written, to be shown in a pane.
        told: called with the number of a signal that asks to end.

    Raises:
        UsageError: if there is no theme of this name, or the user's keymap has a mistake.
        LoopscopeError: if the rest of the recording cannot be read.
        SystemExit: where SIGTERM or SIGHUP asked to end; the terminal is as it was then.
    """
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_TURN)
    collects = gc.isenabled()
    gc.disable()  # loading makes no garbage; collecting it again and again takes a fifth of the time
    try:
        from loopscope_widgets.terminal.app import LoopscopeApp  # noqa: PLC0415 - Textual is loaded when it is to draw

        collect = _collect if collects else None
        screen: Callable[[], DebugScreen] | None = None
        if feed is not None and live is not None:
            screen = _live_screen(feed, live, output)
        elif loading is not None and not loading.done:
            screen, collect = _loading_screen(loading, collect), None
        from loopscope_widgets.terminal.user import load_keymap, remember  # noqa: PLC0415 - as above

        app = LoopscopeApp(
            session,
            theme=theme,
            ascii_only=ascii,
            no_color=no_color,
            screen=screen,
            opener=opener,
            keys=load_keymap(),
            control=control,
        )
        if session is not None and feed is None:
            remember(session.source)
        app.when_drawn = collect
        app.ending.told = told
        app.open()
        if loading is not None and loading.error is not None:
            raise loading.error
    finally:
        sys.setswitchinterval(interval)
        if collects:
            gc.enable()


def _live_screen(feed: Feed, live: LiveSession, output: Output | None) -> Callable[[], DebugScreen]:
    if output is not None:
        from loopscope_widgets.terminal.screens.beside import BesideScreen  # noqa: PLC0415 - as below

        return partial(BesideScreen, feed, live, output)
    from loopscope_widgets.terminal.screens.live import LiveScreen  # noqa: PLC0415 - a recording needs none of it

    return partial(LiveScreen, feed, live)


def _loading_screen(loading: Loading, when_read: Callable[[], None] | None) -> Callable[[], DebugScreen]:
    from loopscope_widgets.terminal.screens.loading import LoadingScreen  # noqa: PLC0415 - most are read by now

    return partial(LoadingScreen, loading, when_read)


def _collect() -> None:
    """What was loaded until now stays: the collector need not look at it any more."""
    gc.freeze()
    gc.enable()
