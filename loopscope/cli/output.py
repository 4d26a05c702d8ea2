"""Decisions as `loopscope replay` prints them: JSON Lines for programs, a table for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Protocol

import click
import msgspec

from loopscope.engine.decision import Decision
from loopscope.engine.events import Batch, Event
from loopscope.recording.inert import inert
from loopscope.views.words import clock, plural

__all__ = ["JsonLines", "Output", "Table", "can_draw", "report", "tell"]

_PROBLEMS_SHOWN = 100
_TIME = 12
"""Cells of the time since the first event: enough for days."""

_WORDS = {"pass": "", "warn": "WARN", "hard_stop": "STOP"}


def tell(message: str) -> None:
    """One line on stderr."""
    click.echo(f"loopscope: {inert(message)}", err=True)


def can_draw(encoding: str) -> bool:
    """Whether lines and glyphs can be written in it."""
    return encoding.lower().replace("-", "").startswith("utf")


def report(name: str, problems: Sequence[tuple[int, str]], skipped: int = 0) -> None:
    """What could not be read of a recording, a line each.

    Args:
        name: the recording.
        problems: line numbers and reasons; 0 where it is no line that is at fault.
        skipped: how many lines there are in all, where that is more than the reader keeps.
    """
    for number, reason in problems[:_PROBLEMS_SHOWN]:
        tell(f"{name}:{number}: {reason}" if number else f"{name}: {reason}")
    rest = max(len(problems), skipped) - _PROBLEMS_SHOWN
    if rest > 0:
        tell(f"{name}: and {plural(rest, 'more line')} of which something cannot be read")


class Output(Protocol):
    """Where decisions go."""

    def write(self, event: Event, decision: Decision) -> None:
        """One decision and the event that it came with."""
        ...

    def close(self) -> None:
        """All decisions of a target are written."""
        ...


class JsonLines:
    """One JSON object a decision, in ASCII so that nothing in it can act on a terminal.

    Args:
        source: the target, named in each line where there are several.
        live: print each line at once, as more may be long in coming.
    """

    def __init__(self, source: str | None, *, live: bool) -> None:
        self._live = live
        self._tail = b"" if source is None else b',"source":' + _ascii(source)
        self._encode = msgspec.json.Encoder().encode
        self._out = sys.stdout.buffer

    def write(self, event: Event, decision: Decision) -> None:
        """Print one line."""
        del event
        try:
            line = self._encode(decision)
        except ValueError:  # a lone surrogate, which only the standard encoder takes
            line = b""
        if not line.isascii() or not line:
            line = _ascii(msgspec.to_builtins(decision))
        self._out.write(line[:-1] + self._tail + b"}\n" if self._tail else line + b"\n")
        if self._live:
            self._out.flush()

    def close(self) -> None:
        """Hand everything over."""
        self._out.flush()


def _ascii(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


class Table:
    """A row a batch, and a summary; plain text, with everything from the recording made inert."""

    def __init__(self, name: str) -> None:
        from loopscope.views.model import fit

        self._fit = fit
        self._start: float | None = None
        self._batches = 0
        self._first: dict[str, int] = {}
        self._counts = {"warn": 0, "hard_stop": 0}
        self._scopes: set[int] = set()
        self._title: str | None = inert(name)

    def _begin(self) -> None:
        """The name comes with the first row: what cannot be read prints nothing."""
        if self._title is not None:
            click.echo(self._title)
            self._title = None

    def write(self, event: Event, decision: Decision) -> None:
        """Print one row."""
        self._begin()
        self._batches = decision.batch
        self._scopes.add(hash(decision.scope))
        if decision.action != "pass":
            self._counts[decision.action] += 1
            self._first.setdefault(decision.action, decision.batch)
        click.echo(
            f"{decision.batch:>6}  {self._time(event):>{_TIME}}  {self._fit(_scope(decision), 20)}  "
            f"{self._fit(_tools(event), 24)}  {decision.hash} x{decision.hash_count:<3} {_verdict(decision)}".rstrip()
        )

    def _time(self, event: Event) -> str:
        at = getattr(event, "ts", None)
        if at is None:
            return ""
        self._start = at if self._start is None else self._start
        time = clock(at - self._start)
        for mark in (".", ":", ":"):
            # Of days, neither the milliseconds nor, of very many, the seconds are of interest.
            time = time.rpartition(mark)[0] if len(time) > _TIME else time
        return time

    def close(self) -> None:
        """Print the summary."""
        self._begin()
        stops = self._total("hard_stop", "stop")
        click.echo(
            f"{plural(self._batches, 'batch')} in {plural(len(self._scopes), 'scope')}: "
            f"{self._total('warn', 'warning')}, {stops}"
        )

    def _total(self, action: str, noun: str) -> str:
        count = self._counts[action]
        return plural(count, noun) + (f" (first at {self._first[action]})" if count else "")


def _scope(decision: Decision) -> str:
    return inert(f"{decision.thread_id}/{decision.run_id}", 40)


def _tools(event: Event) -> str:
    """The tool names of a batch, equal neighbours counted."""
    names: list[list[str | int]] = []
    for call in event.calls if isinstance(event, Batch) else ():
        if names and names[-1][0] == call.name:
            names[-1][1] += 1  # type: ignore[operator]
        else:
            names.append([call.name or "", 1])
    return inert(", ".join(f"{name} x{count}" if count != 1 else str(name) for name, count in names), 48)


def _verdict(decision: Decision) -> str:
    if decision.action == "pass":
        return "" if decision.hash_count == 1 else "repeat"
    subject = decision.counter or decision.tool
    about = f" {inert(subject, 40)}" if subject else ""
    return f"{_WORDS[decision.action]} {decision.layer}{about} {decision.count:g}/{decision.threshold:g}"
