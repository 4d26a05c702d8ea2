"""Which bounded loops a compiled graph has, and where: for whoever tests or examines a graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from loopscope.adapters.bounded.loop import BoundedLoop, loop_around
from loopscope.adapters.bounded.wrapping import wrapping_of
from loopscope.engine.policy import Policy

__all__ = ["Found", "budgets_in", "functions_of", "loops_in"]


class Found(NamedTuple):
    """A node that belongs to a bounded loop."""

    node: str
    loop: BoundedLoop
    role: str
    """`wrap`, `charge`, `give_up` or `begin`."""


def loops_in(graph: Any) -> Iterator[Found]:
    """The nodes of one graph, without its sub-graphs, that belong to bounded loops."""
    for name, node in graph.nodes.items():
        bound = getattr(node, "bound", None)
        wrapping = wrapping_of(bound)
        if wrapping is not None and (around := loop_around(wrapping.around)) is not None:
            yield Found(name, *around)
        for function in functions_of(bound):
            owner = getattr(function, "__self__", None)
            if isinstance(owner, BoundedLoop):
                yield Found(name, owner, getattr(function, "__name__", ""))


def budgets_in(graph: Any) -> bool:
    """Whether anything in one graph, without its sub-graphs, has budgets: a bounded loop, or a guard's policy."""
    if any(found.loop.budgets for found in loops_in(graph)):
        return True
    functions = (each for node in graph.nodes.values() for each in functions_of(getattr(node, "bound", None)))
    policies = (getattr(getattr(each, "__self__", None), "policy", None) for each in functions)
    return any(isinstance(policy, Policy) and policy.budget for policy in policies)


def functions_of(runnable: Any) -> list[Any]:
    """What a node calls: its function, synchronous, asynchronous or both."""
    found = (getattr(runnable, name, None) for name in ("func", "afunc"))
    return [each for each in found if callable(each)]
