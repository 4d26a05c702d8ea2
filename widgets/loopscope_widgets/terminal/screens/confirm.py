"""The question before what cannot be taken back: `y` alone says yes, never enter, never the key that asked."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.events import Key
from textual.screen import ModalScreen

from loopscope.views.flow import wrap
from loopscope.views.model import Line, Span
from loopscope_widgets.terminal.keymap import WINDOW, bindings
from loopscope_widgets.terminal.panes.base import LineView, safe_title

__all__ = ["Confirm"]


class Confirm(ModalScreen[bool]):
    """Asks once.

    Args:
        title: what the border says.
        says: what would be done, each a line or more; safe to draw.
    """

    BINDINGS = bindings(tuple(key for key in WINDOW if key.id == "confirm.close"))
    DEFAULT_CSS = """
    Confirm { align: center middle; }
    #question { width: 72; max-width: 100%; height: auto; max-height: 90%; background: $panel; border: round $foreground; padding: 1 2; }
    .-ascii #question { border: ascii $foreground; }
    """  # noqa: E501 - a style sheet

    def __init__(self, title: str, *says: str) -> None:
        super().__init__()
        self.heading = title
        self._says = says
        self._lines = LineView(self._draw, id="question")

    def compose(self) -> ComposeResult:
        """The question."""
        yield self._lines

    def on_mount(self) -> None:
        """Its border, and as many lines as it takes."""
        self._lines.border_title = safe_title(self, self.heading)
        self._lines.styles.height = len(self._draw(min(72, self.app.size.width) - 6, 0)) + 4

    def _draw(self, width: int, height: int) -> list[Line]:  # noqa: ARG002 - few lines
        lines: list[Line] = [(Span(piece),) for words in self._says for piece in wrap(words, max(1, width))]
        return [*lines, (), (Span("y", "key"), Span(" does it, any other key does not", "dim"))]

    def on_key(self, event: Key) -> None:
        """`y` and nothing else."""
        event.stop()
        self.dismiss(event.key == "y")
