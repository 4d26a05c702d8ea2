"""Layer `budget`: what a scope, with all that it handed on, may spend.

The outer bound of a loop: it holds whatever the loop looks like. A batch is looked at in its own account and in those
of its ancestors; the first counter that is used up stops it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, inf
from typing import Any, Literal

from loopscope.engine.accounts import Account
from loopscope.engine.policy import Policy
from loopscope.engine.rules.base import Facts, Finding
from loopscope.engine.sections import COUNTERS, Budget

__all__ = ["BudgetRule"]


_WHOLE = frozenset(COUNTERS) - {"cost_usd", "wall_clock_s"}


class _State:
    """The marks of the account whose warning was found last, until it is known whether it is emitted."""

    __slots__ = ("marks",)

    def __init__(self) -> None:
        self.marks: set[str] = set()


class _Least:
    """For each counter the value below which its budget has nothing to say: without end where it has no budget.

    Of counters that are whole numbers it is one too: those are compared in a fraction of the time.
    """

    __slots__ = COUNTERS

    def __init__(self, budgets: Mapping[str, Budget]) -> None:
        for counter in COUNTERS:
            budget = budgets.get(counter)
            least = inf if budget is None else min(budget.warn * budget.limit, budget.limit)
            setattr(self, counter, floor(least) if least < inf and counter in _WHOLE else least)


class BudgetRule:
    """Compares accounts with limits."""

    layer = "budget"
    woken_by: Literal["repeats", "results"] | None = None
    __slots__ = ("_budgets", "_least")

    def __init__(self, policy: Policy) -> None:
        self._budgets = [(counter, policy.budget[counter]) for counter in COUNTERS if counter in policy.budget]
        self._least: Any = _Least(policy.budget)

    def new_state(self) -> _State:
        return _State()

    def account(self, state: _State, facts: Facts, stop: Finding | None) -> Finding | None:  # noqa: ARG002 - a Rule
        least, now = self._least, facts.ts
        for account in facts.accounts:
            # One by one: this is asked of every batch, and a loop over names would cost as much as all other layers.
            if (
                account.iterations >= least.iterations
                or account.model_calls >= least.model_calls
                or account.tool_calls >= least.tool_calls
                or account.input_tokens >= least.input_tokens
                or account.output_tokens >= least.output_tokens
                or account.total_tokens >= least.total_tokens
                or account.cost_usd >= least.cost_usd
                or len(account.recent) >= least.requests_per_minute
                or (now is not None and account.started is not None and now - account.started >= least.wall_clock_s)
            ):
                return self._found(state, facts.accounts, now)
        return None

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
