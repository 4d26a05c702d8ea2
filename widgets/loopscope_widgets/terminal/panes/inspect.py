"""The panes Detect and Inspect: what their presenters say of the batch at the cursor."""

from __future__ import annotations

from functools import partial

from textual.message import Message

from loopscope.engine.explain import Explanation
from loopscope.session.session import Session
from loopscope.views import detect, inspector, sight, within
from loopscope.views.model import Line
from loopscope_widgets.terminal.panes.base import LinePane

__all__ = ["DetectPane", "InspectPane"]

_DENSE = 24
"""Lines below which a pane has none to spare."""
_REST = 0.1
"""Seconds before what weighs is read: most batches are only passed by."""


class DetectPane(LinePane):
    """Counts, limits, distances, warnings and spending at the cursor."""

    def __init__(self, session: Session) -> None:
        super().__init__(self._body, number=2, name="Detect")
        self.session = session

    def _body(self, width: int, height: int) -> list[Line]:
        return detect.body(self.session, width, dense=height < _DENSE)


class InspectPane(LinePane):
    """The batch at the cursor and why its verdict. What weighs of it is read in a thread."""

    class Read(Message):
        """A batch was read, and can be drawn at once."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self, session: Session) -> None:
        super().__init__(self._body, number=3, name="Inspect")
        self.session = session
        self.explanation: Explanation | None = None
        """The whole explanation of the cursor's batch, once it is there."""
        self.event: int | None = None
        """Which of the engine's events within the batch is looked at; None where none is."""
        self._reading = False

    def _body(self, width: int, height: int) -> list[Line]:
        whole, dense = self.explanation, height < _DENSE
        self.read()
        body = inspector.body(self.session, width, whole, searching=whole is None, dense=dense, wait=False)
        if self.event is None:
            return body
        number = self.session.cursor
        events = within.body(within.steps(self.session, number, wait=False), self.event, number, width)
        return [*events, *([] if dense else [()]), *body]

    def read(self) -> bool:
        """Whether the batch at the cursor can be drawn at once; if not, a thread reads it, one at a time."""
        number = self.session.cursor
        if not number or sight.ready(self.session, number):
            return True
        if not self._reading:
            self._reading = True
            self.set_timer(_REST, self._start)
        return False

    def _start(self) -> None:
        """The cursor has rested for a moment: a thread that reads makes the next key wait."""
        self.run_worker(partial(self._read, self.session.cursor), thread=True, group="read")

    def _read(self, number: int) -> None:
        """Runs in a worker's thread; only its message touches the screen."""
        sight.look(self.session, number)
        self.post_message(self.Read(number))

    def on_inspect_pane_read(self) -> None:
        """Draw it, or have read what the cursor has gone to meanwhile."""
        self._reading = False
        self._show_again()

    def look_at(self, event: int) -> None:
        """Draw with this event of the batch in sight."""
        self.event = event
        self.show()
        self.scroll_to(y=0, animate=False, immediate=True)
        self.scroll_to_line(event + 1)

    def keep(self, explanation: Explanation) -> None:
        """The whole explanation is there: draw it, everything else as it stands."""
        self.explanation = explanation
        self._show_again()

    def _show_again(self) -> None:
        chosen = self.chosen
        self.show()
        self.chosen = chosen if chosen is not None and chosen < len(self._links) else None

    def _heading(self) -> tuple[str, ...]:
        """With the batch at the cursor."""
        return (f"{self.heading} #{self.session.cursor}", *self.beside)
