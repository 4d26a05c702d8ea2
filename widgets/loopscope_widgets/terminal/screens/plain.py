"""Text alone on the whole screen, where the terminal's own selection works: no borders, and the mouse is its again."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import App, ComposeResult

from loopscope.views.flow import wrap
from loopscope.views.model import Line, Span, clip
from loopscope_widgets.terminal.panes.base import LineView
from loopscope_widgets.terminal.screens.reader import Reader

__all__ = ["PlainText"]

_HINT = "copied; if the terminal refused, select here with the mouse; esc closes"


class PlainText(Reader):
    """A text to be selected.

    Args:
        text: gives it for a width, safe to draw.
    """

    def __init__(self, text: Callable[[int], str]) -> None:
        self.text = text
        super().__init__("", self._lines)

    def _lines(self, width: int, height: int) -> list[Line]:  # noqa: ARG002 - all lines
        return [(Span(piece),) for line in self.text(width).split("\n") for piece in wrap(line, max(1, width))]

    def compose(self) -> ComposeResult:
        """The text, and how to take it."""
        yield from super().compose()
        yield LineView(lambda width, _height: [(Span(clip(_HINT, width), "dim"),)], id="hint")

    def on_mount(self) -> None:
        """The terminal gets the mouse."""
        _mouse(self.app, on=False)

    def on_unmount(self) -> None:
        """And gives it back."""
        _mouse(self.app, on=True)


def _mouse(app: App[object], *, on: bool) -> None:
    """Whether the terminal tells us of the mouse; drivers that cannot change it, as in tests, are left alone."""
    change = getattr(app._driver, f"_{'enable' if on else 'disable'}_mouse_support", None)  # noqa: SLF001 - no other way
    if change is not None and getattr(app._driver, "_mouse", True):  # noqa: SLF001 - as above
        change()
