"""The panes Detect and Inspect: what their presenters say of the batch at the cursor."""

from __future__ import annotations

from loopscope.engine.explain import Explanation
from loopscope.session.session import Session
from loopscope.views import detect, inspector, within
from loopscope.views.model import Line
from loopscope_widgets.terminal.panes.base import LinePane

__all__ = ["DetectPane", "InspectPane"]

_DENSE = 24
"""Lines below which a pane has none to spare."""


class DetectPane(LinePane):
    """Counts, limits, distances, warnings and spending at the cursor."""

    def __init__(self, session: Session) -> None:
        super().__init__(self._body, number=2, name="Detect")
        self.session = session

    def _body(self, width: int, height: int) -> list[Line]:
        return detect.body(self.session, width, dense=height < _DENSE)


class InspectPane(LinePane):
    """The batch at the cursor and why its verdict."""

    def __init__(self, session: Session) -> None:
        super().__init__(self._body, number=3, name="Inspect")
        self.session = session
        self.explanation: Explanation | None = None
        """The whole explanation of the cursor's batch, once it is there."""
        self.event: int | None = None
        """Which of the engine's events within the batch is looked at; None where none is."""

    def _body(self, width: int, height: int) -> list[Line]:
        whole, dense = self.explanation, height < _DENSE
        body = inspector.body(self.session, width, whole, searching=whole is None, dense=dense)
        if self.event is None:
            return body
        number = self.session.cursor
        events = within.body(within.steps(self.session, number), self.event, number, width)
        return [*events, *([] if dense else [()]), *body]

    def look_at(self, event: int) -> None:
        """Draw with this event of the batch in sight."""
        self.event = event
        self.show()
        self.scroll_to(y=0, animate=False, immediate=True)
        self.scroll_to_line(event + 1)

    def keep(self, explanation: Explanation) -> None:
        """The whole explanation is there: draw it, everything else as it stands."""
        self.explanation = explanation
        chosen = self.chosen
        self.show()
        self.chosen = chosen if chosen is not None and chosen < len(self._links) else None

    def show(self) -> None:
        """Draw anew, for the batch at the cursor."""
        self.heading = f"{self.number} {self.name} #{self.session.cursor}"
        super().show()
