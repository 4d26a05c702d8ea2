"""What a sample is: its one line, what the detector must say of it (written by hand), and how it is recorded.

Apart from the scripts so that a test can hold all of them to the same shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sample_runs.stage.stage import Stage

__all__ = ["Found", "Sample"]


class Found(NamedTuple):
    """The first warning or the first stop of a run, as a person who read the rules expects it."""

    batch: int
    """Number of the batch, from 1 over the whole recording."""
    layer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One run that comes with loopscope."""

    name: str
    summary: str
    """What it shows, in one line."""
    looping: bool
    """Whether the agent is stuck: a person's judgement, whatever the detector says."""
    first_warning: Found | None
    first_stop: Found | None
    run: Callable[[Stage], None]
    """Runs the graph on a stage, which records it."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """How long a call of each tool takes in the recording, in seconds; 0.2 where it is not named."""
    pause: float = 5.0
    """Seconds between two invocations of the graph."""

    @property
    def script(self) -> str:
        """Name of the module that makes it."""
        return self.name.replace("-", "_")
