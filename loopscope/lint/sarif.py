"""The report as SARIF 2.1.0, the form in which code hosts show findings beside the code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from loopscope.lint.report import WHAT, Examined, Report

__all__ = ["sarif"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_UNBOUNDED = "unbounded-cycle"
_WITHOUT = WHAT | {"message": "a word to the model of the last error"}
"""What is asked of each cycle, as it stands in a sentence."""


def sarif(report: Report, version: str) -> dict[str, Any]:
    """The report as a SARIF log of one run; one result for each step that a cycle misses.

    Args:
        report: of one graph.
        version: of loopscope.
    """
    rules = [
        {"id": _UNBOUNDED, "shortDescription": {"text": "Only the recursion limit ends this cycle."}},
        *(
            {"id": f"no-{step}", "shortDescription": {"text": f"A cycle without {what}."}}
            for step, what in _WITHOUT.items()
        ),
    ]
    results = [result for cycle in report.cycles for result in _results(cycle)]
    driver = {"name": "loopscope", "version": version, "rules": rules}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _results(cycle: Examined) -> Iterator[dict[str, Any]]:
    way = " → ".join([*cycle.nodes, cycle.nodes[0]])
    if cycle.verdict == "unbounded":
        yield _result(cycle, _UNBOUNDED, "error", f"{way}: only the recursion limit ends it ({cycle.certainty}).")
    for step in cycle.missing:
        level = "warning" if cycle.verdict == "unbounded" else "note"
        yield _result(cycle, f"no-{step}", level, f"{way}: nothing found for {_WITHOUT[step]}.")


def _result(cycle: Examined, rule: str, level: str, text: str) -> dict[str, Any]:
    names = [{"fullyQualifiedName": name, "kind": "function"} for name in cycle.nodes]
    location: dict[str, Any] = {"logicalLocations": names}
    if cycle.place is not None:
        region = {"startLine": cycle.place.line}
        location["physicalLocation"] = {"artifactLocation": {"uri": cycle.place.file}, "region": region}
    return {"ruleId": rule, "level": level, "message": {"text": text}, "locations": [location]}
