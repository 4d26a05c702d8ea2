"""The pane Output: what a program that is run beside the debugger has written, a row each line."""

from __future__ import annotations

from loopscope.session.output import Output
from loopscope.views.model import Line, Span, clip
from loopscope.views.words import plural

__all__ = ["heading", "lines"]


def lines(output: Output, first: int, count: int, width: int) -> list[Line]:
    """Rows from `first` on, cut to the width; a word that nothing was written yet where there are none.

    Args:
        output: what was written.
        first: from 0, the oldest line that is kept.
        count: how many rows, at most.
        width: in cells.
    """
    if not len(output):
        nothing: Line = (Span(clip("nothing written yet", width), "dim"),)
        return [nothing][first : first + count]
    return [(Span(clip(line, width)),) for line in output.lines(first, count)]


def heading(output: Output) -> str:
    """What the border says beside the name: how much of it is gone."""
    return f"{plural(output.dropped, 'earlier line')} not kept" if output.dropped else ""
