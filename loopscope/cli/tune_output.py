"""Sweeps and comparisons for programs: one JSON object, or rows of CSV; and the pictures in their files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from loopscope.recording.inert import inert
from loopscope.session.grid import Values
from loopscope.session.summary import Run, Summary
from loopscope.session.tune import Comparison, Tuning

__all__ = ["comparison_csv", "comparison_json", "tuning_csv", "tuning_json", "write_pictures"]

_OURS = (b"<!doctype html>", b"<svg ")
_TOTALS = tuple(name for name in Summary.__struct_fields__ if name != "values")


def tuning_json(tuning: Tuning) -> str:
    """Every cell with its totals, and what it does to each recording, in their order."""
    front = {cell.values for cell in tuning.front}
    advice = tuning.advice
    cells = [
        {"settings": _settings(tuning, cell.values)}
        | _totals(cell)
        | {"front": cell.values in front, "advised": cell.values == advice.best}
        | {"verdicts": [_verdict(run, place) for run in tuning.runs]}
        for place, cell in enumerate(tuning.cells)
    ]
    told = {
        "settings": None if advice.best is None else _settings(tuning, advice.best),
        "separates": advice.separates,
        "reasons": advice.reasons,
        "inseparable": [{"loop": pair.loop, "healthy": pair.healthy} for pair in advice.inseparable],
    }
    grid = dict(zip(tuning.grid.settings, tuning.grid.values, strict=True))
    return _json(
        {
            "recordings": _recordings(tuning.runs),
            "base": tuning.base.to_dict(),
            "grid": grid,
            "cells": cells,
            "advice": told,
        }
    )


def comparison_json(comparison: Comparison) -> str:
    """Every policy with its totals, and what it does to each recording, in their order."""
    policies = [
        {"name": name, "policy": policy.to_dict()}
        | _totals(comparison.totals[place])
        | {"verdicts": [_verdict(run, place) for run in comparison.runs]}
        for place, (name, policy) in enumerate(zip(comparison.names, comparison.policies, strict=True))
    ]
    return _json({"recordings": _recordings(comparison.runs), "policies": policies})


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data)


def _settings(tuning: Tuning, values: Values) -> dict[str, int | float]:
    return dict(zip(tuning.grid.settings, values, strict=True))


def _totals(summary: Summary) -> dict[str, Any]:
    found = {name: getattr(summary, name) for name in _TOTALS}
    # Cents that are added up are not to look like a measurement.
    return {name: round(value, 9) if isinstance(value, float) else value for name, value in found.items()}


def _recordings(runs: Iterable[Run]) -> list[dict[str, Any]]:
    return [{"source": run.target, "label": run.label, "batches": run.batches} for run in runs]


def _verdict(run: Run, place: int) -> dict[str, int | None]:
    outcome = run.outcomes[place]
    return {"first_warning": outcome.first_warning, "first_stop": outcome.first_stop}


def tuning_csv(tuning: Tuning) -> str:
    """A row a cell."""
    front = {cell.values for cell in tuning.front}
    rows = (
        [*cell.values, *_totals(cell).values(), int(cell.values in front), int(cell.values == tuning.advice.best)]
        for cell in tuning.cells
    )
    return _csv([*tuning.grid.settings, *_TOTALS, "front", "advised"], rows)


def comparison_csv(comparison: Comparison) -> str:
    """A row a recording and policy."""
    rows = (
        [inert(run.target), run.label, inert(name), run.outcomes[place].first_warning, run.outcomes[place].first_stop]
        for run in comparison.runs
        for place, name in enumerate(comparison.names)
    )
    return _csv(["recording", "label", "policy", "first_warning", "first_stop"], rows)


def _csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return out.getvalue()


def write_pictures(svg: str | None, html: str | None, picture: Callable[[], str], page: Callable[[], str]) -> None:
    """The files that were asked for; an earlier page or picture is replaced, any other file is not."""
    for file, made in ((svg, picture), (html, page)):
        if file is not None:
            _write(file, made())


def _write(output: str, text: str) -> None:
    from loopscope.cli.outfile import STDOUT, written
    from loopscope.cli.output import tell

    otherwise = "exists, and is neither a page nor a picture; name another file"
    with written(output, may_replace=lambda start: not start or start.startswith(_OURS), otherwise=otherwise) as file:
        file.write(text.encode())
    if output != STDOUT:
        tell(f"wrote {output}")
