"""The seven steps of a bounded loop, and the error that says which of them are missing.

The axes are those of SPEC §9 (success, budget, stagnation), with what makes them of use: an exit, a model that knows,
a bound around all loops, and a number that a person can look up. `docs/bounded-loops.md` walks through them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["STEPS", "Missing", "NotBoundedError", "Step"]


class Step(NamedTuple):
    """One step."""

    number: int
    name: str
    what: str
    """What it is, in a sentence."""
    fix: str
    """How to take it."""


STEPS: dict[str, Step] = {
    step.name: step
    for step in (
        Step(
            1,
            "success",
            "Code decides that the loop is done; the model may only suggest it.",
            "BoundedLoop(success=…), and leave on loop.route(state) == 'done'",
        ),
        Step(
            2,
            "counter",
            "The state counts the iterations, and the loop ends at a number of its own.",
            "BoundedLoop(max_iterations=…): loop.wrap(node), and loop.route behind the loop's last node",
        ),
        Step(
            3,
            "witness",
            "A value must show progress from one iteration to the next; the same failure twice is none.",
            "BoundedLoop(witness='last_error'), or a function of the state",
        ),
        Step(
            4,
            "escalation",
            "The loop that is stuck goes to a person or a fallback, with its state, and never ends in a stack trace.",
            "a node loop.give_up, to which loop.route's 'give_up' leads; a checkpointer lets a person answer",
        ),
        Step(
            5,
            "message",
            "The model is told which attempt it is on and what failed.",
            "put loop.status_message(state) before the model; let tools answer with their errors (handle_tool_errors)",
        ),
        Step(
            6,
            "budget",
            "A bound around all loops, sub-agents included: tokens, money or time.",
            "BoundedLoop(budgets={'total_tokens': …}), or a policy's budget with LoopDetectionMiddleware",
        ),
        Step(
            7,
            "trace",
            "The counter is in the trace, so that a person finds the loop, and a test proves the bound.",
            "keep the counter in the state (BoundedLoop does), or call loopscope.trace() beside the middleware",
        ),
    )
}
"""By name, in order."""


class Missing(NamedTuple):
    """A step that a graph did not take."""

    step: Step
    seen: str
    """What happened instead."""

    def __str__(self) -> str:
        return f"step {self.step.number} of {len(STEPS)}, {self.step.name}: {self.seen}"


class NotBoundedError(AssertionError):
    """A graph went on where it should have ended, or ended badly; `missing` has every step that it did not take.

    `unproven` has what no run can show and nothing in the graph shows either: it is told, and not asserted.
    """

    def __init__(self, missing: Sequence[Missing], unproven: Sequence[Missing] = ()) -> None:
        self.missing = tuple(missing)
        self.unproven = tuple(unproven)
        many = f"{len(missing)} of {len(STEPS)} steps of a bounded loop {'is' if len(missing) == 1 else 'are'} missing"
        lines = [f"{many} (docs/bounded-loops.md)"]
        for each in missing:
            lines += [f"  {each}", f"    fix: {each.step.fix}"]
        lines += [f"  not asserted: {each} ({each.step.fix})" for each in unproven]
        super().__init__("\n".join(lines))
