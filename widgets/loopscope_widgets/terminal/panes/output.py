"""The pane Output: what the program writes, whose rows are made where they are seen; it stays at the newest line."""

from __future__ import annotations

from textual.geometry import Size
from textual.strip import Strip

from loopscope.session.output import Output
from loopscope.views import output as view
from loopscope.views.model import Line
from loopscope_widgets.terminal.panes.base import LinePane, draw, safe_title

__all__ = ["OutputPane"]

_REST = 0.1
"""Seconds between two looks at whether something was written."""


class OutputPane(LinePane):
    """The newest lines of a program. Scrolled up, it stays where it is until it is scrolled down again."""

    NUMBER = 8

    def __init__(self, output: Output) -> None:
        super().__init__(lambda _width, _height: [], number=self.NUMBER, name="Output")
        self.output = output
        self._seen = -1
        self._dropped = 0

    def on_mount(self) -> None:
        """Look from time to time."""
        super().on_mount()
        self.set_interval(_REST, self._look)

    def _look(self) -> None:
        if self.output.bytes != self._seen:
            self.show()

    def show(self) -> None:
        """Draw anew, at the newest line unless one has scrolled up."""
        if not self.display or self.size.width <= 0:
            return
        self._seen = self.output.bytes
        self.border_title = safe_title(self, self.heading, view.heading(self.output))
        gone = self.output.dropped - self._dropped
        self._dropped += gone
        height = self.scrollable_content_region.height
        at_end = self.scroll_offset.y >= self.virtual_size.height - height
        self.virtual_size = Size(self.scrollable_content_region.width, max(len(self.output), height))
        y = self.virtual_size.height - height if at_end else max(0, self.scroll_offset.y - gone)
        if y != self.scroll_offset.y:
            self.scroll_to(y=y, animate=False, immediate=True, force=True)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """The one row that stands there."""
        if self._back is None:
            self._back = self.rich_style
        return draw(self, self._line(y + self.scroll_offset.y), self._back)

    def _line(self, row: int) -> Line:
        return next(iter(view.lines(self.output, row, 1, self.scrollable_content_region.width)), ())

    def action_move(self, by: int) -> None:
        """A line down or up."""
        self.scroll_relative(y=by, animate=False)
