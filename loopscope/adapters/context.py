"""What the caller of a graph says of itself in the run's context: a thread id, a run id.

Apart since a context may be anything: a mapping, a dataclass, a pydantic model, nothing, or an object that raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["ABSENT", "run_id_in", "stamp", "thread_id_in"]

ABSENT: Final = object()
"""Stands for a key that is not there, where None is a value of its own."""


def thread_id_in(context: object) -> str | None:
    """The thread id that the context names, as text; None where it names none."""
    value = _get(context, "thread_id")
    return str(value) if value is not ABSENT and value else None


def run_id_in(context: object) -> object:
    """The run id that the context names: text, None where a mapping says None, or `ABSENT`.

    An attribute that is None is a default that nobody set, and counts as absent.
    """
    value = _get(context, "run_id")
    if value is None:
        return None if isinstance(context, Mapping) else ABSENT
    return value if value is ABSENT else str(value)


def stamp(context: object, name: str, value: str) -> None:
    """Leave a note for the caller in its context, where that can be written to."""
    try:
        if isinstance(context, Mapping):
            context[name] = value  # type: ignore[index]
        elif context is not None:
            setattr(context, name, value)
    except Exception:  # noqa: BLE001, S110 - a frozen context takes no notes; the event tells it as well
        pass


def _get(context: object, name: str) -> object:
    if context is None:
        return ABSENT
    if isinstance(context, Mapping):
        return context.get(name, ABSENT)
    try:
        return getattr(context, name, ABSENT)
    except Exception:  # noqa: BLE001 - a property of the user's own
        return ABSENT
