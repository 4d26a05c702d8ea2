"""The debugger on a program that was begun with it: what runs, and what the program writes in a pane of its own."""

from __future__ import annotations

from textual.app import ComposeResult

from loopscope.recording.feed import Feed
from loopscope.session.live import LiveSession
from loopscope.session.output import Output
from loopscope_widgets.terminal.keymap import BESIDE, LIVE, bindings
from loopscope_widgets.terminal.panes.base import tell
from loopscope_widgets.terminal.panes.output import OutputPane
from loopscope_widgets.terminal.panes.strip import Tabs
from loopscope_widgets.terminal.screens.live import LiveScreen

__all__ = ["BesideScreen"]


class BesideScreen(LiveScreen):
    """One live run, and what its program writes.

    Args:
        feed: what is looked at; it begins the program when it is read.
        live: its session.
        output: what the program has written.
    """

    BINDINGS = bindings(BESIDE)
    OWN = (*LIVE, *BESIDE)
    DEFAULT_CSS = """
    BesideScreen #output { display: none; height: 10; }
    BesideScreen.-wide.-tall #output { display: block; height: 25%; }
    BesideScreen.-out #output { display: block; width: 1fr; }
    BesideScreen.-narrow.-out #panes, BesideScreen.-tiny.-out #panes, BesideScreen.-low.-out #panes { display: none; }
    BesideScreen.-zoomed.-out #panes { display: none; }
    BesideScreen.-narrow.-out #output, BesideScreen.-tiny.-out #output, BesideScreen.-low.-out #output { height: 1fr; }
    BesideScreen.-zoomed #output { display: none; }
    BesideScreen.-zoomed.-out #output { display: block; height: 1fr; }
    """

    def __init__(self, feed: Feed, live: LiveSession, output: Output) -> None:
        super().__init__(feed, live)
        self.output = OutputPane(output)
        self.panes = (*self.panes, self.output)
        current = self.tabs.current
        self.tabs = Tabs(self.panes)
        self._mark_shown(current)

    def compose(self) -> ComposeResult:
        """The debugger's, with the output below the log."""
        for widget in super().compose():
            yield widget
            if widget is self.decisions:
                yield self.output

    def _say_where(self) -> None:
        tell(self, f"{self.live.session.source} has begun; its runs show here, 8 is what it writes")

    def _mark_shown(self, number: int) -> None:
        super()._mark_shown(number)
        self.set_class(number == OutputPane.NUMBER, "-out")
