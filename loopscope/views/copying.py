"""The batch at the cursor and its explanation as plain text, to be copied and pasted somewhere else."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from loopscope.engine.events import Call
from loopscope.recording.inert import inert
from loopscope.session.session import Session
from loopscope.views import inspector, why
from loopscope.views.model import Line, plain
from loopscope.views.sight import look
from loopscope.views.topbar import scope_name
from loopscope.views.words import plural

__all__ = ["copied"]

_WIDTH = 100
_LONGEST = 100_000
"""Characters of the calls' arguments: terminals refuse what is much longer."""


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
    found = look(session, number)
    calls = [seen.call for seen in found.calls] if found is not None else []
    lines: list[Line] = [*inspector.batch_lines(session, width), (), *why.body(explanation, len(session), width)]
    return "\n".join(
        [
            f"{inert(session.source)}  {scope_name(*session.row(number).scope)}  batch {number} of {len(session)}",
            *_told(calls),
            "",
            *(plain(line).rstrip() for line in lines),
            "",
        ]
    )


def _told(calls: Sequence[Call]) -> Iterator[str]:
    """Calls as JSON, as many as there is room for."""
    room = _LONGEST
    for place, call in enumerate(calls):
        text = inert(json.dumps({"name": call.name, "args": call.args}, default=str), _LONGEST)
        if place and len(text) > room:
            yield f"… {plural(len(calls) - place, 'more call')}"
            return
        room -= len(text)
        yield text
