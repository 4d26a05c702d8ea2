"""A run at a glance, as text: the bar, the strip and why; what a notebook has where nothing else can be shown."""

from __future__ import annotations

from loopscope.session.session import Session
from loopscope.views import timeline, topbar, why
from loopscope.views.model import plain

__all__ = ["glance"]


def glance(session: Session, width: int = 100) -> str:
    """The batch at the cursor in a few lines."""
    if not session.cursor:
        return f"{topbar.lane_name(session.lane)}: no batch with calls"
    strip = timeline.lines(session, 0, timeline.height(session, width), width)
    reasons = why.body(session.explain(search=False), len(session), width)
    lines = [*topbar.lines(session, 0, 1, width), *strip, *reasons]
    return "\n".join(plain(line).rstrip() for line in lines)
