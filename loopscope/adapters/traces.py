"""Decisions and counters in the traces that a program already makes: OpenTelemetry's spans, and LangChain's runs.

Spans are made by others; what is known here is put on the one that is current. LangChain's tracers (LangSmith's is one)
keep a run open until it ends, and send what its metadata and tags hold by then.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tracers.base import BaseTracer

from loopscope.engine.events import Batch, DecisionMade, Event, RunEnd, ScopeKey
from loopscope.errors import MissingExtraError
from loopscope.recording.bus import bus

__all__ = ["note", "trace"]

Attributes: TypeAlias = Mapping[str, str | int | float]
_PREFIX = "loopscope"
_SCOPES = 1_000
"""Scopes whose counters are remembered at once."""


def trace(*, opentelemetry: bool | None = None, langchain: bool = True) -> Callable[[], None]:
    """Put every decision of this process, and its counters, into its traces, until what is given back is called.

    On OpenTelemetry's current span: attributes `loopscope.iterations`, `.model_calls`, `.tool_calls`, `.input_tokens`,
    `.output_tokens`, `.cost_usd`, and an event `loopscope.decision` with action, layer, tool, count, threshold, hash.
    On LangChain's current run, and on the root of its trace: the same as metadata, and the tags `loopscope:warn` and
    `loopscope:hard_stop`. It serves the middleware and the tap; a `BoundedLoop` does it by itself.

    Args:
        opentelemetry: None does it where OpenTelemetry is installed.
        langchain: whether to do it for LangChain's tracers.

    Raises:
        MissingExtraError: if OpenTelemetry is asked for and not installed.
    """
    installed = find_spec("opentelemetry") is not None
    if opentelemetry and not installed:
        raise MissingExtraError("OpenTelemetry is not installed: pip install 'loopscope[otel]'")
    spans = installed if opentelemetry is None else opentelemetry
    if spans:
        # An extra; whether it is loaded is what is looked at from here on.
        import_module("opentelemetry.trace")
    return bus.subscribe(_Counting(spans=spans, runs=langchain).take)


def note(name: str, facts: Attributes, counters: Attributes, *, tag: str = "") -> None:
    """Put an event with these facts, and these counters, on the current span and the current run."""
    _on_span(name, facts, counters)
    _on_runs(facts, counters, tag)


class _Counting:
    """Counts what each scope did, and notes it with each decision."""

    def __init__(self, *, spans: bool, runs: bool) -> None:
        self._spans = spans
        self._runs = runs
        self._scopes: OrderedDict[ScopeKey, dict[str, float]] = OrderedDict()

    def take(self, event: Event) -> None:
        """An event of the bus."""
        if type(event) is Batch:
            self._count(event)
            if not event.calls:
                self._note("", {}, self._of(event.scope), "")
        elif type(event) is DecisionMade:
            facts = {f"{_PREFIX}.{name}": value for name in _FACTS if (value := getattr(event, name)) is not None}
            tag = "" if event.action == "pass" else f"{_PREFIX}:{event.action}"
            self._note(f"{_PREFIX}.decision", facts, self._of(event.scope), tag)
        elif type(event) is RunEnd:
            self._note(f"{_PREFIX}.run_end", {f"{_PREFIX}.status": event.status}, self._of(event.scope), "")
            self._scopes.pop(event.scope, None)

    def _note(self, name: str, facts: Attributes, counters: Attributes, tag: str) -> None:
        if self._spans:
            _on_span(name, facts, counters)
        if self._runs:
            _on_runs(facts, counters, tag)

    def _of(self, key: ScopeKey) -> Attributes:
        return {f"{_PREFIX}.{name}": value for name, value in self._scopes.get(key, {}).items()}

    def _count(self, batch: Batch) -> None:
        key, usage = batch.scope, batch.usage
        counters = self._scopes.setdefault(key, dict.fromkeys(_COUNTERS, 0))
        self._scopes.move_to_end(key)
        while len(self._scopes) > _SCOPES:
            self._scopes.popitem(last=False)
        counters["model_calls"] += 1
        counters["iterations"] += bool(batch.calls)
        counters["tool_calls"] += len(batch.calls)
        if usage is not None:
            counters["input_tokens"] += usage.input_tokens or 0
            counters["output_tokens"] += usage.output_tokens or 0
            counters["cost_usd"] += usage.cost_usd or 0


_COUNTERS = ("iterations", "model_calls", "tool_calls", "input_tokens", "output_tokens", "cost_usd")
_FACTS = ("action", "layer", "tool", "count", "threshold", "hash", "hash_count")


def _on_span(name: str, facts: Attributes, counters: Attributes) -> None:
    loaded: Any = sys.modules.get("opentelemetry.trace")
    span = loaded.get_current_span() if loaded is not None else None
    if span is None or not span.is_recording():
        return
    span.set_attributes(dict(counters))
    if name:
        span.add_event(name, attributes={**facts, **counters})


def _on_runs(facts: Attributes, counters: Attributes, tag: str) -> None:
    config = var_child_runnable_config.get()
    manager = (config or {}).get("callbacks")
    run_id = getattr(manager, "parent_run_id", None)
    for handler in getattr(manager, "handlers", ()) if run_id is not None else ():
        if not isinstance(handler, BaseTracer):
            continue
        current = handler.run_map.get(str(run_id))
        root = current
        while root is not None and root.parent_run_id is not None:
            above = handler.run_map.get(str(root.parent_run_id))
            if above is None:
                break
            root = above
        for run in {id(each): each for each in (current, root) if each is not None}.values():
            # Replaced and not changed, since other runs may have been given the very same dict.
            extra = run.extra or {}
            run.extra = {**extra, "metadata": {**(extra.get("metadata") or {}), **facts, **counters}}
            if tag:
                run.tags = list(dict.fromkeys([*(run.tags or []), tag]))
