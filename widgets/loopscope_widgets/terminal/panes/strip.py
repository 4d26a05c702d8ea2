"""What is always on the screen: the bar at the top, the timeline, the tabs of a narrow screen, the line of keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.events import Click, MouseDown, MouseMove, Resize
from textual.message import Message

from loopscope.session.journal import Journal
from loopscope.session.session import Session
from loopscope.views import timeline, topbar
from loopscope.views.model import Line, Span, line_width
from loopscope_widgets.terminal.keymap import GLOBAL, Key
from loopscope_widgets.terminal.panes.base import Follow, LinePane, LineView, safe_title

__all__ = ["KeyLine", "Tabs", "TimelineStrip", "TopBar"]

_FOREMOST = ("batch.next", "breakpoint.next", "decision.next", "breakpoint.here", "why", "tune", "find")
"""The keys that a narrow line has before others."""


class TopBar(LineView):
    """What is looked at, and the verdict at the cursor."""

    def __init__(self, session: Session) -> None:
        super().__init__(lambda width, height: topbar.lines(session, 0, height, width, self.mode), id="top")
        self.mode = "REPLAY"


class TimelineStrip(LineView):
    """The strip of batches, and the overview of a lane that is longer; a click or a drag puts the cursor there."""

    def __init__(self, session: Session, journal: Journal) -> None:
        super().__init__(lambda width, height: timeline.lines(session, 0, height, width, journal.marks), id="timeline")
        self.session = session
        self._dragged: int | None = None
        """The line on which the button was pressed."""

    def on_mount(self) -> None:
        """Its border, where it has one."""
        self.border_title = safe_title(self, "Timeline")

    def show(self) -> None:
        """Draw anew."""
        super().show()
        self.border_subtitle = safe_title(self, timeline.part(self.session, self.size.width))

    def on_resize(self, _: Resize) -> None:
        """Another size is another page."""
        self.show()

    def on_mouse_down(self, event: MouseDown) -> None:
        """Seek, and go on as long as the button is held."""
        offset = event.get_content_offset(self)
        if event.button == 1 and offset is not None:
            self._dragged = offset.y
            self.capture_mouse()
            self._seek(event)

    def on_mouse_move(self, event: MouseMove) -> None:
        """Seek to what the pointer is dragged over."""
        if self._dragged is not None:
            self._seek(event)

    def on_mouse_up(self) -> None:
        """The end of a drag."""
        self._dragged = None
        self.release_mouse()

    def _seek(self, event: MouseDown | MouseMove) -> None:
        """A drag stays on the line where it began, wherever the pointer strays."""
        cell = event.get_content_offset_capture(self).x
        number = timeline.number_at(self.session, self.size.width, cell, self._dragged or 0)
        if number is not None and number != self.session.cursor:
            self.post_message(Follow(number))


class Tabs(LineView):
    """The names of the panes, where only one has room."""

    class Chosen(Message):
        """A tab was clicked."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self, panes: Sequence[LinePane]) -> None:
        super().__init__(self._tabs, id="tabs")
        self.panes = panes
        self.current = 1

    def _tabs(self, width: int, height: int) -> list[Line]:  # noqa: ARG002 - one line, cut by the widget
        """All names; where they have no room together, the numbers of all others."""
        line = self._named(lambda pane: pane.short)
        if line_width(line) > width:
            line = self._named(lambda pane: pane.short if pane.number == self.current else "")
        return [line]

    def _named(self, name: Callable[[LinePane], str]) -> Line:
        spans: list[Span] = []
        for pane in self.panes:
            text = f"{pane.number} {name(pane)}".rstrip()
            here = pane.number == self.current
            spans.append(Span(f"[{text}]" if here else f" {text} ", "title" if here else "dim", link=pane.number))
            spans.append(Span(" "))
        return tuple(spans[:-1])

    def on_click(self, event: Click) -> None:
        """Show the pane."""
        if number := self.link(event):
            self.post_message(self.Chosen(number))


def _rank(key: Key) -> int:
    """Where a key stands: what is asked for most before others, which stand as in their table."""
    if key.id in _FOREMOST:
        return _FOREMOST.index(key.id)
    return -1 if key.group == "Live" else len(_FOREMOST) + (key.id in ("help", "quit"))


class KeyLine(LineView):
    """The keys that one needs first; a click is the key."""

    def __init__(self, keys: tuple[Key, ...] = GLOBAL) -> None:
        super().__init__(self._keys, id="keys")
        self.keys = tuple(sorted((key for key in keys if key.footer), key=_rank))

    def _keys(self, width: int, height: int) -> list[Line]:  # noqa: ARG002 - one line
        """As many keys as have room; those of help and quit, the last two, always have."""
        entries: list[Line] = [
            (Span(key.footer_keys, "key", link=place), Span(f" {key.footer}  ", "dim", link=place))
            for place, key in enumerate(self.keys, 1)
        ]
        while len(entries) > 2 and sum(map(line_width, entries)) > width:  # noqa: PLR2004 - help and quit
            del entries[-3]
        return [(Span(" "), *(span for entry in entries for span in entry))]

    async def on_click(self, event: Click) -> None:
        """Do what the key does."""
        if position := self.link(event):
            await self.screen.run_action(self.keys[position - 1].action)
