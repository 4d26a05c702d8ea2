"""A healthy run: an agent starts a deployment and asks for its status until it is done.

The calls are equal, their answers are not; the default limits look at calls alone and would stop it. The agent is only
watched.
"""

from __future__ import annotations

from langchain.agents import create_agent
from langchain_core.tools import tool

from sample_runs.stage.model import Script, ScriptedModel, call, say
from sample_runs.stage.sample import Found, Sample
from sample_runs.stage.stage import Stage

__all__ = ["SAMPLE"]

TASK = "Deploy version 4.2 to staging and tell me when it is up."


class Deployment:
    """Goes on a step each time it is asked."""

    STEPS = (
        "queued, position 2",
        "queued, position 1",
        "building image: 4 of 11 layers",
        "building image: 11 of 11 layers",
        "rolling out: 1 of 4 replicas ready",
        "rolling out: 3 of 4 replicas ready",
        "done: 4 of 4 replicas ready after 3m31s",
    )

    def __init__(self) -> None:
        self._next = 0

    def status(self) -> str:
        """How far it is."""
        told = self.STEPS[min(self._next, len(self.STEPS) - 1)]
        self._next += 1
        return told


def script() -> Script:
    """Polls until it is told `done`."""
    yield say("I'll start the deployment.", call("deploy", version="4.2", target="staging"))
    messages = yield say("Started. Let me look how it goes.", call("deployment_status", deployment="d-118"))
    while not messages[-1].text.startswith("done"):
        status = messages[-1].text
        messages = yield say(f"Still {status}. I'll ask again.", call("deployment_status", deployment="d-118"))
    yield say("It is done; one look at the service itself.", call("check_health", target="staging"))
    yield say("Version 4.2 is up on staging: 4 of 4 replicas are ready and the health check answers.")


def run(stage: Stage) -> None:
    """Ask once."""
    running = Deployment()

    @tool
    def deploy(version: str, target: str) -> str:
        """Start a deployment."""
        return f"deployment d-118 of {version} to {target} started"

    @tool
    def deployment_status(deployment: str) -> str:  # noqa: ARG001 - there is one
        """How far a deployment is."""
        return running.status()

    @tool
    def check_health(target: str) -> str:
        """Ask a service how it is."""
        return f"{target}: 200 OK, version 4.2"

    tools = [deploy, deployment_status, check_health]
    agent = create_agent(ScriptedModel(script=script()), tools, name="deployer")
    stage.watch(agent, TASK, "deployer", ("staging", "run-1"))


# Batch 1 deploys; the polls are batches 2 to 8, so the third is batch 4 and the fifth batch 6.
SAMPLE = Sample(
    name="healthy-polling",
    summary="Healthy: a deployment is polled until it is done. Equal calls, new answers; the defaults would stop it.",
    looping=False,
    first_warning=Found(4, "identical_call_set"),
    first_stop=Found(6, "identical_call_set"),
    run=run,
    seconds={"deployment_status": 30.0, "deploy": 1.5},
)
