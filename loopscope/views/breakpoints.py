"""Breakpoints: where to stop, whether each is on, and how often it holds up to the cursor and in all."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

from loopscope.engine.breakpoints import KINDS, Breakpoint
from loopscope.engine.breakpoints import parse as parse_breakpoint
from loopscope.errors import UsageError
from loopscope.session.session import Lane, Session
from loopscope.views.flow import flow, wrap
from loopscope.views.model import Line, Span, Style, crop, fit, line_width, marked
from loopscope.views.topbar import lane_name
from loopscope.views.words import plural, safe_name

__all__ = ["ON", "arrived", "body", "forms", "none_there", "read", "summary", "written"]

ON, OFF = "●", "○"
_HITS = 9
_FORM = 26


def written(point: Breakpoint) -> str:
    """A breakpoint as it is typed."""
    return f"once {point}" if point.one_shot else str(point)


def body(
    session: Session,
    width: int,
    row: int | None = None,
    hits: Mapping[Breakpoint, int] | None = None,
    hints: Sequence[tuple[str, str]] = (),
) -> list[Line]:
    """A row each, and below them the keys.

    Args:
        session: whose breakpoints.
        width: cells.
        row: the one that the keys have chosen.
        hits: how often each was hit, where somebody else counts: the process that a live run is in.
        hints: keys and what they do.
    """
    if not session.breakpoints:
        said = "none; b sets one at the batch, B here and i asks for a condition"
        return [(Span(piece, "dim"),) for piece in wrap(said, max(1, width))]
    lines: list[Line] = []
    for place, point in enumerate(session.breakpoints):
        line = _row(session, place, point, width, None if hits is None else hits.get(point, 0))
        lines.append(marked(line, "cursor") if place == row else line)
    keys: list[Line] = [(Span(key, "key"), Span(f" {said}", "dim")) for key, said in hints]
    return [*lines, *([(), *flow(keys, width, gap=2)] if keys else [])]


def _row(session: Session, place: int, point: Breakpoint, width: int, hits: int | None) -> Line:
    found = session.halts.known(point) if hits is None else None
    counted = f"×{hits:,}" if hits is not None else _hits(session, found)
    here = found is not None and _holds(found, session.cursor)
    style: Style = "dim" if not point.enabled else "title" if here else "text"
    left: Line = (
        Span(ON if point.enabled else OFF, "bar_stop" if point.enabled and here else style),
        Span(f" {place + 1} ", "dim"),
        Span(safe_name(written(point)), style),
    )
    room = max(0, width - max(_HITS, len(counted) + 1))
    left = crop(left, room)
    return (*left, Span(" " * (room - line_width(left))), Span(fit(counted, width - room, right=True), "dim"))


def _hits(session: Session, found: Sequence[int] | None) -> str:
    """`2/6`: up to the cursor, and in all."""
    return "…" if found is None else f"{bisect_right(found, session.cursor):,}/{len(found):,}"


def _holds(found: Sequence[int], number: int) -> bool:
    place = bisect_left(found, number)
    return place < len(found) and found[place] == number


def summary(session: Session) -> str:
    """How many there are, for the border."""
    on = sum(point.enabled for point in session.breakpoints)
    off = len(session.breakpoints) - on
    return f"{on} on, {off} off" if off else f"{on} on" if on else ""


def forms(width: int) -> list[Line]:
    """How each kind is written, and what it stops at."""
    lines: list[Line] = []
    room = max(1, width - _FORM)
    for form, said in (*KINDS.items(), ("once ...", "any of them, one time")):
        first, *rest = wrap(said, room)
        lines.append((Span(fit(f" {form}", _FORM), "key"), Span(first, "dim")))
        lines += [(Span(" " * _FORM + piece, "dim"),) for piece in rest]
    return [crop(line, width) for line in lines]


def read(text: str) -> tuple[Breakpoint | None, str]:
    """What was typed as a breakpoint, and what it means or what is wrong with it."""
    if not text.strip():
        return None, "a condition, as below"
    try:
        point = parse_breakpoint(text.strip())
    except UsageError as error:
        return None, safe_name(str(error).partition(": ")[2])
    meaning = next(said for form, said in KINDS.items() if form.split(" ", 1)[0] == point.kind)
    return point, f"{meaning}, one time" if point.one_shot else meaning


def arrived(session: Session, point: Breakpoint) -> str:
    """What stopped the cursor."""
    return f"breakpoint {safe_name(written(point))}, batch {session.cursor}"


def none_there(session: Session, direction: int) -> str:
    """Why no breakpoint was reached."""
    where = "after" if direction > 0 else "before"
    on = sum(point.enabled for point in session.breakpoints)
    if not on:
        count = len(session.breakpoints)
        said = "there is no breakpoint" if not count else f"{plural(count, 'breakpoint')}, none of them on"
        return f"{said}; b sets one at this batch, B lists them"
    lane = session.lane or Lane(None, None, whole_thread=True)
    return f"no breakpoint holds {where} batch {session.cursor} in {lane_name(lane)}"
