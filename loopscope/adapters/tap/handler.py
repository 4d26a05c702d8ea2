"""The callbacks: LangChain tells of runs here, by their ids alone, and the observer is told of nodes and graphs.

A failing tap never disturbs the run: what goes wrong in a callback is logged, once, and ends there.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.outputs import LLMResult
from langchain_core.runnables.config import var_child_runnable_config

from loopscope.adapters.tap.at_gate import EitherWay, admitted, asked
from loopscope.adapters.tap.observer import Observer
from loopscope.adapters.tap.reach import NEAREST, place_of, running_graph, told_place
from loopscope.adapters.tap.runs import NAMESPACE, Bounded, GraphRun, NodeRun, Run, ToolRun
from loopscope.adapters.tap.watcher import Watcher
from loopscope.engine.identity import Identity
from loopscope.engine.policy import DEFAULT, Policy
from loopscope.recording.bus import bus
from loopscope.recording.gate import JUDGE, gatehouse
from loopscope.recording.redaction import Redactor
from loopscope.recording.writer import recorder_for

__all__ = ["Tap", "tap"]

_MANY = 1_000
"""Runs at once from which on it is looked for such as are over."""
_RUNS = 20_000
"""Runs that are remembered at once; beyond that the oldest ones are taken for runs whose end was never told."""
_AFTER_NODE = frozenset(f"seq:step:{step}" for step in range(2, 100))
"""How runs within a node are tagged that come behind the node's own function: they write its output and pick edges.
Those of more steps than that, and whatever else runs within a node, are looked at more closely."""


class Tap(BaseCallbackHandler):
    """A callback handler that observes every graph which it is given to. Made by `tap`; safe from any thread."""

    run_inline = True
    """Under ainvoke too, callbacks come in order, on the thread of the event loop."""

    def __init__(self, watcher: Watcher, graph: object) -> None:
        super().__init__()
        self._watcher = watcher
        self._observer = Observer(watcher, graph)
        self._runs: Bounded[int, Run] = Bounded(_RUNS)

    @property
    def policy(self) -> Policy:
        """The policy that decides, to be seen and not to be felt."""
        return self._watcher.policy

    def close(self) -> None:
        """End the recording, if there is one, and wait a moment until it is on disk. Observing goes on."""
        self._watcher.close()

    @property
    def ignore_retriever(self) -> bool:
        """Retrievers are no tools of a model."""
        return True

    @property
    def ignore_retry(self) -> bool:
        """What is tried again shows as a run of its own."""
        return True

    @property
    def ignore_agent(self) -> bool:
        """Tools, where nobody watches: what they give back is told to nobody then."""
        return not (self._watcher.full or bus.active) and gatehouse.gate is None

    @property
    def ignore_custom_event(self) -> bool:
        """A program's own events."""
        return True

    def on_chain_start(  # noqa: PLR0913 - the callback's signature
        self,
        serialized: dict[str, Any] | None,  # noqa: ARG002 - the callback's signature
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """A graph, a node, or something within a node begins."""
        try:
            around = self._runs.get(parent_run_id.int) if parent_run_id is not None else None
            if type(around) is GraphRun:
                begun = self._runs[run_id.int] = NodeRun(run_id.int, around, metadata or {}, inputs)
                if gatehouse.gate is not None and type(self) is Tap:
                    # Not before, since being able to wait has its price.
                    self.__class__ = _TapAtGate
                if around.loop is None or self._observer.earlier:
                    self._node_begins(begun, NEAREST)
            elif type(around) is not NodeRun or not tags or tags[0] not in _AFTER_NODE:
                self._within_begins(run_id.int, parent_run_id, around, metadata or {}, inputs)
        except Exception as error:  # noqa: BLE001 - see the module
            self._watcher.fault(error)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """What began has failed, was interrupted or cancelled."""
        try:
            run = self._runs.pop(run_id.int, None)
            if type(run) is GraphRun:
                self._observer.graph_failed(run, error)
                self._tidy_up()
            elif type(run) is NodeRun and run.run_id == run_id.int:
                update = getattr(error, "args", ())[:1] if type(error).__name__ == "ParentCommand" else ()
                for message in (*_deferred(run), *self._observer.fresh(run, list(update))):
                    self._observer.take(run, message, admitted(self._observer, run, message))
                self._observer.node_failed(run, error)
        except Exception as failure:  # noqa: BLE001 - see the module
            self._watcher.fault(failure)

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002 - the callback's signature
        messages: list[list[Any]],  # noqa: ARG002 - as above
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """A model is asked."""
        try:
            node = self._runs.get(parent_run_id.int) if parent_run_id is not None else None
            if type(node) is not NodeRun:
                node = self._node(node, parent_run_id, metadata)
                if node is not None:
                    # The answer comes with the same parent, and without what found the node.
                    self._runs[run_id.int] = node
            if node is not None:
                if node.deferred:
                    self._tell_deferred(node)
                if self._watcher.full or bus.active:
                    self._observer.show(node.graph)
        except Exception as error:  # noqa: BLE001 - see the module
            self._watcher.fault(error)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:  # noqa: ARG002 - its signature
        """A model gave no answer."""
        self._runs.pop(run_id.int, None)

    def on_tool_start(  # noqa: PLR0913 - the callback's signature
        self,
        serialized: dict[str, Any],
        input_str: str,  # noqa: ARG002 - the callback's signature
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tool_call_id: str | None = None,
        metadata: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """A tool begins."""
        try:
            node = self._runs.get(parent_run_id.int) if parent_run_id is not None else None
            if type(node) is not NodeRun:
                node = self._node(node, parent_run_id, metadata)
            if node is not None:
                if node.deferred:
                    self._tell_deferred(node)
                self._runs[run_id.int] = ToolRun(node, tool_call_id, serialized.get("name"), time.monotonic())
        except Exception as error:  # noqa: BLE001 - see the module
            self._watcher.fault(error)

    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        """A tool gave something back."""
        try:
            run = self._runs.pop(run_id.int, None)
            if type(run) is ToolRun and (self._watcher.full or bus.active or run.node.failures):
                self._observer.tool_ended(run, output, round(time.monotonic() - run.began, 6))
        except Exception as error:  # noqa: BLE001 - see the module
            self._watcher.fault(error)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """A tool raised."""
        try:
            run = self._runs.pop(run_id.int, None)
            if type(run) is ToolRun:
                self._observer.tool_failed(run, error, round(time.monotonic() - run.began, 6))
        except Exception as failure:  # noqa: BLE001 - see the module
            self._watcher.fault(failure)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, parent_run_id: UUID | None = None, **_: Any) -> None:
        """A model gave an answer."""
        try:
            run = self._runs.get(parent_run_id.int) if parent_run_id is not None else None
            if type(run) is not NodeRun:
                run = self._runs.pop(run_id.int, None)
            if type(run) is NodeRun and (message := _answer_in(response)) is not None:
                gate = gatehouse.gate
                if gate is None and self._observer.is_put_by(run, message, answer=True):
                    return
                self._observer.answered(run, message)
                if gate is None:
                    self._observer.said(run, message, JUDGE)
                elif gate.armed and run.graph.awaited:
                    # It could only wait by blocking a thread that other runs need.
                    run.deferred = (*run.deferred, message)
                else:
                    self._observer.said(run, message, admitted(self._observer, run, message))
        except Exception as error:  # noqa: BLE001 - see the module
            self._watcher.fault(error)

    async def _allm_end(
        self, response: LLMResult, *, run_id: UUID, parent_run_id: UUID | None = None, **_: Any
    ) -> None:
        try:
            run = self._runs.get(parent_run_id.int) if parent_run_id is not None else None
            if type(run) is not NodeRun:
                run = self._runs.pop(run_id.int, None)
            if type(run) is NodeRun and (message := _answer_in(response)) is not None:
                self._observer.answered(run, message)
                self._observer.said(run, message, await asked(self._observer, run, message))
        except Exception as error:  # noqa: BLE001 - see the module
            self._watcher.fault(error)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> None:
        """A graph, a node, or something within a node came to its end."""
        try:
            run = self._runs.pop(run_id.int, None)
            if type(run) is NodeRun:
                if run.run_id != run_id.int:
                    return
                if run.deferred:
                    self._tell_deferred(run)
                if gatehouse.gate is None:
                    self._observer.returned(run, outputs)
                else:
                    for message in self._observer.fresh(run, outputs):
                        self._observer.take(run, message, admitted(self._observer, run, message))
                if run.failures:
                    self._observer.tell_failures(run)
            elif type(run) is GraphRun:
                self._observer.graph_ended(run, outputs)
                self._tidy_up()
        except Exception as error:  # noqa: BLE001 - see the module
            self._watcher.fault(error)

    async def _achain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> None:
        run = self._runs.get(run_id.int)
        try:
            if type(run) is NodeRun and run.run_id == run_id.int:
                for message in (*_deferred(run), *self._observer.fresh(run, outputs)):
                    self._observer.take(run, message, await asked(self._observer, run, message))
        except Exception as error:  # noqa: BLE001 - see the module
            self._watcher.fault(error)
        Tap.on_chain_end(self, outputs, run_id=run_id)

    def _tell_deferred(self, node: NodeRun) -> None:
        """What was left for the end of the node, where it can wait no longer: its tools run within the node itself."""
        for message in _deferred(node):
            self._observer.said(node, message, admitted(self._observer, node, message))

    def _node(self, parent: Run | None, parent_run_id: UUID | None, told: Mapping[str, Any] | None) -> NodeRun | None:
        """The node that a run with this parent is in; where its callbacks are its own, the code's context tells it."""
        if parent is None and (found := _parent_in_context()) is not None:
            parent = self._runs.get(found.int)
        return _node_of(parent) or self._node_at(parent_run_id, told or {})

    def _tidy_up(self) -> None:
        """Forget what ran in graphs that are over: a run that is cancelled in the wrong moment tells of no end."""
        if len(self._runs) > _MANY:
            for run_id, run in list(self._runs.items()):
                node = _node_of(run)
                if node is not None and node.graph.over:
                    self._runs.pop(run_id, None)

    def _node_begins(self, node: NodeRun, above: int) -> None:
        """The first node of a graph, or one that may have been executed before."""
        graph = node.graph
        if graph.place is None:
            frame = sys._getframe(above)  # noqa: SLF001 - see there
            graph.place = place_of(frame, node.namespace) or told_place(graph.root, node.told, graph.root.inputs)
            graph.inputs = None
        self._observer.begin(node)

    def _within_begins(
        self, run_id: int, parent_run_id: UUID | None, around: Run | None, told: Mapping[str, Any], inputs: object
    ) -> None:
        """A graph begins, or something within a node."""
        node = _node_of(around) or self._node_at(parent_run_id, told)
        begins = running_graph(sys._getframe(NEAREST + 1))  # noqa: SLF001 - see there
        if begins is not None:
            self._runs.keep(run_id, GraphRun(node, begins.graph, inputs, awaited=begins.awaited))
            if node is not None:
                # Whoever tells of the inner graph names the outer one as its parent.
                self._observer.show(node.graph.root)
        elif node is not None and told.get(NAMESPACE) in (None, node.namespace):
            self._runs[run_id] = node
        elif parent_run_id is not None and NAMESPACE in told:
            self._unseen_begins(node, run_id, parent_run_id.int, told, inputs)

    def _node_at(self, parent_run_id: UUID | None, told: Mapping[str, Any]) -> NodeRun | None:
        """The node around a run whose parent was not noted: a tool's, unwatched, or that of an edge."""
        namespace = told.get(NAMESPACE)
        if parent_run_id is None or namespace is None:
            return None
        # Nothing is noted of the parent now either: of a tool that is left out, no end is told.
        for run in reversed(list(self._runs.values())):
            if type(run) is NodeRun and run.namespace == namespace:
                return run
        return None

    def _unseen_begins(
        self, node: NodeRun | None, run_id: int, parent_run_id: int, told: Mapping[str, Any], inputs: object
    ) -> None:
        """Something in a namespace of its own: a task within a node, or a node of a graph not seen before."""
        if node is not None and node.run_id == parent_run_id:
            graph = node.graph
        else:
            graph = GraphRun(node, None, None)
            self._runs.keep(parent_run_id, graph)
        begun = self._runs[run_id] = NodeRun(run_id, graph, told, inputs)
        self._node_begins(begun, NEAREST + 2)

    def __copy__(self) -> Tap:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Tap:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # A config that holds it may be pickled; what is made of it elsewhere observes nothing.
        return BaseCallbackHandler, ()


class _TapAtGate(Tap):
    """A tap in a process with a live link, whose callbacks can be made to wait."""

    if not TYPE_CHECKING:  # they are methods, as the base class has them
        on_llm_end = EitherWay(Tap.on_llm_end, Tap._allm_end)  # noqa: SLF001 - its own
        on_chain_end = EitherWay(Tap.on_chain_end, Tap._achain_end)  # noqa: SLF001 - its own


def tap(
    graph: object = None,
    *,
    policy: Policy | None = None,
    record: str | PathLike[str] | None = None,
    redact: Sequence[str] = (),
) -> Tap:
    """A callback handler that observes any compiled LangGraph graph, its nodes untouched.

    Give it to a run (`graph.invoke(state, {"callbacks": [tap()]})`) or to a graph for good
    (`graph.with_config(callbacks=[tap()])`). What it sees goes to `listen()`'s viewers and to the recording.

    Args:
        graph: whose structure is shown where that of the running graph cannot be found out.
        policy: the limits that decide; nothing is ever warned or stopped. The defaults, unless given.
        record: file to which the runs are recorded; `{pid}` in its name is this process.
        redact: regular expressions of further secrets that must not be shown or recorded.

    Raises:
        UsageError: where the file cannot be written to, or an expression is none.
    """
    whole = DEFAULT if policy is None else policy
    redactor = Redactor(redact, key_of=Identity(whole).key)
    recorder = None if record is None else recorder_for(record, policy=whole, enforced=False)
    return Tap(Watcher(whole, recorder, redactor), graph)


def _node_of(run: Run | None) -> NodeRun | None:
    """The node that something runs in."""
    if type(run) is NodeRun:
        return run
    return run.node if type(run) is ToolRun else None


def _deferred(node: NodeRun) -> tuple[AIMessage, ...]:
    """What is left to be told, once."""
    found, node.deferred = node.deferred, ()
    return found


def _answer_in(response: LLMResult) -> AIMessage | None:
    """The message that a chat model gave; of several candidates the first, as for whoever invoked it."""
    candidates = response.generations[0] if response.generations else None
    message = getattr(candidates[0], "message", None) if candidates else None
    return message if isinstance(message, AIMessage) else None


def _parent_in_context() -> UUID | None:
    """The run that this code belongs to, for one that was started with callbacks of its own."""
    config = var_child_runnable_config.get()
    found: UUID | None = getattr(config.get("callbacks"), "parent_run_id", None) if config else None
    return found
