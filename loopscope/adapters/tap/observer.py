"""What the tap makes of runs: which loop a message belongs to, whether it is a new one, and what becomes of it.

Apart from the callbacks, which only find the run. A model's answer is told when the model gives it, before any tool
runs; what a node returns is told when the node ends, unless it is known by then.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.errors import GraphDrained, GraphInterrupt, ParentCommand

from loopscope.adapters.facts import calls_of, error_type_of, model_of, text_of, usage_of
from loopscope.adapters.loops import Loop, Outcome, Said
from loopscope.adapters.publisher import Ending
from loopscope.adapters.tap.known import is_copy, keep, not_given, unknown
from loopscope.adapters.tap.output import Told, messages_in, result_in, sole_message
from loopscope.adapters.tap.reach import stands_before_a_node
from loopscope.adapters.tap.runs import Asked, Bounded, Earlier, Failure, GraphRun, NodeRun, ToolRun
from loopscope.adapters.tap.watcher import Watched, Watcher
from loopscope.engine.events import Call, Graph
from loopscope.engine.identity import dumps
from loopscope.recording.bus import bus
from loopscope.recording.gate import JUDGE, Arrival, Ruling
from loopscope.recording.preview import text_of as content_of

__all__ = ["Observer"]

_ANSWERS = 256
"""Answers of models within one execution of a node that are remembered."""
_EARLIER = 256
"""Executions of nodes that failed or were interrupted, and that are remembered for when they are executed again."""


class Observer:
    """Tells what happens in runs to one engine.

    Args:
        watcher: the engine.
        graph: whose structure is told where that of the running graph cannot be reached.
    """

    def __init__(self, watcher: Watcher, graph: object) -> None:
        self.watcher = watcher
        self._graph = graph
        self.earlier: Bounded[str, Earlier] = Bounded(_EARLIER)
        """By task id, executions of nodes that failed or were interrupted."""

    def begin(self, node: NodeRun) -> None:
        """A node begins."""
        graph = node.graph
        if graph.loop is None and graph.outer is None:
            self.loop_of(graph)
        if self.earlier and (earlier := self.earlier.pop(node.task_id, None)) is not None:
            node.again, node.results = earlier.asked, earlier.results

    def loop_of(self, graph: GraphRun) -> Watched | None:
        """The loop that the messages of this run belong to; None where somebody else tells them."""
        loop = graph.loop
        if loop is None:
            return None if graph.silent else self._enter(graph)
        there = loop.invocation.scopes.get(loop.prefix)
        if there is not loop and isinstance(there, Loop):
            taken = there.guard is not loop.guard and there.thread == loop.thread
            return self._yield(graph) if taken else loop
        return loop

    def show(self, graph: GraphRun) -> None:
        """Let whoever watches know of this run, before there is a message: a model may take its time."""
        if self.watcher.watched and (loop := self.loop_of(graph)) is not None:
            self.watcher.show(loop)

    def arrival(self, node: NodeRun, message: AIMessage) -> Arrival | None:
        """The batch in this message as it stands before the gate; None where there is none to be told."""
        loop = self.loop_of(node.graph) if message.tool_calls else None
        if loop is None or (node.again and node.again[0].calls == _asked(message).calls):
            return None
        return self.watcher.held(loop, calls_of(message), message.id, node.name)

    def is_put_by(self, node: NodeRun, message: AIMessage, *, answer: bool) -> bool:
        """Put an AI message by, to be looked at with others, where nobody watches; False where that cannot be.

        Args:
            node: that it comes from.
            message: of which the calls are taken now, since the program may change its own later.
            answer: a model gave it, so that it is new; else it is one that the node returned.
        """
        watcher, loop = self.watcher, node.graph.loop
        if (
            watcher.full or bus.active or node.again
            or loop is None or loop.invocation.scopes.get(loop.prefix) is not loop
        ):  # fmt: skip
            return False
        if answer:
            _remember(node, message)
        if loop.record is not None:
            loop.record.used = True
        watcher.put_by((loop.place, _calls_now(message), node.graph.root if answer else node, message))
        return True

    def answered(self, node: NodeRun, message: AIMessage) -> None:
        """A model gave an answer; it is known from here on."""
        _remember(node, message)
        keep(node.graph.root, message)

    def returned(self, node: NodeRun, output: object) -> None:
        """A node ended that no gate holds."""
        only, answers = sole_message(output), node.answers
        if only is not None:
            # Most often a model's answer, which is known, or a tool's, which nobody asks for while nobody watches.
            if answers and answers[-1] is only:
                return
            if type(only) is AIMessage:
                if self.is_put_by(node, only, answer=False):
                    return
            elif not (self.watcher.full or bus.active):
                return
        for message in self.fresh(node, output):
            self.take(node, message, JUDGE)

    def said(self, node: NodeRun, message: AIMessage, ruling: Ruling) -> None:
        """A new AI message."""
        graph = node.graph
        loop = graph.loop
        if loop is None or loop.invocation.scopes.get(loop.prefix) is not loop:
            loop = self.loop_of(graph)
            if loop is None:
                return
        asked = message.tool_calls
        if asked and node.again and self._is_again(node, message):
            return
        watcher = self.watcher
        if loop.record is not None:
            loop.record.used = True
        if watcher.full or bus.active:
            watcher.decide(loop, calls_of(message), None, partial(_said, node.name), message)
        elif asked:
            watcher.put_by((loop.place, _calls_now(message), None, message))
        if ruling.verdict == "stop":
            self._drain(graph.root, ruling.by)

    def take(self, node: NodeRun, message: Told, ruling: Ruling) -> None:
        """A message that is new."""
        if type(message) is AIMessage or isinstance(message, AIMessage):
            self.said(node, message, ruling)
        else:
            self.tool_said(node, message)

    def fresh(self, node: NodeRun, output: object) -> Sequence[Told]:
        """The messages in a node's output that are not known yet; from here on they are."""
        self.watcher.catch_up()
        known = node.graph.root.known
        only = sole_message(output)
        found: Sequence[Told] = unknown(known, messages_in(output) if only is None else (only,))
        if len(found) > 1 or (found and found[0].id is not None):
            found = not_given(node, found)
        for each in found:
            keep(node.graph.root, each)
        if not node.answers:
            return found
        return [each for each in found if isinstance(each, ToolMessage) or not is_copy(each, node.answers)]

    def tool_said(self, node: NodeRun, message: ToolMessage) -> None:
        """A tool message that a node returned."""
        call_id = message.tool_call_id
        failure = node.failures.pop(call_id, None) if node.failures else None
        if call_id in node.results or not self.watcher.watched:
            return
        text = content_of(message.content)
        kind = type(failure.error).__name__ if failure is not None else error_type_of(message, text)
        failed = message.status == "error" or failure is not None
        took = failure.duration_s if failure is not None else None
        name = message.name or (failure.name if failure is not None else None)
        self._result(node, Outcome(message.id, call_id, name, failed, text, kind, took))

    def tool_ended(self, tool: ToolRun, output: object, duration_s: float) -> None:
        """A tool gave something back."""
        node, call_id = tool.node, tool.call_id
        if node.failures:
            node.failures.pop(call_id, None)
        if call_id is None or call_id in node.results or not self.watcher.watched:
            return
        message = result_in(output, call_id)
        text = content_of(message.content) if message is not None else ""
        failed = message is not None and message.status == "error"
        kind = error_type_of(message, text) if message is not None else None
        name = tool.name or (message.name if message is not None else None)
        self._result(node, Outcome(None, call_id, name, failed, text, kind, duration_s))

    def tool_failed(self, tool: ToolRun, error: BaseException, duration_s: float) -> None:
        """A tool raised. What the model gets to see of it shows when its node ends."""
        if tool.call_id is not None and not isinstance(error, GraphInterrupt):
            failure, node = Failure(tool.name, error, duration_s), tool.node
            with bus.lock:
                if node.failures is None:
                    node.failures = {}
                node.failures[tool.call_id] = failure

    def node_failed(self, node: NodeRun, error: BaseException) -> None:
        """A node raised. It may be executed again, after an interrupt or as a retry."""
        node.failed = True
        asked = tuple([_asked(message) for message in node.answers if message.tool_calls])
        if not isinstance(error, ParentCommand) and (asked or node.results):
            self.earlier.keep(node.task_id, Earlier(asked, node.results))
        if isinstance(error, GraphInterrupt):
            node.graph.paused = True
            node.failures = None
        self.tell_failures(node)

    def graph_ended(self, graph: GraphRun, output: object) -> None:
        """A run of a graph came to its end, or to an interrupt."""
        # Nothing that was put by may hold the state of a run that is over, nor be taken for what its end tells again.
        self.watcher.catch_up()
        if graph.outer is not None:
            for message in messages_in(output):
                keep(graph.root, message)
        graph.paused = graph.paused or (graph.place is not None and stands_before_a_node(graph.place.loop))
        self._end(graph, "completed", None)

    def graph_failed(self, graph: GraphRun, error: BaseException) -> None:
        """A run of a graph raised."""
        self.watcher.catch_up()
        graph.paused = isinstance(error, GraphInterrupt)
        self._end(graph, *_ending(error, graph.root.drained_by))

    def _enter(self, graph: GraphRun) -> Watched | None:
        place = graph.place
        if place is None or _is_guarded(graph.graph):
            graph.silent = True
            return None
        loop = self.watcher.enter(place.runtime, partial(self._shape, graph), resumed=place.resuming)
        graph.loop, graph.silent = loop, loop is None
        return loop

    def _yield(self, graph: GraphRun) -> Watched | None:
        """Somebody else has begun to tell the events of this loop."""
        graph.loop, graph.silent = None, True
        self._leave(graph)
        return None

    def _leave(self, graph: GraphRun) -> None:
        if graph.place is not None:
            self.watcher.ids.leave(graph.place.runtime.control)

    def _shape(self, graph: GraphRun) -> tuple[str | None, Graph | None]:
        # Only here, since it imports what may be in the midst of being imported when the tap is put in.
        from loopscope.adapters import graph_shape  # noqa: PLC0415

        shape = graph_shape.of(graph.graph)
        if shape.graph is None and graph.outer is None and self._graph is not None:
            shape = graph_shape.of(self._graph)
        return (shape.agent or (graph.outer.name if graph.outer is not None else None)), shape.graph

    def _end(self, graph: GraphRun, status: Ending, reason: str | None) -> None:
        graph.over = True
        loop = self.loop_of(graph) if graph.loop is not None else None
        graph.loop, graph.silent = None, True
        if loop is not None and not graph.paused:
            self.watcher.finish(loop, status, reason)
        elif loop is None and graph.outer is None:
            self._leave(graph)

    def _is_again(self, node: NodeRun, message: AIMessage) -> bool:
        """Whether an earlier execution of this node asked for the very same, so that it is neither told nor counted."""
        earlier, asked = node.again[0], _asked(message)
        if earlier.calls != asked.calls:
            node.again = ()
            return False
        node.again = node.again[1:]
        aliases = node.graph.root.aliases
        for new, old in zip(asked.ids, earlier.ids, strict=True):
            aliases.keep(new, aliases.get(old, old))
        return True

    def tell_failures(self, node: NodeRun) -> None:
        """Tools raised, and no message says so."""
        while node.failures:
            call_id, failure = node.failures.popitem()
            kind = type(failure.error).__name__
            text = f"{kind}: {failure.error}"
            self._result(node, Outcome(None, call_id, failure.name, True, text, kind, failure.duration_s))

    def _result(self, node: NodeRun, outcome: Outcome) -> None:
        aliases = node.graph.root.aliases
        call_id = aliases.get(outcome.call_id, outcome.call_id) if aliases else outcome.call_id
        if call_id in node.results or not self.watcher.watched:
            return
        loop = self.loop_of(node.graph)
        if loop is not None:
            with bus.lock:
                node.results |= {outcome.call_id, call_id}
            self.watcher.tell(loop, outcome._replace(call_id=call_id))

    @staticmethod
    def _drain(root: GraphRun, by: str | None) -> None:
        root.drained_by = by or "an operator"
        assert root.place is not None  # noqa: S101 - a node of it runs
        root.place.runtime.control.request_drain(f"stopped by {root.drained_by}")


def _remember(node: NodeRun, answer: AIMessage) -> None:
    if len(node.answers) < _ANSWERS:
        node.answers.append(answer)


def _calls_now(message: AIMessage) -> tuple[Call, ...]:
    """The calls as they are, to be looked at later, when the program may have changed its own arguments."""
    found: tuple[Call, ...] = ()
    for call in message.tool_calls:
        args = call["args"]
        found += (Call(call.get("id"), call["name"], args.copy() if type(args) is dict else args),)
    return found


def _said(node: str | None, message: AIMessage) -> Said:
    return Said(message.id, node, text_of(message), usage_of(message), model_of(message))


def _asked(message: AIMessage) -> Asked:
    calls = message.tool_calls
    written = tuple([(call["name"], _written(call["args"])) for call in calls])
    return Asked(written, tuple([call.get("id") for call in calls]))


def _written(args: object) -> str:
    try:
        return dumps(args)
    except Exception:  # noqa: BLE001 - circular, or deeper than the stack: equal to nothing but itself
        return f"!{id(args)}"


def _is_guarded(graph: Any) -> bool:
    """Whether a middleware of ours is among the nodes of this graph: it will tell everything itself."""
    guards = sys.modules.get("loopscope.adapters.langchain")
    if guards is None:
        return False
    functions = [getattr(getattr(node, "bound", None), "func", None) for node in getattr(graph, "nodes", {}).values()]
    return any(isinstance(getattr(each, "__self__", None), guards.LoopDetectionMiddleware) for each in functions)


def _ending(error: BaseException, drained_by: str | None) -> tuple[Ending, str | None]:
    if isinstance(error, ParentCommand):
        return "completed", None
    if isinstance(error, GraphDrained):
        return "cancelled", f"stopped by {drained_by}" if drained_by else str(error)
    if isinstance(error, GeneratorExit):
        return "cancelled", "nobody reads its output any more"
    status: Ending = "error" if isinstance(error, Exception) else "cancelled"
    return status, f"{type(error).__name__}: {error}".removesuffix(": ")
