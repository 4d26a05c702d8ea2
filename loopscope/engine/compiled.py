"""A policy with what the detector derives from it once: its identity, its rules, and what they need to be told."""

from __future__ import annotations

from loopscope.engine.accounts import Least
from loopscope.engine.identity import Identity
from loopscope.engine.policy import Policy
from loopscope.engine.rules import Rule, WitnessRule, compile_rules

__all__ = ["Compiled"]

AWAITED = 50
"""Newest batches of a scope whose results may still come in, however small the windows are."""


class Compiled:
    """A policy with what is derived from it once."""

    __slots__ = (
        "budgets", "early", "identity", "keep", "limit", "plain", "policy", "rules", "whole_thread", "witness_rules",
    )  # fmt: skip

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.identity = Identity(policy)
        self.limit = policy.max_tracked_threads
        self.whole_thread = policy.scope == "thread"
        """All runs of a thread share one state, that of its scope without a run."""
        self.early = not policy.severity_first
        """A warning, as a stop, ends the look at a batch: the first two layers count no further."""
        self.rules: tuple[Rule, ...] = compile_rules(policy)
        self.witness_rules = tuple(rule for rule in self.rules if isinstance(rule, WitnessRule))
        cycle = policy.cycle
        laps = max(cycle.hash.largest, cycle.names.largest) * (cycle.max_period or 0)
        needed = max(policy.window_size, policy.frequency_window, laps, AWAITED) + 1
        self.keep = needed if policy.looks_at_results else 0
        """Batches whose results are remembered; 0 where no layer looks at results."""
        self.budgets = Least(policy.budget) if policy.budget else None
        self.plain = not (self.keep or policy.budget or policy.repeat_in_batch.warn)
        """Only hashes and names are looked at, as under DeerFlow's own policy."""
