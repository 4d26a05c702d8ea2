"""The pane Decisions: the log of warnings and stops, whose rows are made where they are seen and nowhere else."""

from __future__ import annotations

from textual.events import Click
from textual.strip import Strip

from loopscope.recording.inert import inert
from loopscope.session.session import Session
from loopscope.views import decisions
from loopscope.views.model import Line, Span, line_width, marked
from loopscope_widgets.terminal.panes.base import Follow, LinePane, draw, tell

__all__ = ["DecisionsPane"]

_HEADED = 4
"""Lines from which on one of them is for the names of the columns."""


class DecisionsPane(LinePane):
    """A row each warning or stop. j and k choose one, enter or a click goes to its batch."""

    def __init__(self, session: Session) -> None:
        super().__init__(lambda _width, _height: [], number=6, name="Decisions")
        self.session = session
        self.short = "Log"
        self.entries = decisions.Log(session)
        self._row = -1
        """The row that the keys have chosen: that of the cursor, or of the newest decision before it."""

    @property
    def _head(self) -> int:
        """Lines above the rows, which stay where they are."""
        return 1 if self.size.height >= _HEADED else 0

    def show(self) -> None:
        """Draw anew, with the row of the cursor, or the newest before it, in sight."""
        if not self.display or self.size.width <= 0:
            return
        self._row = self.entries.place(self.session.cursor)
        self._entitle(*self._heading())
        self._reach(self.size.width, len(self.entries) + self._head)
        self._see(self._row)
        self.refresh()

    def _heading(self) -> tuple[str, ...]:
        """With what it is filtered by."""
        return (f"{self.heading}{self._filtered()}",)

    def _filtered(self) -> str:
        words = self.entries.filter.strip()
        return f"  /{inert(words, 40)}  {decisions.counted(self.entries)}" if words else ""

    def _see(self, row: int) -> None:
        """Scroll as little as it takes to see this row."""
        top, room = self.scroll_offset.y, self.size.height - self._head
        if row >= 0 and not top <= row < top + room:
            self.scroll_to(y=row if row < top else row - room + 1, animate=False, immediate=True)

    def render_line(self, y: int) -> Strip:
        """One line: the heading, or the one row that stands there."""
        if self._back is None:
            self._back = self.rich_style
        return draw(self, self._line(y), self._back)

    def _line(self, y: int) -> Line:
        width = self.scrollable_content_region.width
        if y < self._head:
            return decisions.heading(width)
        if not len(self.entries):
            return decisions.nothing(self.entries) if y == self._head else ()
        row = y - self._head + self.scroll_offset.y
        line = next(iter(self.entries.lines(row, 1, width)), ())
        if not self.has_focus or row != self._row:
            return line
        return marked((*line, Span(" " * max(0, width - line_width(line)))), "cursor")

    def watch_has_focus(self, _has_focus: bool) -> None:  # noqa: FBT001 - Textual's
        """The chosen row shows while the keys go here."""
        super().watch_has_focus(_has_focus)
        self.refresh()

    def action_move(self, by: int) -> None:
        """The next row down or up."""
        self._row = min(max(self._row + by, 0), len(self.entries) - 1)
        self._see(self._row)
        self.refresh()

    def action_page(self, by: int) -> None:
        """A page of rows."""
        self.action_move(by * max(1, self.size.height - self._head - 1))

    def action_edge(self, end: int) -> None:
        """The first row (-1) or the last (1)."""
        self.action_move(end * max(1, len(self.entries)))

    def action_choose(self) -> None:
        """Go to the batch of the row."""
        if 0 <= self._row < len(self.entries):
            self.post_message(Follow(self.entries.numbers[self._row]))
        else:
            tell(self, "no row is chosen: j and k choose one, enter goes to its batch")

    def on_click(self, event: Click) -> None:
        """Go to the batch of the row that is clicked."""
        offset = event.get_content_offset(self)
        row = offset.y - self._head + self.scroll_offset.y if offset is not None and offset.y >= self._head else -1
        if 0 <= row < len(self.entries):
            self.post_message(Follow(self.entries.numbers[row]))
