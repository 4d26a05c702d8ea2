"""The screen of a sweep: the heat map of its settings, every run under the chosen one, the front, and the advice.

Enter opens a run in the debugger under its own limits, with the chosen setting beside them as an override.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import Click, DescendantFocus
from textual.message import Message

from loopscope.errors import LoopscopeError
from loopscope.session.draft import Draft
from loopscope.session.grid import Values
from loopscope.session.session import Session
from loopscope.session.tune import Tuning
from loopscope.views import tune_lines
from loopscope.views.model import Line, Span, crop
from loopscope.views.tune import Map, wrong
from loopscope_widgets.terminal.keymap import LIST, TUNE, Key, Keymap, bindings
from loopscope_widgets.terminal.panes.base import Follow, LinePane, LineView, tell
from loopscope_widgets.terminal.panes.strip import KeyLine, Tabs
from loopscope_widgets.terminal.screens.debug import DebugScreen
from loopscope_widgets.terminal.screens.help import lines as help_lines
from loopscope_widgets.terminal.screens.opening import KeyedScreen, Opener
from loopscope_widgets.terminal.screens.reader import Reader

__all__ = ["RunScreen", "TuneScreen"]


_HERE = {
    "list.down": "down: second setting, next run or reference",
    "list.enter": "open the chosen run under this setting",
}
"""What keys of all panes do here."""


class SettingsPane(LinePane):
    """The heat map, and the cell at the cursor in numbers."""

    class Moved(Message):
        """Another cell is at the cursor."""

    class Open(Message):
        """Open the run that is chosen under this cell."""

    def __init__(self, sheet: Map) -> None:
        super().__init__(self._body, number=1, name="Settings")
        self.sheet = sheet
        self.metric = 0
        self._first = 0
        self.go(sheet.start)

    def go(self, values: Values) -> None:
        """Put the cursor on a cell."""
        sheet = self.sheet
        self.part = sheet.slice_of(values)
        part = sheet.slices[self.part]
        self.column = part.columns.index(values[0]) if values else 0
        self.row = part.rows.index(values[1]) if len(values) > 1 else 0

    @property
    def values(self) -> Values:
        """The values of the cell at the cursor."""
        return self.sheet.values(self.sheet.slices[self.part], self.column, self.row)

    def _body(self, width: int, height: int) -> list[Line]:  # noqa: ARG002 - all lines
        sheet, part = self.sheet, self.sheet.slices[self.part]
        metric = sheet.metrics[self.metric]
        room = max(1, (width - tune_lines.label_width(sheet, part)) // tune_lines.CELL)
        self._first = max(0, min(max(self._first, self.column - room + 1), self.column))
        view = tune_lines.View(part, metric, self.column, self.row)
        where = tune_lines.slice_name(sheet, part)
        count = f"  [{self.part + 1} of {len(sheet.slices)}]" if len(sheet.slices) > 1 else ""
        head: Line = (Span(metric.title, "title"), Span(f"  {where}{count}", "dim"))
        return [
            crop(head, width),
            *tune_lines.heat(sheet, view, width, self._first),
            crop(tune_lines.legend(), width),
            (),
            *tune_lines.cell_lines(sheet, self.values, width),
        ]

    def _moved(self) -> None:
        self.show()
        self.scroll_to_line(self.row + 3 if self.row else 0)
        self.post_message(self.Moved())

    def action_move(self, by: int) -> None:
        """The next value of the second setting."""
        rows = len(self.sheet.slices[self.part].rows)
        self.row = min(max(self.row + by, 0), rows - 1)
        self._moved()

    def action_page(self, by: int) -> None:
        """Ten values on."""
        self.action_move(10 * by)

    def action_edge(self, end: int) -> None:
        """The first value (-1) or the last (1)."""
        self.action_move(end * len(self.sheet.slices[self.part].rows))

    def across(self, by: int) -> None:
        """The next value of the first setting."""
        self.column = min(max(self.column + by, 0), len(self.sheet.slices[self.part].columns) - 1)
        self._moved()

    def turn(self, by: int) -> None:
        """Another slice, round to the first one."""
        self.part = (self.part + by) % len(self.sheet.slices)
        self._moved()

    def count(self, by: int) -> None:
        """Another thing that is counted."""
        self.metric = (self.metric + by) % len(self.sheet.metrics)
        self._moved()

    def show_cell(self, values: Values) -> None:
        """Put the cursor on a cell and draw it."""
        self.go(values)
        self._moved()

    def action_choose(self) -> None:
        """Open a run under this cell."""
        self.post_message(self.Open())

    def on_click(self, event: Click) -> None:
        """A cell is chosen; the one at the cursor is opened."""
        place = self.line_of(event)
        part = self.sheet.slices[self.part]
        above = 3 if len(self.sheet.tuning.grid.settings) > 1 else 2
        if place is None or not above <= place[0] < above + len(part.rows):
            return
        column = self._first + (place[1] - tune_lines.label_width(self.sheet, part)) // tune_lines.CELL
        if place[1] < tune_lines.label_width(self.sheet, part) or column >= len(part.columns):
            return
        if (column, place[0] - above) == (self.column, self.row):
            self.post_message(self.Open())
        else:
            self.column, self.row = column, place[0] - above
            self._moved()


class RunsPane(LinePane):
    """Every run under the chosen setting."""

    def __init__(self, sheet: Map) -> None:
        super().__init__(self._body, number=2, name="Runs")
        self.sheet = sheet
        self.values = sheet.start
        self._row: int | None = None

    def _body(self, width: int, height: int) -> list[Line]:  # noqa: ARG002 - all lines
        return tune_lines.runs(self.sheet, self.values, width, self.row)

    @property
    def row(self) -> int:
        """The run that would be opened: the chosen one, else the first that is decided wrongly, stopped or warned."""
        if self._row is not None:
            return self._row
        place = self.sheet.index.get(self.values)
        runs = self.sheet.tuning.runs
        if place is None:
            return 0
        found = [run.outcomes[place] for run in runs]
        wanted = [
            [wrong(run, outcome) for run, outcome in zip(runs, found, strict=True)],
            [outcome.first_stop is not None for outcome in found],
            [outcome.first_warning is not None for outcome in found],
        ]
        return next((flags.index(True) for flags in wanted if True in flags), 0)

    def under(self, values: Values) -> None:
        """Show them under another cell."""
        self.values = values
        self.show()
        self.scroll_to_line(self.row)

    def action_move(self, by: int) -> None:
        """The next run."""
        self._row = min(max(self.row + by, 0), len(self.sheet.tuning.runs) - 1)
        self.show()
        self.scroll_to_line(self._row)

    def action_page(self, by: int) -> None:
        """A page of runs."""
        self.action_move(by * max(1, self.size.height - 1))

    def action_edge(self, end: int) -> None:
        """The first run (-1) or the last (1)."""
        self.action_move(end * len(self.sheet.tuning.runs))

    def action_choose(self) -> None:
        """Open it."""
        self.post_message(SettingsPane.Open())

    def on_click(self, event: Click) -> None:
        """A run is chosen; the chosen one is opened."""
        place = self.line_of(event)
        if place is None:
            return
        if place[0] == self.row:
            self.post_message(SettingsPane.Open())
        else:
            self._row = place[0]
            self.show()


class FrontPane(LinePane):
    """The plane of all cells, and the ones that no other one beats; enter goes to one."""

    def __init__(self, sheet: Map) -> None:
        super().__init__(self._body, number=3, name="Front")
        self.sheet = sheet

    def _body(self, width: int, height: int) -> list[Line]:  # noqa: ARG002 - all lines
        head, *rows = tune_lines.front_cells(self.sheet, width)
        linked = [(sign, *(span._replace(link=place) for span in row)) for place, (sign, *row) in enumerate(rows, 1)]
        return [*tune_lines.front(self.sheet, width), (), head, *linked]


class TuneScreen(KeyedScreen):
    """One sweep.

    Args:
        tuning: what was swept.
        opener: reads a run, under its own limits.
    """

    AUTO_FOCUS = ""
    BINDINGS = bindings(TUNE)
    HORIZONTAL_BREAKPOINTS: ClassVar[list[tuple[int, str]]] = [(0, "-narrow"), (110, "-wide")]  # type: ignore[misc]
    VERTICAL_BREAKPOINTS: ClassVar[list[tuple[int, str]]] = [(0, "-medium"), (32, "-tall")]  # type: ignore[misc]

    class Read(Message):
        """A thread has read a run."""

        def __init__(self, session: Session) -> None:
            super().__init__()
            self.session = session

    class Refused(Message):
        """A run could not be read."""

        def __init__(self, reason: str) -> None:
            super().__init__()
            self.reason = reason

    def __init__(self, tuning: Tuning, opener: Opener) -> None:
        super().__init__()
        self.keymap = Keymap()
        self.opener = opener
        self.sheet = sheet = Map(tuning)
        self.settings = SettingsPane(sheet)
        self.runs = RunsPane(sheet)
        self.front = FrontPane(sheet)
        self.advice = LinePane(lambda width, _: tune_lines.advice(sheet, width), number=4, name="Advice")
        self.panes: tuple[LinePane, ...] = (self.settings, self.runs, self.front, self.advice)
        self.tabs = Tabs(self.panes)
        self._maps = self._facts = Vertical()
        self._reading = False

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys of this screen, as the user has them."""
        return self.keymap.of(TUNE)

    def compose(self) -> ComposeResult:
        """What was swept, the panes, the keys."""
        yield LineView(self._top, id="top")
        yield self.tabs
        with Horizontal(id="columns"):
            with Vertical(id="maps") as self._maps:
                yield self.settings
                yield self.front
            with Vertical(id="facts") as self._facts:
                yield self.runs
                yield self.advice
        yield KeyLine(self.keys)

    def _top(self, width: int, height: int) -> list[Line]:  # noqa: ARG002 - one line
        return [crop((Span(" TUNE  ", "title"), Span(tune_lines.title(self.sheet.tuning))), width)]

    def on_settings_pane_moved(self) -> None:
        """The runs follow the cell."""
        self.runs.under(self.settings.values)

    def on_settings_pane_open(self) -> None:
        """Read the chosen run in a thread: a long one takes a while."""
        if self.sheet.cell(self.settings.values) is None:
            tell(self, "this is no valid policy: a hard limit below its warning", problem=True)
        elif not self._reading:
            self._reading = True
            target = self.sheet.tuning.runs[self.runs.row].target
            self.run_worker(partial(self._read, target), thread=True, group="read")

    def _read(self, target: str) -> None:
        """Runs in a worker's thread; only its message touches the screen."""
        try:
            self.post_message(self.Read(self.opener(target)))
        except LoopscopeError as error:
            self.post_message(self.Refused(str(error)))

    def on_tune_screen_read(self, event: Read) -> None:
        """Show it in front, the setting beside its own limits."""
        self._reading = False
        place = self.sheet.index[self.settings.values]
        screen = RunScreen(event.session)
        screen.keymap = self.keymap
        screen.journal.draft = Draft.of(event.session.policy).take(self.sheet.tuning.policies[place])
        screen.journal.forget()
        self.app.push_screen(screen)

    def on_tune_screen_refused(self, event: Refused) -> None:
        """Say why."""
        self._reading = False
        tell(self, event.reason, problem=True)

    def on_follow(self, event: Follow) -> None:
        """A cell of the front."""
        event.stop()
        self.settings.show_cell(self.sheet.tuning.front[event.number - 1].values)

    def action_across(self, by: int) -> None:
        """The next value of the first setting."""
        self.settings.across(by)

    def action_slice(self, by: int) -> None:
        """Other values of the settings that are no axes."""
        if len(self.sheet.slices) == 1:
            tell(self, "there is one slice: the grid has no third setting", problem=True)
        else:
            self.settings.turn(by)

    def action_metric(self, by: int) -> None:
        """Count something else."""
        self.settings.count(by)

    def action_best(self) -> None:
        """The advised setting; from there, today's limits."""
        best, now = self.sheet.tuning.advice.best, self.sheet.now
        wanted = [values for values in (best, now) if values in self.sheet.index and values != self.settings.values]
        if wanted:
            self.settings.show_cell(wanted[0])
        else:
            tell(self, "no other setting is advised; see Advice", problem=True)

    def action_pane(self, number: int) -> None:
        """Focus a pane; on a narrow screen it is the one that is shown."""
        self._mark_shown(number)
        self.set_focus(self.panes[number - 1])
        self.tabs.show()

    def _mark_shown(self, number: int) -> None:
        self.tabs.current = number
        for pane in self.panes:
            pane.set_class(pane.number == number, "-shown")
        for column, own in ((self._maps, (1, 3)), (self._facts, (2, 4))):
            column.set_class(number in own, "-shown")

    def on_mount(self) -> None:
        """The heat map has the focus."""
        self._mark_shown(1)
        self.set_focus(self.settings)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """A click focuses a pane too."""
        if isinstance(event.widget, LinePane) and event.widget is self.focused:
            self._mark_shown(event.widget.number)
            self.tabs.show()

    def action_next_pane(self, by: int) -> None:
        """The pane beside this one."""
        numbers = [pane.number for pane in self.panes]
        here = next((pane.number for pane in self.panes if pane.has_focus), 1)
        self.action_pane(numbers[(numbers.index(here) + by) % len(numbers)])

    def on_tabs_chosen(self, event: Tabs.Chosen) -> None:
        """A tab was clicked."""
        self.action_pane(event.number)

    def action_help(self) -> None:
        """All keys."""
        keys = (*self.keys, *(key._replace(help=_HERE.get(key.id, key.help)) for key in self.keymap.of(LIST)))
        self.app.push_screen(Reader("Keys", partial(help_lines, pane="", keys=keys)))

    def action_leave(self) -> None:
        """Quit."""
        self.app.exit()


class RunScreen(DebugScreen):
    """The debugger on one run of a sweep: What-if is in front, and leaving leads back to the sweep."""

    FIRST = 5

    def action_leave(self) -> None:
        """Leave the zoom, else this run."""
        if self.has_class("-zoomed"):
            self.remove_class("-zoomed")
        else:
            self.dismiss()
