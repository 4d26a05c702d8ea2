"""A batch as it can be drawn: calls, keys and results cut to what a screen holds, read once and kept for a while.

Apart from the panes that draw it, since reading a line of many megabytes takes longer than a frame: a screen asks
whether it is `ready`, and lets a thread `look`. What has no screen to keep quick looks at once.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from loopscope.engine.events import Batch, Call, Result
from loopscope.engine.policy import Policy
from loopscope.session.session import Session
from loopscope.views.calls import HEAVY, Keyed, bounded, keyed, labelled

__all__ = ["CALLS", "Seen", "Sight", "look", "ready", "weight"]

CALLS = 50
"""Calls of one batch that are drawn."""
_TEXT = 4_000
"""Characters of a text that are kept: more than any pane shows of it."""
_NAME, _LONG = 200, 2_000
"""Characters of an argument's name, and of one that is long."""
_IGNORED = 64
_KEPT = 64
"""Batches that are kept."""


class Seen(NamedTuple):
    """One call, cut."""

    call: Call
    keyed: Keyed
    label: str
    """The call in a few words."""
    result: Result | None
    """None where it is out, or not there any more."""
    long: dict[str, int]
    """Characters of the arguments that are long texts, whole; under no name where the arguments are one text."""


class Sight(NamedTuple):
    """One batch, cut."""

    batch: Batch
    """Without its calls."""
    calls: tuple[Seen, ...]
    """Its first calls; the timeline knows how many there are."""


_Known = dict[tuple[int, int], Sight | None]
_KNOWN: WeakKeyDictionary[Session, _Known] = WeakKeyDictionary()
"""By the batch's number and how many of its results were in."""


def weight(session: Session, number: int) -> int:
    """Bytes of the lines that a look at a batch reads."""
    batches, results = session.timeline.batches, session.timeline.results
    rows = session.timeline.results_of[number]
    return batches.length[number - 1] + sum(results.length[row] for row in rows if results.call[row] < CALLS)


def ready(session: Session, number: int) -> bool:
    """Whether a look takes less than a frame."""
    return _place(session, number) in _KNOWN.get(session, ()) or weight(session, number) <= HEAVY


def look(session: Session, number: int) -> Sight | None:
    """A batch as it can be drawn; None if its line is not there any more. Callable from any thread."""
    known = _KNOWN.setdefault(session, {})
    place = _place(session, number)
    if place in known:
        return known[place]
    found = _read(session, number)
    while len(known) >= _KEPT:
        known.pop(next(iter(known)), None)
    if found is not None or weight(session, number) > HEAVY:
        known[place] = found
    return found


def _place(session: Session, number: int) -> tuple[int, int]:
    return number, len(session.timeline.results_of[number])


def _read(session: Session, number: int) -> Sight | None:
    batch = session.batch(number)
    if batch is None or len(batch.calls) != session.timeline.batches.calls[number - 1]:
        return None
    policy = session.timeline.policy_at(number)
    results = session.results(number, most=CALLS)
    calls = [_sight(call, result, policy) for call, result in zip(batch.calls[:CALLS], results, strict=True)]
    text = None if batch.text is None else batch.text.strip()[:_TEXT]
    return Sight(msgspec.structs.replace(batch, calls=(), text=text), tuple(calls))


def _sight(call: Call, result: Result | None, policy: Policy) -> Seen:
    found = keyed(call, policy)
    label = labelled(call, found)
    light = Call(call.id, None if call.name is None else call.name[:_TEXT], bounded(call.args), call.key)
    if result is not None:
        size = result.size
        if size is None:
            size = len(result.content.encode("utf-8", "surrogatepass"))
        result = msgspec.structs.replace(result, content=result.content.strip("\n")[:_TEXT], size=size)
    short = Keyed(found.key[:_TEXT], found.used and found.used[:_IGNORED], found.ignored[:_IGNORED])
    return Seen(light, short, label, result, _long(call.args))


def _long(args: Any) -> dict[str, int]:
    texts = args.items() if isinstance(args, dict) else [("", args)]
    return {str(name)[:_NAME]: len(text) for name, text in islice(texts, _IGNORED) if _is_long(text)}


def _is_long(text: Any) -> bool:
    return isinstance(text, str) and len(text) > _LONG
