from __future__ import annotations

import operator
import types
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypedDict

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt

from loopscope import BoundedLoop
from loopscope.engine.sections import Budget
from loopscope.errors import PolicyError, PredicateError, UsageError
from tests.adapters.scripted import DONE, ScriptedModel, agent, ask, bash, turn


class Work(TypedDict, total=False):
    """A state without messages."""

    rows: list[int]
    log: Annotated[list[str], operator.add]
    error: str


def bounded(node: Any, loop: BoundedLoop, schema: Any = Work, **options: Any) -> Any:
    """A graph of one node that is repeated."""
    graph: Any = StateGraph(loop.extend(schema) if options.pop("extend", True) else schema)
    graph.add_node("work", loop.wrap(node), **options)
    graph.add_node("give_up", loop.give_up)
    graph.add_edge(START, "work")
    graph.add_conditional_edges("work", loop.route, {"again": "work", "done": END, "give_up": "give_up"})
    graph.add_edge("give_up", END)
    return graph.compile()


def loop_of(**more: Any) -> BoundedLoop:
    """Three iterations, and no other bound unless one is given."""
    return BoundedLoop("work", **{"max_iterations": 3, "witness": None} | more)


def test_a_node_keeps_its_name_its_parameters_and_its_ways() -> None:
    """LangGraph hands it what its signature asks for, and draws where its return annotation says it may go."""
    seen: list[Any] = []

    def work(state: Work, config: RunnableConfig, *, runtime: Runtime[None]) -> Command[Literal["other"]]:
        """Does it."""
        seen.append(
            (config.get("configurable", {})["thread_id"], runtime.execution_info is not None, state.get("rows"))
        )
        return Command(goto="other", update={"log": ["went"]})

    loop = loop_of()
    graph: Any = StateGraph(loop.extend(Work))
    graph.add_node(loop.wrap(work))
    graph.add_node("other", lambda _: None)
    graph.add_edge(START, "work")
    compiled = graph.compile()
    final = compiled.invoke({"rows": [1]}, {"configurable": {"thread_id": "t"}})
    assert seen == [("t", True, [1])]
    assert (final["log"], final["work_iterations"]) == (["went"], 1)
    assert ("work", "other") in {(edge.source, edge.target) for edge in compiled.get_graph().edges}


class Caller:
    """An object that is called as a node."""

    def __call__(self, _: Work) -> dict[str, Any]:
        return {"log": ["object"]}

    def method(self, _: Work) -> dict[str, Any]:
        """A node that is a method."""
        return {"log": ["method"]}


@pytest.mark.parametrize(
    ("node", "log"),
    [
        (Caller(), "object"),
        (Caller().method, "method"),
        (RunnableLambda(lambda _: {"log": ["runnable"]}), "runnable"),
        (lambda _: [Command(update={"log": ["list"]})], "list"),
        (lambda _: None, None),
    ],
    ids=["object", "method", "runnable", "commands", "nothing"],
)
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_nodes_of_every_kind_are_counted(node: Any, log: str | None, asynchronous: bool) -> None:
    """What they write is written, and the loop's fields beside it."""
    graph = bounded(node, loop_of())
    final = await graph.ainvoke({"rows": []}) if asynchronous else graph.invoke({"rows": []})
    assert final["work_iterations"] == 3
    assert final.get("log", []) == ([] if log is None else [log] * 3)
    assert final["work_ended"] == "budget"


@dataclass
class Held:
    """A state that is an object, and declares the fields itself."""

    rows: list[int] = field(default_factory=list)
    work_iterations: Annotated[int, operator.add] = 0
    work_witness: Any = None
    work_best: Any = None
    work_checked: dict[str, int] | None = None
    work_began: float | None = None
    work_error: str | None = None
    work_advice: str | None = None
    work_ended: str | None = None


def test_a_state_may_be_a_dataclass_that_has_the_fields() -> None:
    """They are read as attributes; `extend` says which ones it wants where it cannot add them."""
    loop = loop_of(witness=lambda state: len(state.rows), max_iterations=9)
    final = bounded(lambda state: Held(rows=state.rows), loop, Held, extend=False).invoke(Held(rows=[1]))
    assert (final["work_ended"], final["work_iterations"]) == ("stagnation", 2)
    with pytest.raises(UsageError, match=r"no TypedDict: declare the fields work_iterations, "):
        loop.extend(Held)


def test_the_mix_in_can_be_inherited_from() -> None:
    """Beside other states."""
    loop = loop_of()
    schema: Any = types.new_class(
        "Mixed", (MessagesState, loop.State), {}, lambda body: body.update(__annotations__={"more": int})
    )
    final = bounded(lambda _: {"more": 1}, loop, schema, extend=False).invoke(ask())
    assert (final["more"], final["work_iterations"], final["messages"][0].content) == (1, 3, "go")


def test_an_exception_of_the_node_is_a_failed_iteration() -> None:
    """Not a stack trace: the same one twice is no progress, and the model would be told."""
    loop = BoundedLoop("work", max_iterations=5)
    told: list[str] = []

    def work(state: Work) -> None:
        told.append(loop.status_message(state))
        raise KeyError("orders")

    final = bounded(work, loop).invoke({"rows": [7]})
    assert (final["work_ended"], final["work_iterations"], final["rows"]) == ("stagnation", 2, [7])
    assert told == ["Attempt 1 of 5.", "Attempt 2 of 5. Previous error: KeyError: 'orders'"]
    assert final["work_error"] == "KeyError: 'orders'"


def test_what_is_not_to_be_caught_is_raised() -> None:
    """And what steers the graph always is."""

    def work(_: Work) -> None:
        raise KeyError("orders")

    with pytest.raises(KeyError, match="orders"):
        bounded(work, BoundedLoop("work", max_iterations=5, catch=(OSError,))).invoke({"rows": []})

    def asks(_: Work) -> None:
        interrupt("may I?")

    final = bounded(asks, loop_of()).invoke({"rows": []})
    assert [each.value for each in final["__interrupt__"]] == ["may I?"]


@pytest.mark.parametrize(
    ("mode", "values", "iterations"),
    [
        ("changes", [1, 2, 1, 1], 4),
        ("increases", [1, 3, 2, 9], 3),
        ("decreases", [9, 5, 5, 1], 3),
        ("shrinks", [{1, 2, 3}, {1, 2}, {2, 3}, {2}], 3),
        ("improves", [5, 3, 4, 9], 2),
        ("changes", [1, None, 1, 1], 4),
    ],
)
def test_a_witness_must_show_progress(mode: Any, values: list[Any], iterations: int) -> None:
    """By its mode; None is progress, and the value after it the first again."""
    told = iter(values)
    loop = loop_of(witness=lambda state: state.get("rows"), mode=mode, max_iterations=9)
    final = bounded(lambda _: {"rows": next(told, None)}, loop).invoke({"rows": []})
    assert (final["work_ended"], final["work_iterations"]) == ("stagnation", iterations)


def test_patience_and_the_best_witness() -> None:
    """Two iterations without a better value, not one, and the best so far stays known."""
    told = iter([5, 3, 7, 6, 6, 9])
    loop = loop_of(witness=lambda state: state.get("rows"), mode="improves", patience=2, max_iterations=9)
    final = bounded(lambda _: {"rows": next(told)}, loop).invoke({"rows": 0})
    assert (final["work_iterations"], final["work_best"], final["work_witness"]) == (5, 7, 6)
    stand = loop.standing(final)
    assert (stand.verdict, stand.stale, stand.allowed) == ("give_up", 2, 9)


def test_a_budget_counts_whatever_runs_within_the_node() -> None:
    """A sub-agent's model calls are charged to the loop around it, and to the loop around that one."""
    inner_agent = agent([turn(bash()), DONE])
    inner = BoundedLoop("inner", max_iterations=9, budgets={"model_calls": 99})
    outer = BoundedLoop("outer", max_iterations=9, witness=None, budgets={"total_tokens": {"limit": 400}})
    delegate = bounded(lambda _: inner_agent.invoke(ask()) and {"log": ["x"]}, inner)
    graph: Any = StateGraph(outer.extend(inner.extend(Work)))
    graph.add_node(
        "work", outer.wrap(lambda _: {"log": delegate.invoke({"rows": []}, {"recursion_limit": 50})["log"][:1]})
    )
    graph.add_node("give_up", outer.give_up)
    graph.add_edge(START, "work")
    graph.add_conditional_edges("work", outer.route, {"again": "work", "done": END, "give_up": "give_up"})
    final = graph.compile().invoke({"rows": []})
    assert final["outer_ended"] == "budget: total_tokens"
    assert final["outer_spent"]["model_calls"] == 10
    assert final["outer_iterations"] == 1


async def test_another_node_can_be_charged_without_being_an_iteration() -> None:
    """Where the model is asked elsewhere than where the iteration begins."""
    model = ScriptedModel(script=[DONE])
    loop = loop_of(max_iterations=9, budgets={"model_calls": 2})
    graph: Any = StateGraph(loop.extend(Work))

    async def ask_model(_: Work) -> dict[str, Any]:
        return {"log": [str((await model.ainvoke([HumanMessage("hi")])).content)]}

    graph.add_node("work", loop.wrap(lambda _: None))
    graph.add_node("model", loop.charge(ask_model))
    graph.add_edge(START, "work")
    graph.add_edge("work", "model")
    graph.add_conditional_edges("model", loop.route, {"again": "work", "done": END, "give_up": END})
    final = await graph.compile().ainvoke({"rows": []})
    assert (final["work_iterations"], final["work_spent"]["model_calls"]) == (2, 2)
    assert loop.standing(final).reason == "budget: model_calls"


def test_seconds_are_a_budget_too() -> None:
    """Since the first iteration began."""
    loop = loop_of(budgets={"wall_clock_s": 60})
    assert loop.route({"work_iterations": 1, "work_began": 1.0}) == "give_up"
    assert loop.standing({"work_iterations": 1, "work_began": 1.0}).reason == "budget: wall_clock_s"
    assert loop.standing({}).spent == {"wall_clock_s": 0.0}
    assert loop_of(budgets={"wall_clock_s": Budget(60.0)}).budgets == loop.budgets


def test_every_wrong_value_is_told_at_once() -> None:
    """With its name and the rule."""
    with pytest.raises(PolicyError) as caught:
        BoundedLoop("x", max_iterations=0, patience=0, mode="grows", budgets={"iteration": 3, "iterations": 4})  # type: ignore[arg-type]
    assert [problem.field for problem in caught.value.problems] == [
        "max_iterations", "patience", "budget.iteration", "stagnation.mode", "budget.iterations",
    ]  # fmt: skip
    with pytest.raises(PolicyError, match="witness: is last_error or results"):
        BoundedLoop("x", max_iterations=1, witness="lasterror")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="identifier"):
        BoundedLoop("two words", max_iterations=1)


MODEL = ScriptedModel(script=[DONE])


def _asks_a_global_model(state: Any) -> bool:
    return "yes" in str(MODEL.invoke(state["messages"]).content)


class Judge:
    """Holds a model."""

    def __init__(self) -> None:
        self.model = ScriptedModel(script=[DONE])

    def judges(self, _: Any) -> bool:
        """A method of it."""
        return True

    def __call__(self, _: Any) -> bool:
        return True


async def _awaited(_: Any) -> bool:
    return True


def _closure() -> Any:
    model = ScriptedModel(script=[DONE])
    return lambda state: bool(model.invoke(state["messages"]))


@pytest.mark.parametrize("role", ["success", "witness"])
@pytest.mark.parametrize(
    "judge",
    [
        *(MODEL, MODEL | RunnableLambda(bool), _asks_a_global_model, Judge().judges, Judge()),
        *(_awaited, _closure(), 3, lambda: True),
    ],
    ids=["model", "chain", "global", "method", "object", "coroutine", "closure", "number", "no-state"],
)
def test_a_predicate_that_asks_a_model_is_refused(role: str, judge: Any) -> None:
    """When the loop is made, whichever way it would get at the model; so is what is no function of the state."""
    with pytest.raises(PredicateError, match=rf"^{role}= ") as caught:
        BoundedLoop("x", max_iterations=3, **{role: judge})
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, UsageError)


def test_plain_functions_are_taken() -> None:
    """Of any kind."""
    from functools import partial

    for judge in (
        lambda _: True,
        partial(lambda _, __: True, 3),
        len,
        Caller().method,
        operator.itemgetter("x"),
    ):
        assert BoundedLoop("x", max_iterations=3, success=judge).success is judge
