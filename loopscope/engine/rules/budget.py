"""Layer `budget`: what a scope, with all that it handed on, may spend.

The outer bound of a loop: it holds whatever the loop looks like. A batch is looked at in its own account and in those
of its ancestors; the first counter that is used up stops it.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter, ge
from typing import Any, Literal

from loopscope.engine.accounts import CLOCKS, Account
from loopscope.engine.policy import Policy
from loopscope.engine.rules.base import Facts, Finding
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
    woken_by: Literal["repeats", "results"] | None = None
    __slots__ = ("_budgets", "_clocks", "_lowest", "_read")

    def __init__(self, policy: Policy) -> None:
        self._budgets = [(counter, policy.budget[counter]) for counter in COUNTERS if counter in policy.budget]
        lowest = {counter: min(budget.warn * budget.limit, budget.limit) for counter, budget in self._budgets}
        self._clocks = [(counter, lowest.pop(counter)) for counter in CLOCKS if counter in lowest]
        # A getter of one attribute alone gives no tuple.
        self._read = attrgetter(*lowest, "warned", "warned")
        self._lowest = tuple(lowest.values())

    def new_state(self) -> _State:
        return _State()

    def account(self, state: _State, facts: Facts, stop: Finding | None) -> Finding | None:  # noqa: ARG002 - a Rule
        accounts, now = facts.accounts, facts.ts
        for account in accounts:
            if any(map(ge, self._read(account), self._lowest)):
                break
            if self._clocks and any(account.value(counter, now) >= lowest for counter, lowest in self._clocks):
                break
        else:
            return None
        return self._found(state, accounts, now)

    def _found(self, state: _State, accounts: Sequence[Account], now: float | None) -> Finding | None:
        warning: Finding | None = None
        for counter, budget in self._budgets:
            soft = budget.warn * budget.limit
            for account in accounts:
                value = account.value(counter, now)
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
