"""`loopscope ps`: the processes that can be attached to."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import click

from loopscope.cli.options import json_option

if TYPE_CHECKING:
    from loopscope.link.target import Live

__all__ = ["command"]

_HEAD = ("NAME", "PID", "AGE", "BATCHES", "WORST", "CONTROL", "PYTHON", "GRAPHS")
_NUMBERS = (1, 2, 3)
_WORST = {"pass": "ok", "warn": "warned", "hard_stop": "stopped"}


@click.command()
@json_option("Print one JSON object a process, one a line.")
def command(*, as_json: bool) -> None:
    """List the processes of this user that can be attached to, newest first.

    A process is there once it called loopscope.listen(), was started by `loopscope run`, or has LOOPSCOPE=1.
    """
    from loopscope.cli.output import tell
    from loopscope.link.target import discover

    found = discover()
    if as_json:
        for live in found:
            click.echo(json.dumps(_plain(live)))
    elif found:
        _table([_HEAD, *map(_row, found)])
    else:
        tell("no process can be attached to: start one with `loopscope run SCRIPT`, or call loopscope.listen() in it")


def _plain(live: Live) -> dict[str, object]:
    entry, welcome = live.entry, live.welcome
    summary = welcome.summary if welcome is not None else None
    return {
        "name": entry.name,
        "pid": entry.pid,
        "age": round(max(0.0, time.time() - entry.started), 3),
        "started": entry.started,
        "graphs": list(welcome.graphs if welcome is not None else entry.graphs),
        "python": entry.python,
        "control": entry.control,
        "batches": summary.batches if summary is not None else None,
        "scopes": summary.scopes if summary is not None else None,
        "worst": summary.worst if summary is not None else None,
        "held": summary.held if summary is not None else None,
        "viewers": summary.viewers if summary is not None else None,
        "script": entry.argv0,
        "address": entry.address,
        "problem": live.problem or None if welcome is not None or live.problem else "does not answer",
    }


def _row(live: Live) -> tuple[str, ...]:
    from loopscope.recording.inert import inert
    from loopscope.views.words import span_of_time

    entry, welcome = live.entry, live.welcome
    if welcome is not None:
        summary = welcome.summary
        worst = _WORST.get(summary.worst, inert(summary.worst, 20)) + (f", {summary.held} held" if summary.held else "")
        batches = str(summary.batches)
    else:
        worst, batches = inert(live.problem, 60) or "no answer", "-"
    return (
        inert(entry.name, 40), str(entry.pid), span_of_time(max(0.0, time.time() - entry.started)), batches, worst,
        "yes" if entry.control else "no", inert(entry.python, 20),
        ", ".join(inert(name, 40) for name in (welcome.graphs if welcome is not None else entry.graphs)) or "-",
    )  # fmt: skip


def _table(rows: list[tuple[str, ...]]) -> None:
    from loopscope.views.cells import cell_len
    from loopscope.views.model import fit

    widths = [max(cell_len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        click.echo("  ".join(fit(cell, width, right=n in _NUMBERS) for n, (cell, width) in enumerate(cells)).rstrip())
