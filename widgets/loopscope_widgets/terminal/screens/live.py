"""The debugger on what runs: it follows the newest batch, and pauses, steps and stops where it may.

A thread reads the feed; what it brings is taken in some twenty times a second, so that a fast agent costs no more
drawing than a slow one. Leaving never stops the agent.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import msgspec
from textual.app import ComposeResult
from textual.message import Message

from loopscope.engine.breakpoints import Breakpoint
from loopscope.engine.events import ScopeKey
from loopscope.engine.policy import Policy
from loopscope.errors import LoopscopeError
from loopscope.recording import feed as feeds
from loopscope.recording.feed import BreakpointState, Feed, Verb
from loopscope.recording.inert import inert
from loopscope.session.draft import Draft
from loopscope.session.halts import condition
from loopscope.session.live import LiveSession
from loopscope.views import live as view
from loopscope.views.model import Line
from loopscope.views.topbar import scope_name
from loopscope.views.words import plural
from loopscope_widgets.terminal.keymap import LIVE, bindings
from loopscope_widgets.terminal.panes.base import LineView, tell
from loopscope_widgets.terminal.screens.debug import DebugScreen

if TYPE_CHECKING:
    from loopscope_widgets.terminal.screens.control import Order

__all__ = ["LiveScreen"]

_REST = 0.05
"""Seconds between two times that what came is taken in."""
_FRAME = 0.04
"""Seconds for taking in at a time; a long past comes in pieces, with the keys alive between them."""
_LAG = 1.0
"""Seconds for what is in force to come after the answer that it is."""
_ENOUGH = 20_000
"""Messages that wait before no more are read."""


_GONE = "the process has ended"
"""What a feed says where nothing more is known."""
_WORDS = {"setPolicy": "apply", "setBreakpoints": "set breakpoints", "passOnce": "let it pass"}
"""What a verb is called, where it is not as the protocol has it."""


class LiveScreen(DebugScreen):
    """One live run with its panes.

    Args:
        feed: what is looked at.
        live: its session.
    """

    BINDINGS = bindings(LIVE)
    OWN = LIVE
    DEFAULT_CSS = """
    LiveScreen #held { height: 2; display: none; background: $panel; }
    LiveScreen.-held #held { display: block; }
    LiveScreen.-control #top { background: $error 30%; }
    LiveScreen.-control.-paused #top { background: $warning 30%; }
    LiveScreen.-control.-lost #top { background: $panel; }
    """

    class Arrived(Message):
        """Something came."""

    class Over(Message):
        """The feed has ended."""

    class Answered(Message):
        """A request was done, or refused."""

        def __init__(self, verb: Verb, text: str, *, problem: bool) -> None:
            super().__init__()
            self.verb = verb
            self.text = text
            self.problem = problem

    def __init__(self, feed: Feed, live: LiveSession) -> None:
        super().__init__(live.session)
        self.feed = feed
        self.live = live
        self.following = True
        """The cursor goes with the newest batch."""
        self.top.content = self._bar
        self.held_lines = LineView(self._held, id="held")
        self._inbox: deque[feeds.Message] = deque()
        self._told = False
        self._left = threading.Event()
        self.apply = self._put_in_force
        self._breaks_seen: Sequence[BreakpointState] | None = None
        """The breakpoints of the process that the pane shows."""
        self._breaks_told: Sequence[Breakpoint] | None = None
        """What the process was told and has not said to be in force yet; until then the pane is ahead of it."""
        self._drops = 0

    def compose(self) -> ComposeResult:
        """The debugger's, with what is held above the keys."""
        yield from super().compose()
        yield self.held_lines

    def on_mount(self) -> None:
        """Begin to read. A thread that reads a long past would be in the way of the first picture."""
        self._mark_state()
        begin = partial(self.run_worker, self._read, thread=True, group="feed")
        if self.live.share is None:
            begin()
        else:
            self.call_after_refresh(begin)

    def on_unmount(self) -> None:
        """Whatever closes the screen, the agent goes on."""
        self._leave()

    def _bar(self, width: int, height: int) -> list[Line]:  # noqa: ARG002 - one line
        return [view.bar(self.live, width, control=self.has_class("-control"))]

    def _held(self, width: int, height: int) -> list[Line]:  # noqa: ARG002 - two lines
        return view.held(self.live, width, control=not self._denied("next"))

    def _say_where(self) -> None:
        why = self._denied("pause")
        doing = "attached to" if self.live.what == "process" else "follows"
        tell(self, f"{doing} {self.live.session.source}" + (f"; {why}" if why else "; space pauses, q detaches"))

    def _read(self) -> None:
        """Runs in a worker's thread, until the feed is over."""
        try:
            for message in self.feed:
                self._inbox.append(message)
                if not self._told:
                    self._told = True
                    self.post_message(self.Arrived())
                while len(self._inbox) > _ENOUGH and not self._left.wait(_REST):
                    pass
        finally:
            if not self._left.is_set():
                self.post_message(self.Over())

    def on_live_screen_arrived(self) -> None:
        """Take in what came, and look again a little later."""
        end = time.monotonic() + _FRAME
        before = self.session.timeline.events
        while self._inbox and time.monotonic() < end:
            self.live.take([self._inbox.popleft()])
        self._show(grown=self.session.timeline.events > before)
        self.set_timer(_REST, self._rested)

    def on_live_screen_over(self) -> None:
        """Take in the rest."""
        while self._inbox:
            self.live.take([self._inbox.popleft()])
        self._show(grown=True)
        if self.live.state == "ended":
            reason = "" if self.live.reason.startswith(_GONE) else f": {self.live.reason}"
            tell(self, f"{self.live.what} ended{reason}; all that it did is kept here", problem=True)

    def _rested(self) -> None:
        self._told = bool(self._inbox)
        if self._told or self._inbox:
            self._told = True
            self.post_message(self.Arrived())

    def _show(self, *, grown: bool) -> None:
        """Draw what has changed: all of it while following, else what is around the batch that is looked at."""
        session = self.session
        self._mark_state()
        self._look_at_breakpoints()
        self.held_lines.show()
        if len(session) and (not session.cursor or (self.following and grown)):
            session.seek(len(session))
            super().moved()
            return
        self.top.show()
        if grown:
            self.strip.show()
            self.decisions.show()

    def _mark_state(self) -> None:
        now = view.mode(self.live)
        self.set_class(any(not self._denied(verb) for verb in get_args(Verb)), "-control")
        self.set_class(now == "paused", "-paused")
        self.set_class(now == "lost", "-lost")
        self.set_class(bool(self.live.held), "-held")

    def moved(self, event: int | None = None) -> None:
        """The user has moved: at the newest batch the cursor follows, elsewhere it stays."""
        self.following = self.session.cursor == len(self.session)
        super().moved(event)

    def _denied(self, verb: Verb) -> str:
        """Why this cannot be asked for; nothing where it can."""
        if self.live.state != "live":
            states = {
                "starting": "the program has loaded no LangGraph yet",
                "lost": "the connection is lost, and sought",
                "ended": f"the {self.live.what} has ended",
            }
            return states.get(self.live.state, "you have detached")
        return self.feed.capabilities.get(verb, "this target cannot do it")

    def _ask(self, verb: Verb, said: str, scope: ScopeKey | None = None, **arguments: Any) -> bool:
        """Ask for an act of control in a thread, since the answer may take its time; False where it cannot be asked."""
        why = self._denied(verb)
        if why:
            tell(self, f"cannot {_WORDS.get(verb, verb)}: {why}", problem=True)
            return False
        self.run_worker(partial(self._request, verb, said, scope, arguments), thread=True, group="ask")
        return True

    def _request(self, verb: Verb, said: str, scope: ScopeKey | None, arguments: Mapping[str, Any]) -> None:
        """Runs in a worker's thread."""
        try:
            answer = self.feed.request(verb, scope, **arguments)
        except LoopscopeError as error:
            self.post_message(self.Answered(verb, str(error), problem=True))
        else:
            self.post_message(self.Answered(verb, said + _where(answer), problem=False))

    def on_live_screen_answered(self, event: Answered) -> None:
        """Say what was done, or why not."""
        if event.verb == "setBreakpoints":
            if event.problem:
                self._breaks_seen, self._breaks_told = None, None
            self.set_timer(_LAG if not event.problem else 0, self._settle_breakpoints)
        if event.verb == "setPolicy" and not event.problem:
            self.whatif.take(Draft.of(self.session.policy))
        if event.text:
            tell(self, event.text, problem=event.problem)

    def cannot_apply(self) -> str:
        """Why no policy can be put in force; nothing where it can."""
        return self._denied("setPolicy")

    def _put_in_force(self, policy: Policy) -> None:
        self._ask("setPolicy", "in force from the next batch on", policy=policy.to_dict())

    def load_breakpoints(self) -> None:
        """A file's are kept. Those of a process are its own, and nothing is held by what another day was looked for."""
        if self.live.what == "file":
            super().load_breakpoints()

    def breakpoints_changed(self) -> None:
        """Where this viewer may steer, the process judges them and holds the batch; else they are this viewer's own."""
        if self._denied("setBreakpoints"):
            super().breakpoints_changed()
            return
        self.journal.look()
        self.breaks.show()
        self._tell_breakpoints()

    def _tell_breakpoints(self) -> None:
        points = self.live.breakpoints_to_tell()
        if self._ask("setBreakpoints", "", breakpoints=msgspec.to_builtins(points)):
            self._breaks_told = [condition(point) for point in points]

    def _settle_breakpoints(self) -> None:
        """Whatever is in force there by now, since another viewer may have been faster."""
        self._breaks_told = None
        self._look_at_breakpoints()

    def _look_at_breakpoints(self) -> None:
        """Show those of the process, where this viewer may steer; another viewer, or a hit, may have changed them."""
        live, there = self.live, self.live.status.breakpoints
        if live.state == "lost":
            return
        if self._denied("setBreakpoints"):
            self.breaks.hits = None
            return
        if live.drops > self._drops:
            # The process has forgotten them if nobody else steers it.
            self._drops = live.drops
            if self.session.breakpoints:
                self._tell_breakpoints()
        if self._breaks_told == [condition(state.point) for state in there]:
            self._breaks_told = None
        if self._breaks_told is not None or there == self._breaks_seen:
            return
        self._breaks_seen = there
        self.breaks.hits = live.breakpoints_told()
        if self.session.breakpoints != list(self.breaks.hits):
            self.session.breakpoints[:] = self.breaks.hits
            self.journal.forget()
        self.breaks.show()

    def action_pause(self) -> None:
        """Pause, or go on."""
        if self.live.paused:
            self._ask("continue", "goes on")
        else:
            self._ask("pause", "paused: the next batch is held before its tools run")

    def action_continue(self) -> None:
        """Hold nothing more; where nothing is held, what the key does in a recording."""
        ahead = self.session.cursor == len(self.session) and self.breaks.hits is not None
        on = sum(point.enabled for point in self.session.breakpoints)
        if self.live.paused:
            self._ask("continue", "goes on")
        elif ahead and on:
            tell(self, f"it runs on: {plural(on, 'breakpoint')} will hold it in the process")
        else:
            self.action_run_to(1)

    def action_next(self) -> None:
        """Step back towards the newest batch; there, let a paused run make one batch."""
        if self.session.cursor < len(self.session):
            self.action_step(1)
        elif self.live.paused and not self._denied("next"):
            self.following = True
            self._ask("next", "")
        elif self.live.state == "live":
            can = self._denied("pause") or "space pauses, then n steps"
            tell(self, f"cannot step forward: at the live end; {can}", problem=True)
        else:
            self.action_step(1)

    def action_follow(self) -> None:
        """The newest batch, from now on."""
        if self.live.state != "live":
            tell(self, f"cannot follow: {self._denied('pause')}", problem=True)
            return
        self.following = True
        if len(self.session):
            self.session.seek(len(self.session))
            super().moved()
        tell(self, "follows the newest batch")

    def action_last(self) -> None:
        """The newest batch, which is followed from then on."""
        if len(self.session) and self.session.cursor != len(self.session):
            self.session.seek(len(self.session))
            self.moved()
        else:
            super().action_last()

    def action_control(self) -> None:
        """What would change what the agent does; each asks again."""
        why = self._denied("stop")
        if why:
            tell(self, f"cannot control: {why}", problem=True)
            return
        from loopscope_widgets.terminal.screens.control import ControlMenu  # noqa: PLC0415 - loaded when it is opened

        self.app.push_screen(ControlMenu(self._orders()), self._order)

    def _orders(self) -> Mapping[str, Order]:
        from loopscope_widgets.terminal.screens.control import Order  # noqa: PLC0415 - as above

        first = self.live.holds()
        orders: dict[str, Order] = {}
        if first is not None:
            what = view.held_label(self.live, first)
            orders["p"] = Order("passOnce", first.scope, f"let {what} pass once, whatever the policy says")
        scope = first.scope if first is not None else None
        if scope is None and self.session.cursor:
            scope = self.session.timeline.scope_of(self.session.cursor)
        if scope is not None:
            words = f"stop the run {scope_name(*scope)} at its next batch, as a hard stop would"
            orders["s"] = Order("stop", scope, words)
        return orders

    def _order(self, order: Order | None) -> None:
        if order is not None:
            self._ask(order.verb, f"asked: {order.words}", order.scope)

    def action_detach(self) -> None:
        """Leave the agent; everything that was seen stays here."""
        if self.live.state in ("ended", "detached"):
            tell(self, f"nothing to detach from: {self._denied('pause')}", problem=True)
            return
        self._leave()
        self.live.leave("you have detached")
        self._show(grown=False)
        tell(self, "detached: the agent goes on; what was seen stays")

    def _leave(self) -> None:
        self._left.set()
        self.feed.close()

    def action_leave(self) -> None:
        """As in a recording; the agent goes on."""
        if not self.has_class("-zoomed"):
            self._leave()
        super().action_leave()


def _where(answer: Mapping[str, Any]) -> str:
    """The middlewares in which a policy was put in force, where a process has several."""
    engines = answer.get("engines", ())
    names = [inert(str(engine.get("engine")), 60) for engine in engines]
    return f" in {', '.join(names)}" if len(names) > 1 else ""
