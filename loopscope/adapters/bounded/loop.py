"""`BoundedLoop`: a loop of a StateGraph with three bounds, an escalation in place of a stack trace, and a counter.

    loop = BoundedLoop("sql", max_iterations=3, success=answered)
    graph = StateGraph(loop.extend(MessagesState))
    graph.add_node("analyst", loop.wrap(analyst))
    graph.add_node("give_up", loop.give_up)
    graph.add_conditional_edges("tools", loop.route, {"again": "analyst", "done": END, "give_up": "give_up"})
    graph.add_conditional_edges("give_up", loop.route, {"again": "analyst", "done": END, "give_up": END})

Code decides when it is over, never the model; `docs/bounded-loops.md` tells why, step by step.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, Literal, TypeVar

from langgraph.errors import GraphBubbleUp
from langgraph.graph.message import add_messages
from langgraph.runtime import get_runtime
from langgraph.types import interrupt

from loopscope.adapters.bounded.fields import Fields, read, typed_dict, whole
from loopscope.adapters.bounded.meter import Meter, metered
from loopscope.adapters.bounded.predicates import Predicate, plain
from loopscope.adapters.bounded.standing import Bounds, Standing, Verdict, behind_node, standing
from loopscope.adapters.bounded.updates import merged, reducers_of, writes_of, written_to
from loopscope.adapters.bounded.witnesses import BUILT_IN, built_in, error_in
from loopscope.adapters.bounded.wrapping import wrapped
from loopscope.adapters.escalation import answer_of, can_wait
from loopscope.adapters.loops import Loop
from loopscope.adapters.scope_id import scope_at
from loopscope.adapters.traces import note
from loopscope.engine.policy import Policy
from loopscope.engine.sections import COUNTERS, Budget, WitnessMode
from loopscope.errors import PolicyError, Problem, UsageError
from loopscope.recording.bus import bus

__all__ = ["BoundedLoop", "loop_around"]

S = TypeVar("S")
_COUNTERS = ("model_calls", "tool_calls", "input_tokens", "output_tokens", "total_tokens", "cost_usd", "wall_clock_s")
"""What a loop can measure by itself; of the engine's counters, `max_iterations` is one more."""
_log = logging.getLogger("loopscope")


class BoundedLoop:
    """The bounds of one loop of a graph. Frozen: what a run has used up of them is in the graph's state.

    Args:
        name: an identifier; the loop's fields in the state begin with it.
        max_iterations: how often the wrapped node may run, from 1.
        witness: what must show progress from one iteration to the next: a function of the state, `"last_error"` (the
            same tool failed with the same error, numbers and case aside), `"results"` (the tools gave back the same),
            or None for no such bound. A value of None counts as progress.
        success: a function of the state that is true once the loop is done; None where the graph's own edges leave it.
        budgets: further limits by counter, as in a policy: model_calls, tool_calls, input_tokens, output_tokens,
            total_tokens, cost_usd, wall_clock_s. Whatever runs within the wrapped node, sub-agents too, is charged.
        mode: what counts as progress of a witness of your own: `changes`, `increases`, `decreases`, `shrinks` (a set,
            strictly) or `improves` (beats the best so far).
        patience: iterations in a row without progress that end the loop, from 1.
        catch: what the wrapped node may raise without ending the run: a failed iteration, told to the log and the
            model. `()` for nothing.

    Raises:
        PredicateError: if `witness` or `success` is no plain function, or uses a model.
        PolicyError: with every other value that is wrong.
    """

    def __init__(  # noqa: PLR0913 - one parameter an axis, and how each is read
        self,
        name: str,
        *,
        max_iterations: int,
        witness: Predicate | Literal["last_error", "results"] | None = "last_error",
        success: Predicate | None = None,
        budgets: Mapping[str, Any] | None = None,
        mode: WitnessMode = "changes",
        patience: int = 1,
        catch: type[Exception] | tuple[type[Exception], ...] = Exception,
    ) -> None:
        limits = _checked(name, max_iterations, mode, patience, budgets or {})
        self.name = name
        self.fields = Fields.of(name)
        self.max_iterations = max_iterations
        self.witness: Predicate | str | None = witness
        if witness is not None and not isinstance(witness, str):
            plain("witness", witness)
        self.success = None if success is None else plain("success", success)
        self.budgets = limits
        self._catch = catch
        compared = None if isinstance(witness, str) else witness
        if isinstance(witness, str):
            compared, mode = built_in(_known(witness), self.fields), "changes"
        self._bounds = Bounds(self.fields, max_iterations, compared, mode, patience, self.success, limits)
        self._reducers: dict[str, Callable[[Any, Any], Any]] = {"messages": add_messages}
        """Those of the state, as far as they are known; the state's own messages most often have this one."""
        self.State: Any = typed_dict(f"{name.title().replace('_', '')}State", self.fields.annotations())
        """The loop's fields as a `TypedDict`, to be mixed into the graph's state."""

    def extend(self, schema: type[S]) -> type[S]:
        """The graph's state with the loop's fields: `StateGraph(loop.extend(State))`.

        Raises:
            UsageError: if the state is no `TypedDict`.
        """
        made = self.fields.mixed_into(schema)
        self._reducers.update(reducers_of(made))
        return made

    def wrap(self, node: Any) -> Any:
        """The node with which an iteration begins, counted: a function, a coroutine function or a runnable.

        Wrap one that every round passes through, most often the one that asks the model.
        """
        return wrapped(node, self._Counting(self))

    def charge(self, node: Any) -> Any:
        """Another node of the loop, whose models spend its budgets; it is no iteration."""
        return wrapped(node, self._Charging(self))

    def standing(self, state: Any) -> Standing:
        """How the loop stands in this state: the verdict and every count behind it."""
        return standing(state, self._bounds)

    def route(self, state: Any) -> Verdict:
        """Where the loop goes on, for `add_conditional_edges`: `again`, `done` or `give_up`."""
        return self.standing(state).verdict

    def status_message(self, state: Any) -> str:
        """What the model should know of the loop: which attempt this is, what went wrong, what a person advised."""
        now = standing(state, self._bounds, within=True)
        parts = [f"Attempt {min(now.iterations + 1, now.allowed)} of {now.allowed}."]
        error = error_in(state, self.fields) if now.iterations else None
        if error:
            parts.append(f"Previous error: {error}")
        elif now.stale:
            parts.append("The previous attempt brought no progress.")
        advice = read(state, self.fields.advice)
        if advice:
            parts.append(f"Advice: {advice}")
        return " ".join(parts)

    def begin(self, state: Any) -> dict[str, Any]:
        """A node before the loop that gives it its bounds anew: for threads in which several questions are asked."""
        fields = self.fields
        fresh: dict[str, Any] = dict.fromkeys(fields)
        fresh[fields.iterations] = -read(state, fields.iterations, 0)
        fresh[fields.renewed] = -read(state, fields.renewed, 0)
        fresh[fields.spent] = {counter: -value for counter, value in read(state, fields.spent, {}).items()}
        return fresh

    def give_up(self, state: Any) -> dict[str, Any]:
        """The node that ends the loop: it asks a person, where there is a checkpointer to wait with, else it ends.

        Whoever resumes with `Command(resume=…)` decides: nothing, False or "stop" leaves it ended; True grants the
        bounds once more; so does a text, which the model is told, and a mapping, which is written to the state.
        """
        now = self.standing(state)
        reason = now.reason if now.verdict == "give_up" else "escalated"
        ended = {**self._told(now), self.fields.ended: reason}
        _show(self.name, now.witness, gave_up=True)
        facts = {f"loopscope.{self.name}.reason": reason}
        note(f"loopscope.{self.name}.give_up", facts, self._counters(now), tag="loopscope:give_up")
        if not can_wait():
            return ended
        told = {"reason": reason, "iterations": now.iterations, "witness": now.witness, "state": whole(state)}
        answer = interrupt(told)
        if answer_of(answer) == "stop":
            return ended
        return {**self._told(now), **self._renewed(state, now), **_written(answer, self.fields)}

    def _begun(self, state: Any) -> dict[str, Any]:
        """What an iteration writes that begins in this state."""
        fields = self.fields
        more: dict[str, Any] = {fields.iterations: 1, fields.error: None}
        if isinstance(state, Mapping) and fields.iterations not in state:
            # It was sent a part of the state, which does not tell how the loop stands.
            return more
        now = standing(state, self._bounds, within=True)
        more |= {**self._told(now), fields.advice: None}
        if now.iterations:
            _show(self.name, now.witness)
        else:
            more[fields.began] = time.time()
        note(f"loopscope.{self.name}.iteration", {}, self._counters(now, 1))
        return more

    def _counters(self, now: Standing, begun: int = 0) -> dict[str, int]:
        """What traces are told of it."""
        counters = {"iterations": now.iterations + begun, "allowed": now.allowed, "without_progress": now.stale}
        return {f"loopscope.{self.name}.{counter}": value for counter, value in counters.items()}

    def _told(self, now: Standing) -> dict[str, Any]:
        fields = self.fields
        checked = {"iteration": now.iterations, "stale": now.stale}
        return {fields.witness: now.witness, fields.best: now.best, fields.checked: checked}

    def _renewed(self, state: Any, now: Standing) -> dict[str, Any]:
        fields = self.fields
        checked = {"iteration": now.iterations, "stale": 0}
        after = {**read(state, fields.after, {}), "stale": 0}
        return {
            fields.renewed: 1,
            fields.checked: checked,
            fields.after: after if "value" in after else None,
            fields.began: time.time(),
            fields.ended: None,
        }

    class _Charging:
        """Charges a node."""

        def __init__(self, loop: BoundedLoop) -> None:
            self.loop = loop

        @contextmanager
        def visit(self, state: Any) -> Iterator[_Visit]:
            with metered() if self.loop.budgets else nullcontext() as meter:
                yield _Visit(self.loop, state, meter, {})

    class _Counting:
        """Counts a node."""

        def __init__(self, loop: BoundedLoop) -> None:
            self.loop = loop

        @contextmanager
        def visit(self, state: Any) -> Iterator[_Visit]:
            loop = self.loop
            more = loop._begun(state)  # noqa: SLF001 - its own
            with metered() if loop.budgets else nullcontext() as meter:
                try:
                    yield _Visit(loop, state, meter, more)
                except GraphBubbleUp:
                    raise
                except loop._catch as error:  # noqa: SLF001 - its own
                    _log.warning("an iteration of loop %s failed", loop.name, exc_info=error)
                    more[loop.fields.error] = f"{type(error).__name__}: {error}"


class _Visit:
    """One execution of a node of the loop."""

    def __init__(self, loop: BoundedLoop, state: Any, meter: Meter | None, more: dict[str, Any]) -> None:
        self._loop = loop
        self._state = state
        self._meter = meter
        self._more = more

    def result(self, update: Any) -> Any:
        """What the node writes, with the loop's fields."""
        loop, more = self._loop, self._more
        if self._meter is not None and self._meter.spent:
            more[loop.fields.spent] = self._meter.spent
        if callable(loop.witness) and loop.fields.iterations in more:
            then = written_to(self._state, {**writes_of(update), **more}, loop._reducers)  # noqa: SLF001 - its own
            more[loop.fields.after] = behind_node(then, loop._bounds, self._state)  # noqa: SLF001 - its own
        return merged(update, more)


def _show(name: str, witness: Any, *, gave_up: bool = False) -> None:
    """Tell whoever observes this run what the loop's witness is, and that the run ends for having given up."""
    there = scope_at(get_runtime())
    if not isinstance(there, Loop):
        return
    if witness is not None and (bus.active or there.recorders):
        there.guard.witness(there, {name: witness})
    if gave_up:
        there.stopped = "escalated"


def loop_around(around: object) -> tuple[BoundedLoop, str] | None:
    """The loop that is around a wrapped node, and as what: `wrap` or `charge`."""
    if isinstance(around, BoundedLoop._Counting):  # noqa: SLF001 - its own
        return around.loop, "wrap"
    return (around.loop, "charge") if isinstance(around, BoundedLoop._Charging) else None  # noqa: SLF001 - its own


def _written(answer: Any, fields: Fields) -> dict[str, Any]:
    if isinstance(answer, Mapping):
        return dict(answer)
    return {fields.advice: answer} if isinstance(answer, str) else {}


def _known(witness: str) -> str:
    if witness not in BUILT_IN:
        raise PolicyError([Problem("witness", f"is {' or '.join(BUILT_IN)}, or a function, is {witness!r:.80}")])
    return witness


def _checked(
    name: str, max_iterations: int, mode: str, patience: int, budgets: Mapping[str, Any]
) -> Mapping[str, float]:
    if not str(name).isidentifier():
        raise UsageError(f"the name of a loop begins the names of its fields: an identifier, not {name!r:.80}")
    problems = [
        Problem(field, f"must be a whole number from 1, is {value!r:.80}")
        for field, value in (("max_iterations", max_iterations), ("patience", patience))
        if type(value) is not int or value < 1
    ]
    policy = Policy()
    try:
        plain_budgets = {
            key: value if isinstance(value, (Mapping, Budget)) else {"limit": value} for key, value in budgets.items()
        }
        policy = Policy.parse({"budget": plain_budgets, "stagnation": {"mode": mode}})
    except PolicyError as error:
        problems += error.problems
    problems += [
        Problem(f"budget.{counter}", f"cannot be measured by a loop: {', '.join(_COUNTERS)} can")
        for counter in budgets
        if counter in COUNTERS and counter not in _COUNTERS
    ]
    if problems:
        raise PolicyError(problems)
    return {counter: budget.limit for counter, budget in policy.budget.items()}
