"""The tap before the gate of a live link: a callback may hold a run, by blocking its thread or by being awaited.

Apart from the callbacks themselves, which are the same whether anybody can hold a batch or not. LangChain awaits what
is a coroutine function when it asks for it, so that is decided anew each time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from inspect import CO_COROUTINE
from types import MethodType
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.runtime import get_runtime

from loopscope.adapters.tap.observer import Observer
from loopscope.adapters.tap.runs import NodeRun
from loopscope.recording.gate import JUDGE, Arrival, Gate, Ruling, gatehouse

__all__ = ["EitherWay", "admitted", "asked"]

_EVERY = 0.25
"""Seconds between two looks at whether the node still runs, and between two heartbeats of one whose time is limited."""


class EitherWay:
    """A callback that is a coroutine function where a batch may be held and whoever asks for it can await it.

    Args:
        plain: the callback as a function.
        awaited: as a coroutine function.
    """

    def __init__(self, plain: Callable[..., None], awaited: Callable[..., Any]) -> None:
        self._plain = plain
        self._awaited = awaited

    def __get__(self, handler: object, owner: type | None = None) -> Any:
        """The one that fits, bound to the handler."""
        gate = gatehouse.gate
        if handler is None:
            return self
        if gate is None or not gate.armed:
            return MethodType(self._plain, handler)
        asks = sys._getframe(1).f_code  # noqa: SLF001 - LangChain does not say whether it will await
        return MethodType(self._awaited if asks.co_flags & CO_COROUTINE else self._plain, handler)


def admitted(observer: Observer, node: NodeRun, message: BaseMessage) -> Ruling:
    """What the gate says of a message, after as long as it takes, on this thread."""
    gate = gatehouse.gate
    arrival = _arrival(gate, observer, node, message)
    if gate is None or arrival is None:
        return JUDGE
    try:
        return gate.admit(arrival)
    except _OverError:
        return JUDGE


async def asked(observer: Observer, node: NodeRun, message: BaseMessage) -> Ruling:
    """As `admitted`, in this task alone."""
    gate = gatehouse.gate
    arrival = _arrival(gate, observer, node, message)
    if gate is None or arrival is None:
        return JUDGE
    try:
        return await gate.aadmit(arrival)
    except _OverError:
        return JUDGE


def _arrival(gate: Gate | None, observer: Observer, node: NodeRun, message: BaseMessage) -> Arrival | None:
    if gate is None or not gate.armed or not isinstance(message, AIMessage):
        return None
    arrival = observer.arrival(node, message)
    return arrival if arrival is None else arrival._replace(heartbeat=partial(_beat, node, _heartbeat()), every=_EVERY)


class _OverError(BaseException):
    """Ends the waiting, from within a heartbeat, where all that is an Exception is ignored."""


def _beat(node: NodeRun, heartbeat: Callable[[], object] | None) -> None:
    """Keep the node alive; but a cancelled one is over, although LangChain shields its callbacks from that."""
    if node.failed or node.graph.over:
        raise _OverError
    if heartbeat is not None:
        heartbeat()


def _heartbeat() -> Callable[[], object] | None:
    """Keeps the node from being taken for stuck; None outside of one."""
    try:
        return get_runtime().heartbeat
    except Exception:  # noqa: BLE001 - a node may end outside of its own context
        return None
