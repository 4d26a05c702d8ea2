"""What a checkpoint holds, as far as the reader looks into it, and which of its channels hold messages.

Apart from the tree of checkpoints, since this is about one of them alone.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

from loopscope.sources.langgraph_sqlite.messages import looks_like_message
from loopscope.sources.langgraph_sqlite.unpack import Delta, Named, Undecodable

__all__ = ["START", "State", "given", "is_own", "items", "message_lists", "read_state"]

START = "__start__"
_TASKS = "__pregel_tasks"
_TO = "branch:to:"
_OWN = ("branch:", "start:", "join:", "__pregel", START)
"""How the channels begin by which LangGraph itself steers a graph."""
_LOOKED_AT = 4
"""Items at the beginning of a list by which it is known to hold messages."""


class State(NamedTuple):
    """One checkpoint, decoded."""

    ts: float | None
    """Unix seconds."""
    values: dict[Any, Any]
    versions: dict[Any, Any]
    seen: dict[Any, Any]
    """Of each node, the versions of the channels that it has acted on."""
    sends: tuple[Any, ...]

    @property
    def channels(self) -> set[str]:
        """The channels that belong to the graph's author."""
        names = {name for name in (*self.values, *self.versions) if isinstance(name, str)}
        return {name for name in names if not is_own(name)}

    @property
    def waiting(self) -> tuple[str, ...]:
        """The nodes that are to run next, as far as the state tells."""
        named = [name.rpartition(":")[2] for name in map(str, self.values) if name.startswith(("branch:", "start:"))]
        if START in self.values:
            named.append(START)
        for send in (*items(self.values.get(_TASKS)), *self.sends):
            arguments = send.value if isinstance(send, Named) else None
            if isinstance(arguments, list) and arguments:
                named.append(str(arguments[0]))
        return tuple(dict.fromkeys(named))

    @property
    def tells_waiting(self) -> bool:
        """Whether `waiting` is all there is; older versions did not store every edge in this way."""
        return any(name.startswith(_TO) for name in map(str, self.versions))


def read_state(value: Any, fallback: float | None) -> State:
    """The parts of a decoded checkpoint.

    Args:
        value: what was stored.
        fallback: the time to take where it has none.

    Raises:
        Undecodable: it is no checkpoint.
    """
    if not isinstance(value, dict):
        raise Undecodable("holds no checkpoint")
    return State(
        _time(value.get("ts")) or fallback,
        _dict(value.get("channel_values")),
        _dict(value.get("channel_versions")),
        _dict(value.get("versions_seen")),
        tuple(items(value.get("pending_sends"))),
    )


def is_own(channel: object) -> bool:
    """Whether LangGraph keeps this channel for itself."""
    return str(channel).startswith(_OWN)


def message_lists(values: dict[Any, Any], channel: str | None) -> dict[str, list[Any]]:
    """The lists of messages in a state, by channel: one channel's, or those of all that hold messages."""
    if channel is not None:
        return {channel: items(values[channel]) or [values[channel]]} if channel in values else {}
    found = {str(name): items(value) for name, value in values.items() if not is_own(name)}
    return {name: held for name, held in found.items() if any(map(looks_like_message, held[:_LOOKED_AT]))}


def given(values: dict[Any, Any]) -> list[list[Any]]:
    """The lists in the input that a graph was called with; none where the checkpoint holds no input."""
    handed = values.get(START)
    return [items(value) for value in handed.values()] if isinstance(handed, dict) else [items(handed)]


def items(value: Any) -> list[Any]:
    """The items of a list, however the channel stores it; none of anything else."""
    while isinstance(value, Delta) or (isinstance(value, Named) and value.name == "Overwrite"):
        value = value.value
        if isinstance(value, dict):
            value = value.get("value")
    return value if isinstance(value, list) else []


def _dict(value: object) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _time(value: object) -> float | None:
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
