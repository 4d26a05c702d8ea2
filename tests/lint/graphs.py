"""Graphs of every kind of bound, each by a name that the tests give to `loopscope lint`."""

from __future__ import annotations

import operator
from typing import Annotated, Any, Literal, TypedDict

from langchain.agents.middleware import HumanInTheLoopMiddleware, ModelCallLimitMiddleware, ToolCallLimitMiddleware
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.managed import RemainingSteps
from langgraph.types import Command, interrupt

from loopscope import BoundedLoop, LoopDetectionMiddleware, Policy
from tests.adapters.bounded import sql
from tests.adapters.scripted import DONE, ScriptedModel, agent

print("a module may print while it is imported")  # noqa: T201 - it must not get into the data


class Tries(TypedDict, total=False):
    """A state with a counter."""

    tries: Annotated[int, operator.add]
    log: list[str]


class Steps(TypedDict, total=False):
    """A state that knows how many steps are left."""

    log: list[str]
    remaining_steps: RemainingSteps


def _one(
    schema: Any, router: Any, *, ends: Any = None, node: Any = None, **more: Any
) -> StateGraph[Any, Any, Any, Any]:
    graph: Any = StateGraph(schema)
    graph.add_node("work", node or (lambda _: None))
    for name, function in more.items():
        graph.add_node(name, function)
    graph.add_edge(START, "work")
    if router is None:
        graph.add_edge("work", "work")
    elif router is not False:
        graph.add_conditional_edges("work", router, ends)
    return graph  # type: ignore[no-any-return]


def onward(state: Any) -> Literal["work", "__end__"]:
    """Compares a counter, in a function that it calls."""
    return "__end__" if _many(state) else "work"


def _many(state: Any) -> bool:
    return bool(state["tries"] >= 3)


def says_so(state: Any) -> Literal["work", "__end__"]:
    """Compares no counter."""
    return "__end__" if state["log"] == ["done"] else "work"


def left(state: Any) -> Literal["work", "__end__"]:
    """Leaves before the recursion limit."""
    return "__end__" if state["remaining_steps"] < 2 else "work"


def anywhere(state: Any) -> str:
    """Does not say where it leads."""
    return str(state["log"][-1])


def goes(state: Any) -> Command[Literal["work", "__end__"]]:
    """A node that is its own router, with a counter."""
    return Command(goto="work" if state["tries"] < 3 else "__end__")


def asks(_: Any) -> None:
    """Asks a person."""
    interrupt("help")


counted = _one(Tries, onward)
unlooked = _one(Tries, says_so)
remaining = _one(Steps, left)
told_what_is_left = _one(Steps, says_so)
vague = _one(Tries, anywhere, other=lambda _: None)
commanded = _one(Tries, False, node=goes)
closed = _one(Tries, None)
asking = _one(Tries, says_so, ends={"work": "work", "__end__": "help"}, help=asks)
stopping = _one(Tries, says_so).compile(interrupt_before=["work"])
straight = _one(Tries, lambda _: "__end__", ends=["__end__"])

bare = sql.unguarded([DONE])
guarded = sql.guarded(ScriptedModel(script=[DONE]))
whole = sql.guarded(
    ScriptedModel(script=[DONE]),
    BoundedLoop("sql", max_iterations=3, success=sql.answered, budgets={"total_tokens": 20_000}),
)

_loop = BoundedLoop("work", max_iterations=3)
_forgets = StateGraph(_loop.extend(MessagesState))
_forgets.add_node("work", _loop.wrap(lambda _: None))
_forgets.add_edge(START, "work")
_forgets.add_conditional_edges("work", says_so)
forgets = _forgets.compile()

plain_agent = agent([DONE])
guarded_agent = agent([DONE], LoopDetectionMiddleware())
limited = agent([DONE], ModelCallLimitMiddleware(run_limit=3))
half_limited = agent([DONE], ToolCallLimitMiddleware(run_limit=3))
approved = agent([DONE], HumanInTheLoopMiddleware(interrupt_on={"bash": True}))

_spending = LoopDetectionMiddleware(policy=Policy.parse({"budget": {"total_tokens": {"limit": 9}}}))


def _team(*middleware: Any) -> Any:
    graph: Any = StateGraph(MessagesState)
    for name, other in (("writer", "critic"), ("critic", "writer")):
        graph.add_node(name, agent([DONE], *middleware, name=name))
        graph.add_edge(name, other)
    graph.add_edge(START, "writer")
    return graph.compile()


team = _team(LoopDetectionMiddleware())
spending_team = _team(_spending)


def make() -> Any:
    """Makes a graph."""
    return bare


async def amake() -> Any:
    """As servers take it too."""
    return make()


def fails() -> Any:
    """Makes none."""
    raise RuntimeError("no key")


class Holder:
    """Holds one."""

    inner = bare


number = 3
