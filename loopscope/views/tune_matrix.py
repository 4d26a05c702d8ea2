"""Policies side by side in lines: first warning and first stop of every run under each, and the totals."""

from __future__ import annotations

from loopscope.session.tune import Comparison
from loopscope.views.cells import cell_len
from loopscope.views.model import Line, Span, fit
from loopscope.views.tune import verdict, wrong
from loopscope.views.words import safe_name

__all__ = ["matrix", "totals"]


def matrix(comparison: Comparison, width: int) -> list[Line]:
    """First warning and first stop of every run under every policy."""
    heads = [_head(safe_name(name)) for name in comparison.names]
    column = max(9, *(cell_len(piece) + 2 for head in heads for piece in head))
    room = width - 7 - column * len(heads)
    label = max(26, min(room, max(cell_len(safe_name(run.name)) for run in comparison.runs)))
    lines: list[Line] = [
        (Span(" " * (label + 7)), *(Span(fit(head[row], column), "title") for head in heads)) for row in (0, 1)
    ]
    for run in comparison.runs:
        spans = [Span(f"{fit(safe_name(run.name), label)}  "), Span(fit(run.label or "", 5), "dim")]
        for outcome in run.outcomes:
            bad = wrong(run, outcome)
            spans.append(Span(fit(verdict(outcome) + (" !" if bad else ""), column), "bar_warn" if bad else "text"))
        lines.append(tuple(spans))
    lines.append(())
    lines += [
        (Span(fit(name, label + 7), "dim"), *(Span(fit(value, column)) for value in values))
        for name, values in totals(comparison)
    ]
    return lines


def _head(name: str) -> tuple[str, str]:
    """A name in two lines, the first of which may be empty."""
    first, dash, rest = name.partition("-")
    return (f"{first}{dash}", rest) if dash else ("", name)


def totals(comparison: Comparison) -> list[tuple[str, list[str]]]:
    """What each policy does to all runs: a name and a value a policy."""
    found = comparison.totals
    rows = [
        ("runs warned or stopped", [str(t.warned) for t in found]),
        ("runs stopped", [str(t.stopped) for t in found]),
    ]
    if comparison.loops:
        stopped = [f"{comparison.loops - t.loops_not_stopped}/{comparison.loops}" for t in found]
        flagged = [f"{comparison.loops - t.loops_missed}/{comparison.loops}" for t in found]
        rows = [("loops warned or stopped", flagged), ("loops stopped", stopped)]
    if comparison.healthy:
        rows.append(("healthy warned or stopped", [f"{t.healthy_warned}/{comparison.healthy}" for t in found]))
        rows.append(("healthy stopped", [f"{t.healthy_stopped}/{comparison.healthy}" for t in found]))
    rows.append(("batches saved", [f"{t.saved_batches:,}" for t in found]))
    return rows
