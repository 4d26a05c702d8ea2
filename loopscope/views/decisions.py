"""Decisions: the log of warnings and stops, a row each, made only where it is visible; a filter leaves what it matches.

A run of a hundred thousand batches may have as many rows, so the log is numbers until somebody looks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from loopscope.engine.decision import Decision
from loopscope.engine.events import Warned
from loopscope.recording.inert import inert
from loopscope.session.letters import letter_name
from loopscope.session.session import Row, Session
from loopscope.views.bounds import UNITS
from loopscope.views.calls import unenforced
from loopscope.views.glyphs import GLYPH, STYLE
from loopscope.views.model import Line, Span, crop, fit, marked
from loopscope.views.topbar import elapsed, lane_name, scope_name
from loopscope.views.words import amount, clock, plural, safe_name

__all__ = ["Entry", "Log", "counted", "entry", "heading", "no_match", "nothing"]

_WORDS = {"warn": "WARN", "stop": "STOP"}
_NUMBER, _TIME, _RULE, _DECISION = 6, 11, 18, 7
_ROOMY = 110
"""Columns from which on time and scope have columns of their own."""
_EFFECT = 64
"""Columns from which on there is room to tell what came of it."""
_SHARED = ((150, 28, 18, 15), (100, 16, 18, 13), (70, 0, 10, 8), (_EFFECT, 0, 6, 8), (0, 0, 11, 8))
"""By the columns that there are, the cells of scope, subject and count."""


class Entry(NamedTuple):
    """One warning or stop."""

    number: int
    time: str
    scope: str
    rule: str
    subject: str
    counted: str
    state: str
    """`warn` or `stop`."""
    effect: str


class Log:
    """The warnings and stops of the session's lane that a filter leaves.

    Args:
        session: followed; `update` looks at it anew.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._seen: tuple[object, int, int, str] | None = None
        self._numbers: Sequence[int] = ()
        self.filter = ""
        """Words that a row must all have, in any of its columns and in any case."""

    @property
    def numbers(self) -> Sequence[int]:
        """Numbers of the batches that have a row, in order."""
        session = self._session
        notable = session.timeline.notable
        seen = (session.lane, len(session), len(notable), self.filter)
        before = self._seen
        if seen != before:
            # Who types on narrows what is left already.
            narrows = before is not None and before[:3] == seen[:3] and before[3] and self.filter.startswith(before[3])
            self._numbers = self._left(self._numbers if narrows else self._all())
            self._seen = seen
        return self._numbers

    def _all(self) -> Sequence[int]:
        session = self._session
        batches = session.batches
        notable = session.timeline.notable
        return notable if isinstance(batches, range) else sorted(set(notable).intersection(batches))

    def _left(self, numbers: Sequence[int]) -> Sequence[int]:
        words = self.filter.casefold().split()
        if not words:
            return numbers
        return [number for number in numbers if _matches(entry(self._session, number), words)]

    def __len__(self) -> int:
        return len(self.numbers)

    def place(self, number: int) -> int:
        """The row of a batch, or of the newest decision before it; -1 where all come later."""
        return bisect_right(self.numbers, number) - 1

    def match(self, number: int, direction: int) -> int | None:
        """The next (or, with -1, the previous) batch with a row; None where there is none."""
        numbers = self.numbers
        at = bisect_right(numbers, number) if direction > 0 else bisect_left(numbers, number) - 1
        return numbers[at] if 0 <= at < len(numbers) else None

    def lines(self, first: int, count: int, width: int) -> list[Line]:
        """Rows `first` up to `first + count`; the one of the batch at the cursor is marked."""
        numbers = self.numbers[max(0, first) : max(0, first) + count]
        return [_line(entry(self._session, n), width, cursor=n == self._session.cursor) for n in numbers]


def heading(width: int) -> Line:
    """The names of the columns."""
    titles = Entry(0, "time", "scope", "rule", "subject", "count", "", "effect")
    number = fit("#", _NUMBER, right=True) + "   "
    text = f"{number}{''.join(_cells(titles, width))}{fit('verdict', _DECISION)}"
    return crop((Span(f"{text}  {titles.effect}" if width >= _EFFECT else text, "dim"),), width)


def nothing(log: Log) -> Line:
    """What stands where there is no row."""
    words = log.filter.strip()
    return (Span(f"nothing matches {inert(words, 40)}; esc shows all" if words else "no warning and no stop", "dim"),)


def counted(log: Log) -> str:
    """How many rows there are, in words."""
    if not log.filter.strip():
        return f"{plural(len(log), 'decision')}; words of any column, such as stop, A or a tool"
    return plural(len(log), "match") if len(log) else "nothing matches"


def no_match(session: Session, log: Log, direction: int) -> str:
    """Why there is no next or previous row."""
    where = "after" if direction > 0 else "before"
    words = log.filter.strip()
    what = f"nothing that matches {inert(words, 40)}" if words else "no decision"
    return f"{what} {where} batch {session.cursor} in {lane_name(session.lane)}"


def entry(session: Session, number: int) -> Entry:
    """One row, as text."""
    row = session.row(number)
    decision = row.decision
    seconds = elapsed(session, number)
    subject = decision.counter or decision.tool if decision.layer != "identical_call_set" else letter_name(row.letter)
    return Entry(
        number=number,
        time="" if seconds is None else clock(seconds),
        scope=scope_name(*row.scope),
        rule=decision.layer or "",
        subject=safe_name(str(subject or letter_name(row.letter))),
        counted=_counted(decision),
        state=row.state,
        effect=_effect(session, row),
    )


def _counted(decision: Decision) -> str:
    """Count and limit; of budgets as their gauges have them."""
    if not decision.counter or decision.count is None or decision.threshold is None:
        return f"{decision.count:g}/{decision.threshold:g}"
    tell = UNITS.get(decision.counter, amount)
    return f"{tell(decision.count)}/{tell(decision.threshold)}"


def _effect(session: Session, row: Row) -> str:
    """What came of it: the warning's way to the model, or the calls that were or were not made."""
    if row.state == "stop":
        return "calls removed" if session.timeline.removed(row.n) else f"{unenforced(session)}: tools ran"
    return _delivery(session, row)


def _delivery(session: Session, row: Row) -> str:
    """Where the recording tells, else what is assumed: delivered before the scope's next batch."""
    numbers = session.timeline.scopes[row.scope].batches
    place = bisect_right(numbers, row.n)
    following = numbers[place] if place < len(numbers) else None
    told: set[str] = set()
    for event in session.timeline.between.others_from(row.n, following or len(session) + 1):
        if isinstance(event, Warned) and event.scope == row.scope:
            told.add(event.state)
    if "delivered" in told:
        return f"told before #{following}" if following is not None else "told"
    if "dropped" in told:
        return "dropped before the model's next turn"
    if told or following is None:
        return "queued"
    return f"told before #{following} (assumed)"


def _matches(found: Entry, words: Sequence[str]) -> bool:
    text = " ".join((f"#{found.number}", *found[1:6], _WORDS[found.state], found.effect)).casefold()
    return all(word in text for word in words)


def _cells(found: Entry, width: int) -> list[str]:
    """The columns before the verdict, as many as there is room for."""
    scope, subject, count = next(cells for least, *cells in _SHARED if width >= least)
    wide = [fit(found.time, _TIME), fit(found.scope, scope)] if width >= _ROOMY else []
    return [
        f"{cell} " for cell in (*wide, fit(found.rule, _RULE), fit(found.subject, subject), fit(found.counted, count))
    ]


def _line(found: Entry, width: int, *, cursor: bool) -> Line:
    number = Span(fit(f"{found.number}", _NUMBER, right=True), "text", link=found.number)
    pointer = Span(" ▶ " if cursor else "   ", "title")
    verdict = Span(fit(f"{GLYPH[found.state]} {_WORDS[found.state]}", _DECISION), STYLE[found.state])
    cells = _cells(found, width)
    effect = (Span("  "), Span(found.effect, "dim")) if width >= _EFFECT else ()
    line = crop((number, pointer, *(Span(cell) for cell in cells), verdict, *effect), width)
    return marked(line, "strong") if cursor else line
