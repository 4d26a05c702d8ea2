"""What callbacks are not told: the graph that begins, and the `Runtime` of a node.

Both are locals of the frames that call the handler, a few steps above it, and are looked at once per run of a graph.
Where LangGraph changes that, nothing is found, and the tap does with what callbacks are told.
"""

from __future__ import annotations

from types import FrameType, SimpleNamespace
from typing import Any

from langgraph.pregel import Pregel

__all__ = ["NEAREST", "running_graph", "runtime_of", "told_runtime"]

_STEPS = 3
"""Frames, from `NEAREST` on, among which the code of LangGraph is that a callback is for: LangChain's own way to the
handler is longer in coroutines."""
NEAREST = 3
"""Frames above that of a handler's method: LangChain has at least two of its own between."""
_RUNTIME = "__pregel_runtime"


def running_graph(frame: FrameType | None) -> Pregel[Any, Any, Any, Any] | None:
    """The graph whose run begins, where this frame begins it; None for the beginning of anything else."""
    for _ in range(_STEPS):
        if frame is None:
            return None
        name = frame.f_code.co_name
        if name == "stream" or name == "astream":  # noqa: PLR1714 - no set is made, since this is often asked
            found = frame.f_locals.get("self")
            return found if isinstance(found, Pregel) else None
        frame = frame.f_back
    return None


def runtime_of(frame: FrameType | None, namespace: str | None) -> Any:
    """The runtime of the node that begins in this checkpoint namespace, where this frame begins it."""
    for _ in range(_STEPS):
        if frame is None:
            return None
        if "config" in frame.f_code.co_varnames:
            config = frame.f_locals.get("config")
            found = config.get("configurable", {}).get(_RUNTIME) if isinstance(config, dict) else None
            if getattr(getattr(found, "execution_info", None), "checkpoint_ns", None) == namespace:
                return found
        frame = frame.f_back
    return None


def told_runtime(anchor: object, metadata: dict[str, Any]) -> Any:
    """What stands for a runtime that cannot be reached: as much of it as callbacks are told.

    Args:
        anchor: one object for the whole invocation.
        metadata: of a node.
    """
    info = SimpleNamespace(
        checkpoint_ns=metadata.get("langgraph_checkpoint_ns", ""), thread_id=metadata.get("thread_id"), run_id=None
    )
    return SimpleNamespace(control=anchor, context=None, execution_info=info)
