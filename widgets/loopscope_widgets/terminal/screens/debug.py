"""The debugger's screen: lays the panes out, moves the session as keys and clicks ask, says why where it cannot."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakSet

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import DescendantFocus
from textual.events import Key as KeyEvent
from textual.message import Message
from textual.timer import Timer

from loopscope.engine.explain import Explanation
from loopscope.session.journal import Journal
from loopscope.session.session import Session
from loopscope.views import bounds, decisions, moves, why, within
from loopscope.views.model import Line
from loopscope.views.words import plural
from loopscope_widgets.terminal.keymap import BREAKPOINTS, GLOBAL, LIST, WHATIF, WINDOW, Key, Keymap, bindings
from loopscope_widgets.terminal.panes.base import Follow, LinePane, tell
from loopscope_widgets.terminal.panes.breakpoints import BreakpointsPane
from loopscope_widgets.terminal.panes.decisions import DecisionsPane
from loopscope_widgets.terminal.panes.graph import GraphPane
from loopscope_widgets.terminal.panes.inspect import DetectPane, InspectPane
from loopscope_widgets.terminal.panes.scopes import ScopesPane
from loopscope_widgets.terminal.panes.strip import KeyLine, Tabs, TimelineStrip, TopBar
from loopscope_widgets.terminal.panes.whatif import WhatIfPane
from loopscope_widgets.terminal.screens.halting import Halting
from loopscope_widgets.terminal.screens.opening import KeyedScreen
from loopscope_widgets.terminal.screens.trying import Trying

if TYPE_CHECKING:
    from loopscope.views.goto import Target

__all__ = ["DebugScreen"]

_LEFT = (1, 7)
_MIDDLE = (2, 4, 5)
"""Panes that share a column: those of the left one stand below each other, those of the middle one in one place."""
_SPEEDS = (1, 2, 4, 8, 16)
"""Batches a second that are played."""
_REST = 0.15
"""Seconds that the cursor must rest before the nearest settings are looked for."""


_WIDTHS = [(0, "-tiny"), (60, "-narrow"), (110, "-wide")]
_HEIGHTS = [(0, "-low"), (16, "-short"), (22, "-medium"), (32, "-tall")]


def _layout(breakpoints: list[tuple[int, str]], cells: int) -> str:
    """The class of this size, as Textual will find it too."""
    return [name for least, name in breakpoints if cells >= least][-1]


class DebugScreen(Halting, Trying, KeyedScreen):
    """One session with its panes."""

    AUTO_FOCUS = ""
    BINDINGS = bindings(GLOBAL)
    OWN: ClassVar[tuple[Key, ...]] = ()
    """Keys of this kind of screen alone."""
    FIRST: ClassVar[int] = 2
    """The pane that has the focus at first: Detect answers how far the run is from being stopped."""
    HORIZONTAL_BREAKPOINTS = _WIDTHS
    VERTICAL_BREAKPOINTS = _HEIGHTS

    class Explained(Message):
        """A worker has found the nearest settings of a batch, or has stopped looking since the cursor went away."""

        def __init__(self, explanation: Explanation | None) -> None:
            super().__init__()
            self.explanation = explanation

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.keymap = Keymap()
        """The keys as the user has them."""
        self.top = TopBar(session)
        self.journal = Journal(session)
        self.strip = TimelineStrip(session, self.journal)
        self.inspect = InspectPane(session)
        self.decisions = DecisionsPane(session)
        self.whatif = WhatIfPane(session, self.journal)
        self.breaks = BreakpointsPane(session)
        self._at_left: tuple[LinePane, ...] = (ScopesPane(session), self.breaks)
        self._beside: tuple[LinePane, ...] = (DetectPane(session), GraphPane(session), self.whatif, self.inspect)
        """The panes of the other columns; all but Inspect share the middle one."""
        panes = (*self._at_left, *self._beside, self.decisions)
        self.panes: tuple[LinePane, ...] = tuple(sorted(panes, key=lambda pane: pane.number))
        middle = [pane for pane in self.panes if pane.number in _MIDDLE]
        for pane in middle:
            pane.beside = tuple(f" │ {other.number} {other.name}" for other in middle if other is not pane)
        self.tabs = Tabs(self.panes)
        self._mark_shown(self.FIRST)
        self.still = self.top.mode
        """What the bar calls this when it does not play."""
        self.passed: WeakSet[KeyEvent] = WeakSet()
        """Keys that were pressed while this screen was in front."""
        self._searching = False
        self._to_copy = 0
        """The batch that is to be copied when it is read."""
        self._rest: Timer | None = None
        self._playing: Timer | None = None
        self._speed = _SPEEDS.index(4)

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys that work in every pane, as the user has them; those of this kind of screen go before others."""
        own = self.keymap.of(self.OWN)
        taken = {name for key in own for name in key.keys.split(",")}
        return (*own, *(key for key in self.keymap.of(GLOBAL) if set(key.keys.split(",")) - taken))

    def compose(self) -> ComposeResult:
        """Bar, strip, tabs where they are needed, panes, keys; laid out for this size from the first picture on."""
        width, height = self.app.size
        self.add_class(_layout(_WIDTHS, width), _layout(_HEIGHTS, height))
        yield self.top
        yield self.strip
        yield self.tabs
        self.whatif.keymap = self.breaks.keymap = self.keymap
        with Horizontal(id="panes"):
            with Vertical(id="left"):
                yield from self._at_left
            yield from self._beside
        yield self.decisions
        yield KeyLine(self.keys)

    def on_mount(self) -> None:
        """The first pane has the focus, and the breakpoints of the last look are there."""
        self.set_focus(self.pane(self.FIRST))
        self.load_breakpoints()
        self._look_for_nearest()
        self.call_after_refresh(self._say_where)

    def _say_where(self) -> None:
        tell(self, moves.opened(self.session))

    def moved(self, event: int | None = None) -> None:
        """The session has changed: draw everything anew, at the cost of what is visible.

        Args:
            event: which of the engine's events within the batch is looked at.
        """
        self.journal.look()
        self.inspect.explanation = None
        self.inspect.event = event
        self.top.show()
        self.strip.show()
        for pane in self.panes:
            pane.show()
        self._look_for_nearest()

    def _look_for_nearest(self) -> None:
        """Look for the nearest settings once the cursor rests: on a long scope that takes more than a frame."""
        if self._rest is not None:
            self._rest.stop()
        if self.session.cursor:
            self._rest = self.set_timer(_REST, self._search)

    def _search(self) -> None:
        """One search at a time: the next one waits until the thread sees that nobody wants this one any more."""
        if not self._searching:
            self._searching = True
            self.run_worker(partial(self._explain, self.session.cursor), thread=True, group="why")

    def _explain(self, number: int) -> None:
        """Runs in a worker's thread; only its message touches the screen."""
        session = self.session
        found = session.search(number, lambda: self.is_running and session.cursor == number)
        self.post_message(self.Explained(found))

    def on_debug_screen_explained(self, event: Explained) -> None:
        """The nearest settings are there: show them, if the cursor is still where they belong."""
        self._searching = False
        if event.explanation is None or event.explanation.batch != self.session.cursor:
            self._look_for_nearest()
            return
        self.inspect.keep(event.explanation)
        if self.app.screen is not self:
            from loopscope_widgets.terminal.screens.reader import Changed  # noqa: PLC0415 - loaded when one is open

            self.app.screen.post_message(Changed())

    def _did(self, reason: str | None) -> None:
        """A move was made, or could not be made and tells why."""
        if reason is None:
            self.moved()
        else:
            tell(self, reason, problem=True)

    def action_step(self, by: int) -> None:
        """One batch, or several."""
        self._did(moves.step(self.session, by))

    def action_decision(self, direction: int) -> None:
        """The next or the previous warning or stop."""
        self._did(moves.decision(self.session, direction))

    def action_event(self, by: int) -> None:
        """The next or the previous event within the batch, then that of the batch beside it."""
        session = self.session
        at = self.inspect.event
        if not session.cursor:
            tell(self, "cannot step: there is no batch with calls", problem=True)
            return
        wanted = (0 if by > 0 else -1) if at is None else at + by
        count = len(within.steps(session, session.cursor, wait=False))
        if at is not None and not 0 <= wanted < count:
            reason = moves.step(session, by)
            if reason is not None:
                tell(self, reason, problem=True)
                return
            count = len(within.steps(session, session.cursor, wait=False))
            wanted = 0 if by > 0 else -1
        wanted %= count
        if not self.inspect.display:
            self.show_pane(self.inspect.number)
        self.moved(wanted)
        self.inspect.look_at(wanted)

    def action_scope_edge(self, end: int) -> None:
        """The first or the last batch of the cursor's scope."""
        self._did(moves.scope_edge(self.session, end))

    def action_mark(self) -> None:
        """Mark the batch, or take its mark away."""
        if not self.session.cursor:
            tell(self, "nothing to mark: there is no batch with calls", problem=True)
            return
        self.journal.toggle(self.session.cursor)
        self.strip.show()

    def action_next_mark(self) -> None:
        """The next marked batch, round to the first one."""
        number = self.journal.next_mark()
        self._seek(number)
        if number is None:
            what = "no other batch is marked" if self.journal.marks else "no batch is marked"
            tell(self, f"{what}; m marks one", problem=True)

    def action_undo(self) -> None:
        """Take back the last change of limits, breakpoints, scope, filter or marks."""
        what = self.journal.undo()
        if what is None:
            tell(self, "nothing to undo", problem=True)
            return
        self._filter(self.journal.filter)
        self.whatif.problem = ""
        self.moved()
        self.breakpoints_changed()
        tell(self, f"undone: {what}")

    def action_play(self) -> None:
        """Walk on by itself, batch by batch; or stop that."""
        if self._playing is not None:
            self._pause()
        elif (reason := moves.step(self.session, 1)) is not None:
            tell(self, reason, problem=True)
        else:
            self.moved()
            self._play()

    def _play(self) -> None:
        rate = _SPEEDS[self._speed]
        self._playing = self.set_interval(1 / rate, self._tick)
        self.top.mode = f"PLAY {rate}/s"
        self.top.show()

    def _pause(self) -> None:
        if self._playing is not None:
            self._playing.stop()
        self._playing = None
        self.top.mode = self.still
        self.top.show()

    def _tick(self) -> None:
        reason = moves.step(self.session, 1)
        if reason is None:
            self.moved()
        else:
            self._pause()

    def action_speed(self, by: int) -> None:
        """Play faster or slower."""
        self._speed = min(max(self._speed + by, 0), len(_SPEEDS) - 1)
        if self._playing is not None:
            self._pause()
            self._play()
        tell(self, f"plays {plural(_SPEEDS[self._speed], 'batch')} a second")

    async def action_open(self) -> None:
        """Pick another recording."""
        await self.app.run_action("open")

    def action_copy(self) -> None:
        """Copy the batch and its reasons, and show them plain: many terminals do not let a program copy."""
        if self.inspect.read():
            self._copy()
        else:
            self._to_copy = self.session.cursor
            tell(self, "reading it to copy it …")

    def on_inspect_pane_read(self) -> None:
        """A batch that weighs was read; it may be the one that is to be copied."""
        if self._to_copy and self._to_copy == self.session.cursor and self.inspect.read():
            self._copy()

    def _copy(self) -> None:
        from loopscope.views.copying import copied  # noqa: PLC0415 - loaded when it is asked for
        from loopscope_widgets.terminal.screens.plain import PlainText  # noqa: PLC0415 - as above

        self._to_copy = 0
        self.app.copy_to_clipboard(copied(self.session))
        self.app.push_screen(PlainText(partial(copied, self.session)))

    def action_first(self) -> None:
        """The first batch."""
        self._did(moves.edge(self.session, -1))

    def action_last(self) -> None:
        """The last batch."""
        self._did(moves.edge(self.session, 1))

    def action_parent(self) -> None:
        """The scope above."""
        self._did(moves.parent(self.session))

    def action_child(self) -> None:
        """The scope below."""
        self._did(moves.child(self.session))

    def on_follow(self, event: Follow) -> None:
        """A reference to a batch was followed, or a column of the strip clicked."""
        self._seek(event.number)

    def _seek(self, number: int | None) -> None:
        if number is not None:
            self.session.seek(number)
            self.moved()

    def on_scopes_pane_chosen(self, event: ScopesPane.Chosen) -> None:
        """A scope was chosen in the tree."""
        self._did(moves.show(self.session, event.lane))

    def action_goto(self) -> None:
        """Ask where to go."""
        from loopscope_widgets.terminal.screens.ask import GoTo  # noqa: PLC0415 - loaded when it is asked for

        self.app.push_screen(GoTo(self.session), self._go)

    def _go(self, target: Target | None) -> None:
        if target is not None:
            target.go(self.session)
            self.moved()

    def action_filter(self) -> None:
        """Ask which decisions to show; the log has the focus then."""
        from loopscope_widgets.terminal.screens.ask import Filter  # noqa: PLC0415 - loaded when it is asked for

        self.show_pane(self.decisions.number)
        self.app.push_screen(Filter(self.decisions.entries.filter, self._filter), self._filtered)

    def _filtered(self, _text: str | None) -> None:
        """The filter is what it is to be."""
        self.journal.look()

    def _filter(self, text: str) -> str:
        """Show the decisions that this leaves; how many."""
        self.decisions.entries.filter = self.journal.filter = text
        self.decisions.show()
        return decisions.counted(self.decisions.entries)

    def action_match(self, direction: int) -> None:
        """The next or the previous row that the filter leaves."""
        log = self.decisions.entries
        number = log.match(self.session.cursor, direction)
        self._seek(number)
        if number is None:
            tell(self, decisions.no_match(self.session, log, direction), problem=True)

    def action_why(self) -> None:
        """The whole explanation in a window."""
        if not self.session.cursor:
            tell(self, "nothing to explain: there is no batch with calls", problem=True)
            return
        from loopscope_widgets.terminal.screens.reader import Reader  # noqa: PLC0415 - loaded when it is opened

        self.app.push_screen(Reader(f"Why #{self.session.cursor}", self._why), self._seek)

    def _why(self, width: int, height: int) -> list[Line]:  # noqa: ARG002 - the window scrolls
        whole = self.inspect.explanation
        found = whole or self.session.explain(search=False)
        rows = bounds.evidence(self.session, width)
        return why.body(found, len(self.session), width, searching=whole is None, rows=rows)

    def action_help(self) -> None:
        """All keys and glyphs, those of the focused pane first."""
        pane = self.pane(self.tabs.current).name or ""
        keys = (*self.keys, *self.keymap.of((*LIST, *WHATIF, *BREAKPOINTS, *WINDOW)))
        from loopscope_widgets.terminal.screens.help import lines as help_lines  # noqa: PLC0415 - as above
        from loopscope_widgets.terminal.screens.reader import Reader  # noqa: PLC0415 - as above

        self.app.push_screen(Reader("Keys", partial(help_lines, pane=pane, keys=keys)))

    def on_key(self, event: KeyEvent) -> None:
        """Keys that went through here; the app looks again at those that find a window open when their turn comes."""
        self.passed.add(event)

    def show_pane(self, number: int) -> None:
        """Focus a pane; on a narrow screen, or zoomed, it is the one that is shown."""
        self._mark_shown(number)
        # At once, where `focus` waits: the next key may be there already.
        self.set_focus(self.pane(number))
        self.tabs.show()

    def pane(self, number: int) -> LinePane:
        """The pane with this number."""
        return next(pane for pane in self.panes if pane.number == number)

    def _mark_shown(self, number: int) -> None:
        seen = self.is_running
        self.tabs.current = number
        for pane in self.panes:
            pane.set_class(pane.number == number, "-shown", update=seen)
            if number in _MIDDLE and pane.number in _MIDDLE:
                pane.set_class(pane.number != number, "-behind", update=seen)
        self.set_class(number == self.decisions.number, "-log", update=seen)
        self.set_class(number in _LEFT, "-left", update=seen)

    def action_pane(self, number: int) -> None:
        """Focus a pane."""
        self.show_pane(number)

    def action_next_pane(self, by: int) -> None:
        """The pane beside this one."""
        numbers = [pane.number for pane in self.panes]
        self.show_pane(numbers[(numbers.index(self.tabs.current) + by) % len(numbers)])

    def on_tabs_chosen(self, event: Tabs.Chosen) -> None:
        """A tab was clicked."""
        self.show_pane(event.number)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """A click focuses a pane too. The event is late where keys are fast: what has the focus now counts."""
        pane = self.focused
        if pane is event.widget and isinstance(pane, LinePane) and pane.number != self.tabs.current:
            self.show_pane(pane.number)

    def action_zoom(self) -> None:
        """The focused pane alone, and back."""
        self.toggle_class("-zoomed")

    def action_back(self) -> None:
        """Leave the zoom, else the events within a batch, else show all decisions again."""
        if self.has_class("-zoomed"):
            self.remove_class("-zoomed")
        elif self.inspect.event is not None:
            self.moved()
        elif self.decisions.entries.filter:
            self._filter("")
            self.journal.look()
        else:
            tell(self, "nothing is open in front; q quits")

    def action_leave(self) -> None:
        """Leave the zoom, else the debugger."""
        if self.has_class("-zoomed"):
            self.remove_class("-zoomed")
        else:
            self.app.exit()
