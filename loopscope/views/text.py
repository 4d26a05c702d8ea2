"""The panes as plain text, for where there is no terminal to draw in: pipes, logs, TERM=dumb, a person who listens.

The lines are the screen's own, so that the numbers are too.
"""

from __future__ import annotations

from collections.abc import Iterator

from loopscope.session.session import Session
from loopscope.views import bounds, detect, inspector, scopes, timeline, topbar, why
from loopscope.views.glyphs import line_in_ascii
from loopscope.views.model import Line, Span, plain

__all__ = ["WIDTH", "render"]

WIDTH = 100
"""Columns, where nothing else is asked for."""


def render(session: Session, *, width: int = WIDTH, ascii_only: bool = False, bar: Line | None = None) -> str:
    """The whole view at the cursor, ending in a newline.

    Args:
        session: what to show; its cursor says which batch.
        width: columns that lines are made for.
        ascii_only: no characters beyond ASCII.
        bar: the first line, where it is not that of a recording.
    """
    lines = [line for section in _sections(session, width, bar) for line in (*section, ())]
    if ascii_only:
        lines = [line_in_ascii(line) for line in lines]
    return "\n".join(plain(line).rstrip() for line in lines[:-1]) + "\n"


def _sections(session: Session, width: int, bar: Line | None) -> Iterator[list[Line]]:
    """Each pane under its name."""
    yield topbar.lines(session, 0, 1, width) if bar is None else [bar]
    yield [_heading("Timeline"), *timeline.lines(session, 0, timeline.height(session, width), width)]
    yield [_heading("Scopes"), *scopes.body(session, width)]
    yield [_heading("Detect"), *detect.body(session, width, dense=True)]
    if not session.cursor:
        return
    yield [_heading("Inspect"), *inspector.batch_lines(session, width)]
    yield [_heading("Why"), *why.body(session.explain(), len(session), width, rows=bounds.evidence(session, width))]


def _heading(name: str) -> Line:
    return (Span(f"{name}"), Span("\n" + "─" * len(name)))
