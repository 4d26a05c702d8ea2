"""The line where one types a breakpoint, with how each kind is written below it."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input

from loopscope.engine.breakpoints import Breakpoint
from loopscope.views import breakpoints
from loopscope.views.model import Style
from loopscope_widgets.terminal.panes.base import LineView
from loopscope_widgets.terminal.screens.ask import Ask

__all__ = ["Condition"]


class Condition(Ask[Breakpoint]):
    """Asks for a breakpoint and says, while one types, what it would stop at.

    Args:
        text: the one that is edited, as it is typed.
    """

    def __init__(self, text: str = "") -> None:
        super().__init__("Breakpoint", text)
        self._point, self._meaning = breakpoints.read(text)

    def compose(self) -> ComposeResult:
        """The line, what it means, and the forms."""
        with Vertical(id="ask"):
            yield Input(self._text, id="where", compact=True, select_on_focus=False)
            yield LineView(self._says, id="says")
            yield LineView(lambda width, _height: breakpoints.forms(width), id="forms")

    def says(self) -> tuple[str, Style]:
        """What it stops at, or what is wrong."""
        wrong = self._point is None and bool(self.query_one(Input).value.strip())
        return self._meaning, "warn" if wrong else "text" if self._point is not None else "dim"

    def typed(self, text: str) -> None:
        """Read it."""
        self._point, self._meaning = breakpoints.read(text)

    def submitted(self) -> None:
        """Take it, if it is one."""
        if self._point is not None:
            self.dismiss(self._point)
