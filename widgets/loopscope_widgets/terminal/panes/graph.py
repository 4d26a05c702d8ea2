"""The pane Graph. What takes time (loading networkx, walking a long scope) is done in a thread when it is looked at."""

from __future__ import annotations

from functools import partial

from textual.message import Message

from loopscope.engine.events import ScopeKey
from loopscope.graph import cycles
from loopscope.session.session import Session
from loopscope.views.model import Line, Span
from loopscope_widgets.terminal.panes.base import LinePane

__all__ = ["GraphPane"]

_READING: Line = (Span("reading the graph …", "dim"),)
_SHORT = 2000
"""Batches of a scope up to which its graph is made within a frame."""


class GraphPane(LinePane):
    """Nodes with visits and heat, the ways between them, and the circle that the run goes round in."""

    class Ready(Message):
        """A worker has made the graph of a scope."""

        def __init__(self, key: ScopeKey) -> None:
            super().__init__()
            self.key = key

    def __init__(self, session: Session) -> None:
        super().__init__(self._body, number=4, name="Graph")
        self.session = session
        self._made: set[ScopeKey] = set()
        """Scopes whose graph is made."""
        self._asked: set[ScopeKey] = set()

    @property
    def ready(self) -> bool:
        """The graph at the cursor can be drawn."""
        timeline = self.session.timeline
        key = timeline.scope_of(self.session.cursor)
        return key in self._made or (bool(self._made) and len(timeline.scopes[key].batches) <= _SHORT)

    def _body(self, width: int, height: int) -> list[Line]:  # noqa: ARG002 - all lines
        if self.session.cursor and not self.ready:
            key = self.session.timeline.scope_of(self.session.cursor)
            if key not in self._asked:
                self._asked.add(key)
                self.run_worker(partial(self._make_graph, key), thread=True, group="graph")
            return [_READING]
        from loopscope.views import graph  # noqa: PLC0415 - loaded when it is looked at

        return graph.body(self.session, width)

    def _make_graph(self, key: ScopeKey) -> None:
        """Runs in a worker's thread; only its message touches the screen."""
        cycles(self.session.topology(key))
        self.post_message(self.Ready(key))

    def on_graph_pane_ready(self, event: Ready) -> None:
        """Draw it."""
        self._made.add(event.key)
        self.show()
