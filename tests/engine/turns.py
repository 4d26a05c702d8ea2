"""Runs written by hand, a line a turn: `@run tool:argument>result, tool:argument>!error`.

Each turn is one batch and what its calls bring at once; a call without `>` never gets a result. `@run` names the scope
of thread t, `r` where it is not said. What is decided is told in words: `warn cycle 3/3`, `hard_stop error_streak 5/5`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from loopscope.engine.decision import Decision
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, Call, Event, Result, RunStart, Usage, Witness
from loopscope.engine.policy import Policy

__all__ = ["ROOMY", "Tape", "play", "say", "start", "told", "turn"]

ROOMY = Policy(warn_threshold=99, hard_limit=99, window_size=99, tool_freq_warn=99, tool_freq_hard_limit=99)
"""The first two layers out of reach."""


def turn(seq: int, text: str, *, ts: float | None = None, usage: Usage | None = None) -> list[Event]:
    """One batch, then its results in call order; the batch has the number `seq`, its results the ones after it."""
    run, body = text[1:].split(" ", 1) if text.startswith("@") else ("r", text)
    parts = [part.strip() for part in body.split(",") if part.strip()]
    calls: list[Call] = []
    results: list[Event] = []
    for position, part in enumerate(parts):
        asked, _, brought = part.partition(">")
        tool, _, argument = asked.partition(":")
        calls.append(Call(f"{seq}-{position}", tool, {"query": argument}))
        if brought:
            results.append(result(seq + 1 + len(results), run, f"{seq}-{position}", brought))
    batch = Batch(seq=seq, ts=ts, thread_id="t", run_id=run, calls=tuple(calls), usage=usage)
    return [batch, *results]


def result(seq: int, run: str, call_id: str, brought: str, **more: Any) -> Result:
    """A result; `!` in front of its text makes it a failure."""
    content = brought.removeprefix("!")
    status: Any = "error" if brought.startswith("!") else "ok"
    fields: dict[str, Any] = {"digest": content, "content": content} | more
    return Result(seq=seq, ts=None, thread_id="t", run_id=run, call_id=call_id, status=status, **fields)


def told(**values: Any) -> Witness:
    """Values that the program tells of scope r."""
    return Witness(seq=0, ts=None, thread_id="t", run_id="r", values=values)


def start(run: str, parent: str | None = None, ts: float | None = None) -> RunStart:
    """A run of thread t begins."""
    thread = None if parent is None else "t"
    return RunStart(seq=0, ts=ts, thread_id="t", run_id=run, agent=None, parent_thread_id=thread, parent_run_id=parent)


def say(decision: Decision) -> str:
    """A decision in words."""
    if decision.action == "pass":
        return "pass"
    words = [decision.action, decision.layer or "", decision.counter or decision.tool or ""]
    ratio = f"{decision.count:g}/{decision.threshold:g}"
    return " ".join(word for word in [*words, ratio, "(result)" if decision.at == "result" else ""] if word)


class Tape:
    """A detector that is fed turns."""

    def __init__(self, policy: Policy) -> None:
        self.detector = LoopDetector(policy)
        self.seq = 1

    def feed(self, *events: Event) -> list[str]:
        """What is decided at these events."""
        return [say(decision) for event in events for decision in self.detector.observe(event)]

    def turn(self, text: str, **more: Any) -> str:
        """What is decided of one turn, at its batch and at its results."""
        events = turn(self.seq, text, **more)
        self.seq += len(events)
        return "; ".join(self.feed(*events))

    def ask(self, text: str, **more: Any) -> list[Event]:
        """Ask for a turn's calls now; the results, to be fed when they come."""
        batch, *results = turn(self.seq, text, **more)
        self.seq += 1 + len(results)
        self.feed(batch)
        return results


def play(policy: Policy, turns: Iterable[str]) -> list[str]:
    """What is decided of each turn of a run."""
    tape = Tape(policy)
    return [tape.turn(text) for text in turns]


def events(turns: Iterable[str]) -> Iterator[Event]:
    """The events of a run."""
    seq = 1
    for text in turns:
        found = turn(seq, text)
        seq += len(found)
        yield from found
