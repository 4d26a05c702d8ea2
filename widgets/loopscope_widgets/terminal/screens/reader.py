"""A window of text in front of the debugger: the help, and the whole of Why."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.message import Message
from textual.screen import ModalScreen

from loopscope_widgets.terminal.keymap import WINDOW, bindings
from loopscope_widgets.terminal.panes.base import Follow, LinePane, LinesFor

__all__ = ["Changed", "Reader"]


class Changed(Message):
    """What a window shows has changed below it."""


class Reader(ModalScreen[int | None]):
    """Lines in a window. It gives back the batch to go to where a reference is followed.

    Args:
        heading: what the border says.
        content: gives all lines for a width and a height.
    """

    BINDINGS = bindings(tuple(key for key in WINDOW if key.id == "window.close"))

    def __init__(self, heading: str, content: LinesFor) -> None:
        super().__init__()
        self.pane = LinePane(content, number=0, name="Reader")
        self.pane.heading = heading

    def action_leave(self) -> None:
        """Close, and go nowhere."""
        self.dismiss(None)

    def compose(self) -> ComposeResult:
        """The one pane."""
        yield self.pane

    def on_changed(self) -> None:
        """Draw it anew."""
        self.pane.show()

    def on_follow(self, event: Follow) -> None:
        """Leave for the batch."""
        event.stop()
        self.dismiss(event.number)
