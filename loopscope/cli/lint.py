"""`loopscope lint`: the cycles of a graph, what bounds each of them, and what a limit that was hit has to say."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from loopscope.cli.options import json_option
from loopscope.errors import UnreadableInputError, UsageError

if TYPE_CHECKING:
    from loopscope.lint.report import Report

__all__ = ["command"]

_FINDINGS = 1
_STDIN = "-"
_LONGEST = 20_000_000
"""Bytes of a log that are read."""


@click.command()
@click.argument("reference", metavar="[MODULE:GRAPH]", required=False)
@click.option(
    "--explain-recursion-error",
    "log",
    metavar="FILE|-",
    help="Read a traceback or log that a limit ended, and walk through what is missing.",
)
@click.option(
    "--fail-on",
    type=click.Choice(["unbounded", "incomplete"]),
    help="Exit with 1 if a cycle has only the recursion limit; or if one misses any step.",
)
@click.option("--sarif", "as_sarif", is_flag=True, help="Print a SARIF 2.1.0 log, for code hosts.")
@json_option("Print one JSON object: the graph's cycles, each with its verdict, its claims and what is missing.")
def command(reference: str | None, log: str | None, fail_on: str | None, *, as_sarif: bool, as_json: bool) -> int:
    """Say what bounds each cycle of a graph: counter, witness, escalation, budget, or only the recursion limit.

    MODULE:GRAPH is imported from this folder, as a web server imports its application; the name is a compiled graph, a
    builder, or a function without parameters that makes one. FILE.py:GRAPH is taken too. The graph is not run.

    Each claim is `seen` in the graph's objects (a BoundedLoop, a middleware) or `inferred` from names in the code of
    its routers and nodes. A bound that is written in a way that neither shows is not found.

    --explain-recursion-error reads LangGraph's GRAPH_RECURSION_LIMIT, the Agents SDK's MaxTurnsExceeded, LangChain's
    max iterations and CrewAI's max_iter; with MODULE:GRAPH too, it tells what that graph misses.
    """
    if reference is None and log is None:
        raise UsageError("name a graph as MODULE:GRAPH, or a log with --explain-recursion-error")
    if as_sarif and as_json:
        raise UsageError("--sarif and --json: stdout takes one of them")
    if log is not None and (as_sarif or as_json):
        raise UsageError("--explain-recursion-error is told as text: leave out --sarif and --json")
    if fail_on is not None and reference is None:
        raise UsageError("--fail-on needs a graph: name it as MODULE:GRAPH")
    lines = None if log is None else _lines(log)
    report = None if reference is None else _examined(reference)
    if lines is not None:
        _explain(lines, log or "", report)
    elif report is not None:
        _print(report, as_sarif=as_sarif, as_json=as_json)
    if report is None or fail_on is None:
        return 0
    found = report.having("unbounded") if fail_on == "unbounded" else report.having("unbounded", "incomplete")
    return _FINDINGS if found else 0


def _examined(reference: str) -> Report:
    from loopscope.lint.loading import load
    from loopscope.lint.report import examine

    return examine(load(reference), reference)


def _print(report: Report, *, as_sarif: bool, as_json: bool) -> None:
    from loopscope.lint.report import as_data, as_text

    if as_sarif or as_json:
        from loopscope import __version__
        from loopscope.lint.sarif import sarif

        data: dict[str, Any] = sarif(report, __version__) if as_sarif else as_data(report)
        click.echo(json.dumps(data))
        return
    for line in as_text(report):
        click.echo(line)


def _lines(log: str) -> list[str]:
    try:
        with nullcontext(sys.stdin.buffer) if log == _STDIN else Path(log).open("rb") as file:
            data = file.read(_LONGEST)
    except OSError as error:
        from loopscope.recording.inert import inert

        raise UnreadableInputError(f"{inert(log, 300)}: cannot be read: {error.strerror or error}") from None
    return data.decode("utf-8", "replace").splitlines()


def _explain(lines: list[str], log: str, report: Report | None) -> None:
    from loopscope.lint.limits import hits, walk
    from loopscope.recording.inert import inert

    found = hits(lines)
    if not found:
        raise UnreadableInputError(
            f"{inert(log, 300)}: tells of no limit that was hit; known are GRAPH_RECURSION_LIMIT, MaxTurnsExceeded, "
            "max iterations and max_iter"
        )
    for line in walk(found, report):
        click.echo(line)
