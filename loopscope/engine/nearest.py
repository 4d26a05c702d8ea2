"""The nearest settings: which single change of the policy would have changed a verdict, and what else it would do.

Nothing is guessed: each value named here was tried by folding the scope again. Scopes do not touch each other but by
eviction, which no threshold changes, so one scope's batches are enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from loopscope.engine.decision import Decision
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Action, Batch, Witness
from loopscope.engine.joins import Place
from loopscope.engine.policy import Policy
from loopscope.engine.sections import Cycle
from loopscope.engine.trail import Outcome
from loopscope.errors import PolicyError

__all__ = ["Arrival", "Change", "Effect", "Step", "fold_scope", "limit_settings", "nearest_changes", "worst"]

T = TypeVar("T")
_SEVERITY = {"pass": 0, "warn": 1, "hard_stop": 2}
MOST_WINDOWS = 64
"""Smaller windows, or lower limits, that are tried, nearest first: each costs a fold of the scope."""


class Arrival(NamedTuple):
    """A result, and the call that it belongs to."""

    place: Place
    outcome: Outcome
    seq: int


class Step(NamedTuple):
    """One batch of a scope, ready to be decided again."""

    number: int
    batch: Batch
    hash: str
    names: tuple[str, ...]
    policy: Policy
    fresh: bool
    """The scope had no state before this batch: it is new, was evicted, was reset, or a segment began."""
    repeats: tuple[tuple[str, str, int], ...] = ()
    after: tuple[Arrival | Witness, ...] = ()
    """What came between this batch and the scope's next one; nothing under a policy that does not look at results."""
    over_budget: bool = False
    """A budget of the scope or of an ancestor was spent, maybe by other scopes: no fold of one scope can tell."""


class Effect(Struct, frozen=True):
    """What a policy does to the whole scope."""

    warnings: int
    stops: int
    first_stop: int | None
    """Number of the first batch that is stopped."""


class Change(Struct, frozen=True):
    """One setting, the nearest value that changes the verdict, and what it does to the rest."""

    setting: str
    value: int
    before: int
    verdict: Action
    """The verdict on the batch in question under this value."""
    effect: Effect
    never: int | None = None
    """The nearest value of a hard limit under which nothing in the scope is stopped, where `value` is not enough."""


def fold_scope(steps: Sequence[Step], setting: str | None = None, value: int = 0) -> Iterator[Decision]:
    """Decide the batches of one scope again, one setting changed: for each the worst of what was decided on it.

    Raises:
        PolicyError: if the value breaks a rule of a policy that was in force.
    """
    detector: LoopDetector | None = None
    in_force: Policy | None = None
    for step in steps:
        if detector is None or step.policy is not in_force:
            in_force = step.policy
            alone = in_force.with_(budget={}) if in_force.budget else in_force
            policy = alone if setting is None else changed(alone, setting, value)
            if detector is None:
                detector = LoopDetector(policy)
            detector.adopt(policy)
        if step.fresh:
            detector.reset()
        detector.batches = step.number - 1
        verdict = detector.fold(step.batch, step.hash, step.names, step.repeats)
        for item in step.after:
            later = (
                detector.observe(item) if isinstance(item, Witness) else detector.fold_result(step.batch.scope, *item)
            )
            verdict = worst(verdict, *(decision for decision in later if decision.batch == step.number))
        if step.over_budget and verdict.action != "hard_stop":
            verdict = msgspec.structs.replace(verdict, action="hard_stop", layer="budget", tool=None, count=None)
        yield verdict


def worst(*decisions: Decision) -> Decision:
    """The most severe of the decisions on one batch; the first one of equals."""
    return max(decisions, key=lambda decision: _SEVERITY[decision.action])


def changed(policy: Policy, setting: str, value: int) -> Policy:
    """The policy with one setting changed, dotted for those of single tools."""
    if setting.startswith("tool_freq_overrides."):
        tool, _, part = setting.removeprefix("tool_freq_overrides.").rpartition(".")
        limits = policy.frequency_limits(tool)
        own: dict[str, Any] = {"warn": limits.warn, "hard_limit": limits.hard_limit, part: value}
        return policy.with_(tool_freq_overrides={**policy.tool_freq_overrides, tool: own})
    section, *path = setting.split(".")
    if not path:
        return policy.with_(**{setting: value})
    *inner, last = path
    whole: dict[str, Any] = msgspec.to_builtins(getattr(policy, section))
    part_of = whole
    for name in inner:
        part_of = part_of[name]
    part_of[last] = value
    return policy.with_(**{section: whole})


def effect(decisions: Sequence[Decision]) -> Effect:
    """Warnings and stops of one scope."""
    stops = [decision.batch for decision in decisions if decision.action == "hard_stop"]
    warnings = sum(decision.action == "warn" for decision in decisions)
    return Effect(warnings, len(stops), stops[0] if stops else None)


def nearest_changes(steps: Sequence[Step], index: int, decision: Decision) -> list[Change]:
    """For each setting that can do it alone: the nearest value that changes the verdict on `steps[index]`."""
    policy = steps[index].policy
    candidates = _to_fire(steps, index, decision) if decision.action == "pass" else _to_spare(policy, decision)
    found = [_try(steps, index, decision, name, values) for name, values in candidates]
    return [change for change in found if change is not None]


def _to_spare(policy: Policy, decision: Decision) -> Iterator[tuple[str, Iterator[int] | None]]:
    """Settings that could spare a batch its verdict, and the values to try, nearest first.

    None climbs from the count. Budgets rest on other scopes too, so one scope's fold cannot try them.
    """
    if decision.layer == "budget":
        return
    for setting in limit_settings(decision, policy):
        yield setting, None
    if decision.layer in ("identical_call_set", "tool_frequency"):
        yield "window_size", iter(range(policy.window_size - 1, max(0, policy.window_size - 1 - MOST_WINDOWS), -1))


def _to_fire(steps: Sequence[Step], index: int, decision: Decision) -> Iterator[tuple[str, Iterator[int]]]:
    """Settings that could make a batch that passed fire: hard limits that its counts come near, and warnings.

    A hard limit is tried from its own value down, as a stop before this batch may change what is counted here.
    """
    policy = steps[index].policy
    if decision.hash_count >= policy.warn_threshold:
        yield "hard_limit", _down(policy.hard_limit - 1, decision.hash_count)
    yield "warn_threshold", _down(min(decision.hash_count, policy.warn_threshold - 1), 1)
    highest: dict[str, tuple[int, int]] = {}
    for tool in dict.fromkeys(name for name in steps[index].names if name):
        table = f"tool_freq_overrides.{tool}." if tool in policy.tool_freq_overrides else "tool_freq_"
        limits = policy.frequency_limits(tool)
        calls = _calls(steps, index, tool)
        if calls >= limits.warn:
            highest[f"{table}hard_limit"] = limits.hard_limit - 1, calls
        warns = min(calls, limits.warn - 1)
        highest[f"{table}warn"] = max(highest.get(f"{table}warn", (0, 1)), (warns, 1))
    for setting, (most, least) in highest.items():
        yield setting, _down(most, least)


def _down(most: int, least: int) -> Iterator[int]:
    """Values of a limit, nearest first."""
    return iter(range(most, max(least - 1, most - MOST_WINDOWS), -1))


def _calls(steps: Sequence[Step], index: int, tool: str) -> int:
    """Calls of a tool among the newest that the frequency window can hold, since the state was fresh."""
    left, found, position = steps[index].policy.frequency_window, 0, index
    while left > 0 and position >= 0:
        taken = steps[position].names[-left:]
        found += sum(name == tool for name in taken)
        left = 0 if steps[position].fresh else left - len(taken)
        position -= 1
    return found


def limit_settings(decision: Decision, policy: Policy) -> Sequence[str]:
    """The policy's names of the limit that a verdict reached: two where both readings of a cycle have the same."""
    if decision.layer == "cycle":
        return [*_cycle_settings(decision, policy.cycle)]
    return [_limit_setting(decision, policy)]


def _cycle_settings(decision: Decision, cycle: Cycle) -> Iterator[str]:
    for reading, pair in (("hash", cycle.hash), ("names", cycle.names)):
        # A stop that new results hold back warns at its own limit where the reading has no other.
        part = "hard_limit" if decision.action == "hard_stop" or pair.warn is None else "warn"
        if getattr(pair, part) == decision.threshold:
            yield f"cycle.{reading}.{part}"


def _limit_setting(decision: Decision, policy: Policy) -> str:
    part = "hard_limit" if decision.action == "hard_stop" else "warn"
    if decision.layer == "identical_call_set":
        return "hard_limit" if part == "hard_limit" else "warn_threshold"
    if decision.layer == "tool_frequency":
        own = decision.tool in policy.tool_freq_overrides
        return f"tool_freq_overrides.{decision.tool}.{part}" if own else f"tool_freq_{part}"
    if decision.layer == "budget":
        return f"budget.{decision.counter}.{'limit' if part == 'hard_limit' else 'warn'}"
    return f"{decision.layer}.{part}"


def _try(
    steps: Sequence[Step], index: int, decision: Decision, setting: str, values: Iterator[int] | None
) -> Change | None:
    """The nearest value whose fold gives another verdict."""
    before = _value(steps[index].policy, setting)

    def verdict_under(value: int) -> Decision | None:
        verdict = _verdict(steps, index, setting, value)
        return verdict if verdict.action != decision.action else None

    if values is None:
        found = _least(before, int(decision.count or 0) + 1, _most(steps), verdict_under)
    else:
        tried = ((value, verdict_under(value)) for value in values)
        found = next(((value, verdict) for value, verdict in tried if verdict is not None), None)
    if found is None:
        return None
    value, verdict = found
    then = effect(list(fold_scope(steps, setting, value)))
    never = _never(steps, setting, value) if then.stops and setting.endswith("hard_limit") else None
    return Change(setting, value, before, verdict.action, then, never)


def _most(steps: Sequence[Step]) -> int:
    """A limit that nothing in the scope can reach."""
    return sum(max(1, len(step.names)) for step in steps) + 1


def _least(low: int, guess: int, most: int, test: Callable[[int], T | None]) -> tuple[int, T] | None:
    """The least value above `low` that passes a test, where larger ones pass too: by doubling, then by halving.

    Counts may depend on limits, so a smaller value further off might pass as well; the one before the one that is found
    never does. A value that breaks a rule bounds the search.

    Args:
        low: a value that does not pass.
        guess: what is tried first.
        most: the largest value to try.
        test: gives what is found under a value that passes, else None.
    """
    high, step = max(low + 1, guess), 1
    found: T | None = None
    while found is None:
        if high > most:
            return None
        try:
            found = test(high)
        except PolicyError:
            most, step, high = high - 1, 1, low + 1
            continue
        if found is None:
            low, step = high, 2 * step
            high = min(low + step, max(most, low + 1))
    while high - low > 1:
        middle = (low + high) // 2
        result = test(middle)
        low, high, found = (low, middle, result) if result is not None else (middle, high, found)
    return high, found


def _never(steps: Sequence[Step], setting: str, value: int) -> int | None:
    """The nearest limit that stops nothing; None where other layers or tools stop whatever it is."""

    def spares(limit: int) -> bool | None:
        return all(decision.action != "hard_stop" for decision in fold_scope(steps, setting, limit)) or None

    found = _least(value, value + 1, _most(steps), spares)
    return found[0] if found is not None else None


def _verdict(steps: Sequence[Step], index: int, setting: str, value: int) -> Decision:
    """The decision on one batch: its scope folded from where its state was last fresh."""
    start = next(position for position in range(index, -1, -1) if steps[position].fresh or position == 0)
    *_, last = fold_scope(steps[start : index + 1], setting, value)
    return last


def _value(policy: Policy, setting: str) -> int:
    owner: Any = policy
    if setting.startswith("tool_freq_overrides."):
        tool, _, setting = setting.removeprefix("tool_freq_overrides.").rpartition(".")
        owner = policy.frequency_limits(tool)
    for name in setting.split("."):
        owner = getattr(owner, name)
    value: int = owner
    return value
