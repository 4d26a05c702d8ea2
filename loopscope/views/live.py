"""A live run beside its batches: the mode in the top bar, and the batch that stands before the gate."""

from __future__ import annotations

from loopscope.engine.explain import headline
from loopscope.recording.feed import Held
from loopscope.recording.inert import inert
from loopscope.session.live import LiveSession
from loopscope.views import topbar
from loopscope.views.calls import call_label
from loopscope.views.cells import cell_len
from loopscope.views.glyphs import GLYPH, STYLE
from loopscope.views.model import Line, Span, Style, clip, crop, fit, line_width
from loopscope.views.topbar import scope_name
from loopscope.views.words import plural

__all__ = ["MODES", "bar", "held", "held_label", "mode"]

MODES = {
    "starting": "STARTING", "live": "LIVE", "paused": "PAUSED", "lost": "DISCONNECTED", "ended": "ENDED",
    "detached": "DETACHED",
}  # fmt: skip
"""What the bar calls each state of the connection and of the gate."""
_REPLAY, _PROGRAM = "REPLAY", "loopscope"
_STYLES: dict[str, Style] = {
    "starting": "dim", "live": "title", "paused": "warn", "lost": "warn", "ended": "dim", "detached": "dim",
}  # fmt: skip
_HELD = (" HELD before its tools run  ", " HELD  ")
_CALLS = 16
"""Cells that the calls of a held batch have before its scope gets any."""
_WHY = {"pause": "paused", "next": "stepped", "breakpoint": "breakpoint", "wait": "waits for a viewer"}


def mode(live: LiveSession) -> str:
    """Which of `MODES` it is in."""
    return "paused" if live.state == "live" and live.paused else live.state


def bar(live: LiveSession, width: int, *, control: bool = False) -> Line:
    """The top bar with the mode in front, which is never left out.

    Args:
        live: the run.
        width: cells.
        control: whether this viewer may steer, which is told in a word too.
    """
    now = mode(live)
    front, may = Span(f" {MODES[now]}{_reading(live)}", _STYLES[now]), Span("  CONTROL", "warn")
    room = width - line_width((front, may) if control else (front,))
    rest = topbar.lines(live.session, 0, 1, max(0, room))[0]
    if len(rest) > 1 and rest[1].text == _PROGRAM:
        rest = (rest[0], *rest[3:])
    line: list[Span] = [front]
    for span in rest:
        if span.text.strip() != _REPLAY:
            line.append(span)
        if control and span.style == "title" and may not in line:
            line.append(may)
    return crop(tuple(line), width)


def _reading(live: LiveSession) -> str:
    """How far the past of the target is taken in."""
    share = live.share if live.state == "live" else None
    return "" if share is None else f" (reading {int(share * 100)}%)"


def held(live: LiveSession, width: int, *, control: bool) -> list[Line]:
    """Two lines: the batch that was held first with the verdict that it would get, and what can be done; else none."""
    first = live.holds()
    if first is None:
        return []
    more = f"  and {plural(len(live.held) - 1, 'more batch')}" if len(live.held) > 1 else ""
    verdict, label = _verdict(live, first), held_label(live, first)
    room = width - line_width(verdict) - len(more)
    front = next(words for words in _HELD if len(words) + _CALLS <= room or words == _HELD[-1])
    room = max(0, room - len(front))
    scope = clip(scope_name(*first.scope), room - min(cell_len(label), _CALLS) - 2)
    front += f"{scope}  " if scope else ""
    room = max(0, room - (cell_len(scope) + 2 if scope else 0))
    line: Line = (Span(front, "warn"), Span(fit(label, room)), *verdict, Span(more, "dim"))
    return [crop(line, width), crop(_keys(live, first, control=control), width)]


def held_label(live: LiveSession, batch: Held) -> str:
    """Its calls, in a few words."""
    timeline = live.session.timeline
    policy = timeline.detector.policy_of(batch.scope)
    return "  ".join(call_label(call, policy) for call in batch.calls[:8])


def _verdict(live: LiveSession, batch: Held) -> Line:
    decision = batch.decision
    if decision is None:
        return (Span("  verdict not known", "dim"),)
    timeline = live.session.timeline
    known = batch.scope in timeline.scopes
    name = live.session.letters(batch.scope) if known else str
    state = {"hard_stop": "stop", "warn": "warn"}.get(
        decision.action, "repeat" if decision.hash_count > 1 else "new"
    )  # fmt: skip
    return (Span("  would be ", "dim"), Span(f"{GLYPH[state]} {inert(headline(decision, name))}", STYLE[state]))


def _keys(live: LiveSession, batch: Held, *, control: bool) -> Line:
    why = f" {_WHY[batch.reason]}" + (
        f" {inert(live.breakpoint_name(batch.breakpoint), 40)}" if batch.breakpoint else ""
    )
    if not control:
        return (Span(f"{why}; this viewer only observes: attach with --control to steer", "dim"),)
    keys = (("n", "let it go, hold the next"), ("c", "continue"), ("x", "let it pass, or stop"))
    spans = [span for key, words in keys for span in (Span(f"   {key}", "key"), Span(f" {words}", "dim"))]
    return (Span(why, "dim"), *spans)
