"""What bounds a cycle, and how that is known: seen in the graph's objects, or inferred from names in its code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from loopscope.adapters.bounded.found import Found, functions_of, loops_in
from loopscope.adapters.bounded.loop import BoundedLoop
from loopscope.adapters.bounded.wrapping import wrapping_of
from loopscope.adapters.langchain import LoopDetectionMiddleware
from loopscope.lint.code import mentions, name_of
from loopscope.lint.levels import Cycle, Level, Router

__all__ = ["ASKED", "Certainty", "Claim", "claims", "functions_at", "recursion_limit", "sees_steps_left"]

Certainty: TypeAlias = Literal["seen", "inferred"]
ASKED = ("counter", "witness", "escalation", "message", "budget")
"""The steps of a bounded loop that a graph can show before it runs, in order."""
_MESSAGE = "status_message"
_INTERRUPT = "interrupt"
_REMAINING = "remaining_steps"


class Claim(NamedTuple):
    """One thing that bounds a cycle."""

    step: str
    certainty: Certainty
    text: str
    node: str


def claims(level: Level, cycle: Cycle) -> list[Claim]:
    """Everything that bounds this cycle, what was seen before what was inferred, in the order of the steps."""
    found = [
        *_bounded_loops(level, cycle),
        *_middleware(level, cycle),
        *_budgets_within(level, cycle),
        *_own_counters(level, cycle),
        *_own_exits(level, cycle),
        *_told(level, cycle),
    ]
    ordered = sorted(found, key=lambda claim: (ASKED.index(claim.step), claim.certainty != "seen"))
    unique: dict[tuple[str, str], Claim] = {}
    for claim in ordered:
        unique.setdefault((claim.step, claim.text), claim)
    seen = {(claim.step, claim.node) for claim in found if claim.certainty == "seen"}
    return [each for each in unique.values() if each.certainty == "seen" or (each.step, each.node) not in seen]


def sees_steps_left(graph: Any) -> bool:
    """Whether nodes can see how near the recursion limit is, as those of a prebuilt agent do, and end before it."""
    managed = (getattr(channel, "__name__", "") for channel in (getattr(graph, "channels", None) or {}).values())
    return any(name in {"RemainingStepsManager", "IsLastStepManager"} for name in managed)


def recursion_limit(graph: Any) -> int | None:
    """The graph's own recursion limit; LangGraph's default where it has none; None where that cannot be found out."""
    own = (getattr(graph, "config", None) or {}).get("recursion_limit")
    if own is not None:
        return int(own)
    try:
        from langgraph._internal._config import DEFAULT_RECURSION_LIMIT  # noqa: PLC0415 - it is nowhere else
    except ImportError:  # pragma: no cover - another LangGraph
        return None
    return int(DEFAULT_RECURSION_LIMIT)


def _bounded_loops(level: Level, cycle: Cycle) -> Iterator[Claim]:
    known = list(loops_in(level.graph))
    for found in known:
        if found.role != "wrap" or found.node not in cycle.nodes:
            continue
        loop = found.loop
        asking = list(_asking(level.routers_of(cycle.nodes), loop))
        if not asking:
            continue
        how: Certainty = "seen" if any(each == "seen" for _, each in asking) else "inferred"
        name, node = f"BoundedLoop {loop.name}", found.node
        yield Claim("counter", how, f"{name} counts at {node}, {loop.max_iterations} iterations", node)
        if loop.witness is not None:
            compared = loop.witness if isinstance(loop.witness, str) else name_of(loop.witness)
            yield Claim("witness", how, f"{name} compares {compared}", node)
        if loop.budgets:
            yield Claim("budget", how, f"{name} has budgets: {', '.join(loop.budgets)}", node)
        yield from _given_up(known, asking, name)


def _asking(routers: Iterable[Router], loop: BoundedLoop) -> Iterator[tuple[Router, Certainty]]:
    """The routers that ask the loop, and how that is known."""
    for router in routers:
        how = _asks(router, loop)
        if how is not None:
            yield router, how


def _asks(router: Router, loop: BoundedLoop) -> Certainty | None:
    """How it is known that a router asks the loop, if it does."""
    if getattr(router.function, "__self__", None) is loop:
        return "seen"
    return "inferred" if {"route", "standing"} & mentions(router.function).names else None


def _given_up(known: list[Found], asking: list[tuple[Router, Certainty]], name: str) -> Iterator[Claim]:
    exits = {each.node for each in known if each.role == "give_up"}
    for router, how in asking:
        way = router.ways.get("give_up")
        if way in exits:
            yield Claim("escalation", how, f"{name} gives up through {way}", router.source)


def _middleware(level: Level, cycle: Cycle) -> Iterator[Claim]:
    for node in cycle.nodes:
        for owner in _owners(level.graph, node):
            if isinstance(owner, LoopDetectionMiddleware):
                yield from _detection(owner, node)
            else:
                yield from _limits(owner, node)


def _detection(guard: LoopDetectionMiddleware, node: str) -> Iterator[Claim]:
    policy, name = guard.policy, type(guard).__name__
    yield Claim("counter", "seen", f"{name} stops at {policy.tool_freq_hard_limit} calls of one tool", node)
    yield Claim("witness", "seen", f"{name} stops at {policy.hard_limit} equal batches of calls", node)
    yield Claim("escalation", "seen", f"{name} stops without a stack trace (on_stop {policy.on_stop})", node)
    yield Claim("message", "seen", f"{name} warns the model at {policy.warn_threshold} equal batches", node)
    if policy.budget:
        yield Claim("budget", "seen", f"{name} has budgets: {', '.join(policy.budget)}", node)


def _limits(owner: Any, node: str) -> Iterator[Claim]:
    """LangChain's own middlewares, known by their names and limits."""
    name = type(owner).__name__
    limits = [getattr(owner, each, None) for each in ("run_limit", "thread_limit")]
    limit = next((each for each in limits if isinstance(each, int)), None)
    ends = getattr(owner, "exit_behavior", "end") != "continue"
    if limit is not None and ends and getattr(owner, "tool_name", None) is None:
        yield Claim("counter", "seen", f"{name} ends it at {limit}", node)
    if name == "HumanInTheLoopMiddleware":
        asked = ", ".join(getattr(owner, "interrupt_on", {}))
        yield Claim("escalation", "seen", f"{name} asks a person before {asked}", node)


def _owners(graph: Any, node: str) -> Iterator[Any]:
    seen: list[Any] = []
    for function in functions_of(getattr(graph.nodes.get(node), "bound", None)):
        owner = getattr(function, "__self__", None)
        if owner is not None and not isinstance(owner, BoundedLoop) and owner not in seen:
            seen.append(owner)
            yield owner


def _budgets_within(level: Level, cycle: Cycle) -> Iterator[Claim]:
    """What a guarded sub-agent spends is charged to the run around it, so its budgets bound the outer cycle too."""
    for node, inner in level.inner:
        if node not in cycle.nodes:
            continue
        for name in inner.nodes:
            for owner in _owners(inner, name):
                if isinstance(owner, LoopDetectionMiddleware) and owner.policy.budget:
                    text = f"{type(owner).__name__} in {node} charges its budgets to the run around it"
                    yield Claim("budget", "seen", text, node)


def _own_counters(level: Level, cycle: Cycle) -> Iterator[Claim]:
    numbers = _whole_numbers(level.graph)
    for router in _ways_out(level, cycle):
        said = mentions(router.function)
        counted = sorted(numbers & said.names) if said.compares else []
        if counted:
            text = f"{name_of(router.function)} compares {', '.join(counted)} of the state"
            yield Claim("counter", "inferred", text, router.source)
        if _REMAINING in said.names:
            text = f"{name_of(router.function)} looks at {_REMAINING} of the recursion limit"
            yield Claim("counter", "inferred", text, router.source)


def _ways_out(level: Level, cycle: Cycle) -> list[Router]:
    """The routers that may lead out of the cycle."""
    inside = set(cycle.nodes)
    return [each for each in level.routers_of(cycle.nodes) if each.ends is None or set(each.ends) - inside]


def _whole_numbers(graph: Any) -> set[str]:
    """The whole numbers of the state, but for those of bounded loops."""
    ours = {field for found in loops_in(graph) for field in found.loop.fields}
    found = set()
    for name, channel in graph.channels.items():
        kind = getattr(channel, "typ", None)
        kind = get_args(kind)[0] if get_args(kind) else kind
        if kind is int and name not in ours:
            found.add(name)
    return found


def _own_exits(level: Level, cycle: Cycle) -> Iterator[Claim]:
    stops = {*_listed(level.graph, "interrupt_before_nodes"), *_listed(level.graph, "interrupt_after_nodes")}
    for node in cycle.nodes:
        if node in stops:
            yield Claim("escalation", "seen", f"the graph is compiled to interrupt at {node}", node)
    exits = {found.node for found in loops_in(level.graph) if found.role == "give_up"}
    behind = {target for source, target in level.edges if source in cycle.nodes} | set(cycle.nodes)
    for node in sorted(behind - exits):
        for function in functions_at(level.graph, node):
            if _INTERRUPT in mentions(function).names:
                yield Claim("escalation", "inferred", f"{node} calls interrupt", node)
                break


def _told(level: Level, cycle: Cycle) -> Iterator[Claim]:
    for node in cycle.nodes:
        bound = getattr(level.graph.nodes.get(node), "bound", None)
        wrapping = wrapping_of(bound)
        runs = wrapping.node if wrapping is not None else bound
        if type(runs).__name__ == "ToolNode" and _answers_errors(runs):
            yield Claim("message", "inferred", f"{node} answers with the errors of its tools", node)
        if any(_MESSAGE in mentions(function).names for function in functions_at(level.graph, node)):
            yield Claim("message", "inferred", f"{node} uses {_MESSAGE}", node)


def _answers_errors(node: Any) -> bool:
    """Whether a tool node tells the model of what its tools raise, and not of wrong arguments alone."""
    handled = getattr(node, "_handle_tool_errors", False)
    return bool(handled) and getattr(handled, "__name__", "") != "_default_handle_tool_errors"


def functions_at(graph: Any, node: str) -> list[Any]:
    """The user's functions of a node, without what is around them."""
    bound = getattr(graph.nodes.get(node), "bound", None)
    wrapping = wrapping_of(bound)
    if wrapping is not None:
        return [*functions_of(wrapping.node), wrapping.node]
    return functions_of(bound)


def _listed(graph: Any, name: str) -> list[str]:
    value = getattr(graph, name, ())
    if value == "*":
        return list(graph.nodes)
    return list(value) if isinstance(value, (list, tuple)) else []
