"""What the model is told: the text of a warning, and the text that takes the place of calls that were stopped.

Both name the count and the limit: a counter that only the debugger sees does not help the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopscope.engine.decision import Decision
from loopscope.engine.rules import Finding

__all__ = ["stop_text", "warning_text"]


def _tools(names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(name for name in names if name))
    return ", ".join(distinct[:4]) + (", …" if len(distinct) > 4 else "")  # noqa: PLR2004 - enough to know what is meant


def _number(value: float | None) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


_FACTS: dict[str, Callable[[Decision | Finding, str], str]] = {
    "identical_call_set": lambda d, tools: (
        f"the same tool calls ({tools}) came {d.count} times with the same arguments"
    ),
    "tool_frequency": lambda d, _: f"the tool {d.tool} was called {d.count} times",
    "cycle": lambda d, tools: f"the last tool calls ({tools}) went round in the same circle {d.count} times",
    "error_streak": lambda d, tools: f"every call of the last {d.count} turns failed ({d.tool or tools})",
    "stagnation": lambda d, _: f"the last {d.count} turns brought no progress",
    "repeat_in_batch": lambda d, _: f"one turn asked for the same call of {d.tool} {d.count} times",
    "budget": lambda d, _: f"{str(d.counter).replace('_', ' ')} stands at {_number(d.count)}",
}
_ADVICE = {
    "identical_call_set": "The results will not change: try something else, or give your answer with what you have.",
    "tool_frequency": "More calls of it are unlikely to help: use what you have, or try another way.",
    "cycle": "Going round again will not help: leave the circle, or give your answer with what you have.",
    "error_streak": "Read the last error and change the approach, or say what is missing and finish.",
    "stagnation": "Change the approach, or give your answer with what you have.",
    "repeat_in_batch": "Each call is answered once: ask for it once.",
    "budget": "Finish with what you have before the budget is spent.",
}


def warning_text(decision: Decision | Finding, names: Sequence[str]) -> str:
    """The warning for the model's next turn; `names` are the tools of the batch."""
    layer = decision.layer or ""
    limit = f" (limit {_number(decision.threshold)})" if layer == "budget" else ""
    fact = _FACTS[layer](decision, _tools(names))
    return f"[LOOP DETECTED] {fact[0].upper()}{fact[1:]}{limit}. {_ADVICE[layer]}"


def stop_text(decision: Decision, names: Sequence[str]) -> str:
    """What is appended to an AI message whose calls are removed."""
    fact = _FACTS[decision.layer or ""](decision, _tools(names))
    limit = f"(limit {_number(decision.threshold)})"
    end = "The last calls were not made; answer with what is known so far."
    return f"[FORCED STOP] The run was stopped: {fact} {limit}. {end}"
