"""`bounded_run`: a graph whose tool or node fails for ever must end by itself, early, and well.

The graph is run twice. Once every failure is another one, so that only a counter can end the loop; once it is the same
one, so that a witness should, earlier. What is asserted of each is told by the step that is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from loopscope.adapters.bounded.found import Found, budgets_in, loops_in
from loopscope.errors import UsageError
from loopscope.testing.injecting import Fail, Failure, Turn, answering, broken, failures_of, graphs_in
from loopscope.testing.judging import missing_steps
from loopscope.testing.steps import STEPS, Missing, NotBoundedError
from loopscope.testing.told import remember
from loopscope.testing.watching import Outcome, Watch

__all__ = ["Proof", "abounded_run", "bounded_run"]

_NO_BUDGET = "nothing in the graph shows one; what your own code counts cannot be seen"
_WITHIN = 5
"""Failures that a graph may meet which does not say how many: the default of `hard_limit`."""


class Proof(NamedTuple):
    """What became of the graph in both runs."""

    varied: Outcome
    """Each failure was another one."""
    same: Outcome
    """Each failure was the same one."""
    unproven: tuple[Missing, ...] = ()
    """What two short runs cannot show and nothing in the graph shows either: the budget, where it has none."""


def bounded_run(  # noqa: PLR0913 - what is run, what fails, and what is allowed
    graph: Any,
    input: Any,  # noqa: A002 - as LangGraph calls it
    *,
    fail: Fail,
    within: int | None = None,
    through: str | None = None,
    model: Sequence[Turn] | None = None,
    config: Mapping[str, Any] | None = None,
    context: Any = None,
    budget: bool = False,
) -> Proof:
    """Run a compiled graph with a permanent failure, and assert that it is a bounded loop.

    Asserted: it ends within so many failures; earlier where the same failure recurs; through an escalation (an
    interrupt, a `give_up` node, a drain or the middleware's stop), with its input and the failure in its state; the
    model was told of the failure; and the counter is in the trace.

    Args:
        graph: compiled. It runs on a thread of its own and is left as it was.
        input: of the graph.
        fail: the tool or node that fails, by name or as itself, or errors by name: `{"run_sql": OSError("down")}`.
            A name that is both is the node's.
        within: the most failures that may be met; by default `max_iterations` of the graph's `BoundedLoop`, else 5.
        through: the node that is the escalation, where it is none of the above.
        model: answers of every chat model in place of the real ones, the last one for ever: messages, texts, or calls
            as `(tool, args)`.
        config: for the graph; its recursion limit counts where it has one.
        context: for the graph.
        budget: assert that something in the graph bounds all loops: budgets of a `BoundedLoop`, or of the middleware.
            Otherwise that it does not is told, in `Proof.unproven`, in the error, and below pytest's results.

    Raises:
        NotBoundedError: with every step that is missing; it is an `AssertionError`.
        AssertionError: if the failure was never met.
        UsageError: if `fail` or `model` make no sense.
    """
    __tracebackhide__ = True
    trial = _Trial(graph, fail, within, config, model)
    outcomes = []
    for varied in (True, False):
        with trial.prepared(varied=varied) as (watch, failures):
            error = watch.run(graph, input, context)
        outcomes.append(watch.outcome(sum(each.met for each in failures), error))
    return trial.judged(outcomes, input, through, budget=budget)


async def abounded_run(  # noqa: PLR0913 - as above
    graph: Any,
    input: Any,  # noqa: A002 - as LangGraph calls it
    *,
    fail: Fail,
    within: int | None = None,
    through: str | None = None,
    model: Sequence[Turn] | None = None,
    config: Mapping[str, Any] | None = None,
    context: Any = None,
    budget: bool = False,
) -> Proof:
    """As `bounded_run`, with the graph's asynchronous methods."""
    __tracebackhide__ = True
    trial = _Trial(graph, fail, within, config, model)
    outcomes = []
    for varied in (True, False):
        with trial.prepared(varied=varied) as (watch, failures):
            error = await watch.arun(graph, input, context)
        outcomes.append(watch.outcome(sum(each.met for each in failures), error))
    return trial.judged(outcomes, input, through, budget=budget)


class _Trial:
    """What both runs have in common."""

    def __init__(
        self, graph: Any, fail: Fail, within: int | None, config: Mapping[str, Any] | None, model: Sequence[Turn] | None
    ) -> None:
        if not hasattr(graph, "nodes") or not hasattr(graph, "stream"):
            raise UsageError(f"bounded_run takes a compiled graph, not {graph!r:.80}: call .compile() first")
        self._graph, self._fail, self._config, self._model = graph, fail, config, model
        self._graphs = [inner for _, inner in graphs_in(graph)]
        self.found: list[Found] = [each for inner in self._graphs for each in loops_in(inner)]
        most = [each.loop.max_iterations for each in self.found if each.role == "wrap"]
        self.within = within if within is not None else (max(most) if most else _WITHIN)
        if self.within < 1:
            raise UsageError(f"within= must be a whole number from 1, is {within!r:.80}")
        # Room for three times the rounds that are allowed, each through every node.
        self._limit = max(25, 3 * self.within * len(graph.nodes))

    @contextmanager
    def prepared(self, *, varied: bool) -> Iterator[tuple[Watch, list[Failure]]]:
        """The graph with its failures, and who watches it."""
        failures = failures_of(self._fail, varied=varied)
        with broken(self._graph, failures), answering(self._model):
            yield Watch(self._config, self._limit), failures

    def judged(self, outcomes: Sequence[Outcome], value: Any, through: str | None, *, budget: bool) -> Proof:
        """The proof, or the error."""
        __tracebackhide__ = True
        unproven = () if any(map(budgets_in, self._graphs)) else (Missing(STEPS["budget"], _NO_BUDGET),)
        varied, same = outcomes
        proof = Proof(varied, same, unproven)
        if not proof.varied.attempts:
            raise self._never_met(proof.varied)
        names = [failure.text for failure in failures_of(self._fail, varied=False)]
        exits = {each.node for each in self.found if each.role == "give_up"} | ({through} if through else set())
        missing = missing_steps(proof.varied, proof.same, within=self.within, value=value, exits=exits, failures=names)
        if budget:
            missing = sorted([*missing, *unproven])
            unproven = ()
        if missing:
            raise NotBoundedError(missing, unproven)
        remember(unproven)
        return proof

    def _never_met(self, outcome: Outcome) -> AssertionError:
        names = ", ".join(failure.name for failure in failures_of(self._fail, varied=False))
        visited = ", ".join(dict.fromkeys(run.name for run in outcome.trace if run.run_type in ("tool", "chain")))
        error = AssertionError(f"{names} was never called, so that it could not fail; what ran: {visited or 'nothing'}")
        error.__cause__ = outcome.error
        return error
