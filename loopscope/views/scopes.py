"""Scopes: the tree of threads, runs and sub-agents, each with its worst verdict and its batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loopscope.session.scopes import ScopeInfo
from loopscope.session.session import Lane, Session
from loopscope.views.cells import cell_len
from loopscope.views.glyphs import GLYPH, TONE, WORST
from loopscope.views.model import Line, Span, Style, clip, crop, fit, marked
from loopscope.views.words import safe_name

__all__ = ["Row", "body", "draw", "height", "lines", "rows"]

_SEVERITY = ("pass", "warn", "hard_stop")
_COUNT = 6
_SHORT = 12
"""Characters of an id that are enough to know it by, where an agent's name tells the rest."""

_SOME_STATUS = 6
"""Cells that some of a status takes, the blanks before it included; less of it says nothing."""


class Row(NamedTuple):
    """One line of the tree: a thread, or a scope."""

    lane: Lane
    """What the timeline shows when this row is chosen."""
    branches: str
    """The lines of the tree before it."""
    label: str
    worst: str
    batches: int
    evicted: bool
    status: str | None
    """How the run ended, where the recording tells and it matters."""


def rows(session: Session) -> list[Row]:
    """The whole tree, threads with the scopes below them."""
    infos = session.scopes
    found: list[Row] = []
    start = 0
    while start < len(infos):
        end = start + 1
        while end < len(infos) and (infos[end].depth or infos[end].key.thread_id == infos[start].key.thread_id):
            end += 1
        found.extend(_thread(infos[start:end]))
        start = end
    return found


def _thread(infos: list[ScopeInfo]) -> list[Row]:
    """A thread's row and those of its scopes; sub-agents with a thread of their own stand under their parent."""
    thread_id = infos[0].key.thread_id
    own = [info for info in infos if info.key.thread_id == thread_id]
    head = Row(
        lane=Lane(thread_id, None, whole_thread=True),
        branches="",
        label=_called("thread", safe_name(thread_id) if thread_id is not None else "-"),
        worst=max((info.worst for info in infos), key=_SEVERITY.index),
        batches=sum(info.batches for info in own),
        evicted=False,
        status=None,
    )
    return [head, *(_scope(info, branches) for info, branches in zip(infos, _branches(infos), strict=True))]


def _scope(info: ScopeInfo, branches: str) -> Row:
    return Row(
        lane=Lane(*info.key),
        branches=branches,
        label=_label(info),
        worst=info.worst,
        batches=info.batches,
        evicted=info.evicted,
        status=info.status if info.status not in (None, "completed", "unknown") else None,
    )


def _label(info: ScopeInfo) -> str:
    """`run r1 · lead`; of a sub-agent its name and the end of its long id."""
    agent = safe_name(info.agent) if info.agent else ""
    run = info.key.run_id if info.key.run_id is not None else "-"
    if not info.depth:
        return _called("run", safe_name(run)) + (f" · {agent}" if agent else "")
    last = safe_name(run.rpartition("/")[2])
    return f"sub {agent} · {clip(last, _SHORT)}" if agent else f"sub {last}"


def _called(kind: str, name: str) -> str:
    """`run r1`, but `run-1` where the id says itself what it is."""
    return name if name.lower().startswith(kind) else f"{kind} {name}"


def _branches(infos: list[ScopeInfo]) -> list[str]:
    """The tree's lines, from the last row up: which depths go on below a row."""
    found: list[str] = []
    going: set[int] = set()
    for info in reversed(infos):
        stem = "".join("│  " if depth in going else "   " for depth in range(info.depth))
        found.append(stem + ("├─ " if info.depth in going else "└─ "))
        going = {depth for depth in going if depth < info.depth} | {info.depth}
    return found[::-1]


def draw(found: Sequence[Row], lane: Lane | None, width: int, chosen: int | None = None) -> list[Line]:
    """Rows as lines: the lane has a pointer, the row that the keys have chosen is marked."""
    return [_line(row, lane, width, marked_row=position == chosen) for position, row in enumerate(found)]


def body(session: Session, width: int) -> list[Line]:
    """The whole tree as lines."""
    return draw(rows(session), session.lane, width)


def height(session: Session, width: int) -> int:  # noqa: ARG001 - a view
    """Lines of the whole tree."""
    return len(rows(session))


def lines(session: Session, first: int, count: int, width: int) -> list[Line]:
    """Some lines of the tree."""
    return draw(rows(session)[first : first + count], session.lane, width)


def _line(row: Row, lane: Lane | None, width: int, *, marked_row: bool) -> Line:
    here = row.lane == lane
    tone: Style = "dim" if row.evicted else "text"
    state = WORST[row.worst]
    count = f"{row.batches:,}".rjust(_COUNT)
    room = max(0, width - len(row.branches) - len("▶■ ") - len(count))
    status = f"  {row.status}" if row.status else ""
    label = clip(row.label, max(room - len(status), min(room, _SHORT)))
    if room - cell_len(label) < min(len(status), _SOME_STATUS):
        label, status = clip(row.label, room), ""
    shown = fit(label + status, room)
    line: Line = (
        Span("▶" if here else " ", "key"),
        Span(row.branches, "dim"),
        Span(GLYPH[state], "dim" if row.evicted else TONE[state]),
        Span(f" {shown}", tone, "strong" if here else ""),
        Span(count, "dim"),
    )
    return crop(marked(line, "cursor") if marked_row else line, width)
