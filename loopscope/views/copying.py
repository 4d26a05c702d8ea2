"""The batch at the cursor and its explanation as plain text, to be copied and pasted somewhere else."""

from __future__ import annotations

import json

from loopscope.recording.inert import inert
from loopscope.session.session import Session
from loopscope.views import inspector, why
from loopscope.views.calls import bounded
from loopscope.views.model import Line, plain
from loopscope.views.topbar import scope_name

__all__ = ["copied"]

_WIDTH = 100
_LONGEST = 100_000
"""Characters of a call's arguments: terminals refuse what is much longer."""


def copied(session: Session, width: int = _WIDTH) -> str:
    """Where it is, the calls as JSON, what Inspect says of them, and why the verdict; safe to print.

    Args:
        session: whose cursor.
        width: columns that the lines are made for; those of JSON are not broken.
    """
    if not session.cursor:
        return "no batch with calls\n"
    number = session.cursor
    explanation = session.explain(search=False)
    batch = session.batch(number)
    calls = batch.calls if batch is not None else ()
    lines: list[Line] = [*inspector.batch_lines(session, width), (), *why.body(explanation, len(session), width)]
    return "\n".join(
        [
            f"{inert(session.source)}  {scope_name(*session.row(number).scope)}  batch {number} of {len(session)}",
            *(inert(json.dumps({"name": c.name, "args": bounded(c.args)}, default=str), _LONGEST) for c in calls),
            "",
            *(plain(line).rstrip() for line in lines),
            "",
        ]
    )
