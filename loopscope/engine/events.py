"""The events of a run: one definition for a line of a recording, a message on the wire and the engine's input.

SPEC: `docs/recording-format.md` describes every kind and field. Structs are frozen; what a file holds beyond these
fields is kept by the reader, not here. Times are Unix seconds, sizes are bytes of UTF-8, ids are the framework's own.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import UNSET, Struct, UnsetType

__all__ = [
    "FORMAT",
    "Action",
    "Batch",
    "Call",
    "Control",
    "DecisionMade",
    "Event",
    "Gap",
    "Graph",
    "GraphEdge",
    "GraphNode",
    "Header",
    "PolicySet",
    "Result",
    "RunEnd",
    "RunStart",
    "ScopeKey",
    "Usage",
    "Warned",
    "Witness",
]

FORMAT = "loopscope/1"
Action: TypeAlias = Literal["pass", "warn", "hard_stop"]


class ScopeKey(NamedTuple):
    """One agent loop: everything that is counted is counted under this key."""

    thread_id: str | None
    run_id: str | None


class Call(Struct, frozen=True, omit_defaults=True, gc=False):
    """One tool call as the model asked for it."""

    id: str | None
    name: str | None
    args: Any
    """A JSON object, or whatever the model sent in its place."""
    key: str | None = None
    """The key to count this call by, where its arguments could not be recorded as they were."""


class Usage(Struct, frozen=True, omit_defaults=True):
    """What one model call cost; None where the model does not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


class GraphNode(Struct, frozen=True):
    """A node of the agent's graph."""

    id: str
    name: str


class GraphEdge(Struct, frozen=True):
    """An edge of the agent's graph; conditional edges are possible ways, not certain ones."""

    source: str
    target: str
    conditional: bool = False


class Graph(Struct, frozen=True):
    """The structure of the agent's graph, subgraphs expanded where they are known."""

    nodes: tuple[GraphNode, ...] = ()
    edges: tuple[GraphEdge, ...] = ()


class Header(Struct, frozen=True, kw_only=True, tag_field="kind", tag="header"):
    """First line of a recording, and of each later segment in the same file."""

    format: str
    producer: str | None = None
    created: str | None = None
    policy: dict[str, Any] | None = None
    """The policy that ran live, as plain data; None where none did."""
    enforced: bool = False
    """True: decisions were applied to the run. False: the run was only watched."""


class _ScopeEvent(Struct, frozen=True, kw_only=True, tag_field="kind"):
    """What every event but the header has."""

    seq: int
    """Strictly increasing within a segment."""
    ts: float | None
    thread_id: str | None
    run_id: str | None

    @property
    def scope(self) -> ScopeKey:
        """The agent loop that this event belongs to."""
        return ScopeKey(self.thread_id, self.run_id)


class RunStart(_ScopeEvent, frozen=True, kw_only=True, tag="run_start"):
    """An invocation of an agent begins (or resumes, where `resume_of` names the run it takes up again)."""

    agent: str | None
    parent_thread_id: str | None = None
    parent_run_id: str | None = None
    resume_of: str | None = None
    graph: Graph | None = None


class Batch(_ScopeEvent, frozen=True, kw_only=True, tag="batch", omit_defaults=True):
    """One AI message: all of its tool calls, or none."""

    calls: tuple[Call, ...]
    message_id: str | None = None
    node: str | None = None
    text: str | None = None
    usage: Usage | None = None
    model: str | None = None


class Result(_ScopeEvent, frozen=True, kw_only=True, tag="result", omit_defaults=True):
    """What one tool call gave back."""

    call_id: str | None
    name: str | None = None
    status: Literal["ok", "error"]
    content: str
    """The beginning of the text, 2,000 characters unless the recorder was told otherwise."""
    size: int | None = None
    """Bytes of the whole text in UTF-8."""
    digest: str | None = None
    """First 16 hex digits of the SHA-256 of the whole text."""
    error_type: str | None = None
    duration_s: float | None = None
    """Seconds that the tool took, where it was seen to run."""


class DecisionMade(_ScopeEvent, frozen=True, kw_only=True, tag="decision"):
    """What the engine said live of the batch whose `seq` is `batch_seq`."""

    batch_seq: int
    hash: str
    hash_count: int
    action: Action
    layer: str | None
    tool: str | None
    count: int | float | None
    threshold: int | float | None
    at: Literal["batch", "result"] = "batch"
    counter: str | UnsetType = UNSET


class Warned(_ScopeEvent, frozen=True, kw_only=True, tag="warning"):
    """What became of a warning text on its way to the model."""

    state: Literal["queued", "delivered", "dropped", "requeued"]
    text: str


class Witness(_ScopeEvent, frozen=True, kw_only=True, tag="witness"):
    """Values that must show progress from one iteration to the next."""

    values: dict[str, Any]


class PolicySet(_ScopeEvent, frozen=True, kw_only=True, tag="policy"):
    """A policy in force from here on: for one scope, or for all where thread and run are both None."""

    policy: dict[str, Any]


class Control(_ScopeEvent, frozen=True, kw_only=True, tag="control"):
    """Something that a person did to the run."""

    action: Literal["pause", "continue", "next", "pass_once", "stop", "reset"]
    by: str | None = None


class RunEnd(_ScopeEvent, frozen=True, kw_only=True, tag="run_end"):
    """An invocation of an agent is over."""

    status: Literal[
        "completed", "loop_capped", "budget_capped", "stagnated", "escalated", "error", "cancelled", "unknown"
    ] = "unknown"
    reason: str | None = None


class Gap(_ScopeEvent, frozen=True, kw_only=True, tag="gap"):
    """Events that the recorder had to drop here."""

    lost: int


Event: TypeAlias = (
    Header | RunStart | Batch | Result | DecisionMade | Warned | Witness | PolicySet | Control | RunEnd | Gap
)
