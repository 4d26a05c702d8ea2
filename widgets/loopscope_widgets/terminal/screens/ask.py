"""The lines where one types: where to go, and what the log is to show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Input

from loopscope.session.session import Session
from loopscope.views.goto import Target, resolve
from loopscope.views.model import Line, Span, Style, clip
from loopscope_widgets.terminal.keymap import WINDOW, bindings
from loopscope_widgets.terminal.panes.base import LineView, safe_title

__all__ = ["Ask", "Filter", "GoTo"]

Answer = TypeVar("Answer")


class Ask(ModalScreen[Answer | None], Generic[Answer]):
    """Asks for a line of text and says, while one types, what it means.

    Args:
        title: what the border says.
        text: what stands there already.
    """

    BINDINGS = bindings(tuple(key for key in WINDOW if key.id == "ask.close"))

    def __init__(self, title: str, text: str = "") -> None:
        super().__init__()
        self.heading = title
        self._text = text

    def says(self) -> tuple[str, Style]:
        """What the text means, in a few words."""
        raise AssertionError(self)

    def typed(self, text: str) -> None:
        """The text is another one."""

    def submitted(self) -> None:
        """Enter was pressed."""

    def action_leave(self) -> None:
        """Close, with no answer."""
        self.dismiss(None)

    def compose(self) -> ComposeResult:
        """The line to type in, and below it what that means."""
        with Vertical(id="ask"):
            yield Input(self._text, id="where", compact=True, select_on_focus=False)
            yield LineView(self._says, id="says")

    def on_mount(self) -> None:
        """The border tells what this is."""
        self.query_one("#ask").border_title = safe_title(self, self.heading)

    def on_key(self, event: Key) -> None:
        """Take keys that come before the line has the focus: one types `:20` and enter in one go."""
        line = self.query_one(Input)
        if event.is_printable and event.character is not None:
            line.insert_text_at_cursor(event.character)
        elif event.key == "enter":
            self.on_input_submitted()
        else:
            return
        event.stop()

    def _says(self, width: int, height: int) -> list[Line]:  # noqa: ARG002 - one line
        text, style = self.says()
        return [(Span(clip(text, width), style),)]

    def on_input_changed(self, event: Input.Changed) -> None:
        """Look what that means."""
        self.typed(event.value)
        self.query_one("#says", LineView).show()

    def on_input_submitted(self) -> None:
        """Enter; the last characters may not have been told yet."""
        self.typed(self.query_one(Input).value)
        self.submitted()


class GoTo(Ask[Target]):
    """Asks where to go."""

    def __init__(self, session: Session) -> None:
        super().__init__("Go to")
        self.session = session
        self.target = resolve(session, "")

    def says(self) -> tuple[str, Style]:
        """Where that is, or why it is nowhere."""
        asked = self.query_one(Input).value.strip()
        return self.target.says, "text" if self.target.found else "warn" if asked else "dim"

    def typed(self, text: str) -> None:
        """Look where that is."""
        self.target = resolve(self.session, text)

    def submitted(self) -> None:
        """Go, if there is somewhere to go."""
        if self.target.found:
            self.dismiss(self.target)


class Filter(Ask[str]):
    """Asks which rows of the log to show. They are shown while one types; enter keeps that, esc shows all again.

    Args:
        text: the filter so far.
        show: shows the rows that a filter leaves, and says how many.
    """

    def __init__(self, text: str, show: Callable[[str], str]) -> None:
        super().__init__("Filter the decisions", text)
        self._show = show
        self._found = show(text)

    def says(self) -> tuple[str, Style]:
        """How many rows there are."""
        return self._found, "dim"

    def typed(self, text: str) -> None:
        """Show what it leaves."""
        self._found = self._show(text)

    def submitted(self) -> None:
        """Keep it."""
        self.dismiss(self.query_one(Input).value)

    def action_leave(self) -> None:
        """Show all rows again."""
        self._show("")
        self.dismiss(None)
