"""The pane Scopes: the tree, a row that the keys choose, and the scope that the timeline shows."""

from __future__ import annotations

from textual.events import Click
from textual.message import Message

from loopscope.session.session import Lane, Session
from loopscope.views import scopes
from loopscope.views.model import Line
from loopscope_widgets.terminal.panes.base import LinePane

__all__ = ["ScopesPane"]


class ScopesPane(LinePane):
    """The tree of scopes. j and k choose a row, enter or a click shows it."""

    class Chosen(Message):
        """Show this scope or thread."""

        def __init__(self, lane: Lane) -> None:
            super().__init__()
            self.lane = lane

    def __init__(self, session: Session) -> None:
        super().__init__(self._tree, number=1, name="Scopes")
        self.session = session
        self._row: int | None = None
        self._rows: list[scopes.Row] | None = None

    def _tree(self, width: int, height: int) -> list[Line]:  # noqa: ARG002 - all lines
        rows = self.rows
        if self._row is None:
            self._row = next((y for y, row in enumerate(rows) if row.lane == self.session.lane), 0)
        return scopes.draw(rows, self.session.lane, width, self._row if self.has_focus else None)

    @property
    def rows(self) -> list[scopes.Row]:
        """The tree as it stands."""
        if self._rows is None:
            self._rows = scopes.rows(self.session)
        return self._rows

    def show(self) -> None:
        """Draw anew, the row of the lane chosen and in sight."""
        self._row = self._rows = None
        self._redraw()

    def _redraw(self) -> None:
        super().show()
        if self._row is not None:
            self.scroll_to_line(self._row)

    def watch_has_focus(self, _has_focus: bool) -> None:  # noqa: FBT001 - Textual's
        """The chosen row shows while the keys go here."""
        super().watch_has_focus(_has_focus)
        self._redraw()

    def action_move(self, by: int) -> None:
        """The next row down or up."""
        self._row = min(max((self._row or 0) + by, 0), max(0, len(self.rows) - 1))
        self._redraw()

    def action_page(self, by: int) -> None:
        """A page of rows."""
        self.action_move(by * max(1, self.size.height - 1))

    def action_edge(self, end: int) -> None:
        """The first row (-1) or the last (1)."""
        self.action_move(end * len(self.rows))

    def action_choose(self) -> None:
        """Show what is chosen."""
        if self._row is not None and self._row < len(self.rows):
            self.post_message(self.Chosen(self.rows[self._row].lane))

    def on_click(self, event: Click) -> None:
        """Show what is clicked."""
        place = self.line_of(event)
        if place is not None:
            self.post_message(self.Chosen(self.rows[place[0]].lane))
