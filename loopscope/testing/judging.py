"""Which of the seven steps two runs with a permanent failure show to be missing: pure, from their outcomes."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.tracers.schemas import Run

from loopscope.testing.steps import STEPS, Missing
from loopscope.testing.watching import Outcome

__all__ = ["missing_steps"]

_FORCED = "[FORCED STOP]"
"""How the middleware begins the text that takes the place of calls."""
_HOW = {
    "finished": "ended by itself",
    "interrupted": "asked a person",
    "drained": "was drained",
    "recursion_limit": "ran into the recursion limit",
    "raised": "raised",
}


def missing_steps(  # noqa: PLR0913 - what happened, and what was allowed
    varied: Outcome,
    same: Outcome,
    *,
    within: int,
    value: Any,
    exits: Collection[str],
    failures: Sequence[str],
) -> list[Missing]:
    """Every step that is missing, in order; none where the graph is bounded.

    Args:
        varied: the run in which each failure was another one.
        same: the one in which it was the same.
        within: the most failures that were allowed.
        value: the graph's input.
        exits: nodes that are an escalation.
        failures: the texts of the failures.
    """
    found = [
        *_success(varied, exits),
        *_counter(varied, within),
        *_witness(same, within),
        *dict([each for run in (same, varied) for each in _escalation(run, exits, value, failures)]).items(),
        *_message(varied, failures),
        *_trace(varied),
    ]
    return [Missing(STEPS[name], seen) for name, seen in found]


def _success(run: Outcome, exits: Collection[str]) -> Iterator[tuple[str, str]]:
    if run.ended == "finished" and not _escalated(run, exits):
        yield (
            "success",
            f"after {_failures(run.attempts)} the run ended as if it were done: nothing but the model decides that",
        )


def _counter(run: Outcome, within: int) -> Iterator[tuple[str, str]]:
    if run.ended == "recursion_limit":
        yield (
            "counter",
            f"{_failures(run.attempts)}, each another one, and only the recursion limit ended it; {within} are allowed",
        )
    elif run.attempts > within:
        yield "counter", f"the run met {_failures(run.attempts)} before it {_HOW[run.ended]}; {within} are allowed"


def _witness(run: Outcome, within: int) -> Iterator[tuple[str, str]]:
    if run.ended == "recursion_limit":
        yield "witness", f"the same failure came {run.attempts} times, and only the recursion limit ended the run"
    elif run.attempts >= within > 1:
        yield "witness", f"the same failure came {run.attempts} times, which is no earlier than the counter's {within}"


def _escalation(run: Outcome, exits: Collection[str], value: Any, failures: Sequence[str]) -> Iterator[tuple[str, str]]:
    if run.ended in ("recursion_limit", "raised"):
        own = run.ended == "raised" and any(failure in str(run.error) for failure in failures)
        hint = "; nothing caught the failure itself: ToolNode(handle_tool_errors=True), or loop.wrap" if own else ""
        yield (
            "escalation",
            f"the run ended in a stack trace: {type(run.error).__name__}: {_first_line(run.error)}{hint}",
        )
        return
    if not _escalated(run, exits):
        yield "escalation", f"the run {_HOW[run.ended]} without an escalation: no interrupt, no give_up node, no drain"
        return
    lost = [name for name in _names(value) if not _kept(value[name], run.state.get(name))]
    if lost:
        yield "escalation", f"the state has lost {', '.join(lost)} of the input"
    if not any(failure in _text(run.state) for failure in failures):
        yield "escalation", "the state does not hold the failure, so that nobody can tell what was tried"


def _message(run: Outcome, failures: Sequence[str]) -> Iterator[tuple[str, str]]:
    asked = [each for each in run.trace if each.run_type in ("llm", "chat_model")]
    if run.attempts < 2 or len(asked) < 2:  # noqa: PLR2004 - nobody was asked after a failure
        return
    if not any(failure in _text(each.inputs) for each in asked for failure in failures):
        yield "message", f"the model was asked {len(asked)} times, and was never told what failed"


def _trace(run: Outcome) -> Iterator[tuple[str, str]]:
    if run.attempts < 2 or any(_counts(values, run.attempts) for values in _numbers(run.trace).values()):  # noqa: PLR2004 - one is no series
        return
    yield "trace", f"no number in the trace's inputs or metadata grew with the {_failures(run.attempts)}"


def _escalated(run: Outcome, exits: Collection[str]) -> bool:
    if run.ended in ("interrupted", "drained"):
        return True
    return any(each.name in exits for each in run.trace) or _FORCED in _text(run.state)


def _counts(values: Sequence[float], attempts: int) -> bool:
    """Whether a series of numbers is a counter of so many attempts: it never falls, and comes near them."""
    grew = sum(now > before for before, now in pairwise(values))
    return values == sorted(values) and grew >= min(attempts - 1, 2)


def _numbers(trace: Sequence[Run]) -> dict[str, list[float]]:
    """Every whole number that the trace's runs had at their beginning or in their metadata, in order, by name."""
    found: dict[str, list[float]] = {}
    for run in sorted(trace, key=lambda run: run.start_time):
        # The root has the last number of each from the beginning.
        metadata = (run.extra or {}).get("metadata", {}) if run.parent_run_id is not None else {}
        told = {**metadata, **run.inputs}
        for name, value in told.items():
            if type(value) is int and not name.startswith("langgraph_"):
                found.setdefault(name, []).append(value)
    return found


def _names(value: Any) -> list[str]:
    return list(value) if isinstance(value, Mapping) else []


def _kept(given: Any, now: Any) -> bool:
    """Whether the state still has what it was given: lists may have grown, other values may have changed."""
    if not isinstance(given, (list, tuple)):
        return now is not None or given is None
    if not isinstance(now, (list, tuple)):
        return False
    if any(isinstance(each, BaseMessage) for each in now):
        told = [message.content for message in convert_to_messages(list(given))]
        return told == [message.content for message in now][: len(told)]
    return all(each in now for each in given)


def _text(value: Any) -> str:
    """Everything that a value says, escapes undone, so that a text is found whatever holds it."""
    try:
        text = json.dumps(value, default=str, ensure_ascii=False)
    except (TypeError, ValueError):
        text = str(value)
    return text.replace('\\"', '"').replace("\\'", "'").replace("\\\\", "\\") + str(value)


def _first_line(error: BaseException | None) -> str:
    return str(error).partition("\n")[0][:200]


def _failures(attempts: int) -> str:
    return f"{attempts} failure{'s' if attempts != 1 else ''}"
