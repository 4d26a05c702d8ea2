"""All samples, in the order in which they are listed, and the index that loopscope reads.

loopscope itself never imports this: it reads `index.json`, which is made from the scripts' hand-written lines by
`python -m sample_runs`, and a test holds the two equal.
"""

from __future__ import annotations

import json
from importlib import import_module

from sample_runs.stage.sample import Found, Sample

__all__ = ["NAMES", "index", "load"]

NAMES = (
    "sql-retry-storm",
    "enforced-stop",
    "warned-and-recovers",
    "handoff-ping-pong",
    "parallel-hard-stop",
    "parallel-subagents",
    "approval-loop",
    "seventy-files",
    "search-fetch-alternation",
    "swarm-handoff",
    "healthy-polling",
    "healthy-edit-and-test",
    "paging-reader",
    "once-per-run",
    "bounded-give-up",
)


def load(name: str) -> Sample:
    """The sample of this name, from its script."""
    module = import_module(f"sample_runs.scripts.{name.replace('-', '_')}")
    sample: Sample = module.SAMPLE
    return sample


def index() -> str:
    """The text of `index.json`: by name what it shows, whether it loops, and the first warning and stop."""
    entries = {name: _entry(load(name)) for name in NAMES}
    return json.dumps(entries, indent=2) + "\n"


def _entry(sample: Sample) -> dict[str, object]:
    return {
        "summary": sample.summary,
        "looping": sample.looping,
        "first_warning": _plain(sample.first_warning),
        "first_stop": _plain(sample.first_stop),
    }


def _plain(found: Found | None) -> dict[str, object] | None:
    return None if found is None else found._asdict()
