"""Moving through a session, with the reason in words where it cannot be done. Every surface says the same."""

from __future__ import annotations

from loopscope.engine.events import ScopeKey
from loopscope.session.scopes import ScopeInfo
from loopscope.session.session import Lane, Session
from loopscope.views.topbar import lane_name
from loopscope.views.words import plural

__all__ = ["child", "decision", "edge", "opened", "parent", "scope_edge", "show", "step"]


def opened(session: Session) -> str:
    """Where the cursor stands when a recording is opened, and why there."""
    if not session.cursor:
        return "this recording has no batch with calls"
    stop = session.first_stop()
    if stop == session.cursor:
        text = f"opened at the first stop, batch {stop}"
    elif stop is None:
        text = f"no stop in this recording: opened at its end, batch {session.cursor}"
    else:
        text = f"opened at batch {session.cursor}"
    damaged = len(session.problems)
    return f"{text}; something is wrong in {plural(damaged, 'place')} of it" if damaged else text


def step(session: Session, by: int) -> str | None:
    """Move by so many batches of the lane; the reason where the cursor stays."""
    if session.step(by):
        return None
    if not session.cursor:
        return "cannot step: there is no batch with calls"
    what = "forward" if by > 0 else "back"
    end = "last" if by > 0 else "first"
    return f"cannot step {what}: this is the {end} batch of {lane_name(session.lane)}{_wider(session)}"


def _wider(session: Session) -> str:
    """How to see more, where the lane is not all of its recording."""
    lane = session.lane
    return "; u widens to its thread" if lane is not None and not lane.whole_thread and _siblings(lane, session) else ""


def _siblings(lane: Lane, session: Session) -> bool:
    return any(info.key.thread_id == lane.thread_id and info.key != lane.key for info in session.scopes)


def decision(session: Session, direction: int) -> str | None:
    """Go to the next or the previous warning or stop of the lane; the reason where there is none."""
    if session.next_decision(direction):
        return None
    where = "after" if direction > 0 else "before"
    return f"no warning and no stop {where} batch {session.cursor} in {lane_name(session.lane)}{_wider(session)}"


def edge(session: Session, end: int) -> str | None:
    """Go to the first (-1) or the last (1) batch of the lane; the reason where the cursor is there."""
    numbers = session.batches
    if not numbers:
        return "cannot move: there is no batch with calls"
    target = numbers[0] if end < 0 else numbers[-1]
    if target == session.cursor:
        return f"this is the {'first' if end < 0 else 'last'} batch of {lane_name(session.lane)}"
    session.seek(target)
    return None


def scope_edge(session: Session, end: int) -> str | None:
    """Go to the first (-1) or the last (1) batch of the cursor's own scope; the reason where the cursor is there."""
    if not session.cursor:
        return "cannot move: there is no batch with calls"
    key = session.timeline.scope_of(session.cursor)
    numbers = session.timeline.scopes[key].batches
    target = numbers[0] if end < 0 else numbers[-1]
    if target == session.cursor:
        return f"this is the {'first' if end < 0 else 'last'} batch of {lane_name(Lane(*key))}"
    session.seek(target)
    return None


def show(session: Session, lane: Lane) -> str | None:
    """Show a scope or a thread; the reason where there is nothing to show."""
    before, cursor = session.lane, session.cursor
    session.select(lane)
    if session.batches:
        return None
    session.lane, session.cursor = before, cursor
    return f"cannot show {lane_name(lane)}: it has made no calls"


def parent(session: Session) -> str | None:
    """Show the parent of the scope that is shown, at last its whole thread; the reason where that is shown already."""
    lane = session.lane
    if lane is None or lane.key is None:
        return f"nothing is above {lane_name(lane)}"
    above = _info(session, lane.key).parent
    while above is not None and not _info(session, above).batches:
        above = _info(session, above).parent
    return show(session, Lane(*above) if above is not None else Lane(lane.thread_id, None, whole_thread=True))


def child(session: Session) -> str | None:
    """Show the child on the way to the cursor, else the one nearest to it; the reason where there is none."""
    lane = session.lane
    if lane is None:
        return "there is no scope"
    if lane.key is None:
        below = _path(session, session.timeline.scope_of(session.cursor))[-1]
        return show(session, Lane(*below))
    own = [info for info in session.scopes if info.parent == lane.key and info.batches]
    if not own:
        return f"{lane_name(lane)} has no sub-agent that made calls"
    nearest = min(own, key=lambda info: abs(session.timeline.scopes[info.key].batches[0] - session.cursor))
    return show(session, Lane(*nearest.key))


def _info(session: Session, key: ScopeKey) -> ScopeInfo:
    return next(info for info in session.scopes if info.key == key)


def _path(session: Session, key: ScopeKey) -> list[ScopeKey]:
    """A scope and its ancestors that made calls in the same thread, nearest first."""
    parents = {info.key: info.parent for info in session.scopes}
    path: list[ScopeKey] = []
    at: ScopeKey | None = key
    while at is not None and at not in path:
        if at.thread_id == key.thread_id and session.timeline.scopes[at].batches:
            path.append(at)
        at = parents.get(at)
    return path
