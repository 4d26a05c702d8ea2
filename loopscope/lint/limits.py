"""What a framework's limit says when it is hit, in a traceback or a log, and what is missing where it does.

A limit that is hit is no number that is too low: it is what was left to end a loop that nothing else ended. So the
walk asks for each step of a bounded loop, and never for a higher number first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import NamedTuple

from loopscope.lint.evidence import ASKED
from loopscope.lint.report import WHAT, Report
from loopscope.recording.inert import inert

__all__ = ["Hit", "hits", "walk"]

_LONGEST = 400
_WIDTH = 100


class _Kind(NamedTuple):
    framework: str
    limit: str
    """What the framework calls it."""
    pattern: re.Pattern[str]
    """Where it names a number, in the group `n`."""


_KINDS = (
    _Kind("LangGraph", "recursion_limit", re.compile(r"[Rr]ecursion limit of (?P<n>\d+) reached")),
    _Kind("LangGraph", "recursion_limit", re.compile(r"GRAPH_RECURSION_LIMIT|GraphRecursionError")),
    _Kind("OpenAI Agents SDK", "max_turns", re.compile(r"[Mm]ax(?:imum)? turns \((?P<n>\d+)\) exceeded")),
    _Kind("OpenAI Agents SDK", "max_turns", re.compile(r"MaxTurnsExceeded")),
    _Kind(
        "CrewAI",
        "max_iter",
        re.compile(r"[Mm]aximum iterations reached|\bmax_iter\b(?:\D{0,20}(?P<n>\d+))?"),
    ),
    _Kind(
        "LangChain AgentExecutor",
        "max_iterations",
        re.compile(
            r"[Aa]gent stopped due to (?:max iterations|iteration limit or time limit)"
            r"|[Mm]ax(?:imum)?[ _]iterations(?: of)?(?:\D{0,20}(?P<n>\d+))?"
        ),
    ),
)
"""From the most telling to the least; of one line the first that fits counts."""
_SETTING = re.compile(r"\bmax_iter(?:ations)?\b['\"]?\s*[=:]\s*\d+", re.IGNORECASE)
_HAPPENED = re.compile(r"reach|exceed|\bhit\b|stop|exhaust|\bend|error|gave up|giving up", re.IGNORECASE)
"""What a line says of a limit that was hit, and the one that only sets it does not."""


class Hit(NamedTuple):
    """A limit that was hit."""

    framework: str
    limit: str
    number: int | None
    line: int
    text: str
    """The line, made safe to print."""
    happened: bool = True
    """False where the line only sets the limit."""


def hits(lines: Sequence[str]) -> list[Hit]:
    """The limits that these lines tell of, one each: by the first line that has its number, else by the first.

    Lines that only set a limit count where no other tells of any.
    """
    found: dict[tuple[str, str], Hit] = {}
    for number, line in enumerate(lines, 1):
        hit = _hit(number, line)
        if hit is None:
            continue
        known = found.setdefault((hit.framework, hit.limit), hit)
        if (hit.happened, hit.number is not None) > (known.happened, known.number is not None):
            found[hit.framework, hit.limit] = hit
    told = [hit for hit in found.values() if hit.happened]
    return told or list(found.values())


def _hit(number: int, line: str) -> Hit | None:
    text = line[: 10 * _LONGEST]
    for kind in _KINDS:
        match = kind.pattern.search(text)
        if match is not None:
            told = match.groupdict().get("n")
            shown, limit = inert(text.strip(), _LONGEST), int(told[:9]) if told else None
            happened = _SETTING.search(text) is None or _HAPPENED.search(text) is not None
            return Hit(kind.framework, kind.limit, limit, number, shown, happened)
    return None


_ASK = {
    "counter": "Does the state count the rounds, and does an edge leave the loop at a number of your own? "
    "A framework's limit counts steps of all nodes, is no part of the state, and ends in an exception.",
    "witness": "Would the loop notice that a round brought nothing: the same error, the same result? "
    "Most runs that hit a limit had stopped making progress long before.",
    "escalation": "Where does the loop go when it gives up? Without an exit of its own, its state goes with the stack.",
    "message": "Does the model see what failed last, and which attempt it is on? What it is not told, it tries again.",
    "budget": "Is there a bound around all loops, sub-agents included: tokens, money, time?",
}
_FIX = {
    "counter": 'BoundedLoop("name", max_iterations=3): wrap a node of the loop, leave it by loop.route',
    "witness": "BoundedLoop(witness='last_error' or a function of the state); it stops at the second equal failure",
    "escalation": "a node loop.give_up behind loop.route's 'give_up'; with a checkpointer a person can answer",
    "message": "put loop.status_message(state) before the model, and let tools answer with their errors",
    "budget": "BoundedLoop(budgets={'total_tokens': 50_000}), or LoopDetectionMiddleware with a policy's budget",
}


def walk(found: Sequence[Hit], report: Report | None) -> Iterator[str]:
    """What was hit, and what is missing, step by step.

    Args:
        found: at least one.
        report: of the user's graph, where it was named: then only what it misses is asked.
    """
    for hit in found:
        number = "" if hit.number is None else f" of {hit.number}"
        what = "was hit" if hit.happened else "is set; that it was hit is not said anywhere"
        yield f"line {hit.line}: {hit.framework}'s {hit.limit}{number} {what}"
        yield f"  {hit.text}"
    yield ""
    yield "A higher limit makes the same loop longer: it was the last thing that could end it."
    yield "What is missing is a bound of the loop's own. Step by step:"
    open_cycles = [] if report is None else report.having("unbounded", "incomplete")
    missing = {step for cycle in open_cycles for step in cycle.missing}
    for place, step in enumerate(ASKED, 1):
        yield ""
        if report is not None and step not in missing:
            yield f"{place} {WHAT[step]}: your graph has it"
            continue
        yield f"{place} {WHAT[step]}"
        yield from wrap(_ASK[step], _WIDTH, initial_indent="  ", subsequent_indent="  ")
        for cycle in open_cycles:
            if step in cycle.missing:
                yield f"  nothing found in {inert(' → '.join([*cycle.nodes, cycle.nodes[0]]))}"
        yield f"  fix: {_FIX[step]}"
    yield ""
    yield "See what looped:  loopscope run --record run.jsonl YOUR_PROGRAM, then loopscope attach run.jsonl"
    yield "Prove the bound:  loopscope export-test run.jsonl -o test_loop.py"
    yield "All seven steps:  docs/bounded-loops.md"
