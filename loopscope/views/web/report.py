"""What a page tells of a whole run: the batches around every verdict, and which verdicts it explains.

Apart from the page, which only writes it down. Both are bounded, however long a run is; what is left out is counted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from loopscope.engine.decision import Decision
from loopscope.engine.events import ScopeKey
from loopscope.session.session import Session

__all__ = ["Explained", "Gap", "Passage", "Totals", "explained", "passages", "totals"]

AROUND = 2
"""Batches on either side of a warning or a stop that are told too."""
MOST_ROWS = 500
"""Warnings and stops that are told one by one."""
MOST_EXPLAINED = 8
FOLDED = 500
"""Batches of the explained scopes, together, up to which nearest settings are searched: it folds them many times."""


class Totals(NamedTuple):
    """The run in numbers."""

    batches: int
    scopes: int
    """With calls."""
    warnings: int
    stops: int
    first_stop: int | None


class Gap(NamedTuple):
    """Batches that are not told one by one."""

    batches: int
    verdicts: int
    """Warnings and stops among them."""


class Passage(NamedTuple):
    """Batches that follow each other, and what was left out before them."""

    gap: Gap
    numbers: range


class Explained(NamedTuple):
    """The batches that are explained."""

    numbers: tuple[int, ...]
    search: bool
    """Their nearest settings are searched too."""
    more: int
    """Scopes that were stopped and are not among them."""


def totals(session: Session) -> Totals:
    """The run in numbers."""
    verdicts = [session.timeline.verdict(number).action for number in session.timeline.notable]
    scopes = sum(bool(record.batches) for record in session.timeline.scopes.values())
    return Totals(len(session), scopes, verdicts.count("warn"), verdicts.count("hard_stop"), session.first_stop())


def passages(session: Session) -> tuple[list[Passage], Gap]:
    """The batches around the cursor, and around warnings and stops from the first one on; and what comes after them."""
    notable = session.timeline.notable
    ranges: list[range] = []
    for number in sorted({*notable[:MOST_ROWS], session.cursor} - {0}):
        start, stop = max(1, number - AROUND), min(len(session), number + AROUND) + 1
        if ranges and start <= ranges[-1].stop:
            ranges[-1] = range(ranges[-1].start, stop)
        else:
            ranges.append(range(start, stop))
    ends = [1, *(numbers.stop for numbers in ranges)]
    found = [Passage(_gap(session, end, numbers.start), numbers) for end, numbers in zip(ends, ranges, strict=False)]
    return found, _gap(session, ends[-1], len(session) + 1)


def _gap(session: Session, start: int, stop: int) -> Gap:
    notable = session.timeline.notable
    return Gap(stop - start, bisect_left(notable, stop) - bisect_left(notable, start))


def explained(session: Session) -> Explained:
    """The cursor's batch first, if it has a verdict or there is none at all, then the first stop of each scope."""
    stops = list(_first_stops(session))
    decision = session.decision
    first = [session.cursor] if decision is not None and (decision.action != "pass" or not stops) else []
    wanted = [*first, *(number for number in stops if number not in first)]
    numbers = tuple(wanted[:MOST_EXPLAINED])
    scopes = [session.timeline.scopes[session.timeline.scope_of(number)] for number in numbers]
    return Explained(numbers, sum(len(s.batches) for s in scopes) <= FOLDED, len(wanted) - len(numbers))


def _first_stops(session: Session) -> Iterator[int]:
    seen: set[ScopeKey] = set()
    for number in session.timeline.notable:
        decision: Decision = session.timeline.verdict(number)
        if decision.action == "hard_stop" and decision.scope not in seen:
            seen.add(decision.scope)
            yield number
