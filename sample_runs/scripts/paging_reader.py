"""A healthy run: an agent reads a log of 400 lines in pages of 40, no page twice.

Reads within the same 200 lines of a file count as equal, so that the default limits warn at the third page and would
stop at the fifth. The agent is only watched.
"""

from __future__ import annotations

from langchain.agents import create_agent

from sample_runs.stage.files import read_file
from sample_runs.stage.model import Script, ScriptedModel, call, say
from sample_runs.stage.sample import Found, Sample
from sample_runs.stage.stage import Stage

__all__ = ["SAMPLE"]

TASK = "Summarise what went wrong in nightly.log."
LINES = 400
PAGE = 40
SLOW = 263


def log() -> str:
    """A night of a batch job, with one slow step."""
    lines = []
    for number in range(1, LINES + 1):
        took = 41_000 if number == SLOW else 80 + number * 37 % 400
        level = "WARN" if number == SLOW else "INFO"
        lines.append(f"{level} step {number:03} of {LINES} took {took} ms")
    return "\n".join(lines) + "\n"


def script() -> Script:
    """One page after the other."""
    for start in range(1, LINES, PAGE):
        page = call("read_file", path="nightly.log", start_line=start, end_line=start + PAGE - 1)
        yield say(f"Reading lines {start} to {start + PAGE - 1}.", page)
    yield say(f"All {LINES} steps ran. One was slow: step {SLOW} took 41 seconds, the others less than half a second.")


def run(stage: Stage) -> None:
    """Ask once."""
    (stage.folder / "nightly.log").write_text(log(), "utf-8")
    agent = create_agent(ScriptedModel(script=script()), [read_file(stage.folder)], name="operator")
    stage.watch(agent, TASK, "operator", ("nightly-log", "run-1"))


# Lines 1 to 200 are the pages of batches 1 to 5, lines 201 to 400 those of batches 6 to 10.
SAMPLE = Sample(
    name="paging-reader",
    summary="Healthy: a log read 40 lines at a time. Pages of the same 200 lines count as equal, so it is stopped.",
    looping=False,
    first_warning=Found(3, "identical_call_set"),
    first_stop=Found(5, "identical_call_set"),
    run=run,
    seconds={"read_file": 0.05},
)
