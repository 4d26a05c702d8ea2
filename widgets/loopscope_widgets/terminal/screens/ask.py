"""The line where one types where to go."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Input

from loopscope.session.session import Session
from loopscope.views.goto import Target, resolve
from loopscope.views.model import Line, Span, Style, clip
from loopscope_widgets.terminal.panes.base import LineView, safe_title

__all__ = ["GoTo"]


class GoTo(ModalScreen[Target | None]):
    """Asks where to go and says, while one types, where that is."""

    BINDINGS = [Binding("escape", "dismiss(None)", "close", id="goto.close", show=False)]  # noqa: RUF012 - Textual's

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.target = resolve(session, "")

    def compose(self) -> ComposeResult:
        """The line to type in, and below it what that means."""
        with Vertical(id="ask"):
            yield Input(id="where", compact=True, select_on_focus=False)
            yield LineView(self._says, id="says")

    def on_mount(self) -> None:
        """The border tells what this is."""
        self.query_one("#ask").border_title = safe_title(self, "Go to")

    def on_key(self, event: Key) -> None:
        """Take keys that come before the line has the focus: one types `:20` and enter in one go."""
        line = self.query_one(Input)
        if event.is_printable and event.character is not None:
            line.insert_text_at_cursor(event.character)
        elif event.key == "enter":
            self.target = resolve(self.session, line.value)
            self.on_input_submitted()
        else:
            return
        event.stop()

    def _says(self, width: int, height: int) -> list[Line]:  # noqa: ARG002 - one line
        asked = self.query_one(Input).value.strip()
        style: Style = "text" if self.target.found else "warn" if asked else "dim"
        return [(Span(clip(self.target.says, width), style),)]

    def on_input_changed(self, event: Input.Changed) -> None:
        """Look where that is."""
        self.target = resolve(self.session, event.value)
        self.query_one("#says", LineView).show()

    def on_input_submitted(self) -> None:
        """Go, if there is somewhere to go."""
        if self.target.found:
            self.dismiss(self.target)
