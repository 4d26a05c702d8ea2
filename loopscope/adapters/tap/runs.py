"""The runs that LangChain's callbacks tell of, as far as the tap needs them: of graphs, of their nodes, of tools.

Every callback names its run and the run around it, and nothing else that would tell which graph it is in. Apart from
what is done with them, and bounded: a run whose end is never told must not stay for ever.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

from langchain_core.messages import AIMessage
from msgspec import Struct

from loopscope.adapters.tap.reach import Place

if TYPE_CHECKING:
    from loopscope.adapters.tap.watcher import Watched

__all__ = ["NAMESPACE", "Asked", "Bounded", "Earlier", "Failure", "GraphRun", "NodeRun", "ToolRun"]

NAMESPACE = "langgraph_checkpoint_ns"
"""How LangGraph names the place of a node, in the metadata of everything that runs in it."""
_KNOWN = 4_096
"""Messages of one invocation that are remembered as observed; what is forgotten is recognised more slowly."""

K = TypeVar("K")
V = TypeVar("V")


class Bounded(dict[K, V], Generic[K, V]):
    """A dict that forgets its oldest entry when there are too many. Safe from any thread, as far as a dict is."""

    __slots__ = ("limit",)

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.limit = limit

    def keep(self, key: K, value: V) -> None:
        """Set an entry, and forget what is too much: whoever sets many may leave that to every so many."""
        self[key] = value
        while len(self) > self.limit:
            # Another thread may do the same at the same moment.
            with contextlib.suppress(RuntimeError, StopIteration):
                self.pop(next(iter(self)), None)


class GraphRun:
    """One run of a graph: the whole invocation, or that of a graph within a node."""

    __slots__ = (
        "aliases", "awaited", "drained_by", "graph", "inputs", "known", "loop", "marks", "outer", "over", "paused",
        "place", "root", "silent",
    )  # fmt: skip

    def __init__(self, outer: NodeRun | None, graph: Any, inputs: object, *, awaited: bool = False) -> None:
        self.outer = outer
        self.root: GraphRun = self if outer is None else outer.graph.root
        """The outermost graph that is observed."""
        self.graph = graph
        """The graph itself; None where it could not be reached."""
        self.inputs = inputs
        self.awaited = awaited
        """It runs on an event loop, which awaits what is done when one of its nodes ends."""
        self.place: Place | None = None
        """As its first node has it."""
        self.loop: Watched | None = None
        """The agent loop that its batches belong to, once there is one."""
        self.silent = False
        """Nothing is told of it: somebody else does, a middleware or another tap, or it is over."""
        self.paused = False
        """It was interrupted, to be resumed by a later invocation."""
        self.over = False
        if self.root is self:
            self.known: Bounded[str | int, object] = Bounded(_KNOWN)
            """Messages that were observed: by id, or by address (with the message, so that the address stays its)."""
            self.marks: dict[str, tuple[int, object]] = {}
            """How far the lists in the state were looked through for messages: their length, and the last one then."""
            self.aliases: Bounded[str | None, str | None] = Bounded(_KNOWN)
            """Call ids of batches that were told in an earlier execution of their node, and their ids there."""
            self.drained_by: str | None = None
            """Who stopped the invocation."""


class NodeRun(Struct, eq=False):
    """One execution of a node, with everything that runs inside of it but the nodes of further graphs."""

    run_id: int
    """As a number, which is hashed much faster."""
    graph: GraphRun
    told: Mapping[str, Any]
    """The metadata that LangGraph gives a node."""
    inputs: Any
    answers: list[AIMessage] = []
    """What models said here."""
    deferred: tuple[AIMessage, ...] = ()
    """Those of them that are told when the node ends, where they can be held without blocking a thread."""
    again: tuple[Asked, ...] = ()
    """The batches of an earlier execution of the same task that this one has yet to come to."""
    results: frozenset[str | None] = frozenset()
    """Call ids whose results were told."""
    failures: dict[str | None, Failure] | None = None
    """Calls whose tool raised, until it is known what the model gets to see of that; there once the first one did."""
    failed: bool = False
    """It raised, or was cancelled: nothing in it need be waited for any more."""

    @property
    def name(self) -> str | None:
        """Of the node."""
        return self.told.get("langgraph_node")

    @property
    def namespace(self) -> str | None:
        """The checkpoint namespace of this execution; it ends in the id of its task."""
        return self.told.get(NAMESPACE)

    @property
    def task_id(self) -> str:
        """Names this execution, and a later one of the same task."""
        return (self.namespace or "").rpartition(":")[2]


class ToolRun(Struct, eq=False):
    """One run of a tool."""

    node: NodeRun
    call_id: str | None
    """None where it was not run for a model's call."""
    name: str | None
    began: float
    """`time.monotonic()`."""


class Failure(NamedTuple):
    """A tool that raised."""

    name: str | None
    error: BaseException
    duration_s: float


class Asked(NamedTuple):
    """A batch, told apart from others by what it asks for."""

    calls: tuple[tuple[str, str], ...]
    """Name and arguments."""
    ids: tuple[str | None, ...]


class Earlier(NamedTuple):
    """What was told of an execution of a node that failed or was interrupted, for when it is executed again."""

    asked: tuple[Asked, ...]
    results: frozenset[str | None]


Run: TypeAlias = GraphRun | NodeRun | ToolRun
