"""What callbacks are not told: the graph that begins, the `Runtime` of a node, whether a run goes on or pauses.

All of it is held by the frames that call the handler, a few steps above it, and is looked at once per run of a graph.
LangGraph's own callbacks for interrupts are not enough: handlers of a configure hook get none. Where LangGraph changes
any of this, nothing is found, and the tap does with what callbacks are told.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import FrameType, SimpleNamespace
from typing import Any, NamedTuple

from langgraph.pregel import Pregel
from langgraph.types import Command

__all__ = ["NEAREST", "Beginning", "Place", "place_of", "running_graph", "stands_before_a_node", "told_place"]

_STEPS = 3
"""Frames, from `NEAREST` on, among which the code of LangGraph is that a callback is for: LangChain's own way to the
handler is longer in coroutines."""
NEAREST = 3
"""Frames above that of a handler's method: LangChain has at least two of its own between."""
_RUNTIME, _RESUMING, _CALL = "__pregel_runtime", "__pregel_resuming", "__pregel_call"


class Place(NamedTuple):
    """What is known of a run of a graph from one of its nodes."""

    runtime: Any
    resuming: bool
    """The invocation goes on from a checkpoint, where an earlier one left it."""
    loop: Any = None
    """LangGraph's own loop, which knows how it ends."""


class Beginning(NamedTuple):
    """A run of a graph that begins."""

    graph: Pregel[Any, Any, Any, Any]
    awaited: bool
    """It runs on an event loop, which awaits what callbacks do when its nodes end."""


def running_graph(frame: FrameType | None) -> Beginning | None:
    """The graph whose run begins, where this frame begins it; None for the beginning of anything else."""
    for _ in range(_STEPS):
        if frame is None:
            return None
        name = frame.f_code.co_name
        if name == "stream" or name == "astream":  # noqa: PLR1714 - no set is made, since this is often asked
            found = frame.f_locals.get("self")
            return Beginning(found, name == "astream") if isinstance(found, Pregel) else None
        frame = frame.f_back
    return None


def place_of(frame: FrameType | None, namespace: str | None) -> Place | None:
    """The place of the node that begins in this checkpoint namespace, where this frame begins it."""
    for _ in range(_STEPS):
        if frame is None:
            return None
        if "config" in frame.f_code.co_varnames:
            config = frame.f_locals.get("config")
            own = config.get("configurable", {}) if isinstance(config, dict) else {}
            found = own.get(_RUNTIME)
            if getattr(getattr(found, "execution_info", None), "checkpoint_ns", None) == namespace:
                return Place(found, bool(own.get(_RESUMING)), _loop_of(own.get(_CALL)))
        frame = frame.f_back
    return None


def _loop_of(call: Any) -> Any:
    """The loop is what takes on the tasks that a node starts."""
    return getattr(getattr(call, "keywords", {}).get("schedule_task"), "__self__", None)


def stands_before_a_node(loop: Any) -> bool:
    """Whether a run ended only to be resumed, at one of the nodes where its caller wanted it to stand still."""
    return getattr(loop, "status", None) in {"interrupt_before", "interrupt_after"}


def told_place(anchor: object, metadata: Mapping[str, Any], inputs: object) -> Place:
    """What stands for a place that cannot be reached: as much of it as callbacks are told.

    Args:
        anchor: one object for the whole invocation.
        metadata: of a node.
        inputs: of the invocation.
    """
    info = SimpleNamespace(
        checkpoint_ns=metadata.get("langgraph_checkpoint_ns", ""), thread_id=metadata.get("thread_id"), run_id=None
    )
    runtime = SimpleNamespace(control=anchor, context=None, execution_info=info)
    return Place(runtime, resuming=inputs is None or isinstance(inputs, Command))
