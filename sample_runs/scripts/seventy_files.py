"""An agent that should find one setting reads a project file by file.

Every read is another file, so no batch ever repeats; the one tool that is called over and over is what tool_frequency
sees. The agent is only watched, so that the recording goes on behind the stop.
"""

from __future__ import annotations

from langchain.agents import create_agent

from sample_runs.stage.files import list_files, read_file
from sample_runs.stage.model import Script, ScriptedModel, call, say
from sample_runs.stage.sample import Found, Sample
from sample_runs.stage.stage import Stage

__all__ = ["SAMPLE"]

TASK = "Which module sets the default page size?"
AREAS = ("accounts", "billing", "catalog", "delivery", "export", "search", "storage")
PARTS = ("__init__", "api", "cache", "errors", "jobs", "models", "queries", "settings", "signals", "views")


def script(paths: list[str]) -> Script:
    """Read all of them, then give an answer that none of them supports."""
    yield say("Let me see the modules.", call("list_files", path="."))
    for path in paths:
        yield say("Not here. Next file." if path != paths[0] else "I'll go through them.", call("read_file", path=path))
    yield say("None of the modules sets a page size, so it must come from the framework's default.")


def run(stage: Stage) -> None:
    """Seventy small modules."""
    paths = [f"{area}/{part}.py" for area in AREAS for part in PARTS]
    for path in paths:
        area, part = path.removesuffix(".py").split("/")
        file = stage.folder / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(f'"""{part.strip("_").capitalize()} of {area}."""\n\nTABLE = "{area}_{part}"\n', "utf-8")
    agent = create_agent(
        ScriptedModel(script=script(paths)), [list_files(stage.folder), read_file(stage.folder)], name="coder"
    )
    stage.watch(agent, TASK, "coder", ("page-size", "run-1"))


# Batch 1 lists the files, so the thirtieth read is batch 31 and the fiftieth batch 51.
SAMPLE = Sample(
    name="seventy-files",
    summary="An agent reads seventy different files one by one: no batch repeats, only the tool's count grows.",
    looping=True,
    first_warning=Found(31, "tool_frequency"),
    first_stop=Found(51, "tool_frequency"),
    run=run,
    seconds={"read_file": 0.05},
)
