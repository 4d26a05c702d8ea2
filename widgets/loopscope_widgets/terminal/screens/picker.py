"""The screen where one picks what to look at: what runs, a recording opened lately, a sample, or a path to type."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from textual.actions import SkipAction
from textual.app import ComposeResult
from textual.events import Click
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input
from textual.worker import get_current_worker

from loopscope.errors import LoopscopeError
from loopscope.recording.inert import inert
from loopscope.samples import samples
from loopscope.views import picker
from loopscope.views.glyphs import WORST
from loopscope.views.model import Line, Span, Style, clip
from loopscope.views.words import size
from loopscope_widgets.terminal.keymap import WINDOW, bindings
from loopscope_widgets.terminal.panes.base import LinePane, LineView
from loopscope_widgets.terminal.screens.opening import Attach, Opened, Opener
from loopscope_widgets.terminal.user import recent

__all__ = ["Picker"]

_HEAVY = 16_000_000
"""Bytes of a file above which its state is not looked for: it would take seconds."""
_HINT = "enter opens   / types a path   esc leaves"


class _Rows(LinePane):
    """The list; titles cannot be chosen."""

    class Chosen(Message):
        """Open this."""

        def __init__(self, target: str) -> None:
            super().__init__()
            self.target = target

    def __init__(self, rows: list[picker.Entry]) -> None:
        super().__init__(self._body, number=0, name="Recordings")
        self.heading = "loopscope: attach to an agent, or open a recording"
        self.rows = rows
        self.states: dict[str, picker.State] = {}
        self._row = 1
        self._moved = False

    def _body(self, width: int, height: int) -> list[Line]:  # noqa: ARG002 - all lines
        return picker.draw(self.rows, self.states, width, self._row if self.has_focus else -1)

    def watch_has_focus(self, _has_focus: bool) -> None:  # noqa: FBT001 - Textual's
        """The chosen row shows while the keys go here."""
        super().watch_has_focus(_has_focus)
        self.show()

    def add(self, rows: list[picker.Entry], above: int) -> None:
        """Rows came above; what the keys have chosen stays chosen, and the first row is the newest where none was."""
        self.rows = rows
        if self._moved:
            self._row += above
        self.show()

    def action_move(self, by: int) -> None:
        """The next recording down or up."""
        self._moved = True
        direction = 1 if by > 0 else -1
        wanted = min(max(self._row + by, 1), len(self.rows) - 1)
        while not self.rows[wanted].target:
            wanted += direction
        self._row = wanted
        self.show()
        self.scroll_to_line(wanted if wanted > 1 else 0)

    def action_page(self, by: int) -> None:
        """A page of rows."""
        self.action_move(by * max(1, self.size.height - 1))

    def action_edge(self, end: int) -> None:
        """The first recording (-1) or the last (1)."""
        self.action_move(end * len(self.rows))

    def action_choose(self) -> None:
        """Open it."""
        self.post_message(self.Chosen(self.rows[self._row].target))

    def on_click(self, event: Click) -> None:
        """Open what is clicked."""
        place = self.line_of(event)
        if place is not None and self.rows[place[0]].target:
            self.post_message(self.Chosen(self.rows[place[0]].target))


class Picker(Screen[None]):
    """Asks which recording to open, and opens it.

    Args:
        opener: reads a target.
    """

    AUTO_FOCUS = "#recordings"
    # The focus moves before the next key is given to whatever has it: one types / and a path in one go.
    BINDINGS = bindings(tuple(key for key in WINDOW if key.id.startswith("picker.")), first="picker.type")

    class Running(Message):
        """A worker has found the processes that run."""

        def __init__(self, rows: list[picker.Entry], states: dict[str, picker.State]) -> None:
            super().__init__()
            self.rows = rows
            self.states = states

    class Known(Message):
        """A worker has found out what a recording is like."""

        def __init__(self, target: str, state: picker.State) -> None:
            super().__init__()
            self.target = target
            self.state = state

    class Refused(Message):
        """A recording could not be read."""

        def __init__(self, reason: str) -> None:
            super().__init__()
            self.reason = reason

    def __init__(self, opener: Opener) -> None:
        super().__init__()
        self.opener = opener
        self._recent = recent()
        self._named = [(sample.name, sample.summary) for sample in samples()]
        self.rows = _Rows(picker.entries(self._recent, self._named))
        self._said: tuple[str, Style] = (_HINT, "dim")
        self._reading = False

    def compose(self) -> ComposeResult:
        """The list, the line for a path, and what is to be said."""
        yield self.rows
        yield Input(placeholder="path of a recording, or sample:NAME", id="path", compact=True, select_on_focus=False)
        yield LineView(lambda width, _height: [(Span(clip(self._said[0], width), self._said[1]),)], id="hint")

    def on_mount(self) -> None:
        """Look what runs, and what the recordings are like, while one reads their names."""
        self.run_worker(self._seek, thread=True, group="running")
        targets = [row.target for row in self.rows.rows if row.target]
        self.run_worker(partial(self._look, targets), thread=True, group="states")

    def _seek(self) -> None:
        """Runs in a worker's thread; only its message touches the screen."""
        from loopscope.link.target import discover  # noqa: PLC0415 - where nothing runs, little of it is needed

        rows: list[picker.Entry] = []
        states: dict[str, picker.State] = {}
        for live in discover():
            entry, welcome = live.entry, live.welcome
            row = picker.running(
                entry.name, entry.address, entry.pid, time.time() - entry.started, control=entry.control
            )  # fmt: skip
            rows.append(row)
            if welcome is None:
                states[row.target] = picker.State(problem=live.problem or "does not answer")
            else:
                worst = WORST.get(welcome.summary.worst, "new")
                states[row.target] = picker.State(worst, welcome.summary.batches)
        if rows:
            self.post_message(self.Running(rows, states))

    def on_picker_running(self, event: Running) -> None:
        """Put them above the recordings; the row that is chosen is then the first of them, unless one was chosen."""
        self.rows.states |= event.states
        self.rows.add(picker.entries(self._recent, self._named, event.rows), len(event.rows) + 1)

    def _look(self, targets: list[str]) -> None:
        """Runs in a worker's thread; only its messages touch the screen."""
        worker = get_current_worker()
        for target in targets:
            if worker.is_cancelled or self._reading:
                return
            self.post_message(self.Known(target, self._state(target)))

    def _state(self, target: str) -> picker.State:
        try:
            if not target.startswith("sample:") and (weight := Path(target).stat().st_size) > _HEAVY:
                return picker.State(problem=f"{size(weight)}, not read")
            return picker.state(self.opener(target))
        except LoopscopeError as error:
            return picker.State(problem=str(error))
        except OSError as error:
            return picker.State(problem=error.strerror or "cannot be read")

    def on_picker_known(self, event: Known) -> None:
        """Show it."""
        self.rows.states[event.target] = event.state
        self.rows.show()

    def on__rows_chosen(self, event: _Rows.Chosen) -> None:
        """Open what was chosen."""
        self._open(event.target)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Open what was typed."""
        if event.value.strip():
            self._open(str(Path(event.value.strip()).expanduser()))

    def _open(self, target: str) -> None:
        """Read it in a worker: a long recording takes a while."""
        if self._reading:
            return
        if target.startswith(picker.LIVE):
            self._say("attaching …", "text")
            self.app.post_message(Attach(target.removeprefix(picker.LIVE)))
        else:
            self._reading = True
            self._say(f"reading {target} …", "text")
            self.run_worker(partial(self._read, target), thread=True, group="read")

    def _read(self, target: str) -> None:
        """Runs in a worker's thread; only its message touches the screen."""
        try:
            self.app.post_message(Opened(self.opener(target)))
        except LoopscopeError as error:
            self.post_message(self.Refused(str(error)))

    def on_picker_refused(self, event: Refused) -> None:
        """Say why, and let another one be chosen."""
        self._reading = False
        self._say(event.reason, "warn")

    def _say(self, text: str, style: Style) -> None:
        self._said = (inert(text), style)
        self.query_one("#hint", LineView).show()

    def action_type(self) -> None:
        """Type a path."""
        line = self.query_one(Input)
        if self.focused is line:
            raise SkipAction
        self.set_focus(line)

    def action_leave(self) -> None:
        """Back to the list, else to where one came from."""
        if self.focused is not self.rows:
            self.set_focus(self.rows)
        elif len(self.app.screen_stack) > 1:
            self.app.pop_screen()
        else:
            self.app.exit()
