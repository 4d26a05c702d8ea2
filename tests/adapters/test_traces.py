from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run
from langgraph.checkpoint.memory import InMemorySaver
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from loopscope import BoundedLoop, LoopDetectionMiddleware, tap, trace
from loopscope.errors import MissingExtraError
from loopscope.recording.bus import bus
from loopscope.testing import bounded_run
from tests.adapters.bounded.sql import MISSPELT, answered, guarded, queries
from tests.adapters.scripted import DONE, ScriptedModel, Shell, agent, ask, bash, on, turn

BOTH = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])


class Tracer(BaseTracer):
    """Keeps what a tracer of LangChain would send, as LangSmith's does when a run ends."""

    run_inline = True

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[str, dict[str, Any], list[str]]] = []

    def _persist_run(self, run: Run) -> None:
        """Only roots come here."""

    def _end_chain_trace(self, run: Run) -> None:
        metadata = {name: value for name, value in run.metadata.items() if name.startswith("loopscope")}
        self.sent.append((run.name, metadata, [tag for tag in run.tags or [] if tag.startswith("loopscope")]))
        super()._end_trace(run)

    _end_trace = _end_chain_trace


@pytest.fixture
def tracing() -> Iterator[None]:
    """Traces while the test runs."""
    stop = trace()
    yield
    stop()


@pytest.fixture
def spans() -> tuple[Any, InMemorySpanExporter]:
    """A tracer of OpenTelemetry, and where its spans go."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider.get_tracer("test"), exporter


async def run(graph: Any, asynchronous: bool, **options: Any) -> Any:
    """One turn, in either world."""
    return await graph.ainvoke(ask(), **options) if asynchronous else graph.invoke(ask(), **options)


def attributes(span: ReadableSpan) -> dict[str, Any]:
    """What is on a span of ours."""
    return {name: value for name, value in (span.attributes or {}).items() if name.startswith("loopscope")}


@BOTH
async def test_decisions_and_counters_are_on_the_current_span(
    asynchronous: bool, spans: tuple[Any, InMemorySpanExporter], tracing: None
) -> None:
    """One event a decision, with the counters as they were; the last counters are the span's attributes."""
    tracer, exporter = spans
    assert tracing is None
    with tracer.start_as_current_span("turn"):
        await run(agent([turn(bash())], LoopDetectionMiddleware()), asynchronous)
    (span,) = exporter.get_finished_spans()
    decisions = [dict(event.attributes or {}) for event in span.events if event.name == "loopscope.decision"]
    assert [each["loopscope.action"] for each in decisions] == ["pass", "pass", "warn", "pass", "hard_stop"]
    assert [each["loopscope.iterations"] for each in decisions] == [1, 2, 3, 4, 5]
    last = decisions[-1]
    assert (last["loopscope.layer"], last["loopscope.count"], last["loopscope.threshold"]) == (
        "identical_call_set",
        5,
        5,
    )
    found = attributes(span)
    assert (found["loopscope.model_calls"], found["loopscope.tool_calls"], found["loopscope.input_tokens"]) == (
        5,
        5,
        500,
    )
    assert [dict(e.attributes or {})["loopscope.status"] for e in span.events if e.name == "loopscope.run_end"] == [
        "loop_capped"
    ]


@BOTH
async def test_langchains_tracers_send_them_as_metadata_and_tags(asynchronous: bool, tracing: None) -> None:
    """On the run of the hook that decided, and on the root of the trace."""
    tracer = Tracer()
    assert tracing is None
    await run(agent([turn(bash())], LoopDetectionMiddleware()), asynchronous, config={"callbacks": [tracer]})
    hooks = [entry for entry in tracer.sent if entry[0] == "LoopDetectionMiddleware.after_model"]
    assert [metadata["loopscope.iterations"] for _, metadata, _ in hooks] == [1, 2, 3, 4, 5]
    assert [tags for _, _, tags in hooks] == [[], [], ["loopscope:warn"], [], ["loopscope:hard_stop"]]
    name, metadata, tags = tracer.sent[-1]
    assert (name, metadata["loopscope.iterations"], metadata["loopscope.layer"]) == (
        "LangGraph",
        5,
        "identical_call_set",
    )
    assert tags == ["loopscope:warn", "loopscope:hard_stop"]
    others = [metadata for name, metadata, _ in tracer.sent if name == "model"]
    assert others == [{}] * 5


def test_the_tap_is_traced_too(spans: tuple[Any, InMemorySpanExporter], tracing: None) -> None:
    """A graph that is only watched says what would have been decided."""
    tracer, exporter = spans
    assert tracing is None
    shell = Shell()
    with tracer.start_as_current_span("turn"):
        agent([turn(bash()), DONE], tools=[shell.tool]).invoke(ask(), {"callbacks": [tap()]})
    (span,) = exporter.get_finished_spans()
    assert [event.name for event in span.events] == ["loopscope.decision", "loopscope.run_end"]
    assert attributes(span)["loopscope.model_calls"] == 2


@BOTH
async def test_a_bounded_loop_is_traced_without_being_asked(
    asynchronous: bool, spans: tuple[Any, InMemorySpanExporter]
) -> None:
    """Each iteration and the giving up, on spans, and on the runs of its nodes."""
    tracer, exporter = spans
    runs = Tracer()
    model = ScriptedModel(script=queries(MISSPELT))
    loop = BoundedLoop("sql", max_iterations=3, success=answered)
    graph = guarded(model, loop, asynchronous=asynchronous, checkpointer=InMemorySaver())
    with tracer.start_as_current_span("turn"):
        await run(graph, asynchronous, config=on("t", callbacks=[runs]))
    (span,) = exporter.get_finished_spans()
    told = [(event.name, dict(event.attributes or {})) for event in span.events]
    assert [name for name, _ in told] == ["loopscope.sql.iteration", "loopscope.sql.iteration", "loopscope.sql.give_up"]
    assert told[-1][1] == {
        "loopscope.sql.reason": "stagnation",
        "loopscope.sql.iterations": 2,
        "loopscope.sql.allowed": 3,
        "loopscope.sql.without_progress": 1,
    }
    assert [metadata["loopscope.sql.iterations"] for name, metadata, _ in runs.sent if name == "analyst"] == [1, 2]
    assert runs.sent[-1][2] == ["loopscope:give_up"]


def test_without_spans_or_runs_nothing_is_done(tracing: None) -> None:
    """No current span, no tracer, and none of both."""
    assert tracing is None
    final = agent([turn(bash()), DONE], LoopDetectionMiddleware()).invoke(ask())
    assert final["messages"][-1].content == "done"


def test_it_ends_when_it_is_told_to(spans: tuple[Any, InMemorySpanExporter]) -> None:
    """Then nobody listens any more."""
    tracer, exporter = spans
    before = bus.active
    trace()()
    assert bus.active == before
    with tracer.start_as_current_span("turn"):
        agent([turn(bash()), DONE], LoopDetectionMiddleware()).invoke(ask())
    assert exporter.get_finished_spans()[0].events == ()


def test_opentelemetry_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it LangChain's tracers are served; who asks for it is told what to install."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr("loopscope.adapters.traces.find_spec", lambda _: None)
    trace()()
    with pytest.raises(MissingExtraError, match=r"pip install 'loopscope\[otel\]'"):
        trace(opentelemetry=True)


def test_with_traces_a_guarded_agent_takes_the_last_step(tracing: None) -> None:
    """The counter of its middleware, which is in no state, is in the trace."""
    from langchain.agents.middleware import wrap_tool_call
    from langchain_core.messages import ToolMessage

    from loopscope import Policy

    @wrap_tool_call
    def answer_errors(request: Any, handler: Any) -> Any:
        try:
            return handler(request)
        except Exception as error:  # noqa: BLE001 - told to the model
            return ToolMessage(str(error), tool_call_id=request.tool_call["id"], status="error")

    assert tracing is None
    witness = {"witness": "last_error", "hard_limit": 1}
    policy = Policy.parse({"stagnation": witness, "budget": {"iterations": {"limit": 5}}})
    script = [turn(bash(f"make {word}")) for word in "abcdefgh"]
    proof = bounded_run(
        agent(script, answer_errors, LoopDetectionMiddleware(policy=policy)), ask(), fail="bash", within=5
    )
    assert (proof.varied.attempts, proof.same.attempts) == (4, 2)
