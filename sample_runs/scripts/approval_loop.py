"""Every call has to be approved by a person, which interrupts the graph: each approval is a new invocation.

The caller names no run. The middleware takes the invocations for the one run they are: the counts go on, and the fifth
equal call is stopped before anybody is asked again.
"""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from sample_runs.stage.model import Script, ScriptedModel, call, say
from sample_runs.stage.sample import Found, Sample
from sample_runs.stage.stage import Stage

__all__ = ["SAMPLE"]

TASK = "Restart the export service; it hangs."
ROUNDS = 6


def script() -> Script:
    """Restarts, again and again."""
    restart = call("restart_service", name="export")
    yield say("I'll restart the export service.", restart)
    while True:
        yield say("It still hangs, so I'll restart it once more.", restart)


def run(stage: Stage) -> None:
    """Approve whatever is asked, up to six times."""

    @tool
    def restart_service(name: str) -> str:
        """Restart a service."""
        return f"{name} restarted; health check: timeout after 10 s"

    agent: Any = create_agent(
        ScriptedModel(script=script()),
        [restart_service],
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"restart_service": True}), stage.guard()],
        checkpointer=InMemorySaver(),
        name="operator",
    )
    config = {"configurable": {"thread_id": "export-service"}}
    state = agent.invoke({"messages": [HumanMessage(TASK)]}, config)
    for _ in range(ROUNDS):
        if "__interrupt__" not in state:
            return
        state = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
    raise AssertionError("nothing stopped the run")


SAMPLE = Sample(
    name="approval-loop",
    summary="Each call waits for an approval, a new invocation every time; the counts go on and the fifth is stopped.",
    looping=True,
    first_warning=Found(3, "identical_call_set"),
    first_stop=Found(5, "identical_call_set"),
    run=run,
    seconds={"restart_service": 10.4},
    pause=42.0,
)
