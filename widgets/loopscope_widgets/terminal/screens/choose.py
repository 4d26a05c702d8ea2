"""A list in a window, of which one is chosen: the presets of the limits."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.events import Click
from textual.message import Message
from textual.screen import ModalScreen

from loopscope.views.model import Line, Span, crop, fit, marked
from loopscope_widgets.terminal.keymap import LIST, WINDOW, bindings
from loopscope_widgets.terminal.panes.base import LinePane

__all__ = ["Choose", "Entries"]

_NAME = 22


class Entries(LinePane):
    """The rows."""

    class Chosen(Message):
        """This row."""

        def __init__(self, row: int) -> None:
            super().__init__()
            self.row = row

    def __init__(self, heading: str, entries: Sequence[tuple[str, str]]) -> None:
        super().__init__(self._body, number=0, name="Choose")
        self.heading = heading
        self._entries = entries
        self.row = 0

    def _body(self, width: int, height: int) -> list[Line]:  # noqa: ARG002 - all lines
        lines: list[Line] = []
        for place, (name, said) in enumerate(self._entries):
            line = crop((Span(fit(name, _NAME), "key"), Span(said, "dim")), width)
            lines.append(marked(line, "cursor") if place == self.row else line)
        return lines

    def action_move(self, by: int) -> None:
        """The next row."""
        self.row = min(max(self.row + by, 0), len(self._entries) - 1)
        self.show()
        self.scroll_to_line(self.row)

    def action_page(self, by: int) -> None:
        """A page of rows."""
        self.action_move(by * max(1, self.size.height - 1))

    def action_edge(self, end: int) -> None:
        """The first row (-1) or the last (1)."""
        self.action_move(end * len(self._entries))

    def action_choose(self) -> None:
        """This one."""
        self.post_message(self.Chosen(self.row))

    def on_click(self, event: Click) -> None:
        """The one that is clicked."""
        place = self.line_of(event)
        if place is not None:
            self.post_message(self.Chosen(place[0]))


class Choose(ModalScreen[int | None]):
    """Gives back the place of what was chosen.

    Args:
        heading: what the border says.
        entries: names and what is said of them, safe to draw.
    """

    BINDINGS = bindings((*(key for key in WINDOW if key.id == "choose.close"), *LIST))
    DEFAULT_CSS = """
    Choose { align: center middle; }
    Choose LinePane { width: 90; max-width: 100%; height: auto; max-height: 90%; background: $panel; padding: 1 2; }
    Choose.-narrow LinePane, Choose.-tiny LinePane, Choose.-low LinePane { display: block; border: round $foreground; }
    """

    def __init__(self, heading: str, entries: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._entries = entries
        self.pane = Entries(heading, entries)

    def compose(self) -> ComposeResult:
        """The one list."""
        yield self.pane

    def on_mount(self) -> None:
        """The keys go there at once; the list is as high as it is."""
        self.pane.styles.height = len(self._entries) + 4
        self.set_focus(self.pane)

    def action_move(self, by: int) -> None:
        """Keys that come before the list has the focus are for it too."""
        self.pane.action_move(by)

    def action_page(self, by: int) -> None:
        """A page of rows."""
        self.pane.action_page(by)

    def action_edge(self, end: int) -> None:
        """The first row (-1) or the last (1)."""
        self.pane.action_edge(end)

    def action_choose(self) -> None:
        """Leave with the row."""
        self.dismiss(self.pane.row)

    def on_entries_chosen(self, event: Entries.Chosen) -> None:
        """Leave with it."""
        event.stop()
        self.dismiss(event.row)
