"""Which messages of an invocation the tap knows already, so that none is told twice.

A message comes by in many places: as a model's answer, in what its node returns, in what graphs around it return, and
in the state that is given to every later node. It is told where it comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from langchain_core.messages import AIMessage, ToolMessage

from loopscope.adapters.tap.output import TOLD, Told, lists_in, not_in
from loopscope.adapters.tap.runs import GraphRun, NodeRun

__all__ = ["is_copy", "is_news", "keep", "not_given", "unknown"]


_START: tuple[int, object] = (0, None)


def unknown(known: Mapping[str | int, object], messages: Iterable[Told]) -> list[Told]:
    """Those of the messages that are not known."""
    return [each for each in messages if each.id not in known and id(each) not in known]


def not_given(node: NodeRun, messages: Sequence[Told]) -> Sequence[Told]:
    """Those messages that are not in the node's input. Lists grow at their ends: of each, only what is new is read."""
    root, known = node.graph.root, node.graph.root.known
    if len(known) >= known.limit:
        return not_in(node.inputs, messages)
    marks = root.marks
    for name, value in lists_in(node.inputs):
        length = len(value)
        done, last = marks.get(name, _START)
        if not 0 < done <= length or value[done - 1] is not last:
            done = 0
        if done == length:
            continue
        for item in value[done:]:
            if type(item) in TOLD or isinstance(item, (AIMessage, ToolMessage)):
                keep(root, item)
        marks[name] = (length, value[-1])
    return unknown(known, messages)


def keep(root: GraphRun, message: Told) -> None:
    """Know a message from here on."""
    name, known = message.id, root.known
    if name is not None and len(known) < known.limit:
        known[name] = None
    elif name is not None:
        known.keep(name, None)
    else:
        known.keep(id(message), message)


def is_copy(message: AIMessage, answers: Iterable[AIMessage]) -> bool:
    """Whether a node wrote down anew what a model had told it."""
    ids = [call.get("id") for call in message.tool_calls]
    for answer in answers:
        if [call.get("id") for call in answer.tool_calls] == ids and (ids or answer.content == message.content):
            return True
    return False


def is_news(node: NodeRun, message: AIMessage) -> bool:
    """Whether a message that a node returned is told here first; it is known from here on."""
    root = node.graph.root
    name, known = message.id, root.known
    if name in known or id(message) in known:
        return False
    if name is not None and not not_given(node, (message,)):
        return False
    keep(root, message)
    return not (node.answers and is_copy(message, node.answers))
