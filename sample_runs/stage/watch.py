"""Watches a graph that has no guard: a callback handler that records what the model asked for and what came back.

Apart from the middleware, which would step in: with this a run that loops is recorded to its bitter end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import LLMResult

from loopscope.adapters import graph_shape
from loopscope.adapters.facts import calls_of, error_type_of, model_of, text_of, usage_of
from loopscope.engine.events import Batch, Result, RunEnd, RunStart, ScopeKey
from loopscope.recording.bus import bus
from loopscope.recording.preview import preview
from loopscope.recording.writer import Recorder

__all__ = ["Watch"]


class Watch(BaseCallbackHandler):
    """Records one invocation of a graph with a single agent.

    Args:
        recorder: where the events go.
        scope: the thread and the run that it is.
        agent: what to call the agent.
    """

    raise_error = True

    def __init__(self, recorder: Recorder, scope: ScopeKey, agent: str) -> None:
        self._recorder = recorder
        self._scope = scope
        self._agent = agent
        self._begun = False
        self._node: str | None = None
        self._told: set[str | None] = set()

    def on_chat_model_start(self, *_: Any, **kwargs: Any) -> None:
        """The model is asked; the first time tells that a run begins, and in which graph."""
        self._node = (kwargs.get("metadata") or {}).get("langgraph_node")
        if not self._begun:
            self._begun = True
            self._recorder.put(RunStart(agent=self._agent, graph=graph_shape.current().graph, **self._place()))

    def on_llm_end(self, response: LLMResult, **_: Any) -> None:
        """The model answered: a batch, with or without calls."""
        message: AIMessage = cast("Any", response.generations[0][0]).message
        self._recorder.put(Batch(
            calls=calls_of(message), message_id=message.id, node=self._node, text=text_of(message),
            usage=usage_of(message), model=model_of(message), **self._place(),
        ))  # fmt: skip

    def on_chain_end(self, outputs: Any, *, parent_run_id: UUID | None = None, **_: Any) -> None:
        """A node is done: the tools' one has their results. The outermost chain is the run."""
        if parent_run_id is None:
            self._recorder.put(RunEnd(status="completed", **self._place()))
            return
        for message in _tool_messages(outputs):
            if message.tool_call_id not in self._told:
                self._told.add(message.tool_call_id)
                self._result(message)

    def on_chain_error(self, error: BaseException, *, parent_run_id: UUID | None = None, **_: Any) -> None:
        """The run failed."""
        if parent_run_id is None:
            reason = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            self._recorder.put(RunEnd(status="error", reason=reason, **self._place()))

    def _result(self, message: ToolMessage) -> None:
        text = message.text
        shown = preview(text)
        self._recorder.put(Result(
            call_id=message.tool_call_id, name=message.name, status="error" if message.status == "error" else "ok",
            content=shown.content, size=shown.size, digest=shown.digest, error_type=error_type_of(message, text),
            **self._place(),
        ))  # fmt: skip

    def _place(self) -> dict[str, Any]:
        return {"seq": bus.next_seq(), "ts": time.time(), **self._scope._asdict()}


def _tool_messages(outputs: object) -> Iterator[ToolMessage]:
    messages = outputs.get("messages", ()) if isinstance(outputs, Mapping) else outputs
    for message in messages if isinstance(messages, (list, tuple)) else ():
        if isinstance(message, ToolMessage):
            yield message
