"""Go to: what a person types after `:` (a batch, a hash letter, a time, a scope) and where that is."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Callable
from typing import NamedTuple

from loopscope.recording.inert import inert
from loopscope.session.letters import letter_order
from loopscope.session.session import Lane, Session
from loopscope.views.topbar import lane_name
from loopscope.views.words import clock, plural

__all__ = ["Target", "resolve"]

_BATCH = re.compile(r"#?(\d{1,12})\Z")
_CLOCK = re.compile(r"t?\+?(?:(\d+):)?(\d+):(\d+(?:\.\d*)?)\Z")
_SECONDS = re.compile(r"t?\+(\d+(?:\.\d*)?)s?\Z|(\d+(?:\.\d*)?)s\Z")
_SHOWN = 3


class Target(NamedTuple):
    """Where a text leads to, or why nowhere."""

    says: str
    """What will happen, or what is wrong, in a few words that are safe to draw."""
    number: int | None = None
    lane: Lane | None = None

    @property
    def found(self) -> bool:
        """There is somewhere to go."""
        return self.number is not None or self.lane is not None

    def go(self, session: Session) -> None:
        """Put the session there."""
        if self.lane is not None:
            session.select(self.lane)
        elif self.number is not None:
            session.seek(self.number)


def resolve(session: Session, text: str) -> Target:
    """Where this text leads to: a number is a batch; letters are a hash before they are the name of a scope."""
    text = text.strip()
    if not text:
        return Target("a batch 20 · a hash letter A · a time +1:12 · a scope by part of its name")
    for reader in _READERS:
        target = reader(session, text)
        if target is not None:
            return target
    return Target(f"nothing is called {inert(text, 40)}")


def _batch(session: Session, text: str) -> Target | None:
    found = _BATCH.match(text)
    if found is None:
        return None
    number = int(found[1])
    if not 1 <= number <= len(session):
        return Target(f"there is no batch {number}: there {'is' if len(session) == 1 else 'are'} {len(session):,}")
    return _to(session, number)


def _to(session: Session, number: int) -> Target:
    row = session.row(number)
    return Target(f"batch {number}, {row.state}, {lane_name(Lane(*row.scope))}", number)


def _time(session: Session, text: str) -> Target | None:
    """The newest batch of the lane at that time since the beginning."""
    parts, seconds = _CLOCK.match(text), _SECONDS.match(text)
    if parts is not None:
        wanted = int(parts[1] or 0) * 3600 + int(parts[2]) * 60 + float(parts[3])
    elif seconds is not None:
        wanted = float(seconds[1] or seconds[2])
    else:
        return None
    times, start = session.timeline.batches.ts, session.timeline.started or 0.0
    timed = sorted((times[n - 1] - start, n) for n in session.batches if not math.isnan(times[n - 1]))
    if not timed:
        return Target("this recording has no times")
    position = max(0, bisect_right(timed, wanted, key=lambda pair: pair[0]) - 1)
    at, number = timed[position]
    return Target(f"batch {number} at t+{clock(at)}", number)


def _letter(session: Session, text: str) -> Target | None:
    """The next batch of the cursor's scope with this letter, else its first."""
    order = letter_order(text) if text.isascii() and session.cursor else None
    if order is None:
        return None
    numbers = session.timeline.scopes[session.row(session.cursor).scope].batches
    letters = session.timeline.batches.letter
    return _next(session, [number for number in numbers if letters[number - 1] == order])


def _hash(session: Session, text: str) -> Target | None:
    """The next batch of the lane whose hash begins like this."""
    if re.fullmatch(r"[0-9a-f]{4,12}", text) is None:
        return None
    hashes = session.timeline.batches.hash
    wanted = {place for place, value in enumerate(session.timeline.hashes.values) if value.startswith(text)}
    return _next(session, [number for number in session.batches if hashes[number - 1] in wanted])


def _next(session: Session, numbers: list[int]) -> Target | None:
    if not numbers:
        return None
    return _to(session, next((number for number in numbers if number > session.cursor), numbers[0]))


def _scope(session: Session, text: str) -> Target | None:
    """The scope or thread with this name, or the only one with this in its name or its agent's."""
    wanted = text.casefold()
    named: dict[Lane, str] = {}
    for info in session.scopes:
        named.setdefault(Lane(info.key.thread_id, None, whole_thread=True), f"thread {info.key.thread_id or '-'}")
        if info.batches:
            lane = Lane(*info.key)
            named[lane] = f"{lane_name(lane)} {info.agent or ''}"
    exact = [lane for lane, name in named.items() if wanted in (lane_name(lane).casefold(), name.casefold())]
    partly = [lane for lane, name in named.items() if wanted in name.casefold()]
    found = exact or [lane for lane in partly if not lane.whole_thread] or partly
    if not found:
        return None
    if len(found) > 1:
        names = ", ".join(lane_name(lane) for lane in found[:_SHOWN])
        return Target(f"{plural(len(found), 'scope')}: {names}{' …' if len(found) > _SHOWN else ''}")
    return Target(f"scope {lane_name(found[0])}", lane=found[0])


_READERS: tuple[Callable[[Session, str], Target | None], ...] = (_batch, _time, _letter, _hash, _scope)
