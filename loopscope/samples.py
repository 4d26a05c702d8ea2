"""The recorded runs that come with loopscope: in the wheel as package data, in a checkout beside the package."""

from __future__ import annotations

import difflib
import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

from loopscope.errors import UsageError

__all__ = ["Sample", "sample", "samples", "samples_folder"]


class Sample(NamedTuple):
    """One recorded run."""

    name: str
    summary: str
    """What it shows, in one line."""
    file: Path
    looping: bool
    """Whether it is a loop; else it is a run that is fine."""


def samples_folder() -> Path:
    """Where the samples are."""
    package = Path(__file__).parent
    packed = package / "_sample_runs"
    return packed if packed.is_dir() else package.parent / "sample_runs"


@cache
def samples() -> tuple[Sample, ...]:
    """Every sample, in the order of the index."""
    folder = samples_folder()
    index = json.loads((folder / "index.json").read_text("utf-8"))
    return tuple(
        Sample(name, entry["summary"], folder / f"{name}.jsonl", bool(entry["looping"]))
        for name, entry in index.items()
    )


def sample(name: str) -> Sample:
    """The sample of this name.

    Raises:
        UsageError: if there is none; the message names the nearest.
    """
    known = {sample.name: sample for sample in samples()}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean sample:{near[0]}?" if near else "`loopscope samples` lists them"
        raise UsageError(f"there is no sample {name!r}; {hint}")
    return known[name]
