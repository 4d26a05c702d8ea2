"""Why: the numbered lines of an explanation, with references that lead to their batches."""

from __future__ import annotations

from collections.abc import Sequence

from loopscope.engine.explain import Explanation
from loopscope.recording.inert import inert
from loopscope.views.flow import linked, wrap
from loopscope.views.model import Line, Span, clip
from loopscope.views.words import safe_name

__all__ = ["SEARCHING", "body"]

SEARCHING = "searching the nearest settings …"
"""Stands for the last line until the search for it is done."""
_LONGEST = 2000
"""Characters of one line of an explanation; a tool may be called anything."""
_TITLES = {"hard_stop": "WHY STOPPED", "warn": "WHY WARNED", "pass": "WHY NOT"}


def body(
    explanation: Explanation, last: int, width: int, *, searching: bool = False, rows: Sequence[Line] = ()
) -> list[Line]:
    """The explanation in lines.

    Args:
        explanation: of one batch.
        last: number of the newest batch; references beyond it lead nowhere.
        width: cells.
        searching: its nearest settings are still being looked for.
        rows: of the layer that decided, as `bounds.evidence` draws them.
    """
    title = _TITLES[explanation.decision.action]
    result: list[Line] = [
        (Span(title, "title"), Span(clip(f"  {safe_name(explanation.headline)}", width - len(title)), "dim")),
        *rows,
    ]
    for number, line in enumerate(explanation.lines, 1):
        margin = f"{number:>2} "
        for piece in wrap(inert(line, _LONGEST), max(1, width - len(margin))):
            result.append((Span(margin, "dim"), *linked(piece, last)))
            margin = " " * len(margin)
    if searching:
        result.append((Span(clip(f"{len(explanation.lines) + 1:>2} {SEARCHING}", width), "dim"),))
    return result
