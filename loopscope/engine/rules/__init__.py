"""The layers in the order of severity: among stops the first one wins, and so among warnings.

A new layer is a file beside these and a line in `ORDER`; the order of decision is the detector's and does not change.
"""

from __future__ import annotations

from loopscope.engine.policy import Policy
from loopscope.engine.rules.base import Account, Facts, Finding, Rule, RuleState
from loopscope.engine.rules.frequency import ToolFrequency
from loopscope.engine.rules.identical import IdenticalCallSet
from loopscope.engine.rules.window import Window

__all__ = [
    "Account",
    "Facts",
    "Finding",
    "IdenticalCallSet",
    "Rule",
    "RuleState",
    "ToolFrequency",
    "Window",
    "compile_rules",
]

ORDER = (IdenticalCallSet, ToolFrequency)


def compile_rules(policy: Policy) -> tuple[Rule, ...]:
    """The rules of this policy, most severe first; the first one is always `identical_call_set`."""
    return tuple(rule(policy) for rule in ORDER)
