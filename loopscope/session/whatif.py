"""What-if: the same run under another policy, decided by the same engine, and what of that is certain.

Two folds of the same events. A recording tells what the model did, not what it would have done had it been warned or
stopped elsewhere; from the first such point on a difference is a conjecture, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from loopscope.engine.decision import Decision
from loopscope.engine.events import ScopeKey
from loopscope.engine.policy import Policy
from loopscope.session.refold import Reader, identity_of, refold
from loopscope.session.timeline import Timeline

__all__ = ["STATES", "After", "Difference", "Differs", "Reader", "Side", "Trial", "attempt", "compare"]

STATES = ("new", "repeat", "warn", "stop")
"""How a batch is drawn."""
_STATE = {"pass": 0, "warn": 2, "hard_stop": 3}


class Side(Struct, frozen=True):
    """What one policy says of the run."""

    warnings: int
    stops: int
    first_warning: int | None
    """Number of the batch."""
    first_stop: int | None


class Differs(Struct, frozen=True):
    """One batch with two verdicts."""

    batch: int
    baseline: Decision
    override: Decision


class After(Struct, frozen=True):
    """What the stopped scope and its sub-agents did after the override's first stop: what stopping would have saved."""

    batches: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float


class Difference(Struct, frozen=True):
    """A run under two policies."""

    baseline: Side
    override: Side
    differing: tuple[Differs, ...]
    after_first_stop: After | None
    """None where the override stops nothing."""
    certain_until: int | None
    """The first batch whose verdict the model would have felt otherwise than it did; None where there is none."""
    nothing_after: int | None
    """An enforced stop that the override lets pass: what the run would have done after it is not recorded."""
    keys_kept: int
    """Calls whose recorded key could not be computed anew under the override's identity."""
    policies: int = 1
    """Policies that decided the run, one after the other; the override takes the place of all."""

    @property
    def first(self) -> int | None:
        """The first batch whose verdicts differ."""
        return self.differing[0].batch if self.differing else None

    def notes(self) -> list[str]:
        """What is not certain of the difference, in words."""
        notes = []
        if self.certain_until is not None:
            notes.append(
                f"After #{self.certain_until} the model might have acted differently: the recording cannot know."
            )
        if self.nothing_after is not None:
            notes.append(
                f"The recorded run was stopped at #{self.nothing_after}: what it would have done next is not recorded."
            )
        if self.keys_kept:
            calls = "one call keeps its" if self.keys_kept == 1 else f"{self.keys_kept} calls keep their"
            notes.append(
                f"{calls} recorded key: the arguments were redacted or cut, so the other identity cannot be computed."
            )
        if self.policies > 1:
            notes.append(
                f"The run had {self.policies} policies, one after the other: the override takes the place of all."
            )
        return notes


class Trial(NamedTuple):
    """One override, tried on the run as far as that went."""

    policy: Policy
    batches: int
    """How many batches were decided."""
    difference: Difference
    states: bytes
    """For each batch its place in `STATES`, under the override."""
    stopped: Mapping[ScopeKey, int]
    """The first batch of each scope that the override stops: what came after it would not have been."""
    stopped_before: Mapping[ScopeKey, int]
    """The same under the baseline."""

    def state(self, number: int) -> str:
        """How a batch is drawn under the override; nothing for one that came later."""
        return STATES[self.states[number - 1]] if number <= len(self.states) else ""


def verdicts(timeline: Timeline, policy: Policy, reader: Reader | None = None) -> tuple[list[Decision], int]:
    """The verdict on every batch under a policy, and how many recorded keys were kept under its identity.

    Args:
        timeline: the run.
        policy: decides everything; the recording's own policies do not count.
        reader: needed where the policy's identity is not the one that the run was folded with.
    """
    folded = refold(timeline, policy, reader, len(timeline), _always)
    assert folded is not None  # noqa: S101 - it is wanted to its end
    return folded


def _always() -> bool:
    return True


def compare(timeline: Timeline, policy: Policy, reader: Reader) -> Difference:
    """The run under its own policy against the run under another one."""
    trial = attempt(timeline, policy, reader)
    assert trial is not None  # noqa: S101 - it is wanted to its end
    return trial.difference


def attempt(timeline: Timeline, policy: Policy, reader: Reader, wanted: Callable[[], bool] = _always) -> Trial | None:
    """As `compare`, with how every batch is drawn under the override; callable from any thread.

    Args:
        timeline: the run, which may grow meanwhile: what comes later does not count.
        policy: the override.
        reader: as for `verdicts`.
        wanted: asked now and then; where it says no, there is no trial.
    """
    last = len(timeline)
    same_identity = {identity_of(each) for each in list(timeline.policies)} <= {identity_of(policy)}
    folded = refold(timeline, policy, None if same_identity else reader, last, wanted)
    if folded is None:
        return None
    override = folded.decisions
    said_before = [timeline.verdict(number) for number in list(timeline.notable) if number <= last]
    said = [decision for decision in override if decision.action != "pass"]
    numbers = sorted({decision.batch for decision in (*said_before, *said)})
    pairs = ((timeline.verdict(number), override[number - 1]) for number in numbers)
    differing = tuple(Differs(then.batch, now, then) for now, then in pairs if _gist(now) != _gist(then))
    now, then = side(said_before), side(said)
    header = timeline.header
    enforced = header is not None and header.enforced
    difference = Difference(
        baseline=now,
        override=then,
        differing=differing,
        after_first_stop=None if then.first_stop is None else after(timeline, then.first_stop, last),
        certain_until=_certain_until(differing, said, enforced=enforced),
        nothing_after=_nothing_after(differing) if enforced else None,
        keys_kept=folded.keys_kept,
        policies=len(timeline.policies),
    )
    states = bytes([_STATE[decision.action] or decision.hash_count > 1 for decision in override])
    return Trial(policy, last, difference, states, _first_stops(said), _first_stops(said_before))


def _gist(decision: Decision) -> tuple[object, ...]:
    """What two verdicts that do not differ have in common."""
    return decision.action, decision.layer, decision.tool


def _first_stops(verdicts: Iterable[Decision]) -> dict[ScopeKey, int]:
    """Where each scope is stopped first."""
    stops: dict[ScopeKey, int] = {}
    for decision in verdicts:
        if decision.action == "hard_stop":
            stops.setdefault(decision.scope, decision.batch)
    return stops


def side(verdicts: Sequence[Decision]) -> Side:
    """Warnings and stops of one fold."""
    warned = [decision.batch for decision in verdicts if decision.action == "warn"]
    stopped = [decision.batch for decision in verdicts if decision.action == "hard_stop"]
    return Side(len(warned), len(stopped), warned[0] if warned else None, stopped[0] if stopped else None)


def after(timeline: Timeline, number: int, last: int | None = None) -> After:
    """What the scope of a batch, and its sub-agents, did after it, up to the batch `last`."""
    rows = timeline.batches
    below = _family(timeline, timeline.scope_of(number))
    end = len(timeline) if last is None else last
    later = [n for n in range(number + 1, end + 1) if timeline.scope_of(n) in below]
    usages = [usage for n in later if (usage := rows.usage(n - 1)) is not None]
    return After(
        batches=len(later),
        calls=sum(rows.calls[n - 1] for n in later),
        input_tokens=sum(usage.input_tokens or 0 for usage in usages),
        output_tokens=sum(usage.output_tokens or 0 for usage in usages),
        cost_usd=round(sum(usage.cost_usd or 0.0 for usage in usages), 9),
    )


def _family(timeline: Timeline, key: ScopeKey) -> set[ScopeKey]:
    """A scope and everything below it."""
    family = {key}
    grown = True
    while grown:
        more = {k for k, record in list(timeline.scopes.items()) if record.parent in family} - family
        family |= more
        grown = bool(more)
    return family


def _certain_until(differing: Sequence[Differs], override: Sequence[Decision], *, enforced: bool) -> int | None:
    """Where the model would first have felt something else.

    A watched run felt nothing, so it is the override's first warning or stop; an enforced one felt what its own policy
    decided, so it is the first difference.
    """
    if enforced:
        return differing[0].batch if differing else None
    felt = next((decision.batch for decision in override), None)
    return felt if differing else None


def _nothing_after(differing: Sequence[Differs]) -> int | None:
    return next(
        (d.batch for d in differing if d.baseline.action == "hard_stop" and d.override.action != "hard_stop"), None
    )
