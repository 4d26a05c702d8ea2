"""The window of acts that change what an agent does: a key chooses one, and `y` alone does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from textual.app import ComposeResult
from textual.events import Key
from textual.screen import ModalScreen

from loopscope.engine.events import ScopeKey
from loopscope.recording.feed import Verb
from loopscope.views.flow import wrap
from loopscope.views.model import Line, Span
from loopscope_widgets.terminal.keymap import WINDOW, bindings
from loopscope_widgets.terminal.panes.base import LineView, safe_title

__all__ = ["ControlMenu", "Order"]


class Order(NamedTuple):
    """One act of control."""

    verb: Verb
    scope: ScopeKey
    words: str
    """What it does, safe to draw."""


class ControlMenu(ModalScreen[Order | None]):
    """Asks twice; it gives back what was confirmed.

    Args:
        orders: by the key that chooses each.
    """

    BINDINGS = bindings(tuple(key for key in WINDOW if key.id == "control.close"))
    DEFAULT_CSS = """
    ControlMenu { align: center middle; }
    #orders { width: 72; max-width: 100%; height: 9; background: $panel; border: round $foreground; padding: 1 2; }
    .-ascii #orders { border: ascii $foreground; }
    """

    def __init__(self, orders: Mapping[str, Order]) -> None:
        super().__init__()
        self._orders = orders
        self._chosen: Order | None = None
        self._lines = LineView(self._draw, id="orders")

    def compose(self) -> ComposeResult:
        """The acts, then the question."""
        yield self._lines

    def on_mount(self) -> None:
        """Its border."""
        self._lines.border_title = safe_title(self, "Control")

    def _draw(self, width: int, height: int) -> list[Line]:  # noqa: ARG002 - few lines
        if self._chosen is not None:
            question: list[Line] = [(Span(piece, "title"),) for piece in wrap(f"{self._chosen.words}?", width)]
            return [*question, (), (Span("y", "key"), Span(" does it, any other key does not", "dim"))]
        lines: list[Line] = []
        for key, order in self._orders.items():
            first, *rest = wrap(order.words, max(1, width - 3))
            lines += [(Span(f"{key}  ", "key"), Span(first)), *((Span(f"   {piece}"),) for piece in rest)]
        return lines or [(Span("nothing is held and nothing runs that could be stopped", "dim"),)]

    def on_key(self, event: Key) -> None:
        """Choose; then `y` and nothing else."""
        if event.key in ("escape", "q"):
            return
        event.stop()
        if self._chosen is None:
            self._chosen = self._orders.get(event.key)
            self._lines.show()
        else:
            self.dismiss(self._chosen if event.key == "y" else None)
