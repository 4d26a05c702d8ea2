"""Breakpoints: pure predicates over a decided batch and its scope's state.

Judged wherever the engine is: in a session over a recording, and in the agent's process, which then holds the batch.
A breakpoint is plain data with a text form, so that it can be typed, stored and sent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from loopscope.engine.decision import Decision
from loopscope.engine.events import Call
from loopscope.engine.scope import ScopeState
from loopscope.errors import UsageError

__all__ = ["KINDS", "Breakpoint", "Moment", "hits", "parse"]

Kind: TypeAlias = Literal[
    "stop", "warn", "layer", "scope", "tool", "hash", "batch", "pending", "argument", "usage"
]  # fmt: skip
KINDS: dict[str, str] = {
    "stop": "any hard stop",
    "warn": "any warning",
    "layer NAME": "a warning or stop of this layer",
    "scope THREAD[/RUN]": "any batch of this thread, or of this run of it",
    "tool NAME": "any batch that calls this tool",
    "hash HASH|LETTER [>= K]": "this batch, from its k-th occurrence in the window on",
    "batch N": "this batch",
    "pending": "a batch of a scope with a warning that waits for the model",
    "argument REGEX": "a call whose arguments match",
    "usage COUNTER >= N": "what the scope has used: batches, model_calls, tool_calls, input_tokens, output_tokens, "
    "cost_usd or seconds",
}
"""How each kind is written, and what it stops at."""
USAGE = ("batches", "model_calls", "tool_calls", "input_tokens", "output_tokens", "cost_usd", "seconds")


class Breakpoint(Struct, frozen=True, omit_defaults=True):
    """One condition. `hits` is counted by whoever judges it."""

    kind: Kind
    subject: str = ""
    """What it is about: a layer, a scope, a tool, a hash or letter, a pattern, a counter."""
    at_least: float = 0
    """The count, the batch's number or the amount from which on it holds."""
    enabled: bool = True
    one_shot: bool = False
    """It is disabled when it is hit."""

    def __str__(self) -> str:
        least = int(self.at_least) if self.at_least == int(self.at_least) else self.at_least
        if self.kind == "batch":
            return f"batch {least}"
        bound = f" >= {least}" if least else ""
        return f"{self.kind} {self.subject}".rstrip() + bound


class Moment(NamedTuple):
    """A batch just after it was decided."""

    decision: Decision
    calls: Sequence[Call]
    """Needed for `argument` alone; may be empty elsewhere."""
    names: Sequence[str]
    scope: ScopeState | None
    letter: str
    """The name of its hash in its scope."""


def parse(text: str) -> Breakpoint:
    """A breakpoint from its text form; `once` in front makes it one-shot.

    Raises:
        UsageError: with what is wrong and how the kind is written.
    """
    words = text.split(maxsplit=1)
    one_shot = bool(words) and words[0] == "once"
    kind, _, rest = (words[1] if one_shot and len(words) > 1 else text).strip().partition(" ")
    reader = _READERS.get(kind)
    if reader is None:
        forms = ", ".join(KINDS)
        raise UsageError(f"breakpoint {text!r}: unknown kind {kind!r}; known are {forms}")
    subject, at_least = reader(rest.strip(), text)
    return Breakpoint(kind, subject, at_least, one_shot=one_shot)  # type: ignore[arg-type]


def _bare(rest: str, text: str) -> tuple[str, float]:
    if rest:
        raise UsageError(f"breakpoint {text!r}: nothing is expected after the kind")
    return "", 0


def _named(rest: str, text: str) -> tuple[str, float]:
    if not rest:
        raise UsageError(f"breakpoint {text!r}: says not what; it is written {_form(text)}")
    return rest, 0


def _pattern(rest: str, text: str) -> tuple[str, float]:
    try:
        re.compile(rest)
    except re.error as error:
        raise UsageError(f"breakpoint {text!r}: the pattern is wrong: {error}") from None
    return _named(rest, text)


def _bounded(rest: str, text: str) -> tuple[str, float]:
    subject, _, bound = rest.partition(">=")
    if not bound.strip():
        return _named(subject.strip(), text)[0], 0
    return _named(subject.strip(), text)[0], _number(bound, text)


def _used(rest: str, text: str) -> tuple[str, float]:
    subject, at_least = _bounded(rest, text)
    if subject not in USAGE:
        known = ", ".join(USAGE)
        raise UsageError(f"breakpoint {text!r}: {subject!r} is not counted; it is written {_form(text)}: {known}")
    return subject, at_least


def _numbered(rest: str, text: str) -> tuple[str, float]:
    return "", _number(rest, text)


def _number(digits: str, text: str) -> float:
    try:
        number = float(digits)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"breakpoint {text!r}: {digits.strip()!r} is no number; it is written {_form(text)}")
    return number


def _form(text: str) -> str:
    kind = text.removeprefix("once ").split(" ", 1)[0]
    return next(form for form in KINDS if form.split(" ", 1)[0] == kind)


_READERS: dict[str, Callable[[str, str], tuple[str, float]]] = {
    "stop": _bare,
    "warn": _bare,
    "layer": _named,
    "scope": _named,
    "tool": _named,
    "hash": _bounded,
    "batch": _numbered,
    "pending": _bare,
    "argument": _pattern,
    "usage": _used,
}


def hits(breakpoint_: Breakpoint, moment: Moment) -> bool:
    """Whether this batch is where to stop."""
    return breakpoint_.enabled and _PREDICATES[breakpoint_.kind](breakpoint_, moment)


def _in_scope(point: Breakpoint, moment: Moment) -> bool:
    decision = moment.decision
    names = (decision.thread_id or "-", f"{decision.thread_id or '-'}/{decision.run_id or '-'}")
    return point.subject in names


def _has_hash(point: Breakpoint, moment: Moment) -> bool:
    decision = moment.decision
    return point.subject in (decision.hash, moment.letter) and decision.hash_count >= point.at_least


def _has_argument(point: Breakpoint, moment: Moment) -> bool:
    from loopscope.engine.identity import dumps  # noqa: PLC0415 - identity need not load for other kinds

    pattern = re.compile(point.subject)
    return any(pattern.search(call.args if isinstance(call.args, str) else dumps(call.args)) for call in moment.calls)


def _has_used(point: Breakpoint, moment: Moment) -> bool:
    return moment.scope is not None and getattr(moment.scope.spent, point.subject) >= point.at_least


_PREDICATES: dict[str, Callable[[Breakpoint, Moment], bool]] = {
    "stop": lambda _, moment: moment.decision.action == "hard_stop",
    "warn": lambda _, moment: moment.decision.action == "warn",
    "layer": lambda point, moment: moment.decision.layer == point.subject,
    "scope": _in_scope,
    "tool": lambda point, moment: point.subject in moment.names,
    "hash": _has_hash,
    "batch": lambda point, moment: moment.decision.batch == point.at_least,
    "pending": lambda _, moment: moment.scope is not None and bool(moment.scope.pending),
    "argument": _has_argument,
    "usage": _has_used,
}
