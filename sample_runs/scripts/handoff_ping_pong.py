"""Two agents hand a task back and forth: a writer its draft to a reviewer, who hands it back with a remark.

The writer has another look at the draft and hands it over unchanged. The reviewer is a sub-agent within a tool: each
hand-over is a scope of its own whose parent is the writer's, and only the writer's scope shows the loop.
"""

from __future__ import annotations

from langchain.agents import create_agent
from langchain_core.tools import tool

from sample_runs.stage.files import read_file
from sample_runs.stage.model import Script, ScriptedModel, call, say
from sample_runs.stage.sample import Found, Sample
from sample_runs.stage.stage import Stage, ask

__all__ = ["SAMPLE"]

TASK = "Get the release announcement in announcement.md approved by the reviewer."
DRAFT = """# Release 4.2

Imports are twice as fast, and exports can be resumed.

## Upgrade notes

To be confirmed.
"""
REMARK = "Back to you: the upgrade notes say 'To be confirmed'. Confirm them, then hand the draft to me again."


def writer() -> Script:
    """A B A B …: hand over, look at the draft, hand over."""
    hand_over = call("ask_reviewer", task="Review announcement.md and approve it.")
    while True:
        yield say("I hand the draft to the reviewer.", hand_over)
        yield say("The reviewer handed it back. Let me look at the draft.", call("read_file", path="announcement.md"))


def reviewer() -> Script:
    """Reads, and hands back."""
    while True:
        yield say("I'll read the draft.", call("read_file", path="announcement.md"))
        yield say(REMARK)


def run(stage: Stage) -> None:
    """Give the writer the task."""
    (stage.folder / "announcement.md").write_text(DRAFT, "utf-8")
    guard, read = stage.guard(), read_file(stage.folder)
    reviewing = create_agent(
        ScriptedModel(script=reviewer(), prefix="reviewer-"), [read], middleware=[guard], name="reviewer"
    )

    @tool
    def ask_reviewer(task: str) -> str:
        """Hand a task to the reviewer; gives back what the reviewer says."""
        return ask(reviewing, task)

    writing = create_agent(
        ScriptedModel(script=writer(), prefix="writer-"), [ask_reviewer, read], middleware=[guard], name="writer"
    )
    ask(writing, TASK, ("announcement", "run-1"))


# A round is three batches: the writer hands over (1, 4, 7, 10, 13), the reviewer reads, the writer reads.
SAMPLE = Sample(
    name="handoff-ping-pong",
    summary="A writer and a reviewer hand a draft back and forth; each hand-over is a new scope below the writer's.",
    looping=True,
    first_warning=Found(7, "identical_call_set"),
    first_stop=Found(13, "identical_call_set"),
    run=run,
    seconds={"ask_reviewer": 0.01},
)
