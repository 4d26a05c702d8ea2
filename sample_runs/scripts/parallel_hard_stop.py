"""Parallel calls of which a later one crosses a hard limit, behind one that crosses a warning limit.

An engine that takes the first thing it finds warns of get_forecast and lets all four calls run. Severity comes first
here, and none of them does.
"""

from __future__ import annotations

from langchain.agents import create_agent
from langchain_core.tools import tool

from sample_runs.stage.model import Call, Script, ScriptedModel, call, say
from sample_runs.stage.sample import Found, Sample
from sample_runs.stage.stage import Stage, ask

__all__ = ["SAMPLE"]

TASK = "Find the cheapest sunny weekend in May for a trip from Oslo."
PRICES = {"Lisbon": 212, "Athens": 187, "Malaga": 164, "Naples": 149, "Palma": 171}
SUN = {"Lisbon": 9, "Athens": 11, "Malaga": 10, "Naples": 8, "Palma": 10}


def script() -> Script:
    """One round of parallel calls after the other, always two more."""
    yield say("I'll compare fares first.", fare("Lisbon", 2), fare("Athens", 2))
    yield say("Now the weather for these two, and two more fares.",
              sun("Lisbon", 2), sun("Athens", 2), fare("Malaga", 2), fare("Naples", 2))  # fmt: skip
    yield say("Next, Malaga and Naples, and other dates.",
              sun("Malaga", 2), sun("Naples", 2), fare("Lisbon", 9), fare("Athens", 9))  # fmt: skip
    yield say("A fifth city, and its alternatives.",
              sun("Palma", 2), sun("Lisbon", 9), fare("Palma", 2), fare("Malaga", 9))  # fmt: skip


def fare(city: str, day: int) -> Call:
    """Ask for a fare."""
    return call("get_fare", city=city, date=f"2026-05-{day:02}")


def sun(city: str, day: int) -> Call:
    """Ask for a forecast."""
    return call("get_forecast", city=city, date=f"2026-05-{day:02}")


def run(stage: Stage) -> None:
    """Both tools may be called eight times, and the model is warned at six."""

    @tool
    def get_fare(city: str, date: str) -> str:
        """The lowest return fare from Oslo to a city."""
        return f"{city} {date}: {PRICES[city] + 3 * int(date[-2:])} EUR"

    @tool
    def get_forecast(city: str, date: str) -> str:
        """Hours of sun."""
        return f"{city} {date}: {SUN[city]} h of sun"

    agent = create_agent(
        ScriptedModel(script=script()),
        [get_fare, get_forecast],
        middleware=[stage.guard(tool_freq_warn=6, tool_freq_hard_limit=8)],
        name="planner",
    )
    ask(agent, TASK, ("weekend-trip", "run-1"))


# Fares add up to 2, 4, 6 (warned at batch 3) and 8; forecasts to 0, 2, 4 and 6, which come before the fares in batch 4.
SAMPLE = Sample(
    name="parallel-hard-stop",
    summary="Four parallel calls: the second reaches a warning, the fourth a hard limit; the stop wins, none runs.",
    looping=True,
    first_warning=Found(3, "tool_frequency"),
    first_stop=Found(4, "tool_frequency"),
    run=run,
    seconds={"get_fare": 1.1, "get_forecast": 0.6},
)
