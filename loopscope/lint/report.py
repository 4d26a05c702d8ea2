"""The report of a graph: each cycle with what bounds it and what does not, and the verdict; as text and as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

from loopscope.lint.code import Place, name_of, place_of
from loopscope.lint.evidence import ASKED, Claim, claims, functions_at, recursion_limit, sees_steps_left
from loopscope.lint.levels import Cycle, Level, levels
from loopscope.recording.inert import inert

__all__ = ["Examined", "Report", "Verdict", "as_data", "as_text", "examine"]

Verdict: TypeAlias = Literal["bounded", "incomplete", "unbounded"]
WHAT = {
    "counter": "a counter in the state",
    "witness": "a witness of progress",
    "escalation": "an escalation",
    "message": "the model sees the last error",
    "budget": "an outer budget of tokens, money or time",
}
"""What is asked of each cycle, by step."""


class Examined(NamedTuple):
    """A cycle and what is known of it."""

    nodes: tuple[str, ...]
    """As reports call them: with the way to their sub-graph."""
    verdict: Verdict
    """`unbounded`: neither counter nor budget. `incomplete`: bounded, and other steps are missing."""
    certainty: Literal["seen", "inferred"]
    """Of the cycle itself: `inferred` where a router does not say where it leads."""
    closed: bool
    claims: tuple[Claim, ...]
    missing: tuple[str, ...]
    """The steps that nothing was found for."""
    recursion_limit: int | None
    sees_steps_left: bool
    """Its nodes are told how near the recursion limit is."""
    place: Place | None
    """Where what decides over it is written, or else its first node, if that is the user's own code."""
    function: str | None
    """What that is called."""


class Report(NamedTuple):
    """A graph."""

    graph: str
    cycles: tuple[Examined, ...]

    def having(self, *verdicts: Verdict) -> list[Examined]:
        """The cycles with one of these verdicts."""
        return [cycle for cycle in self.cycles if cycle.verdict in verdicts]


def examine(graph: Any, name: str) -> Report:
    """Look at every cycle of a compiled graph and of its sub-graphs."""
    limit = recursion_limit(graph)
    found = [_examined(level, cycle, limit) for level in levels(graph) for cycle in level.cycles()]
    return Report(name, tuple(found))


def _examined(level: Level, cycle: Cycle, limit: int | None) -> Examined:
    known = tuple(claims(level, cycle))
    steps = {claim.step for claim in known}
    missing = tuple(step for step in ASKED if step not in steps)
    bounded = steps & {"counter", "budget"}
    verdict: Verdict = "unbounded" if not bounded else "incomplete" if missing else "bounded"
    code = [router.function for router in level.routers_of(cycle.nodes)]
    code += [function for node in cycle.nodes for function in functions_at(level.graph, node)]
    first = next((function for function in code if place_of(function)), None)
    return Examined(
        nodes=tuple(map(level.name, cycle.nodes)),
        verdict=verdict,
        certainty="seen" if cycle.drawn else "inferred",
        closed=cycle.closed,
        claims=tuple(claim._replace(node=level.name(claim.node)) for claim in known),
        missing=missing,
        recursion_limit=limit,
        sees_steps_left=sees_steps_left(level.graph),
        place=None if first is None else place_of(first),
        function=None if first is None else name_of(first),
    )


def as_data(report: Report) -> dict[str, Any]:
    """The report as plain data."""
    return {
        "graph": report.graph,
        "cycles": [
            {
                "nodes": list(cycle.nodes),
                "verdict": cycle.verdict,
                "certainty": cycle.certainty,
                "way_out": not cycle.closed,
                "claims": [claim._asdict() for claim in cycle.claims],
                "missing": list(cycle.missing),
                "recursion_limit": cycle.recursion_limit,
                "sees_steps_left": cycle.sees_steps_left,
                "where": None if cycle.place is None else cycle.place._asdict(),
            }
            for cycle in report.cycles
        ],
    }


def as_text(report: Report) -> Iterator[str]:
    """The report in lines for a person."""
    total = len(report.cycles)
    counts = [f"{len(report.having(verdict))} {verdict}" for verdict in ("unbounded", "incomplete", "bounded")]
    yield f"{inert(report.graph)}: {total} cycle{'s' * (total != 1)}" + (f": {', '.join(counts)}" if total else "")
    for number, cycle in enumerate(report.cycles, 1):
        yield ""
        yield from _cycle_text(number, cycle)


def _cycle_text(number: int, cycle: Examined) -> Iterator[str]:
    way = inert(" → ".join([*cycle.nodes, cycle.nodes[0]]))
    yield f"{number} {way}   {cycle.verdict}"
    if cycle.certainty == "inferred":
        yield "  inferred: a router on the way does not say where it leads, so this cycle may never be gone"
    if cycle.closed:
        yield "  seen: no edge leads out of it"
    if cycle.verdict == "unbounded":
        steps = "" if cycle.recursion_limit is None else f", {cycle.recursion_limit} steps"
        how = "a stack trace, or with a node that gives up a step before" if cycle.sees_steps_left else "a stack trace"
        yield f"  only the recursion limit ends it{steps}, with {how}"
    for step in ASKED:
        of_step = [claim for claim in cycle.claims if claim.step == step]
        for claim in of_step:
            yield f"  {'✓' if claim.certainty == 'seen' else '~'} {WHAT[step]}: {claim.certainty}, {inert(claim.text)}"
        if not of_step:
            yield f"  ✗ {WHAT[step]}: nothing found"
    if cycle.missing and cycle.place is not None:
        yield f"  see {inert(cycle.place.file)}:{cycle.place.line} {inert(cycle.function or '')}"
