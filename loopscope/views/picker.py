"""The picker: running agents, recordings opened lately and the samples, each with the worst that its run met."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple

from loopscope.recording.inert import inert
from loopscope.session.session import Session
from loopscope.views.glyphs import GLYPH, TONE, WORST
from loopscope.views.model import Line, Span, crop, fit, marked
from loopscope.views.words import plural, span_of_time

__all__ = ["LIVE", "Entry", "State", "draw", "entries", "running", "state"]

LIVE = "live:"
"""How the target of a running process begins; its address follows."""

_SEVERITY = ("pass", "warn", "hard_stop")
_STATE, _COUNT = 9, 14
_WORDS = {"new": "ok", "warn": "WARN", "stop": "STOP"}


class Entry(NamedTuple):
    """One recording that can be opened, or the title above some."""

    target: str
    """What to open; nothing for a title."""
    label: str
    note: str
    """What a sample shows, or the folder of a file."""


class State(NamedTuple):
    """What is known of a recording."""

    worst: str = ""
    """`new`, `warn` or `stop`; nothing where it could not be read."""
    batches: int = 0
    problem: str = ""


def running(name: str, address: str, pid: int, seconds: float, *, control: bool) -> Entry:
    """The row of a running process."""
    note = f"pid {pid}, listens for {span_of_time(max(0.0, seconds))}" + ("" if control else ", may only be observed")
    return Entry(f"{LIVE}{address}", inert(name), note)


def entries(recent: Sequence[str], samples: Iterable[tuple[str, str]], processes: Sequence[Entry] = ()) -> list[Entry]:
    """The rows: what runs, what was opened lately, then the samples (name and summary)."""
    found: list[Entry] = [Entry("", "RUNNING", ""), *processes] if processes else []
    if recent:
        found.append(Entry("", "RECENT", ""))
        found.extend(Entry(name, inert(PurePath(name).name), inert(str(PurePath(name).parent))) for name in recent)
    found.append(Entry("", "SAMPLES", ""))
    found.extend(Entry(f"sample:{name}", inert(name), inert(summary)) for name, summary in samples)
    return found


def state(session: Session) -> State:
    """The worst verdict of a whole recording."""
    worst = max((record.worst for record in session.timeline.scopes.values()), key=_SEVERITY.index, default="pass")
    return State(WORST[worst], len(session))


def draw(rows: Sequence[Entry], states: Mapping[str, State], width: int, chosen: int) -> list[Line]:
    """The rows as lines, the chosen one marked; what is not known yet is told by dots."""
    label = min(40, max(8, width // 3))
    return [_line(row, states.get(row.target), width, label, here=place == chosen) for place, row in enumerate(rows)]


def _line(row: Entry, known: State | None, width: int, label: int, *, here: bool) -> Line:
    if not row.target:
        return (Span(row.label, "title"),)
    line: Line = (Span(f" {fit(row.label, label)} "), *_known(known), Span(row.note, "dim"))
    line = crop(line, width)
    return marked(line, "cursor") if here else line


def _known(known: State | None) -> Line:
    if known is None:
        return (Span(fit("…", _STATE + _COUNT), "dim"),)
    if known.problem:
        return (Span(f"{fit(inert(known.problem), _STATE + _COUNT - 1)} ", "dim"),)
    words = fit(f"{GLYPH[known.worst]} {_WORDS[known.worst]}", _STATE)
    return (Span(words, TONE[known.worst]), Span(fit(plural(known.batches, "batch"), _COUNT), "dim"))
