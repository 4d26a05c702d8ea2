"""An agent as an adapter would guard it: a real engine behind the real gate, on the real bus, without a framework."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, cast, get_args

import msgspec

from loopscope.engine.detector import Decision, LoopDetector
from loopscope.engine.events import (
    Batch,
    Call,
    Control,
    DecisionMade,
    Event,
    Header,
    PolicySet,
    Result,
    RunEnd,
    RunStart,
    ScopeKey,
    Warned,
)
from loopscope.engine.policy import DEFAULT, Policy
from loopscope.engine.snapshot import Snapshot
from loopscope.link.client import Client, connect
from loopscope.link.discovery import Entry
from loopscope.link.endpoint import Link
from loopscope.recording.bus import bus
from loopscope.recording.feed import Message, Snapshotted
from loopscope.recording.gate import JUDGE, Arrival, Recording, Ruling, gatehouse

SCOPE = ScopeKey("t", "r")
FREE = Policy(
    warn_threshold=10**6, hard_limit=10**6, tool_freq_warn=10**6, tool_freq_hard_limit=10**6, max_tracked_threads=200
)
"""Limits that nothing reaches."""
LS = ("bash", {"command": "ls"})


class Kept:
    """A recording in memory."""

    def __init__(self, policy: Policy) -> None:
        self.events: list[Event] = [Header(format="loopscope/1", policy=policy.to_dict(), enforced=True)]

    def put(self, event: Event) -> None:
        """Keep it."""
        self.events.append(event)


class Agent:
    """One engine with its loops."""

    def __init__(self, policy: Policy = DEFAULT, name: str = "agent", recording: Kept | None = None) -> None:
        self.name = name
        self.enforced = True
        self.policy = policy
        self.detector = LoopDetector(policy, assume_delivery=False)
        self.recording = recording
        self.open: dict[ScopeKey, None] = {}
        gatehouse.register(self)

    def open_scopes(self) -> Iterable[ScopeKey]:
        """As `Steerable` has it."""
        return list(self.open)

    def recordings(self, scope: ScopeKey | None) -> Iterable[Recording]:  # noqa: ARG002 - it has one
        """As `Steerable` has it."""
        return [self.recording] if self.recording is not None else []

    def apply(self, event: Control | PolicySet) -> None:
        """As `Steerable` has it."""
        if isinstance(event, PolicySet):
            everywhere = event.thread_id is None and event.run_id is None
            policy = Policy.recorded(event.policy)
            self.detector.adopt(policy, None if everywhere else event.scope)
            if everywhere:
                self.policy = policy
        else:
            self.detector.observe(event)

    def rebase(self, policy: Policy) -> None:
        """As `Steerable` has it."""
        self.policy = policy
        self.detector.adopt(policy)

    def start(self, scope: ScopeKey = SCOPE, agent: str | None = "agent") -> None:
        """A run begins."""
        with bus.lock:
            self.open[scope] = None
            self.tell(RunStart(**_place(scope), agent=agent))
            policy = self.detector.policy_of(scope)
            if policy != gatehouse.base:
                self.tell(PolicySet(**_place(scope), policy=policy.to_dict()))

    def end(self, scope: ScopeKey = SCOPE) -> None:
        """A run is over."""
        with bus.lock:
            self.open.pop(scope, None)
            self.tell(RunEnd(**_place(scope), status="completed"))

    def arrival(self, *calls: tuple[str, object], scope: ScopeKey = SCOPE, **more: Any) -> Arrival:
        """These calls before the gate."""
        made = tuple(Call(f"c{number}", name, args) for number, (name, args) in enumerate(calls))
        return Arrival(scope, made, self, **more)

    def batch(self, *calls: tuple[str, object], scope: ScopeKey = SCOPE, **more: Any) -> str:
        """One AI message with these calls: waits at the gate, and gives back what became of it."""
        arrival = self.arrival(*(calls or (LS,)), scope=scope, **more)
        gate = gatehouse.gate
        ruling = gate.admit(arrival) if gate is not None and gate.armed else JUDGE
        return self.decide(arrival, ruling)

    async def abatch(self, *calls: tuple[str, object], scope: ScopeKey = SCOPE, **more: Any) -> str:
        """As `batch`, in a task."""
        arrival = self.arrival(*(calls or (LS,)), scope=scope, **more)
        gate = gatehouse.gate
        ruling = await gate.aadmit(arrival) if gate is not None and gate.armed else JUDGE
        return self.decide(arrival, ruling)

    def decide(self, arrival: Arrival, ruling: Ruling) -> str:
        """Account the batch, and tell of it."""
        with bus.lock:
            batch = Batch(**_place(arrival.scope), calls=arrival.calls)
            decisions = self.tell(batch)
            made = decisions[0]
            self.tell(
                DecisionMade(
                    **_place(arrival.scope), batch_seq=made.seq, hash=made.hash, hash_count=made.hash_count,
                    action=made.action, layer=made.layer, tool=made.tool, count=made.count, threshold=made.threshold,
                )
            )  # fmt: skip
            if made.action == "warn":
                text = self.detector.pending(arrival.scope)[-1]
                self.tell(Warned(**_place(arrival.scope), state="queued", text=text))
                self.tell(Warned(**_place(arrival.scope), state="delivered", text=text))
            for call in arrival.calls:
                self.tell(Result(**_place(arrival.scope), call_id=call.id, status="ok", content="x", digest="d"))
        return (
            "stopped"
            if ruling.verdict == "stop" or (made.action == "hard_stop" and ruling.verdict != "pass")
            else "ran"
        )

    def tell(self, event: Event) -> tuple[Decision, ...]:
        """Give the event to everybody, the engine first."""
        decisions = self.detector.observe(event)
        bus.publish(event)
        if self.recording is not None:
            self.recording.put(event)
        return decisions


def _place(scope: ScopeKey) -> dict[str, Any]:
    return {"seq": bus.next_seq(), "ts": time.time(), "thread_id": scope.thread_id, "run_id": scope.run_id}


class State:
    """A viewer's state: an engine of its own, fed with what the link sends."""

    def __init__(self) -> None:
        self.detector = LoopDetector()
        self.messages: list[Message] = []
        self.decisions: list[Decision] = []
        """What this state says of the batches that came."""
        self.seq = 0

    def take(self, message: Message) -> None:
        """Take one message in."""
        self.messages.append(message)
        if isinstance(message, Snapshotted):
            self.detector.restore(message.state)
            self.seq = message.seq
        elif isinstance(message, get_args(Event)):
            self.decisions += self.detector.observe(cast("Event", message))
            self.seq = max(self.seq, getattr(message, "seq", 0))

    def follow(self, client: Client, until: Callable[[Message], bool]) -> Message:
        """Take messages until one is the one."""
        for message in client:
            self.take(message)
            if until(message):
                return message
        raise AssertionError(f"the connection ended: {client.bye}")

    def catch_up(self, client: Client, agent: Agent) -> None:
        """Take messages until everything that was published is here."""
        with bus.lock:
            mark = bus.next_seq()
            agent.tell(RunEnd(seq=mark, ts=None, thread_id="mark", run_id=str(mark)))
        self.follow(client, lambda message: getattr(message, "seq", 0) >= mark)


def attached(link: Link, *, control: bool = False) -> tuple[Client, State]:
    """A viewer that gets events."""
    client, state = connect(link.entry, control=control), State()
    client.attach()
    return client, state


def same_state(first: LoopDetector | Snapshot, second: LoopDetector | Snapshot) -> bool:
    """Whether two engines would decide everything alike."""
    states = [each.snapshot() if isinstance(each, LoopDetector) else each for each in (first, second)]
    return msgspec.json.encode(states[0]) == msgspec.json.encode(states[1])


def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for something that another thread or process does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)


async def auntil(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait in a task for something that others do."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        await asyncio.sleep(0)


def consume(messages: Iterable[Message], take: Callable[[Message], object]) -> None:
    """Give each message to `take`, until there are no more."""
    for message in messages:
        take(message)


def descriptors() -> int:
    """Open file descriptors of this process."""
    return len(list(Path("/dev/fd").iterdir()))


@contextlib.contextmanager
def raw(link: Link | Entry) -> Iterator[socket.socket]:
    """A bare connection to a link."""
    entry = link if isinstance(link, Entry) else link.entry
    if entry.transport == "unix":
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(entry.address)
    else:
        host, _, port = entry.address.rpartition(":")
        connection = socket.create_connection((host, int(port)))
    with connection:
        connection.settimeout(60)
        yield connection


def read_all(connection: socket.socket) -> bytes:
    """What the other side sends until it closes; a reset ends it too."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(1 << 16):
            data += piece
    return data
