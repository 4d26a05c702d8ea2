"""The pane Breakpoints: where `c` and `C` stop, on or off, and how often each holds, counted in a thread."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Protocol, cast

import msgspec
from textual.events import Click
from textual.message import Message

from loopscope.engine.breakpoints import Breakpoint
from loopscope.session.session import Session
from loopscope.views import breakpoints
from loopscope.views.model import Line
from loopscope_widgets.terminal.keymap import BREAKPOINTS, LIST, Keymap, bindings
from loopscope_widgets.terminal.panes.base import LinePane, safe_title, tell

__all__ = ["BreakpointsPane"]

_HINTS = (
    ("breakpoints.new", "new"),
    ("list.enter", "edit"),
    ("breakpoints.toggle", "on/off"),
    ("breakpoints.remove", "remove"),
)


class Editor(Protocol):
    """The screen around the pane."""

    def action_edit_breakpoint(self, place: int) -> None:
        """Ask for the condition of the breakpoint in this place."""


class BreakpointsPane(LinePane):
    """A row each. j and k choose one; it can be edited, put off and taken away."""

    BINDINGS = bindings((*BREAKPOINTS, *LIST))

    class Changed(Message):
        """The breakpoints are other ones."""

    class Counted(Message):
        """A thread has looked at batches, all of them unless it was told not to go on."""

    def __init__(self, session: Session) -> None:
        super().__init__(self._body, number=7, name="Breakpoints")
        self.session = session
        self.short = "Breaks"
        self.keymap = Keymap()
        """The keys as the user has them."""
        self.hits: Mapping[Breakpoint, int] | None = None
        """How often each was hit, where the process that a live run is in counts; None where it is counted here."""
        self._row = 0
        self._counting = False

    def _body(self, width: int, height: int) -> list[Line]:
        count = len(self.session.breakpoints)
        self._row = max(0, min(self._row, count - 1))
        row = self._row if self.has_focus else None
        lines = breakpoints.body(self.session, width, row, self.hits, self._hints() if self.has_focus else ())
        return lines if len(lines) <= height else lines[:count]

    def _hints(self) -> list[tuple[str, str]]:
        shown = {key.id: key.shown.split()[0] for key in self.keymap.of((*BREAKPOINTS, *LIST))}
        return [(shown[name], said) for name, said in _HINTS]

    def show(self) -> None:
        """Draw anew, and count what was not counted yet."""
        super().show()
        self.border_subtitle = safe_title(self, breakpoints.summary(self.session))
        self._count()

    @property
    def settled(self) -> bool:
        """Whether all that is to be counted is."""
        return not self._counting and not self._uncounted()

    def _uncounted(self) -> list[Breakpoint]:
        if self.hits is not None or not self.display:
            return []
        return [point for point in self.session.breakpoints if self.session.halts.known(point) is None]

    def _count(self) -> None:
        points = self._uncounted()
        if points and not self._counting:
            self._counting = True
            self.run_worker(partial(self._look, points), thread=True, group="breakpoints")

    def _look(self, points: list[Breakpoint]) -> None:
        """Runs in a worker's thread."""
        self.session.halts.look(points, len(self.session), lambda: self.is_attached)
        self.post_message(self.Counted())

    def on_breakpoints_pane_counted(self, event: Counted) -> None:
        """Show the numbers; what came meanwhile is counted next."""
        event.stop()
        self._counting = False
        self.show()

    def watch_has_focus(self, _has_focus: bool) -> None:  # noqa: FBT001 - Textual's
        """The chosen row shows while the keys go here."""
        super().watch_has_focus(_has_focus)
        self.show()

    def action_move(self, by: int) -> None:
        """The next row down or up."""
        self._choose(self._row + by)

    def action_page(self, by: int) -> None:
        """A page of rows."""
        self._choose(self._row + by * max(1, self.size.height - 1))

    def action_edge(self, end: int) -> None:
        """The first row (-1) or the last (1)."""
        self._choose(0 if end < 0 else len(self.session.breakpoints))

    def _choose(self, row: int) -> None:
        self._row = row
        self.show()
        self.scroll_to_line(self._row)

    def action_new(self) -> None:
        """Ask for a condition: at once, as the next key belongs to it."""
        cast("Editor", self.screen).action_edit_breakpoint(len(self.session.breakpoints))

    def action_choose(self) -> None:
        """Edit the one that is chosen, or begin with one."""
        cast("Editor", self.screen).action_edit_breakpoint(self._row)

    def action_arm(self) -> None:
        """On or off."""
        if self._chosen():
            points = self.session.breakpoints
            points[self._row] = msgspec.structs.replace(points[self._row], enabled=not points[self._row].enabled)
            self.post_message(self.Changed())

    def action_remove(self) -> None:
        """Take it away."""
        if self._chosen():
            del self.session.breakpoints[self._row]
            self.post_message(self.Changed())

    def _chosen(self) -> bool:
        if not self.session.breakpoints:
            tell(self, "there is no breakpoint; i asks for one", problem=True)
        return bool(self.session.breakpoints)

    def on_click(self, event: Click) -> None:
        """Choose a row; a second click edits it."""
        place = self.line_of(event)
        if place is not None and self.session.breakpoints:
            self._choose(place[0])
            if event.chain > 1:
                self.action_choose()
