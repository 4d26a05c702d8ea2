"""The bounds of one endpoint, in one place: what a process keeps, and what viewers have to keep to."""

from __future__ import annotations

from msgspec import Struct

__all__ = ["MAX_PAUSE", "Limits"]

MAX_PAUSE = 600.0
"""Seconds that a batch is held at most, unless the process says otherwise."""


class Limits(Struct, frozen=True, kw_only=True):
    """What the other side has to keep to. Times are seconds, sizes bytes."""

    backlog: int = 16 << 20
    """Of lines and states that are kept for viewers that come late."""
    line_s: float = 5.0
    """From the first byte of a line to its end; also from the connection to the hello."""
    stuck_s: float = 30.0
    """In which a viewer must read what is on its way."""
    burst: int = 500
    """Requests at once."""
    per_second: float = 100.0
    """Requests in the long run."""
    viewers: int = 32
    """Viewers at once."""
    greeting: int = 64
    """Connections at once that have not said hello yet; then the oldest has to go."""
    accepts: float = 1_000.0
    """Connections in a second, in the long run."""
