"""The bar at the top: what is looked at, where the cursor is, and the verdict there in words."""

from __future__ import annotations

from pathlib import PurePath

from loopscope.engine.explain import headline
from loopscope.recording.dotted import flat
from loopscope.session.session import Lane, Session
from loopscope.views.cells import cell_len
from loopscope.views.glyphs import GLYPH, STYLE
from loopscope.views.model import Line, Span, clip, crop, line_width
from loopscope.views.words import clock, safe_name

__all__ = ["config", "elapsed", "lane_name", "lines", "scope_name", "verdict"]

_ROOMY = 140
"""Columns from which on each part has its label."""
_NAMES = 20
"""Cells that source and scope need at least to be worth their labels."""
_GAP = "   "
_REPLAY = "REPLAY "
"""The mode that goes without saying; all others tell of a run that is going on."""


def scope_name(thread_id: str | None, run_id: str | None) -> str:
    """A scope as `thread/run`; `-` stands for what it does not have."""
    return f"{_name(thread_id)}/{_name(run_id)}"


def _name(value: str | None) -> str:
    return "-" if value is None else safe_name(value)


def lane_name(lane: Lane | None) -> str:
    """What the timeline shows, in a few words."""
    if lane is None:
        return "all scopes"
    return f"thread {_name(lane.thread_id)}" if lane.whole_thread else scope_name(lane.thread_id, lane.run_id)


def elapsed(session: Session, number: int) -> float | None:
    """Seconds from the recording's first timed batch to this one; None where the recording has no times."""
    ts = session.row(number).ts
    start = session.timeline.started
    return None if ts is None or start is None else ts - start


def verdict(session: Session) -> Span:
    """The verdict at the cursor: glyph and words."""
    decision = session.decision
    if decision is None:
        return Span("no batch with calls yet", "dim")
    row = session.row(session.cursor)
    text = safe_name(headline(decision, session.letters(row.scope)))
    return Span(f"{GLYPH[row.state]} {text}", STYLE[row.state])


def config(session: Session) -> str:
    """Where the limits come from: the file, the recording or the defaults, and how many were set by hand."""
    origins = [session.where(setting) for setting in flat(session.policy.to_dict())]
    by_hand = sum(origin.startswith("--") for origin in origins)
    files = [origin for origin in origins if origin not in ("default", "recording") and not origin.startswith("--")]
    if files:
        source = PurePath(files[0].rpartition(":")[0] or files[0]).name
    else:
        source = "recording" if "recording" in origins else "defaults"
    return safe_name(source) + (f" +{by_hand} set" if by_hand else "")


def lines(session: Session, first: int, count: int, width: int, mode: str = "REPLAY") -> list[Line]:
    """The one line of the bar; what matters least goes first where it is narrow."""
    return [_bar(session, width, mode)][first : first + count]


def _bar(session: Session, width: int, mode: str) -> Line:
    roomy = width >= _ROOMY
    where = Span(f"{session.cursor}/{len(session)}")
    seconds = elapsed(session, session.cursor) if session.cursor else None
    fixed: list[Line] = [
        (Span("batch ", "dim"), where) if roomy else (where,),
        (verdict(session),),
    ]
    if roomy:
        if seconds is not None:
            fixed.insert(1, (Span(f"t+{clock(seconds)}"),))
        fixed.append((Span("limits ", "dim"), Span(config(session))))
    room = width - 1 - sum(line_width(part) + len(_GAP) for part in fixed)
    front = _front(session, room, mode, roomy=roomy)
    spans: list[Span] = [Span(" ")]
    for part in (*front, *fixed):
        spans.extend((*part, Span(_GAP)))
    return crop(tuple(spans[:-1]), width)


def _front(session: Session, room: int, mode: str, *, roomy: bool) -> list[Line]:
    """Name of the program, mode and source, and scope, in the room that is left; names are clipped to share it."""
    source, scope = safe_name(PurePath(session.source).name or session.source), lane_name(session.lane)
    needed = cell_len(source) + cell_len(scope)
    program, mode, label = "loopscope", f"{mode} ", "scope " if roomy else ""
    names = room - len(mode) - len(label) - 2 * len(_GAP)
    parts: list[Line] = []
    if roomy and names - len(program) - len(_GAP) >= needed:
        parts.append((Span(program, "title"),))
        names -= len(program) + len(_GAP)
    if names < _NAMES or (names < needed and mode == _REPLAY):
        mode, names = "", names + len(mode)
    if names < min(_NAMES, needed):
        return [*parts, (Span(clip(source, max(0, names + len(_GAP))), "title"),)]
    source, scope = _share(source, scope, names)
    return [*parts, (Span(mode, "dim"), Span(source, "title")), (Span(label, "dim"), Span(scope))]


def _share(left: str, right: str, room: int) -> tuple[str, str]:
    """Two texts in `room` cells together: the longer one is clipped first, down to half of the room."""
    wide, half = cell_len(left), room // 2
    if wide <= half:
        return left, clip(right, room - wide)
    if cell_len(right) <= half:
        return clip(left, room - cell_len(right)), right
    return clip(left, half), clip(right, room - half)
