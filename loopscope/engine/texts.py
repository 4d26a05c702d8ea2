"""What the model is told: the text of a warning, and the text that takes the place of calls that were stopped.

Both name the count and the limit, so that the model sees how far it is (a counter that only the debugger sees does
not help it).
"""

from __future__ import annotations

from collections.abc import Sequence

from loopscope.engine.decision import Decision
from loopscope.engine.rules import Finding

__all__ = ["stop_text", "warning_text"]


def _tools(names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(name for name in names if name))
    return ", ".join(distinct[:4]) + (", …" if len(distinct) > 4 else "")  # noqa: PLR2004 - enough to know what is meant


def warning_text(decision: Decision | Finding, names: Sequence[str]) -> str:
    """The warning for the model's next turn; `names` are the tools of the batch."""
    if decision.layer == "tool_frequency":
        return (
            f"[LOOP DETECTED] You have called {decision.tool} {decision.count} times lately. More calls of it are "
            "unlikely to help: use what you have, try another way, or say what is missing and finish."
        )
    return (
        f"[LOOP DETECTED] You have made the same tool calls ({_tools(names)}) {decision.count} times with the same "
        "arguments. The results will not change: try something else, or give your answer with what you have."
    )


def stop_text(decision: Decision, names: Sequence[str]) -> str:
    """What is appended to an AI message whose calls are removed."""
    if decision.layer == "tool_frequency":
        what = f"{decision.tool} was called {decision.count} times (limit {decision.threshold})"
    else:
        what = f"the same tool calls ({_tools(names)}) came {decision.count} times (limit {decision.threshold})"
    return f"[FORCED STOP] The run was stopped: {what}. The last calls were not made; answer with what is known so far."
