"""Two agents of a swarm pass a ticket on to each other, by `Command(goto=..., graph=Command.PARENT)`.

Each turn is a new agent loop, so every scope holds one batch and both layers miss it; what counts across scopes is the
way to see it.
"""

from __future__ import annotations

from typing import Annotated, Any

from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, tool
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState
from langgraph.types import Command

from sample_runs.stage.model import Script, ScriptedModel, call, say
from sample_runs.stage.sample import Sample
from sample_runs.stage.stage import Stage, ask

__all__ = ["SAMPLE"]

TICKET = "I was charged twice for a parcel that never arrived. Please refund me."
TURNS = 12


def passes_on(other: str, why: str) -> Script:
    """Hands over, always for the same reason."""
    while True:
        yield say(why, call(f"hand_over_to_{other}"))


def hand_over(other: str) -> BaseTool:
    """The tool that makes another agent the next one."""

    @tool(f"hand_over_to_{other}")
    def handing(
        state: Annotated[dict[str, Any], InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]
    ) -> Command[str]:
        """Hand the conversation to another agent."""
        told = ToolMessage(f"handed over to {other}", name=f"hand_over_to_{other}", tool_call_id=tool_call_id)
        return Command(goto=other, graph=Command.PARENT, update={"messages": [state["messages"][-1], told]})

    return handing


def run(stage: Stage) -> None:
    """Hand in a ticket; one step of the graph a turn."""
    guard = stage.guard()
    why = {
        "billing": ("shipping", "A refund needs proof that the parcel is lost. That is for shipping to say."),
        "shipping": (
            "billing",
            "The parcel is paid for twice, so its status is open. Billing has to clear that first.",
        ),
    }
    graph = StateGraph(MessagesState)
    for name, (other, reason) in why.items():
        model = ScriptedModel(script=passes_on(other, reason), prefix=f"{name}-")
        agent = create_agent(model, [hand_over(other)], middleware=[guard], name=name)
        graph.add_node(name, agent, destinations=(other,))
    graph.add_edge(START, "billing")
    try:
        ask(graph.compile(name="helpdesk"), TICKET, ("ticket-5512", "run-1"), recursion_limit=TURNS)
    except GraphRecursionError:
        return
    raise AssertionError("the run ended before its limit")


SAMPLE = Sample(
    name="swarm-handoff",
    summary="Two agents of a swarm pass a ticket on for ever; each turn is a fresh scope, so both layers miss it.",
    looping=True,
    first_warning=None,
    first_stop=None,
    run=run,
    seconds={"hand_over_to_billing": 0.01, "hand_over_to_shipping": 0.01},
)
