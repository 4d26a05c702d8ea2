"""How a run ended, from what its last checkpoint tells and what it leaves out.

LangGraph stores an error only where a task raised it. A run that stopped at the recursion limit, or whose process was
killed, leaves nothing but nodes that were to run next, so that is what is told.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from loopscope.engine.identity import dumps
from loopscope.recording.plain import plain
from loopscope.recording.preview import PREVIEW
from loopscope.sources.langgraph_sqlite.messages import Logged, Output, Said, read_message
from loopscope.sources.langgraph_sqlite.unpack import Named

__all__ = ["ERROR", "INTERRUPT", "Ending", "Tail", "ending"]

ERROR, INTERRUPT = "__error__", "__interrupt__"
"""Channels of writes that are no state."""
_CANCELLED = ("CancelledError", "KeyboardInterrupt", "asyncio.CancelledError")
_STOPPED = "[FORCED STOP]"
"""How the text begins that a loop guard leaves where it took the calls out of a message."""
_DEFAULT_LIMITS = frozenset({25, 9_999, 10_000, 10_007})
"""Where the caller sets none: LangGraph until 1.0, `create_agent`, late LangGraph 1.0, and since 1.1."""

_Status: TypeAlias = Literal["completed", "loop_capped", "error", "cancelled", "unknown"]


class Ending(NamedTuple):
    """The fields of a `run_end` event."""

    status: _Status
    reason: str | None


class Tail(NamedTuple):
    """The last that is known of a run."""

    waiting: tuple[str, ...]
    """Nodes that were to run next."""
    certain: bool
    """Whether no other node was."""
    newest: Any
    """The last message, as it is stored or as it was read; None where there is none."""
    steps: int | None
    """Super-steps since the run began or was resumed."""
    limit: int | None
    """The recursion limit, where the file tells it."""


def ending(tail: Tail, writes: dict[str, list[Any]]) -> Ending:
    """How a run ended.

    Args:
        tail: its last checkpoint.
        writes: the decoded writes on top of it, by channel.
    """
    if writes.get(ERROR):
        return _failed(writes[ERROR])
    if writes.get(INTERRUPT):
        return Ending("unknown", f"interrupted, waiting for an answer: {_shown(writes[INTERRUPT][-1])}")
    message = tail.newest if isinstance(tail.newest, Said | Output | Logged) else read_message(tail.newest)
    answered = isinstance(message, Said) and not message.calls
    if tail.waiting or not (tail.certain or answered or message is None):
        return _unfinished(tail)
    if isinstance(message, Said) and _STOPPED in message.text:
        return Ending("loop_capped", message.text[message.text.index(_STOPPED) :][:PREVIEW])
    return Ending("completed", None) if tail.certain or answered else Ending("unknown", None)


def _failed(errors: list[Any]) -> Ending:
    """The first error that is not the cancelling of the others by it."""
    texts = [error if isinstance(error, str) else _shown(error) for error in errors]
    reason = next((text for text in texts if not text.startswith(_CANCELLED)), texts[0])[:PREVIEW]
    return Ending("cancelled" if reason.startswith(_CANCELLED) else "error", reason)


def _unfinished(tail: Tail) -> Ending:
    after = "" if tail.steps is None else f" after {tail.steps} step{'' if tail.steps == 1 else 's'}"
    before = f", before {', '.join(tail.waiting)}" if tail.waiting else ""
    told = f"ended without a final answer{after}{before}"
    if tail.steps is not None and tail.limit is not None and tail.steps >= tail.limit:
        return Ending("error", f"{told}: the recursion limit of {tail.limit} was reached")
    if tail.limit is None and tail.steps in _DEFAULT_LIMITS:
        return Ending("error", f"{told}: {tail.steps} is LangGraph's default recursion limit")
    return Ending(
        "unknown", f"{told}; no error is stored, as after a recursion limit, a breakpoint, a cancel or a kill"
    )


def _shown(value: Any) -> str:
    """What an interrupt asked, or an error that is stored as no text."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    fields = value.value if isinstance(value, Named) else value
    found = plain(fields["value"] if isinstance(fields, dict) and "value" in fields else fields)
    return (found if isinstance(found, str) else dumps(found))[:PREVIEW]
