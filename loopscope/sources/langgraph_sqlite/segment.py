"""One invocation of one graph: the stretch of checkpoints that becomes one run.

An invocation begins with an input, and a fork begins another one. Apart since the run and its parent must be named
the way the middleware names them, or the same program would have other scopes in its recordings than in its
checkpoints.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from loopscope.engine.events import ScopeKey
from loopscope.sources.langgraph_sqlite.endings import Tail
from loopscope.sources.langgraph_sqlite.state import START, State
from loopscope.sources.langgraph_sqlite.tree import Node
from loopscope.sources.langgraph_sqlite.union import Counts

__all__ = ["Past", "Place", "Segment", "place", "resumes"]

_BEFORE_ANY = -2
"""The step of a thread that has no checkpoint yet."""
_SHOWN = "__interrupt__"
"""In `versions_seen`: what a person had been shown when the graph went on."""


class Past:
    """What is kept of a checkpoint until all that build on it are read."""

    __slots__ = ("continued", "counts", "seen", "versions")

    def __init__(self, state: State, counts: Counts) -> None:
        self.versions = state.versions
        self.seen = state.seen
        self.counts = counts
        self.continued = False
        """Whether a checkpoint that builds on it was read: any further one is a branch."""


class Segment:
    """One invocation so far."""

    __slots__ = (
        "base",
        "certain",
        "counts",
        "first",
        "key",
        "last",
        "limit",
        "newest",
        "outer",
        "step",
        "top",
        "ts",
        "waiting",
    )

    def __init__(self, thread_id: str | None, node: Node, resumed: Segment | None) -> None:
        self.outer = node.outer.segment if node.outer is not None else None
        """The invocation of the enclosing graph."""
        self.top: Segment = self if self.outer is None else self.outer.top
        """The invocation that all this happened inside of."""
        self.key = ScopeKey(thread_id, _run_id(node, self.outer, resumed))
        self.last = node
        self.base = _step(node.parent)
        """The step that the limit on steps counts from."""
        self.step = self.base
        self.ts: float | None = None
        self.limit: int | None = None
        self.waiting: tuple[str, ...] = ()
        self.certain = False
        self.first: Any = None
        self.newest: Any = None
        self.counts: Counts = Counter()

    @property
    def agent(self) -> str | None:
        """The agent's name where the metadata tell it, else the node that a subgraph is in the graph around it."""
        return self.last.agent or self.last.namespace.rpartition("|")[2].partition(":")[0] or None

    @property
    def finished(self) -> bool:
        """Whether it came to its end by itself."""
        return self.certain and not self.waiting

    @property
    def tail(self) -> Tail:
        """What tells how it ended."""
        steps = None if self.step is None or self.base is None else max(self.step - self.base - 2, 0)
        return Tail(self.waiting, self.certain, self.newest, steps, self.limit)

    def advance(self, node: Node, state: State, messages: list[Any], counts: Counts) -> None:
        """Take in the next checkpoint. What a person changes in a state does not change how the run ended."""
        self.last = node
        self.ts = state.ts
        self.counts = counts
        self.first = messages[0] if messages else None
        if node.source == "update":
            self.base = node.step
            return
        self.waiting, self.certain, self.step = state.waiting, state.tells_waiting, node.step
        self.limit = node.limit or self.limit
        if messages:
            self.newest = messages[-1]

    def counts_within(self, written: list[Any]) -> Counts:
        """What a written list repeats: nothing, unless it is the state's own list once more with something added."""
        return self.counts if len(written) > 1 and written[0] == self.first else Counter()

    def forget(self) -> None:
        """Let go of what was kept to tell its end."""
        self.first = self.newest = None
        self.counts = Counter()

    def resume(self) -> None:
        """The invocation goes on after a pause, and LangGraph counts its steps anew."""
        self.base = self.step


class Place(NamedTuple):
    """Where a checkpoint belongs."""

    same: Segment | None
    """The invocation that it goes on with; None where it begins another."""
    resumed: Segment | None = None
    """The invocation that the new one branches off from, or takes up again under another id."""
    over: Segment | None = None
    """The invocation that is over with it."""


def place(node: Node, state: State, past: Past | None) -> Place:
    """Tell whether a checkpoint goes on with its parent's invocation.

    Args:
        node: the checkpoint.
        state: what it holds.
        past: what is kept of its parent; None if it has none that could be read.
    """
    parent = node.parent
    if parent is None or past is None or parent.segment is None:
        return Place(None)
    before = parent.segment
    if past.continued:
        return Place(None, resumed=before)
    # With durability="exit" an invocation leaves its last checkpoint alone, but that has consumed a new input.
    consumed = parent.source not in {"input", None} and _consumed(state.seen) != _consumed(past.seen)
    if node.source == "input" or consumed:
        return Place(None, over=before)
    if node.source == "update" and node.goes_on and before.finished:
        return Place(None, resumed=before, over=before)
    if node.run_id is not None and parent.run_id is not None and node.run_id != parent.run_id:
        return Place(None, resumed=before, over=before)
    return Place(before)


def resumes(node: Node, state: State, past: Past | None) -> bool:
    """Whether a checkpoint is the first after a pause of its invocation."""
    if past is None or node.parent is None or node.parent.source in {"update", "fork"}:
        return False
    return bool(state.seen.get(_SHOWN) != past.seen.get(_SHOWN))


def _consumed(seen: dict[Any, Any]) -> object:
    start = seen.get(START)
    return start.get(START) if isinstance(start, dict) else None


def _run_id(node: Node, outer: Segment | None, resumed: Segment | None) -> str:
    """A subgraph: the run that it is part of and where in it. Else the caller's id, else the first checkpoint's.

    A branch gets an id of its own: what it does again, the run that it was taken from does not do again.
    """
    if outer is not None:
        return f"{outer.top.key.run_id}/{node.namespace}"
    if node.run_id is None:
        return node.id
    return f"{node.run_id}~{node.id}" if resumed is not None and resumed.key.run_id == node.run_id else node.run_id


def _step(node: Node | None) -> int | None:
    return _BEFORE_ANY if node is None else node.step
