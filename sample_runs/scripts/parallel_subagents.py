"""A lead delegates two questions at once to two sub-agents, which run side by side within the tool.

One of them repeats itself and is warned, the other one never learns of it: each is a scope of its own, with the lead's
as its parent.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from langchain.agents import create_agent
from langchain_core.tools import tool

from sample_runs.stage.files import list_files, read_file, search_code
from sample_runs.stage.model import Script, ScriptedModel, call, say
from sample_runs.stage.sample import Found, Sample
from sample_runs.stage.stage import Stage, ask
from sample_runs.stage.turns import Turns

__all__ = ["SAMPLE"]

TASK = "Compare how the importer and the exporter report errors."
FILES = {
    "importer.py": "class BadRowError(Exception):\n    pass\n\n\ndef load(rows):\n    raise BadRowError('row 1')\n",
    "exporter.py": "def save(rows):\n    if not rows:\n        return 'nothing to export'\n    return 'ok'\n",
    "README.md": "Errors of the importer are exceptions; the exporter returns a text.\n",
}
QUESTIONS = {
    "importer": "How does importer.py report errors?",
    "exporter": "How does exporter.py report errors?",
}


def lead() -> Script:
    """Delegates both questions in one batch."""
    asked = (call("consult", expert=expert, question=question) for expert, question in QUESTIONS.items())
    yield say("I'll have both looked at, side by side.", *asked)
    yield say("The importer raises BadRowError, the exporter returns a text; neither logs anything.")


def importer() -> Script:
    """Finds what it looks for."""
    yield say("Which errors are there?", call("search_code", pattern="Error"))
    yield say("Where is it raised?", call("read_file", path="importer.py"))
    yield say("importer.py raises BadRowError with the number of the row.")


def exporter() -> Script:
    """Looks for what is not there, until it is told."""
    search = call("search_code", pattern="ExportError")
    messages = yield say("I'll search for the exporter's error class.", search)
    while not any(message.name == "loop_warning" for message in messages):
        messages = yield say("Nothing found; I'll search for it again.", search)
    yield say("There is no such class. I'll read the module.", call("read_file", path="exporter.py"))
    yield say("exporter.py has no error class: it returns 'nothing to export' as a text.")


def run(stage: Stage) -> None:
    """Ask the lead once; the experts take turns, so that every recording has the same order."""
    for path, text in FILES.items():
        (stage.folder / path).write_text(text, "utf-8")
    guard, turns = stage.guard(), Turns(*QUESTIONS)
    tools = [list_files(stage.folder), read_file(stage.folder), search_code(stage.folder)]
    experts: dict[str, Any] = {}
    for name, script in {"importer": importer(), "exporter": exporter()}.items():
        model = ScriptedModel(script=script, prefix=f"{name}-", before=partial(turns.next, name))
        experts[name] = create_agent(model, tools, middleware=[guard], name=name)

    @tool
    def consult(expert: str, question: str) -> str:
        """Ask an expert; gives back the answer."""
        with turns.of(expert):
            return ask(experts[expert], question)

    leading = create_agent(ScriptedModel(script=lead(), prefix="lead-"), [consult], middleware=[guard], name="lead")
    ask(leading, TASK, ("error-reports", "run-1"))


# Batch 1 is the lead's. Then the sub-agents take turns: the importer has batches 2 and 4 and answers, the exporter's
# equal searches are 3, 5 and 6.
SAMPLE = Sample(
    name="parallel-subagents",
    summary="A lead asks two sub-agents at once; one repeats itself and is warned, the other never learns of it.",
    looping=False,
    first_warning=Found(6, "identical_call_set"),
    first_stop=None,
    run=run,
    seconds={"consult": 0.01},
)
