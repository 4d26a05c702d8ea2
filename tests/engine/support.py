"""Builders of events for the engine's tests."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from loopscope.engine.events import Batch, Call, Event, Usage
from loopscope.recording.codec import decode

TESTS = Path(__file__).parent.parent


def batch(
    seq: int, *calls: tuple[str | None, Any], scope: tuple[str | None, str | None] = ("t", "r"), ts: float | None = None
) -> Batch:
    """A batch of (name, args) calls."""
    return Batch(
        seq=seq,
        ts=float(seq) if ts is None else ts,
        thread_id=scope[0],
        run_id=scope[1],
        calls=tuple(Call(f"c{seq}-{i}", name, args) for i, (name, args) in enumerate(calls)),
        usage=Usage(10, 2, 0.5),
    )


def read(path: Path) -> Iterable[Event]:
    """The events of a recording."""
    for line in path.read_bytes().splitlines():
        event = decode(line)
        assert event is not None
        yield event
