"""What a rule is: the facts it sees, the finding it gives, and how its state is kept and saved.

A layer is one file here. It keeps state of its own per scope, accounts every batch (and, some, every result), and says
what it found. Which finding becomes the decision is the detector's business alone: rules are asked in the order of
severity, and a stop of an earlier one is told to the later ones, which may care (`tool_frequency` does not account such
a batch).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from loopscope.engine.accounts import Account
from loopscope.engine.rules.window import Window
from loopscope.engine.trail import Brought, Trail

__all__ = ["Facts", "Finding", "ResultRule", "ResultStep", "Rule", "RuleState", "Step", "WitnessRule", "WokenBy"]

WokenBy: TypeAlias = Literal["repeats", "results", "accounts"]
"""Calls that occur more than once, a stop that was found at results, accounts near to a budget."""

RuleState: TypeAlias = Any
"""The state of one rule in one scope; only that rule knows its type."""


class Facts(Struct, frozen=True, gc=False):
    """What the rules see of a batch: enough to decide it again without its arguments."""

    n: int
    """Number of the batch over the whole recording, from 1."""
    seq: int
    ts: float | None
    hash: str
    names: tuple[str, ...]
    """Tool names in model order, empty where a call has none."""
    window: Window
    """The hashes of the scope's newest batches: with this one's for all rules but the first, which adds it."""
    repeats: tuple[tuple[str, str, int], ...] = ()
    """Calls that occur more than once in it: what their key is known by, their tool, how often."""
    trail: Trail | None = None
    """What the scope's batches brought; None under a policy that does not look at results."""
    accounts: Sequence[Account] = ()
    """The accounts that it is charged to, nearest first; none where no budget can have anything to say."""


class Finding(Struct, frozen=True, gc=False):
    """What one rule says of a batch: that it warns, or that it stops."""

    action: Literal["warn", "hard_stop"]
    layer: str
    tool: str | None
    count: int | float
    threshold: int | float
    mark: str | None = None
    """What is marked as warned if this finding is the one that is emitted."""
    counter: str | None = None
    """The counter of a budget."""


Step: TypeAlias = "Callable[[RuleState, Facts, Finding | None], Finding | None]"
"""`Rule.account`, bound to its rule."""


ResultStep: TypeAlias = "Callable[[RuleState, Brought], Finding | None]"
"""`ResultRule.account_results`, bound to its rule."""


class Rule(Protocol):
    """One layer under one policy: frozen, shared by all scopes; what changes is in the state that it is handed."""

    @property
    def layer(self) -> str:
        """Its name in decisions."""
        ...

    @property
    def woken_by(self) -> WokenBy | None:
        """What a batch must bring for it to be asked; None: it is asked about every batch."""
        ...

    def new_state(self) -> RuleState:
        """The state of a scope that has seen nothing."""
        ...

    def account(self, state: RuleState, facts: Facts, stop: Finding | None) -> Finding | None:
        """Account a batch; `stop` is the finding of an earlier layer that stops it."""
        ...

    def mark(self, state: RuleState, finding: Finding) -> None:
        """This rule's warning was emitted."""
        ...

    def dump(self, state: RuleState) -> dict[str, Any]:
        """The state as plain JSON data."""
        ...

    def load(self, data: dict[str, Any]) -> RuleState:
        """The state that `dump` gave."""
        ...


@runtime_checkable
class ResultRule(Rule, Protocol):
    """A layer that decides when the last result of a batch is in."""

    def account_results(self, state: RuleState, brought: Brought) -> Finding | None:
        """Account a batch whose results are all in; a stop found here falls on the scope's next batch too."""
        ...


@runtime_checkable
class WitnessRule(Rule, Protocol):
    """A layer that looks at the program's own witnesses."""

    def account_witness(self, state: RuleState, values: dict[str, Any], *, complete: bool) -> Finding | None:
        """Account values; `complete` tells that the results of the newest batch are all in."""
        ...
