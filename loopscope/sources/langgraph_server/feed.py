"""The runs of a LangGraph server as a feed: a loop in a thread of its own looks for them and joins each.

Apart from what their states mean. The SDK's asynchronous client is taken since a stream that waits can be cancelled.
"""

from __future__ import annotations

import asyncio
import itertools
import queue
import threading
import time
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple, TypeVar, cast, get_args
from urllib.parse import urlsplit

from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import NotFoundError

from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Control, ScopeKey
from loopscope.engine.policy import DEFAULT, Policy
from loopscope.errors import CannotAttachError, UsageError
from loopscope.recording.feed import Connection, Message, Snapshotted, Verb
from loopscope.recording.inert import inert
from loopscope.recording.preview import PREVIEW
from loopscope.sources.langgraph_server.values import Conversation
from loopscope.sources.langgraph_sqlite.endings import Ending

__all__ = ["ServerFeed"]

Answer = TypeVar("Answer")

_REST = 0.2
"""Seconds between two looks for runs; one that is shorter may be missed."""
_LULL = 1.0
"""Seconds without anything new after which a run is asked whether it goes on."""
_TIMEOUT = 10.0
"""Seconds for any one answer."""
_PATIENCE = 30.0
"""Seconds for which a server that does not answer any more is looked for."""
_MOST = 100
"""Threads and runs that are looked at."""
_PAGE, _PAGES = 50, 40
"""States that are asked for at a time, and how often."""
_OBSERVES = "this viewer only observes: attach with --control to stop runs"
_WHY_NOT = (
    "a LangGraph server cannot do it: let the graph call loopscope.listen(control=True), and attach to that process"
)
_GOING_ON = ("running", "pending")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class _Run(NamedTuple):
    thread_id: str
    run_id: str
    agent: str | None
    status: str
    created: str

    @property
    def goes_on(self) -> bool:
        """It runs, or is about to."""
        return self.status in _GOING_ON


class ServerFeed:
    """A feed of one server, or of one thread there.

    Args:
        url: the server.
        thread_id: the thread; None for all.
        policy: what decides; the defaults where it is None.
        control: whether runs may be stopped.
        name: what recordings call whoever stops one.

    Raises:
        CannotAttachError: no such server answers there, or it has no such thread.
    """

    def __init__(
        self,
        url: str,
        thread_id: str | None = None,
        policy: Policy | None = None,
        *,
        control: bool = False,
        name: str = "loopscope",
    ) -> None:
        self._url = url
        self._thread_id = thread_id
        self._policy = policy or DEFAULT
        self._control = control
        self._by = name
        self.problems: list[tuple[int, str]] = []
        """What could not be read."""
        self._seq = itertools.count(1)
        self._told: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._talks: dict[str, Conversation] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        self._joined: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="loopscope-server", daemon=True)
        self._thread.start()
        self._watching: asyncio.Task[None] | None = None
        self._closed = False
        try:
            self._client: LangGraphClient = self._do(self._connect())
        except BaseException:
            self.close()
            raise

    @property
    def name(self) -> str:
        """The URL, safe to draw."""
        return inert(self._url if self._thread_id is None else f"{self._url}/threads/{self._thread_id}")

    @property
    def capabilities(self) -> Mapping[str, str]:
        """As `Feed` has it: it stops runs, and nothing else."""
        return {**dict.fromkeys(get_args(Verb), _WHY_NOT), "stop": "" if self._control else _OBSERVES}

    def __iter__(self) -> Iterator[Message]:
        """As `Feed` has it."""
        yield Snapshotted(seq=0, state=LoopDetector(self._policy).snapshot())
        self._loop.call_soon_threadsafe(self._begin)
        while not self._closed and (message := self._told.get()) is not None:
            yield message

    def request(self, verb: Verb, scope: ScopeKey | None = None, **arguments: Any) -> Mapping[str, Any]:  # noqa: ARG002 - as `Feed` has it
        """As `Feed` has it.

        Raises:
            UsageError: where the server cannot do it, or no such run goes on.
            CannotAttachError: where it does not answer.
        """
        why = self.capabilities[verb]
        if why:
            raise UsageError(f"cannot {verb}: {why}")
        return {"scopes": self._do(self._stop(scope))}

    def close(self) -> None:
        """As `Feed` has it."""
        if self._closed:
            return
        self._closed = True
        self._told.put(None)
        self._loop.call_soon_threadsafe(lambda: self._loop.create_task(self._end()))
        self._thread.join(_TIMEOUT)
        if not self._thread.is_alive():
            self._loop.close()

    def _do(self, asked: Coroutine[Any, Any, Answer]) -> Answer:
        """Let the loop do something, and wait for it."""
        try:
            return asyncio.run_coroutine_threadsafe(asyncio.wait_for(asked, _TIMEOUT), self._loop).result()
        except (UsageError, CannotAttachError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever a server makes the SDK raise
            raise CannotAttachError(f"{self.name}: {_why(error)}") from None

    async def _connect(self) -> LangGraphClient:
        # The SDK sends the key of the environment wherever it is told to: never in the clear to another machine.
        parts = urlsplit(self._url)
        trusted = parts.scheme == "https" or parts.hostname in _LOOPBACK
        client = get_client(url=self._url) if trusted else get_client(url=self._url, api_key=None)
        self._client = client
        await self._going_on()
        return client

    def _begin(self) -> None:
        if self._watching is None and not self._closed:
            self._watching = self._loop.create_task(self._watch())

    async def _end(self) -> None:
        tasks = [task for task in (self._watching, *self._joined.values()) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        client = getattr(self, "_client", None)
        if client is not None:
            await client.aclose()
        await self._loop.shutdown_default_executor()
        self._loop.stop()

    async def _watch(self) -> None:
        """Look for runs until the server is gone."""
        lost: float | None = None
        while True:
            try:
                for run in await self._going_on():
                    if (run.thread_id, run.run_id) not in self._joined:
                        self._joined[run.thread_id, run.run_id] = self._loop.create_task(self._join(run))
            except Exception as error:  # noqa: BLE001 - as above
                if lost is None:
                    lost = time.monotonic()
                    self._told.put(Connection(state="lost", reason=_why(error)))
                elif time.monotonic() - lost > _PATIENCE:
                    self._told.put(Connection(state="ended", reason=f"the server does not answer: {_why(error)}"))
                    self._told.put(None)
                    return
            else:
                if lost is not None:
                    lost = None
                    self._told.put(Connection(state="back"))
            await asyncio.sleep(_REST)

    async def _going_on(self) -> list[_Run]:
        """The runs that go on, or are about to; of one thread also those that are over. The oldest first."""
        threads = (
            [{"thread_id": self._thread_id}]
            if self._thread_id is not None
            else await self._client.threads.search(status="busy", limit=_MOST, select=["thread_id"])
        )
        found: list[_Run] = []
        for thread in threads:
            for run in await self._client.runs.list(str(thread["thread_id"]), limit=_MOST):
                if self._thread_id is not None or run["status"] in _GOING_ON:
                    graph = (run.get("metadata") or {}).get("graph_id")
                    agent = graph if isinstance(graph, str) else None
                    found.append(_Run(run["thread_id"], run["run_id"], agent, run["status"], str(run["created_at"])))
        return sorted(found, key=lambda run: run.created)

    async def _join(self, run: _Run) -> None:
        """Tell of one run from its first event to its end."""
        talk = self._talks.get(run.thread_id)
        if talk is None:
            talk = self._talks[run.thread_id] = Conversation(run.thread_id, self._seq, self.problems)
            self._turns[run.thread_id] = asyncio.Lock()
        async with self._turns[run.thread_id]:
            await self._follow(run, talk)

    async def _follow(self, run: _Run, talk: Conversation) -> None:
        """As `_join`; the runs of a thread come one after the other, since each is given what those before it said."""
        self._tell(talk.begin(run.run_id, run.agent, _moment({"created_at": run.created})))
        ending: Ending | None = None
        failing: float | None = None
        while ending is None:
            try:
                ending = await self._to_its_end(run, talk)
                failing = None
            except NotFoundError:
                ending = Ending("unknown", "the run was deleted")
            except Exception as error:  # noqa: BLE001 - the connection is lost: it is joined again when that is back
                failing = failing or time.monotonic()
                if time.monotonic() - failing > _PATIENCE:
                    ending = Ending("unknown", f"it cannot be read any more: {_why(error)}")
                await asyncio.sleep(_REST)
        self._tell(talk.end(run.run_id, ending, time.time()))

    async def _to_its_end(self, run: _Run, talk: Conversation) -> Ending | None:
        """What is new in a run, as long as its stream goes on; then how it ended, or None where it goes on."""
        reason: str | None = None
        await self._catch_up(run, talk)
        async for event, data, ts in self._stream(run):
            kind, _, namespace = event.partition("|")
            if kind == "values":
                self._tell(talk.take(run.run_id, namespace, data, ts))
            elif kind == "error":
                reason = _said(data)
        ending = await self._ending(run, reason)
        if ending is None:
            await asyncio.sleep(_REST)
        else:
            await self._catch_up(run, talk)
        return ending

    async def _catch_up(self, run: _Run, talk: Conversation) -> None:
        """What a run has done so far: a stream that is joined late may begin in its midst."""
        states = [state async for state in self._states(run)]
        states.reverse()
        sources = [_metadata(state).get("source") for state in states]
        if states and sources[0] != "input" and states[0].get("parent_checkpoint"):
            before = await self._client.threads.get_state(run.thread_id, checkpoint=states[0]["parent_checkpoint"])
            talk.give(run.run_id, before.get("values"), _moment(before))
        for place, state in enumerate(states):
            # The input stands in the state behind it, before any node has run.
            if "input" in sources[max(0, place - 1) : place + 1]:
                talk.give(run.run_id, state.get("values"), _moment(state))
            else:
                self._tell(talk.take(run.run_id, "", state.get("values"), _moment(state)))

    async def _states(self, run: _Run) -> AsyncIterator[Mapping[str, Any]]:
        """The states of a run that the server keeps, the newest first."""
        before: Any = None
        for _ in range(_PAGES):
            page: list[Any] = await self._client.threads.get_history(
                run.thread_id, limit=_PAGE, before=before, metadata={"run_id": run.run_id}
            )
            for state in page:
                yield state
            if len(page) < _PAGE:
                return
            # Some servers take a checkpoint here, others a configuration that holds one.
            before = {**page[-1]["checkpoint"], "configurable": page[-1]["checkpoint"]}
        self.problems.append(
            (0, f"run {inert(run.run_id, 60)} has more states than the {_PAGE * _PAGES} that are read")
        )

    async def _stream(self, run: _Run) -> AsyncIterator[tuple[str, Any, float]]:
        """What a server streams of a run. A stream joined just as the run ends may stay open and say nothing more."""
        stream = aiter(
            self._client.runs.join_stream(run.thread_id, run.run_id, stream_mode="values", last_event_id="-1")
        )
        coming = asyncio.ensure_future(anext(stream, None))
        try:
            while True:
                await asyncio.wait({coming}, timeout=_LULL)
                if not coming.done():
                    if await self._status(run) in _GOING_ON:
                        continue
                    return
                part = coming.result()
                if part is None:
                    return
                coming = asyncio.ensure_future(anext(stream, None))
                yield str(part.event), part.data, _time(getattr(part, "id", None))
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)

    async def _status(self, run: _Run) -> str:
        return str((await self._client.runs.get(run.thread_id, run.run_id))["status"])

    async def _ending(self, run: _Run, reason: str | None) -> Ending | None:
        """How a run ended; None where it goes on."""
        status = await self._status(run)
        if status in _GOING_ON:
            return None
        thread: Mapping[str, Any] = await self._client.threads.get(run.thread_id)
        if status == "success" and thread.get("status") == "interrupted":
            return Ending("unknown", "interrupted, waiting for an answer")
        if status == "success":
            return Ending("completed", None)
        if status == "interrupted":
            return Ending("cancelled", reason)
        state: Mapping[str, Any] = await self._client.threads.get_state(run.thread_id)
        # The server keeps what it streams of an error general; the task has it.
        told = [*(task.get("error") for task in state.get("tasks") or ()), reason, thread.get("error"), status]
        return Ending("error", _said(next(each for each in told if each)))

    async def _stop(self, scope: ScopeKey | None) -> int:
        """Cancel a run, or all; how many that were."""
        going = await self._going_on()
        wanted = None if scope is None else (scope.thread_id, (scope.run_id or "").partition("/")[0])
        found = [run for run in going if run.goes_on and wanted in (None, (run.thread_id, run.run_id))]
        if scope is not None and not found:
            raise UsageError("cannot stop: no run goes on there; it has ended already")
        for run in found:
            place = ScopeKey(run.thread_id, run.run_id)
            self._told.put(Control(seq=next(self._seq), ts=time.time(), **place._asdict(), action="stop", by=self._by))
            await self._client.runs.cancel(run.thread_id, run.run_id, wait=False, action="interrupt")
        return len(found)

    def _tell(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self._told.put(message)


def _time(part: object) -> float:
    """Of an event that a server kept, as its id tells; else now."""
    digits = str(part).partition("-")[0]
    return int(digits) / 1000 if len(digits) == 13 and digits.isdecimal() else time.time()  # noqa: PLR2004 - milliseconds


def _metadata(state: Mapping[str, Any]) -> Mapping[str, Any]:
    found = state.get("metadata")
    return found if isinstance(found, Mapping) else {}


def _moment(state: Mapping[str, Any]) -> float:
    try:
        return datetime.fromisoformat(str(state.get("created_at"))).timestamp()
    except (ValueError, OverflowError):
        return time.time()


def _said(data: object) -> str:
    found = cast("dict[str, object]", data) if isinstance(data, dict) else {}
    return ": ".join(str(found[key]) for key in ("error", "message") if found.get(key))[:PREVIEW] or str(data)[:PREVIEW]


def _why(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return inert("does not answer in time" if isinstance(error, TimeoutError) else text, 300)
