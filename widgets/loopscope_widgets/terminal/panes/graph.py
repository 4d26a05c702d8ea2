"""The pane Graph. What finds cycles is loaded in a thread when the pane is first shown: no other screen pays for it."""

from __future__ import annotations

from textual.message import Message

from loopscope.graph import cycles
from loopscope.session.session import Session
from loopscope.views.model import Line, Span
from loopscope_widgets.terminal.panes.base import LinePane

__all__ = ["GraphPane"]

READING: Line = (Span("looking for cycles …", "dim"),)


class GraphPane(LinePane):
    """Nodes with visits and heat, the ways between them, and the circle that the run goes round in."""

    class Ready(Message):
        """A worker has loaded what the pane needs."""

    def __init__(self, session: Session) -> None:
        super().__init__(self._body, number=4, name="Graph")
        self.beside = (" │ 2 Detect",)
        self.session = session
        self.ready = False
        """What the pane needs is loaded."""
        self._asked = False

    def _body(self, width: int, height: int) -> list[Line]:  # noqa: ARG002 - all lines
        if self.session.cursor and not self.ready:
            if not self._asked:
                self._asked = True
                self.run_worker(self._load, thread=True, group="graph")
            return [READING]
        from loopscope.views import graph  # noqa: PLC0415 - loaded when it is looked at

        return graph.body(self.session, width)

    def _load(self) -> None:
        """Runs in a worker's thread; only its message touches the screen."""
        cycles(self.session.topology())
        self.post_message(self.Ready())

    def on_graph_pane_ready(self) -> None:
        """Draw it."""
        self.ready = True
        self.show()
