"""Where a sample is run: a folder of its own for the files that its tools work on, and what records the run."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from loopscope.adapters.langchain import LoopDetectionMiddleware
from loopscope.adapters.tap.handler import Tap, tap
from loopscope.engine.events import Gap, RunEnd, ScopeKey
from loopscope.recording.reader import Reader
from loopscope.recording.writer import Recorder
from sample_runs.stage.normal import normalised
from sample_runs.stage.sample import Sample
from sample_runs.stage.watch import Watch

__all__ = ["Stage", "ask", "make"]


class Stage:
    """What a sample's script gets to run its graph with.

    Args:
        root: an empty folder.
    """

    def __init__(self, root: Path) -> None:
        self.folder = root / "files"
        """The tools' folder; no path of it may get into a text."""
        self.folder.mkdir()
        self._file = root / "run.jsonl"
        self._guard: LoopDetectionMiddleware | None = None
        self._recorder: Recorder | None = None
        self._tap: Tap | None = None

    def guard(self, **settings: Any) -> LoopDetectionMiddleware:
        """The middleware, which records what it decides and applies it; one for all agents of a sample."""
        self._guard = LoopDetectionMiddleware(record=self._file, **settings)
        return self._guard

    def watch(self, graph: Any, text: str, agent: str, scope: tuple[str, str], **config: Any) -> None:
        """Ask a graph that has no guard, and record what it does."""
        self._recorder = Recorder(self._file, policy=None, enforced=False)
        watch = Watch(self._recorder, ScopeKey(*scope), agent)
        ask(graph, text, callbacks=[watch], **config)

    def tap(self, graph: Any, text: str, scope: tuple[str, str]) -> None:
        """Ask a graph with bounds of its own, and record it as a program would, its loop's witness too."""
        self._tap = tap(graph, record=self._file)
        ask(graph, text, scope, callbacks=[self._tap])

    def recorded(self) -> list[bytes]:
        """The lines of the recording, once the run is over.

        Raises:
            ValueError: where something is missing, or a line is none that loopscope can read.
        """
        if self._guard is not None:
            self._guard.close()
        if self._recorder is not None:
            self._recorder.close()
        if self._tap is not None:
            self._tap.close()
        with Reader(self._file) as reader:
            kinds = {type(line.event) for line in reader}
        if reader.problems or Gap in kinds or RunEnd not in kinds:
            raise ValueError(f"the recording is not whole: {reader.problems or kinds}")
        return self._file.read_bytes().splitlines()


def ask(graph: Any, text: str, scope: tuple[str, str] | None = None, **config: Any) -> str:
    """What a graph answers.

    Args:
        graph: a compiled graph whose state holds messages.
        text: what the user says.
        scope: the thread and the run; a sub-agent has those of the agent that asks it.
        config: more of LangGraph's settings.
    """
    if scope is not None:
        config["configurable"] = {"thread_id": scope[0]}
    context = None if scope is None else {"run_id": scope[1]}
    last: BaseMessage = graph.invoke({"messages": [HumanMessage(text)]}, config, context=context)["messages"][-1]
    return last.text


def make(sample: Sample) -> bytes:
    """Run a sample: its recording, the same each time."""
    with TemporaryDirectory() as root:
        stage = Stage(Path(root))
        sample.run(stage)
        return b"".join(line + b"\n" for line in normalised(stage.recorded(), sample))
