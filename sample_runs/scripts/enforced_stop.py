"""The middleware at work: an agent looks for a setting that does not exist under the name it has in mind.

It is warned after the third equal search, goes on, and at the fifth its call is removed; the run ends with a text.
"""

from __future__ import annotations

from langchain.agents import create_agent

from sample_runs.stage.files import list_files, read_file, search_code
from sample_runs.stage.model import Script, ScriptedModel, call, say
from sample_runs.stage.sample import Found, Sample
from sample_runs.stage.stage import Stage, ask

__all__ = ["SAMPLE"]

TASK = "Where is the retry policy of our HTTP client configured? Make it five attempts."
FILES = {
    "client/http.py": "ATTEMPTS = 3\n\n\ndef backoff(attempt: int) -> float:\n    return 0.5 * 2**attempt\n",
    "client/session.py": "from client.http import ATTEMPTS, backoff\n\n\nclass Session:\n    attempts = ATTEMPTS\n",
    "client/errors.py": "class TooManyAttemptsError(Exception):\n    pass\n",
}


def script() -> Script:
    """A B A C A A A: the fixed idea is A."""
    search = call("search_code", pattern="retry_policy")
    yield say("I'll search for the retry policy.", search)
    yield say("Nothing by that name. Let me see which files there are.", call("list_files", path="."))
    yield say("It must be called retry_policy somewhere.", search)
    yield say("Perhaps the session has it.", call("read_file", path="client/session.py"))
    yield say("I'll search for retry_policy once more.", search)
    yield say("The search may have been incomplete. Searching again.", search)
    yield say("One more search for retry_policy.", search)


def run(stage: Stage) -> None:
    """Ask once."""
    for path, text in FILES.items():
        file = stage.folder / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
    agent = create_agent(
        ScriptedModel(script=script()),
        [search_code(stage.folder), list_files(stage.folder), read_file(stage.folder)],
        middleware=[stage.guard()],
        name="coder",
    )
    ask(agent, TASK, ("http-client", "run-1"))


SAMPLE = Sample(
    name="enforced-stop",
    summary="The middleware steps in: a warning that the model ignores, then the fifth equal search is not made.",
    looping=True,
    first_warning=Found(5, "identical_call_set"),
    first_stop=Found(7, "identical_call_set"),
    run=run,
)
