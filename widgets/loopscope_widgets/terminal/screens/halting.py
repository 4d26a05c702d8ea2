"""What the debugger's screen does with breakpoints: set, edit, keep, and run from one to the next.

Apart from the screen, which lays panes out and moves the cursor. A long search runs in a thread, and the cursor goes
where it leads unless somebody has moved it meanwhile.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from textual.message import Message
from textual.screen import Screen

from loopscope.engine.breakpoints import Breakpoint
from loopscope.session.halts import Halt
from loopscope.session.journal import Journal
from loopscope.session.session import Session
from loopscope.views import breakpoints
from loopscope_widgets.terminal.kept import breakpoints_of, keep_breakpoints
from loopscope_widgets.terminal.panes.base import tell
from loopscope_widgets.terminal.panes.breakpoints import BreakpointsPane

__all__ = ["Halting"]


class _Search(NamedTuple):
    """A run to a breakpoint."""

    direction: int
    cursor: int
    """Where it began."""


class Halting(Screen[None]):
    """A screen with breakpoints."""

    session: Session
    journal: Journal
    breaks: BreakpointsPane

    class Halted(Message):
        """A thread has found where a breakpoint holds, or that none does."""

        def __init__(self, search: _Search, halt: Halt | None) -> None:
            super().__init__()
            self.search = search
            self.halt = halt

    _search_for: _Search | None = None
    """The search that goes on."""
    _further: tuple[int, ...] = ()
    """Directions to run in when it is over."""

    if TYPE_CHECKING:

        def moved(self, event: int | None = None) -> None:
            """The session has changed."""

    def load_breakpoints(self) -> None:
        """Those that this recording had when it was last looked at."""
        if not self.session.breakpoints:
            self.session.breakpoints.extend(breakpoints_of(self.session.source))
            self.journal.forget()

    def breakpoints_changed(self) -> None:
        """Keep them, draw them; a live run tells its process too."""
        self.journal.look()
        keep_breakpoints(self.session.source, self.session.breakpoints)
        self.breaks.show()

    def on_breakpoints_pane_changed(self) -> None:
        """They were put on, off or away in the pane."""
        self.breakpoints_changed()

    def action_edit_breakpoint(self, place: int) -> None:
        """Ask for the condition of the breakpoint in this place; of a new one where there is none."""
        from loopscope_widgets.terminal.screens.condition import Condition  # noqa: PLC0415 - loaded when it is asked for

        points = self.session.breakpoints
        text = breakpoints.written(points[place]) if place < len(points) else ""
        self.app.push_screen(Condition(text), partial(self._edited, place))

    def _edited(self, place: int, point: Breakpoint | None) -> None:
        if point is None:
            return
        points = self.session.breakpoints
        if place >= len(points):
            points.append(point)
        else:
            points[place] = msgspec.structs.replace(point, enabled=points[place].enabled)
        self.breakpoints_changed()

    def action_break_here(self) -> None:
        """Set a breakpoint at the batch, or take it away."""
        session = self.session
        if not session.cursor:
            tell(self, "no breakpoint can be set: there is no batch with calls", problem=True)
            return
        here = Breakpoint("batch", at_least=session.cursor)
        there = [point for point in session.breakpoints if (point.kind, point.at_least) == ("batch", session.cursor)]
        if there:
            session.breakpoints[:] = [point for point in session.breakpoints if point not in there]
        else:
            session.breakpoints.append(here)
        self.breakpoints_changed()
        tell(self, f"breakpoint at batch {session.cursor}{' taken away' if there else ''}")

    def action_run_to(self, direction: int) -> None:
        """Run to the next breakpoint, or back to the one before."""
        session = self.session
        if not any(point.enabled for point in session.breakpoints):
            tell(self, breakpoints.none_there(session, direction), problem=True)
        elif self._search_for is not None:
            self._further = (*self._further, direction)
        else:
            self._run(direction)

    def _run(self, direction: int) -> None:
        session = self.session
        search = _Search(direction, session.cursor)
        points = [point for point in session.breakpoints if point.enabled]
        if all(session.halts.known(point) is not None for point in points):
            self._arrive(search, session.next_halt(direction))
            return
        self._search_for = search
        self.run_worker(partial(self._search_halt, search), thread=True, group="halts")

    def _search_halt(self, search: _Search) -> None:
        """Runs in a worker's thread."""
        halt = self.session.next_halt(search.direction, lambda: self.is_attached and self._still(search))
        self.post_message(self.Halted(search, halt))

    def _still(self, search: _Search) -> bool:
        return self.session.cursor == search.cursor

    def on_halting_halted(self, event: Halted) -> None:
        """Go there, unless the cursor is elsewhere by now."""
        self._search_for = None
        if self._still(event.search):
            self._arrive(event.search, event.halt)
        else:
            self._further = ()
        while self._further and self._search_for is None:
            direction, *rest = self._further
            self._further = tuple(rest)
            self._run(direction)

    def _arrive(self, search: _Search, halt: Halt | None) -> None:
        session = self.session
        if halt is None:
            self._further = ()
            tell(self, breakpoints.none_there(session, search.direction), problem=True)
            return
        point = session.arrive(halt)
        self.moved()
        if point.one_shot:
            self.breakpoints_changed()
        tell(self, breakpoints.arrived(session, point))
