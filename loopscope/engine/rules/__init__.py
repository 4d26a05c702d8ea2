"""The layers in the order of severity: among stops the first one wins, and so among warnings.

A new layer is a file beside these and a line here; the order of decision is the detector's and does not change.
"""

from __future__ import annotations

from loopscope.engine.policy import DEFAULT, Policy
from loopscope.engine.rules.base import Facts, Finding, ResultRule, ResultStep, Rule, RuleState, Step, WitnessRule
from loopscope.engine.rules.budget import BudgetRule
from loopscope.engine.rules.cycle import CycleRule
from loopscope.engine.rules.error_streak import ErrorStreak
from loopscope.engine.rules.frequency import ToolFrequency
from loopscope.engine.rules.identical import IdenticalCallSet
from loopscope.engine.rules.repeat_in_batch import RepeatInBatchRule
from loopscope.engine.rules.stagnation import StagnationRule
from loopscope.engine.rules.window import Window

__all__ = [
    "STORED",
    "Facts",
    "Finding",
    "ResultRule",
    "ResultStep",
    "Rule",
    "RuleState",
    "Step",
    "Window",
    "WitnessRule",
    "compile_rules",
]


def compile_rules(policy: Policy) -> tuple[Rule, ...]:
    """The layers that this policy sets a limit for, most severe first; the first two are always there."""
    rules: list[Rule] = [IdenticalCallSet(policy), ToolFrequency(policy)]
    if policy.cycle.active:
        rules.append(CycleRule(policy))
    if policy.error_streak.active:
        rules.append(ErrorStreak(policy))
    if policy.stagnation.limits.active:
        rules.append(StagnationRule(policy))
    if policy.repeat_in_batch.warn is not None:
        rules.append(RepeatInBatchRule(policy))
    if policy.budget:
        rules.append(BudgetRule(policy))
    return tuple(rules)


_LAYERS = (IdenticalCallSet, ToolFrequency, CycleRule, ErrorStreak, StagnationRule, RepeatInBatchRule, BudgetRule)
STORED: dict[str, Rule] = {layer.layer: layer(DEFAULT) for layer in _LAYERS}
"""Each layer by its name, to read and write states whatever the policy: those of a scope that has seen no batch since
the policy changed are still those of the policy before."""
