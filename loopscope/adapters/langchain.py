"""The middleware for `langchain.agents.create_agent`: framework in, effects out.

It reads messages and `Runtime` here and leaves everything else to the guard. List it last among an agent's
middlewares: `after_model` hooks run from last to first, so it sees the model's answer before any other hook has
changed it or stopped to ask somebody.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple, Self

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse, hook_config
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.types import interrupt

from loopscope.adapters import graph_shape
from loopscope.adapters.bounded.predicates import plain
from loopscope.adapters.escalation import answer_of, can_wait, drained, question, refused, tried_in
from loopscope.adapters.facts import calls_of, error_type_of, model_of, since_last_ai, text_of, usage_of
from loopscope.adapters.guard import Guard
from loopscope.adapters.loops import Loop, Outcome, Said
from loopscope.adapters.messages import newest_ai, stopped, warning_message
from loopscope.adapters.stop_reasons import StopReason
from loopscope.engine.events import Call
from loopscope.engine.identity import Identity
from loopscope.engine.policy import DEFAULT, Policy
from loopscope.engine.sections import OnStop
from loopscope.recording import preview
from loopscope.recording.bus import bus
from loopscope.recording.gate import Arrival, Gate, gatehouse
from loopscope.recording.redaction import Redactor
from loopscope.recording.writer import recorder_for

__all__ = ["LoopDetectionMiddleware"]

_MODEL_NODE = "model"
_TOOLS_NODE = "tools"
"""How `create_agent` names the nodes that call the model and the tools."""


class _Held(NamedTuple):
    """A batch that the gate may hold."""

    gate: Gate
    loop: Loop
    arrival: Arrival


class _Stop(NamedTuple):
    """A batch that was rejected."""

    messages: Sequence[AnyMessage]
    message: AIMessage
    behind: Sequence[AnyMessage]
    text: str


class LoopDetectionMiddleware(AgentMiddleware[Any, Any, Any]):
    """Stops an agent that loops, and warns its model before.

    The thresholds have DeerFlow's names and order; what is not given is `policy`'s, or the default.

    Args:
        warn_threshold: equal batches in the window that warn the model (3). hard_limit: equal batches in the window
        that stop the run (5). window_size: batches of one agent loop that are remembered (20). max_tracked_threads:
        agent loops that are remembered (100). tool_freq_warn: calls of one tool that warn the model (30).
        tool_freq_hard_limit: calls of one tool that stop the run (50). tool_freq_overrides: other frequency limits by
        tool: `{"bash": (50, 100)}` or `{"bash": {"warn": 50, "hard_limit": 100}}`. policy: a whole policy instead of
        single thresholds, or below them. on_stop: what is done to a batch that is stopped: `strip` ends the run without
        its calls; `interrupt` asks a person, where there is a checkpointer; `drain` ends the run with `GraphDrained`
        before its calls are made. witness: values of the agent's state that must show progress, by name: plain
        functions of the state, asked before each request to the model; the policy's `stagnation.witness` names one.
        record: file to which the runs are recorded; `{pid}` in its name is this process. It never disturbs a run.
        redact: regular expressions of further secrets that must not reach the recording.

    Raises:
        PolicyError: with every value that breaks a rule.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - DeerFlow's names, in DeerFlow's order
        self,
        warn_threshold: int | None = None,
        hard_limit: int | None = None,
        window_size: int | None = None,
        max_tracked_threads: int | None = None,
        tool_freq_warn: int | None = None,
        tool_freq_hard_limit: int | None = None,
        tool_freq_overrides: Mapping[str, Any] | None = None,
        *,
        policy: Policy | None = None,
        on_stop: OnStop | None = None,
        witness: Mapping[str, Callable[[Any], Any]] | None = None,
        record: str | PathLike[str] | None = None,
        redact: Sequence[str] = (),
    ) -> None:
        super().__init__()
        thresholds = {
            "warn_threshold": warn_threshold,
            "hard_limit": hard_limit,
            "window_size": window_size,
            "max_tracked_threads": max_tracked_threads,
            "tool_freq_warn": tool_freq_warn,
            "tool_freq_hard_limit": tool_freq_hard_limit,
            "tool_freq_overrides": tool_freq_overrides,
            "on_stop": on_stop,
        }
        given = {name: value for name, value in thresholds.items() if value is not None}
        base = DEFAULT if policy is None else policy
        whole = base.with_(**given) if given else base
        redactor = Redactor(redact, key_of=Identity(whole).key)
        recorder = None if record is None else recorder_for(record, policy=whole, enforced=True)
        self._guard = Guard(whole, recorder, redactor, graph_shape.current, self.name)
        self._witness = {name: plain(f"witness[{name!r}]", function) for name, function in (witness or {}).items()}
        self._guard.full = self._guard.full or bool(self._witness)
        self._find = self._guard.ids.find
        self._decide = self._guard.decide

    @classmethod
    def from_config(
        cls, config: object, *, record: str | PathLike[str] | None = None, redact: Sequence[str] = ()
    ) -> Self:
        """A middleware from DeerFlow's `loop_detection` section: the mapping, or the object that DeerFlow makes of it.

        `enabled` is accepted; whether to use the middleware at all is for the application to decide.

        Raises:
            PolicyError: with every unknown name and every value that breaks a rule.
        """
        return cls(policy=Policy.parse(_plain_config(config)), record=record, redact=redact)

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._guard.policy

    def consume_stop_reason(self, run_id: object) -> StopReason | None:
        """`"loop_capped"`, once, where this run was stopped, and in its `tried` what was tried; None otherwise.

        Args:
            run_id: the run's id as the caller gave it, or the value that the stop left in the context's `stop_reason`.
        """
        return self._guard.consume_stop_reason(run_id)

    def reset(self, thread_id: object = None) -> None:
        """Forget all, or everything of one thread: histories, warnings that wait, stop reasons that nobody read."""
        self._guard.reset(thread_id)

    def close(self) -> None:
        """End the recording, if there is one, and wait a moment until it is on disk. Detection goes on."""
        self._guard.close()

    def before_agent(self, state: Any, runtime: Any) -> None:  # noqa: ARG002 - the hook's signature
        """An invocation begins; nothing is changed."""
        self._guard.begin(runtime)

    async def abefore_agent(self, state: Any, runtime: Any) -> None:
        """As `before_agent`."""
        self.before_agent(state, runtime)

    @hook_config(can_jump_to=["end"])
    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Account the model's newest message; without its calls where they go too far."""
        if bus.active and (held := self._at_gate(state, runtime)) is not None:
            held.loop.ruling = held.gate.admit(held.arrival)
        messages = state["messages"]
        message, behind = (messages[-1], ()) if messages and type(messages[-1]) is AIMessage else newest_ai(messages)
        if message is None:
            return None
        try:
            task_id = runtime.execution_info.task_id
        except AttributeError:  # a runtime that is no LangGraph's
            task_id = None
        asked = message.tool_calls
        if len(asked) == 1:
            call = asked[0]
            calls: tuple[Call, ...] = (Call(call.get("id"), call["name"], call["args"]),)
        else:
            calls = calls_of(message)
        loop = self._find(runtime)
        text = self._decide(loop, calls, task_id, _said, message)
        return None if text is None else self._stop(loop, _Stop(messages, message, behind, text), runtime)

    @hook_config(can_jump_to=["end"])
    async def aafter_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """As `after_model`; where a batch is held, only its own task waits."""
        if bus.active and (held := self._at_gate(state, runtime)) is not None:
            held.loop.ruling = await held.gate.aadmit(held.arrival)
        return self.after_model(state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Tell the model what waits for it, in this request alone."""
        loop = self._find(request.runtime)
        texts: tuple[str, ...] = ()
        if loop.waiting or self._guard.full or bus.active:
            texts, request = self._prepare(loop, request)
        try:
            return handler(request)
        except BaseException as error:
            self._guard.failed(loop, texts, error, paused=isinstance(error, GraphBubbleUp))
            raise

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """As `wrap_model_call`; a cancelled request gives its warnings back too."""
        loop = self._find(request.runtime)
        texts: tuple[str, ...] = ()
        if loop.waiting or self._guard.full or bus.active:
            texts, request = self._prepare(loop, request)
        try:
            return await handler(request)
        except BaseException as error:
            self._guard.failed(loop, texts, error, paused=isinstance(error, GraphBubbleUp))
            raise

    def after_agent(self, state: Any, runtime: Any) -> None:
        """The invocation ended: what is left to report is reported, what is left to say is dropped."""
        guard, loop = self._guard, self._find(runtime)
        if guard.full or bus.active:
            guard.report(loop, _outcomes(state["messages"]))
        guard.end(loop)

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        """As `after_agent`."""
        self.after_agent(state, runtime)

    def _at_gate(self, state: Any, runtime: Any) -> _Held | None:
        """The batch that stands before the gate, where there is one that may hold it and that was not asked yet."""
        gate = gatehouse.gate
        message, _ = newest_ai(state["messages"])
        if gate is None or not gate.armed or message is None:
            return None
        loop = self._find(runtime)
        task_id = getattr(getattr(runtime, "execution_info", None), "task_id", None)
        heartbeat = getattr(runtime, "heartbeat", None)
        arrival = self._guard.arrival(loop, calls_of(message), task_id, _said(message), heartbeat)
        return None if arrival is None else _Held(gate, loop, arrival)

    def _stop(self, loop: Loop, stop: _Stop, runtime: Any) -> dict[str, Any] | None:
        """What becomes of a batch that was rejected."""
        messages, message, behind, text = stop
        guard, how = self._guard, self._guard.on_stop(loop)
        tried = tried_in(messages[: len(messages) - 1 - len(behind)])
        if loop.note is not None:
            loop.note.tried = tried
        if how == "drain" and drained(runtime, text):
            guard.escalate(loop, text)
            return None
        # An answer for a response schema has its tool message already: there is no call that could still be made.
        if how == "interrupt" and message.tool_calls and not behind and can_wait():
            guard.escalate(loop, text)
            iterations = sum(attempt.times for attempt in tried)
            answer = interrupt(question(str(loop.stopped), text, message, tried, iterations))
            meaning = answer_of(answer)
            if meaning != "stop":
                guard.pardon(loop)
                return {"messages": refused(message, text, answer)} if meaning == "advice" else None
        update: dict[str, Any] = {"messages": stopped(message, behind, text)}
        if not graph_shape.has_node(_TOOLS_NODE):
            # An agent without tools asks again until its answer fits the schema: it does not end by itself.
            update["jump_to"] = "end"
        return update

    def _prepare(self, loop: Loop, request: ModelRequest[Any]) -> tuple[tuple[str, ...], ModelRequest[Any]]:
        guard = self._guard
        if guard.full or bus.active:
            guard.report(loop, _outcomes(request.messages))
            if self._witness:
                guard.witness(loop, {name: function(request.state) for name, function in self._witness.items()})
        if not (loop.waiting or loop.failure or guard.heard):
            return (), request
        texts = guard.take(loop)
        return texts, request.override(messages=[*request.messages, warning_message(texts)]) if texts else request


def _said(message: AIMessage) -> Said:
    return Said(message.id, _MODEL_NODE, text_of(message), usage_of(message), model_of(message))


def _outcomes(messages: Sequence[AnyMessage]) -> Iterable[Outcome]:
    return [_outcome(message) for message in since_last_ai(messages)]


def _outcome(message: ToolMessage) -> Outcome:
    text = preview.text_of(message.content)
    error_type = error_type_of(message, text)
    return Outcome(message.id, message.tool_call_id, message.name, message.status == "error", text, error_type)


def _plain_config(config: object) -> dict[str, Any]:
    """The settings as plain data; of an object only those that a policy knows."""
    if isinstance(config, Mapping):
        plain = dict(config)
    else:
        known = Policy.__struct_fields__
        plain = {name: getattr(config, name) for name in known if hasattr(config, name)}
    overrides = plain.get("tool_freq_overrides")
    if isinstance(overrides, Mapping):
        plain["tool_freq_overrides"] = {tool: _plain_limits(limits) for tool, limits in overrides.items()}
    elif overrides is None:
        plain.pop("tool_freq_overrides", None)
    return plain


def _plain_limits(limits: object) -> object:
    names = ("warn", "hard_limit")
    return {name: getattr(limits, name) for name in names} if all(hasattr(limits, name) for name in names) else limits
