"""Why a batch got its verdict, in numbered lines: rule, limit, warnings, effect, nearest settings that change it.

The same lines stand on the screen, in `loopscope explain` and in a notebook; this is where they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from loopscope.engine.decision import Decision
from loopscope.engine.nearest import Change, Effect, Step, effect, fold_scope, limit_settings, nearest_changes
from loopscope.engine.policy import UNBOUNDED, Policy
from loopscope.engine.rules.cycle import laps
from loopscope.engine.scope import WarningRecord

__all__ = ["Context", "Explanation", "explain"]

SIGHTINGS_SHOWN = 12
_COUNTED_BY_NAME = ("identical_call_set", "tool_frequency")
"""Layers whose warnings are about something that can come again."""
_WORDS = {"pass": "PASS", "warn": "WARN", "hard_stop": "STOP"}


class Context(Struct, frozen=True):
    """What the explanation of one batch rests on."""

    steps: Sequence[Step]
    """Every batch of the scope, in order."""
    index: int
    """Position of the batch in `steps`."""
    decision: Decision
    warnings: Sequence[WarningRecord]
    """The scope's warnings as they stood when the batch was decided."""
    origin: Callable[[str], str]
    """Where a setting came from: a file and line, a flag, the recording, the default."""
    name: Callable[[str], str]
    """The letter of a hash."""
    enforced: bool
    """The recorded run applied its decisions."""
    removed: bool
    """It stopped this very batch: no tool ran."""


class Explanation(Struct, frozen=True):
    """Why one batch got its verdict."""

    batch: int
    decision: Decision
    headline: str
    """The verdict in a few words: `STOP identical_call_set A 9/9`."""
    lines: tuple[str, ...]
    """Numbered by their place, from 1; a line may stand for several on a narrow screen."""
    changes: tuple[Change, ...] = ()


def explain(context: Context, *, search: bool = True) -> Explanation:
    """The reasons of one decision.

    Args:
        context: the batch, its scope and where its limits came from.
        search: look for the nearest settings too, which folds the scope some twenty times.
    """
    decision, policy = context.decision, context.steps[context.index].policy
    changes = nearest_changes(context.steps, context.index, decision) if search else []
    lines = [*_evidence(context), *_limit(context, policy), *_warned(context), _effect(context)]
    if search:
        lines.append(_nearest(context, changes))
    return Explanation(decision.batch, decision, headline(decision, context.name), tuple(lines), tuple(changes))


def headline(decision: Decision, name: Callable[[str], str]) -> str:
    """The verdict in a few words."""
    if decision.action == "pass":
        return f"PASS {name(decision.hash)} seen {_times(decision.hash_count)}"
    subject = decision.counter or (decision.tool if decision.tool is not None else name(decision.hash))
    return f"{_WORDS[decision.action]} {decision.layer} {subject} {decision.count:g}/{decision.threshold:g}"


def _times(count: float) -> str:
    return "once" if count == 1 else f"{count} times"


def _batches(numbers: Sequence[int]) -> str:
    shown = " ".join(f"#{number}" for number in numbers[-SIGHTINGS_SHOWN:])
    return f"… {shown}" if len(numbers) > SIGHTINGS_SHOWN else shown


def _evidence(context: Context) -> list[str]:
    """The rule, and what it counted."""
    layer = context.decision.layer
    tell = _EVIDENCE.get(layer, _repeated) if layer is not None else _repeated
    return [tell(context)]


def _repeated(context: Context) -> str:
    decision, size = context.decision, context.steps[context.index].policy.window_size
    steps = context.steps
    numbers = [steps[i].number for i in _window(context, size) if steps[i].hash == decision.hash]
    counted = f"rule identical_call_set counted {context.name(decision.hash)} {_times(decision.hash_count)}"
    return f"{counted} in the last {size} batches: {_batches(numbers)}"


def _frequent(context: Context) -> str:
    decision, window = context.decision, context.steps[context.index].policy.frequency_window
    numbers = list(dict.fromkeys(_tool_batches(context, window)))
    counted = f"rule tool_frequency counted {decision.tool} {_times(decision.count or 0)}"
    where = "whole history" if window == UNBOUNDED else f"last {window} calls"
    return f"{counted} in the {where}: {_batches(numbers)}"


def _circled(context: Context) -> str:
    decision, (by_hash, block) = context.decision, _circle(context)
    words = " ".join(context.name(step.hash) if by_hash else "+".join(step.names) for step in block)
    reading = "hash" if by_hash else "tool names"
    return f"rule cycle found {decision.count} laps of {words} (by {reading}) that end at #{decision.batch}"


def _circle(context: Context) -> tuple[bool, Sequence[Step]]:
    """Whether it was found by hash, else by tool names; and the block that went round, oldest first."""
    decision, policy = context.decision, context.steps[context.index].policy
    longest = policy.cycle.max_period or 0
    newest = [context.steps[i] for i in reversed(_window(context, longest * int(decision.count or 0)))]
    by_hash = laps([step.hash for step in newest], longest)
    by_names = laps([tuple(sorted(step.names)) for step in newest], longest)
    settings = limit_settings(decision, policy)
    hashes = settings[0].startswith("cycle.hash") and (len(settings) == 1 or by_hash[0] >= (decision.count or 0))
    return hashes, newest[: (by_hash if hashes else by_names)[1]][::-1]


def _failed(context: Context) -> str:
    count = int(context.decision.count or 0)
    return f"rule error_streak counted {count} batches in a row in which every call failed{_carried(context)}"


def _stagnant(context: Context) -> str:
    witness = context.steps[context.index].policy.stagnation.witness
    iterations = "one iteration" if context.decision.count == 1 else f"{context.decision.count} iterations in a row"
    return f"rule stagnation saw no progress of the witness {witness} for {iterations}{_carried(context)}"


def _carried(context: Context) -> str:
    """Where a stop comes from that was found when an earlier batch's results were in."""
    if context.decision.at == "result":
        return f", the results of #{context.decision.batch} included"
    return ", and so stops the batch that came next" if context.decision.action == "hard_stop" else ""


def _repeated_inside(context: Context) -> str:
    decision = context.decision
    return f"rule repeat_in_batch found one call of {decision.tool} {_times(decision.count or 0)} in this batch"


def _spent(context: Context) -> str:
    decision = context.decision
    return (
        f"rule budget: {decision.counter} stands at {decision.count:g}, sub-agents and their callers counted together"
    )


_EVIDENCE: dict[str, Callable[[Context], str]] = {
    "tool_frequency": _frequent,
    "cycle": _circled,
    "error_streak": _failed,
    "stagnation": _stagnant,
    "repeat_in_batch": _repeated_inside,
    "budget": _spent,
}


def _window(context: Context, size: int) -> range:
    """Positions of the newest batches that share their state with the batch in question."""
    start = context.index
    while start > 0 and not context.steps[start].fresh and context.index - start + 1 < size:
        start -= 1
    return range(start, context.index + 1)


def _tool_batches(context: Context, calls: int) -> list[int]:
    """Batches with calls of the decision's tool among the newest `calls` calls."""
    numbers: list[int] = []
    left, position = calls, context.index
    while left > 0 and position >= 0:
        step = context.steps[position]
        taken = step.names[-left:]
        numbers.extend(step.number for name in taken if name == context.decision.tool)
        left = 0 if step.fresh else left - len(taken)
        position -= 1
    return numbers[::-1]


def _limit(context: Context, policy: Policy) -> list[str]:
    """The limit that was reached, or how far the next one is, and where it came from."""
    decision = context.decision
    if decision.action == "pass":
        left = policy.warn_threshold - decision.hash_count
        kind, setting, limit = "warns", "warn_threshold", policy.warn_threshold
        if left <= 0:
            left = policy.hard_limit - decision.hash_count
            kind, setting, limit = "stops", "hard_limit", policy.hard_limit
        more = "one more identical batch" if left == 1 else f"{left} more identical batches"
        return [f"{kind} after {more}: {setting} is {limit} ({context.origin(setting)})"]
    setting = _setting(context, policy)
    what = "hard limit" if decision.action == "hard_stop" else "warning limit"
    return [f"{what} is {decision.threshold:g}: {setting} ({context.origin(setting)})"]


def _setting(context: Context, policy: Policy) -> str:
    """The limit that was reached."""
    settings = limit_settings(context.decision, policy)
    return settings[0] if len(settings) == 1 or _circle(context)[0] else settings[1]


def _warned(context: Context) -> list[str]:
    """What the model was told of this hash or tool, and what it made of it."""
    decision = context.decision
    subject = decision.counter or (decision.tool if decision.tool is not None else decision.hash)
    records = [record for record in context.warnings if record.subject == subject]
    told = [record for record in records if record.batch != decision.batch]
    if decision.action == "warn":
        first = ["the model is told before its next turn"]
        return first + [_history(record, context) for record in told[-1:]]
    if not told:
        return ["no warning was given before"] if decision.action == "hard_stop" else []
    return [_history(told[-1], context)]


def _history(record: WarningRecord, context: Context) -> str:
    subject = context.name(record.subject)
    if record.state == "queued":
        return f"a warning of {subject} was queued at #{record.batch} and waits for the next model call"
    if record.state == "dropped":
        return f"a warning of {subject} was queued at #{record.batch} and dropped before a model call"
    assumed = " (assumed: the recording does not tell)" if record.assumed else ""
    before = f" before #{record.before}" if record.before is not None else ""
    if record.layer not in _COUNTED_BY_NAME:
        return f"a warning was delivered{before}{assumed}"
    return f"a warning was delivered{before}{assumed}, then {subject} came {_times(record.ignored)} more"


def _effect(context: Context) -> str:
    action = context.decision.action
    if action != "hard_stop" and context.removed:
        return "effect: none under these limits; the run itself had others and was stopped here, no tool ran"
    if action == "pass":
        return "effect: none, the tools run"
    if action == "warn":
        return "effect: none on this batch; the warning is put before the model's next turn"
    if context.removed:
        return "effect: the calls were removed and a closing text was put in their place; no tool ran"
    why = "the run itself went on under other limits" if context.enforced else "the run was only watched"
    return f"effect: none, {why}; with the middleware no tool of this batch would have run"


def _nearest(context: Context, changes: Sequence[Change]) -> str:
    """The nearest settings, each with what it does to the rest of the scope."""
    if context.decision.layer == "budget":
        setting = limit_settings(context.decision, context.steps[context.index].policy)[0]
        return f"{setting} above what was spent would let it go on"
    verb = {"hard_stop": "not stop", "warn": "not warn", "pass": "warn or stop"}[context.decision.action]
    if not changes:
        return f"no single setting would {verb} this batch"
    baseline = effect(list(fold_scope(context.steps)))
    parts = [f"{_comparison(change)} {_consequence(change, baseline)}" for change in changes]
    return f"nearest settings that would {verb} #{context.decision.batch}: {'; or '.join(parts)}"


def _comparison(change: Change) -> str:
    sign = ">=" if change.value > change.before else "<="
    return f"{change.setting} {sign} {change.value}"


def _consequence(change: Change, now: Effect) -> str:
    then = change.effect
    if then.first_stop is None:
        parts = ["no stop in this scope"]
    else:
        moved = "still" if then.first_stop == now.first_stop else "then"
        parts = [f"{moved} stopped first at #{then.first_stop}"]
        if change.never is not None:
            parts.append(f"from {change.never} on never")
    if then.warnings != now.warnings:
        parts.append(f"warnings {now.warnings} → {then.warnings}")
    return f"({', '.join(parts)})"
