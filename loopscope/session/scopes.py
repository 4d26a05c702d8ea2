"""The tree of scopes: threads, their runs, and the sub-agents of those."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Mapping
from typing import NamedTuple

from loopscope.engine.events import ScopeKey
from loopscope.session.timeline import ScopeRecord

__all__ = ["ScopeInfo", "tree"]


class ScopeInfo(NamedTuple):
    """One scope in the tree."""

    key: ScopeKey
    parent: ScopeKey | None
    depth: int
    """0 for a run of its thread, 1 for its sub-agents, and so on."""
    agent: str | None
    batches: int
    """Batches with calls over the whole recording."""
    seen: int
    """Batches up to the cursor."""
    worst: str
    """`hard_stop`, `warn` or `pass`: the worst decision over the whole recording."""
    evicted: bool
    """It had state and has none at the cursor: the engine forgot it for newer scopes, or was reset."""
    status: str | None
    """How its run ended, where the recording tells."""


def tree(scopes: Mapping[ScopeKey, ScopeRecord], alive: Container[ScopeKey], cursor: int) -> list[ScopeInfo]:
    """The scopes in the order in which a tree is drawn: parents before their children, threads together.

    A parent that the recording does not have, or that is its own descendant, makes its child a root.
    """
    children: dict[ScopeKey | None, list[ScopeRecord]] = {}
    for record in scopes.values():
        parent = record.parent if record.parent in scopes and record.parent != record.key else None
        children.setdefault(parent, []).append(record)
    threads = {key.thread_id: order for order, key in reversed(list(enumerate(scopes)))}
    roots = sorted(children.get(None, []), key=lambda record: threads[record.key.thread_id])
    found: list[ScopeInfo] = []
    drawn: set[ScopeKey] = set()
    stack = [(record, 0) for record in reversed(roots)]
    while stack or len(drawn) < len(scopes):
        if not stack:
            stack.append((next(record for key, record in scopes.items() if key not in drawn), 0))
        record, depth = stack.pop()
        if record.key in drawn:
            continue
        drawn.add(record.key)
        found.append(_info(record, depth, alive, cursor))
        stack.extend((child, depth + 1) for child in reversed(children.get(record.key, [])))
    return found


def _info(record: ScopeRecord, depth: int, alive: Container[ScopeKey], cursor: int) -> ScopeInfo:
    seen = bisect_right(record.batches, cursor)
    return ScopeInfo(
        key=record.key,
        parent=record.parent if depth else None,
        depth=depth,
        agent=record.agent,
        batches=len(record.batches),
        seen=seen,
        worst=record.worst,
        evicted=seen > 0 and record.key not in alive,
        status=record.end.status if record.end is not None else None,
    )
