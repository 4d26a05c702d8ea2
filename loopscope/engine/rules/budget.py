"""Layer `budget`: what a scope, with all that it handed on, may spend.

The outer bound of a loop: it holds whatever the loop looks like. A batch is looked at in its own account and in those
of its ancestors; the first counter that is used up stops it.
"""

from __future__ import annotations

from typing import Any

from loopscope.engine.policy import Policy
from loopscope.engine.rules.base import Facts, Finding, WokenBy
from loopscope.engine.sections import COUNTERS

__all__ = ["BudgetRule"]


class _State:
    """The marks of the account whose warning was found last, until it is known whether it is emitted."""

    __slots__ = ("marks",)

    def __init__(self) -> None:
        self.marks: set[str] = set()


class BudgetRule:
    """Compares accounts with limits."""

    layer = "budget"
    woken_by: WokenBy | None = "accounts"
    __slots__ = ("_budgets",)

    def __init__(self, policy: Policy) -> None:
        self._budgets = [(counter, policy.budget[counter]) for counter in COUNTERS if counter in policy.budget]

    def new_state(self) -> _State:
        return _State()

    def account(self, state: _State, facts: Facts, stop: Finding | None) -> Finding | None:  # noqa: ARG002 - a Rule
        warning: Finding | None = None
        for counter, budget in self._budgets:
            soft = budget.warn * budget.limit
            for account in facts.accounts:
                value = account.value(counter, facts.ts)
                if value >= budget.limit:
                    return Finding("hard_stop", self.layer, None, value, budget.limit, counter=counter)
                if warning is None and value >= soft and counter not in account.warned:
                    warning = Finding("warn", self.layer, None, value, soft, counter, counter)
                    state.marks = account.warned
        return warning

    def mark(self, state: _State, finding: Finding) -> None:
        state.marks.add(finding.mark or "")

    def dump(self, state: _State) -> dict[str, Any]:  # noqa: ARG002 - the accounts are saved with the detector
        return {}

    def load(self, data: dict[str, Any]) -> _State:  # noqa: ARG002 - as above
        return _State()
