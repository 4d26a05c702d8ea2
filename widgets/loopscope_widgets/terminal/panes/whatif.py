"""The pane What-if: settings that the keys change, and what becomes of the run under them, tried in a thread.

What is typed shows at once; the strips and the differences follow as soon as the run was decided anew. A trial that
nobody waits for any more is given up, so that the newest change never waits behind an older one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from textual.events import Click, Key
from textual.message import Message
from textual.timer import Timer

from loopscope.engine.policy import Policy
from loopscope.errors import PolicyError
from loopscope.session.draft import Draft, Path, Value, get, kind, settings, tools_of
from loopscope.session.journal import Journal
from loopscope.session.refold import prepare
from loopscope.session.session import Session
from loopscope.session.whatif import Trial
from loopscope.views import whatif
from loopscope.views.model import Line, link_at
from loopscope_widgets.terminal.keymap import GLOBAL, LIST, WHATIF, Keymap, bindings
from loopscope_widgets.terminal.panes.base import Follow, LinePane, tell

__all__ = ["WhatIfPane"]

_KEPT = 32
"""Trials that are kept, so that going back to a value costs nothing."""
_SOON = 0.15
"""Seconds after which what is still being tried is said to be."""
_REST = 0.5
"""Seconds between two trials of the same limits while a run grows."""
_AHEAD = 50_000
"""Batches of the longest run on which the next value is tried before one asks for it."""
_HINTS = (
    (("whatif.less", "whatif.more"), "change"),
    (("list.enter",), "type"),
    (("whatif.reset",), "reset"),
    (("whatif.presets",), "presets"),
    (("whatif.beside",), "compare"),
    (("whatif.column.previous", "whatif.column.next"), "column"),
    (("whatif.differing.previous", "whatif.differing.next"), "differing"),
    (("whatif.apply",), "apply"),
    (("export",), "export"),
)
"""Keys that are told beside the settings."""


class WhatIfPane(LinePane):
    """Other limits on this run. j and k choose a setting; arrows change it, enter types a value."""

    BINDINGS = bindings((*WHATIF, *LIST))

    class Tried(Message):
        """A thread has tried an override; without a trial it gave up."""

        def __init__(self, policy: Policy, version: object, trial: Trial | None) -> None:
            super().__init__()
            self.policy = policy
            self.version = version
            self.trial = trial

    def __init__(self, session: Session, journal: Journal) -> None:
        super().__init__(self._body, number=5, name="What-if")
        self.session = session
        self.journal = journal
        self.keymap = Keymap()
        """The keys as the user has them."""
        self.typed: str | None = None
        """The value that is being typed; None while none is."""
        self.problem = ""
        self._before: Draft | None = None
        """What was in force before one began to type."""
        self._row = 0
        self._tools: tuple[int, list[str]] = (-1, [])
        self._trials: dict[Policy, tuple[object, Trial]] = {}
        self._last: dict[int, Trial] = {}
        """What each column showed last."""
        self._trying: Policy | None = None
        self._prepared = False
        self._ahead: tuple[Path, int] | None = None
        """The setting and the way of the last arrow, until the value behind is tried."""
        self._again: Timer | None = None
        self._late: Timer | None = None
        self._drawn_width = 0

    @property
    def draft(self) -> Draft:
        """The overrides; as the baseline while nothing was changed."""
        return self.journal.draft or Draft.of(self.session.policy)

    @property
    def paths(self) -> Sequence[Path]:
        """The settings in the order of their rows."""
        if self._tools[0] != len(self.session):
            self._tools = (len(self.session), tools_of(self.session.timeline))
        return settings(self.draft, self._tools[1])

    @property
    def trial(self) -> Trial | None:
        """What became of the active column; None where it is as the baseline, or was not tried yet."""
        return self._trial(self.draft.active)

    @property
    def settled(self) -> bool:
        """Whether everything that is shown belongs to the limits that are shown."""
        return self._trying is None and not self._missing()

    def _body(self, width: int, height: int) -> list[Line]:
        self._drawn_width = width
        return whatif.body(self.session, self._sheet(), width, height)

    def _sheet(self) -> whatif.Sheet:
        draft, paths = self.draft, self.paths
        self._row = min(self._row, len(paths) - 1)
        return whatif.Sheet(
            draft=draft,
            trials=tuple(self._trial(column) for column in range(len(draft.columns))),
            paths=paths,
            row=self._row,
            focused=self.has_focus,
            typed=self.typed,
            problem=self.problem,
            searching=bool(self._missing()),
            hints=self._hints(),
        )

    def _hints(self) -> tuple[tuple[str, str], ...]:
        shown = {key.id: key.shown.split()[0] for key in self.keymap.of((*WHATIF, *LIST, *GLOBAL))}
        return tuple((" ".join(shown[name] for name in names), said) for names, said in _HINTS)

    def _plain(self, policy: Policy) -> bool:
        """Whether this is what decided the run, all the time: there is nothing to try then."""
        policies = self.session.timeline.policies
        return policy == self.draft.baseline and all(each == policy for each in policies)

    def _version(self) -> object:
        timeline = self.session.timeline
        return len(timeline), len(timeline.notable), len(timeline.results)

    def _trial(self, column: int) -> Trial | None:
        policy = self.draft.columns[column]
        if self._plain(policy):
            return None
        known = self._trials.get(policy)
        if known is not None:
            self._last[column] = known[1]
        return self._last.get(column)

    def _missing(self) -> list[Policy]:
        """The overrides that were not tried yet, the active one first."""
        draft = self.draft
        columns = (draft.policy, *draft.columns)
        return [policy for policy in dict.fromkeys(columns) if not self._plain(policy) and policy not in self._trials]

    def show(self) -> None:
        """Draw what is known, and try what is not."""
        super().show()
        if self.display and len(self.session):
            self._prepare()
            self._try()

    def _prepare(self) -> None:
        """While one looks for a setting: what the first trial would have to make, so that no key waits for it."""
        if not self._prepared:
            self._prepared = True
            self.run_worker(partial(prepare, self.session.timeline), thread=True, group="whatif-prepare")

    def _try(self) -> None:
        """One trial at a time: the next one begins when this one ends, or gives up."""
        missing = self._missing()
        if self._trying is not None:
            if missing and missing[0] != self._trying:
                self._trying = missing[0]
            return
        if missing:
            self._begin(missing[0])
        elif self._again is None and any(self._trials[policy][0] != self._version() for policy in self._columns()):
            self._again = self.set_timer(_REST, self._refresh_trials)
        else:
            self._look_ahead()

    def _look_ahead(self) -> None:
        """Nobody waits: try the value that the same arrow would give next, so that it is there when it is asked for."""
        ahead, self._ahead = self._ahead, None
        if ahead is None or len(self.session) > _AHEAD:
            return
        try:
            policy = self.draft.step(*ahead).policy
        except PolicyError:
            return
        if not self._plain(policy) and policy not in self._trials:
            self._begin(policy)

    def _columns(self) -> list[Policy]:
        return [policy for policy in self.draft.columns if not self._plain(policy)]

    def _refresh_trials(self) -> None:
        """The run has grown: what was tried is tried again."""
        self._again = None
        if self._trying is None and self.display:
            version = self._version()
            stale = next((policy for policy in self._columns() if self._trials[policy][0] != version), None)
            if stale is not None:
                self._begin(stale)

    def _begin(self, policy: Policy) -> None:
        self._trying = policy
        self.run_worker(partial(self._attempt, policy, self._version()), thread=True, group="whatif")

    def _attempt(self, policy: Policy, version: object) -> None:
        """Runs in a worker's thread; only its message touches the screen."""
        trial = self.session.attempt(policy, lambda: self._trying is policy and self.is_attached)
        self.post_message(self.Tried(policy, version, trial))

    def on_what_if_pane_tried(self, event: Tried) -> None:
        """Show it, and try what else is wanted."""
        event.stop()
        self._trying = None
        if event.trial is not None:
            self._trials.pop(event.policy, None)
            self._trials[event.policy] = (event.version, event.trial)
            if len(self._trials) > _KEPT:
                del self._trials[next(iter(self._trials))]
        self.show()

    def watch_has_focus(self, _has_focus: bool) -> None:  # noqa: FBT001 - Textual's
        """The chosen setting shows while the keys go here; who leaves has typed to the end."""
        super().watch_has_focus(_has_focus)
        if not _has_focus:
            self._finish()
        self.show()

    def take(self, draft: Draft) -> None:
        """These overrides from now on; undo knows those before."""
        self._put(draft)
        self.journal.look()
        self.show()

    def _put(self, draft: Draft) -> None:
        self.problem = ""
        self.journal.draft = draft if draft.changed else None

    def _change(self, path: Path, value: Value | Draft) -> bool:
        """Another value of a setting, if the rules allow it; else they are told."""
        try:
            draft = value if isinstance(value, Draft) else self.draft.with_(path, value)
        except PolicyError as error:
            self.problem = str(error)
            return False
        self._put(draft)
        return True

    def action_change(self, by: int) -> None:
        """The setting so many steps up or down."""
        told = bool(self.problem)
        self._step(by)
        self._ahead = self.paths[self._row], by
        self.journal.look()
        if told or self.problem or not self._show_row():
            self.show()

    def _show_row(self) -> bool:
        """Draw the chosen setting alone where all else follows in a moment; False where nothing needs a trial."""
        here = next((y for y, line in enumerate(self._lines) if line and line[0].link == -self._row - 1), None)
        if here is None or not self._missing():
            return False
        self._lines[here] = whatif.row_line(self._sheet(), self._lines[here], self._drawn_width)
        self.refresh_line(here)
        self._try()
        if self._late is None:
            self._late = self.set_timer(_SOON, self._show_late)
        return True

    def _show_late(self) -> None:
        """It takes longer than a moment: say so."""
        self._late = None
        if self._trying is not None:
            self.show()

    def _step(self, by: int) -> None:
        path = self.paths[self._row]
        try:
            self._put(self.draft.step(path, by))
        except PolicyError as error:
            self.problem = str(error)

    def action_reset(self) -> None:
        """The setting as in the baseline."""
        try:
            self._put(self.draft.reset(self.paths[self._row]))
        except PolicyError as error:
            self.problem = str(error)
        self.journal.look()
        self.show()

    async def action_presets(self) -> None:
        """Ask for a preset: at once, as the next key is for the list."""
        await self.screen.run_action("presets")

    def action_beside(self) -> None:
        """A further column."""
        draft = self.draft.beside()
        if draft == self.draft:
            tell(self, f"no more than {len(draft.columns)} columns side by side; V drops one", problem=True)
            return
        self.take(draft)

    def action_without(self) -> None:
        """One column less."""
        if self.journal.draft is None:
            tell(self, "nothing is changed: there is no column to drop", problem=True)
            return
        self._last.clear()
        self.take(self.draft.without())

    def action_column(self, by: int) -> None:
        """The column beside this one."""
        if len(self.draft.columns) == 1:
            tell(self, "there is one column; v begins another one beside it", problem=True)
            return
        self.take(self.draft.turn(by))

    async def action_apply(self) -> None:
        """Put the active column in force."""
        await self.screen.run_action("apply_limits")

    def action_differing(self, direction: int) -> None:
        """Go to a batch whose verdicts differ."""
        number = whatif.next_differing(self.trial, self.session.batches, self.session.cursor, direction)
        if number is None:
            where = "after" if direction > 0 else "before"
            tell(self, f"no batch {where} {self.session.cursor} differs", problem=True)
        else:
            self.post_message(Follow(number))

    def action_move(self, by: int) -> None:
        """The next setting."""
        self._choose(self._row + by)

    def action_edge(self, end: int) -> None:
        """The first setting (-1) or the last (1)."""
        self._choose(0 if end < 0 else len(self.paths) - 1)

    def _choose(self, row: int) -> None:
        self._row = min(max(row, 0), len(self.paths) - 1)
        self.problem = ""
        self.show()

    def action_choose(self) -> None:
        """Type a value, or take the next choice."""
        path = self.paths[self._row]
        what = kind(path)
        if what == "choice":
            self.action_change(1)
        elif what == "other":
            tell(self, f"{whatif.label(path)} has no values to type; a preset sets it", problem=True)
        else:
            self._before, self.typed, self.problem = self.journal.draft, "", ""
            self.show()

    def on_key(self, event: Key) -> None:
        """What is typed goes here, before any key means something else; enter at once, as digits may follow it."""
        if self.typed is None:
            choose = next(key.keys for key in self.keymap.of(LIST) if key.id == "list.enter")
            if event.key not in choose.split(","):
                return
            self.action_choose()
        elif event.key == "escape":
            self._put(self._before or Draft.of(self.session.policy))
            self.typed = None
            self.show()
        elif event.key == "enter":
            self._finish()
            self.show()
        elif event.key == "backspace":
            self._type(self.typed[:-1])
        elif event.character is not None and (event.character.isdecimal() or event.character == "."):
            self._type(self.typed + event.character)
        else:
            self._finish()
            return
        event.stop()
        event.prevent_default()

    def _type(self, text: str) -> None:
        """The value so far: whatever is allowed counts at once."""
        told = bool(self.problem)
        self.typed = text
        path = self.paths[self._row]
        value = _number(text, path) if text else get((self._before or Draft.of(self.session.policy)).policy, path)
        if isinstance(value, str):
            self.problem = value
        else:
            self._change(path, value)
        if told or self.problem or not self._show_row():
            self.show()

    def _finish(self) -> None:
        """What was typed stays, and is one change."""
        if self.typed is not None:
            self.typed, self.problem = None, ""
            self.journal.look()

    def on_click(self, event: Click) -> None:
        """A setting is chosen; a batch is gone to as in every pane."""
        place = self.line_of(event)
        number = link_at(self._lines[place[0]], place[1]) if place is not None else 0
        if number < 0:
            self._finish()
            self._choose(-number - 1)


def _number(text: str, path: Path) -> int | float | str:
    """What was typed as a number, or what is wrong with it."""
    try:
        number = float(text)
    except ValueError:
        return f"{text!r} is no number"
    if number > 10**12:
        return "that is too much"
    whole = int(number) if number == int(number) else number
    if isinstance(whole, float) and kind(path) != "amount":
        return f"{whatif.label(path)} is a whole number"
    return whole
