"""Makes a recording the same each time it is made: counted seqs, a clock that starts at a fixed moment, counted ids.

Only what differs from one run of a script to the next is rewritten: `seq`, `ts`, the header's `created` and
`producer` (its version), and the ids that LangGraph and the middleware draw at random (tasks in the name of a
sub-agent's run, runs that the caller did not name). It works on the lines as they are, so that all else stays as it was
recorded.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from sample_runs.stage.sample import Sample

__all__ = ["normalised"]

_STARTED = 1_796_029_200.0
_CREATED = "2026-11-30T09:00:00Z"
"""The same moment: when every sample starts."""
_RANDOM = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}")
_TOOL = 0.2
_LATENCY = 0.7
"""Seconds until a model begins to answer."""
_PER_TOKEN = 0.016
_Line: TypeAlias = dict[str, Any]


def normalised(lines: Iterable[bytes], sample: Sample) -> Iterator[bytes]:
    """The lines of a recording, made the same each time."""
    names = _Names(sample.name)
    clock = _Clock(sample)
    seqs: dict[int, int] = {}
    for text in lines:
        line: _Line = json.loads(text)
        if line["kind"] == "header":
            line |= {"producer": f"sample_runs/scripts/{sample.script}.py", "created": _CREATED}
        else:
            seqs[line["seq"]] = len(seqs) + 1
            line["ts"] = clock.at(line)
            if "duration_s" in line:
                line["duration_s"] = sample.seconds.get(line["name"], _TOOL)
        for field in ("seq", "batch_seq"):
            if field in line:
                line[field] = seqs[line[field]]
        for field in ("run_id", "parent_run_id", "resume_of"):
            if isinstance(line.get(field), str):
                line[field] = names.of(line[field])
        yield json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode()


class _Names:
    """Gives each random id a fixed one, by the order in which they are first seen."""

    def __init__(self, sample: str) -> None:
        self._sample = sample
        self._known: dict[str, str] = {}

    def of(self, run_id: str) -> str:
        return _RANDOM.sub(lambda found: self._fixed(found[0]), run_id)

    def _fixed(self, random: str) -> str:
        if random not in self._known:
            made = uuid.uuid5(uuid.NAMESPACE_URL, f"loopscope/{self._sample}/{len(self._known)}")
            self._known[random] = str(made) if "-" in random else made.hex
        return self._known[random]


class _Clock:
    """Time as it would pass with a real model: answers by their length, tools by their kind."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._now = _STARTED
        self._begun = False
        self._parallel = False

    def at(self, line: _Line) -> float:
        """When this line was written; the lines come in order."""
        self._now = round(self._now + self._passed(line), 3)
        self._parallel = line["kind"] == "result"
        return self._now

    def _passed(self, line: _Line) -> float:
        match line["kind"]:
            case "run_start" if line["parent_run_id"] is None:
                begun, self._begun = self._begun, True
                return self._sample.pause if begun else 0.0
            case "batch":
                written: int = line["usage"]["output_tokens"]
                return _LATENCY + _PER_TOKEN * written
            case "result":
                # Results that come together are those of calls that ran side by side.
                return 0.01 if self._parallel else self._sample.seconds.get(line["name"], _TOOL)
            case _:
                return 0.002
