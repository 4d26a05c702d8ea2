"""The middle of a process that listens: what comes in from the program goes out to every viewer.

Everything here runs on the link's thread. Apart from sockets, so that what a viewer gets does not depend on how it is
connected.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from loopscope.engine.events import Event, Gap
from loopscope.engine.snapshot import Snapshot
from loopscope.link.backlog import Backlog, Reading
from loopscope.link.discovery import Entry
from loopscope.link.gate import HoldingGate
from loopscope.link.intake import Intake
from loopscope.link.limits import Limits
from loopscope.link.refusal import RefusedError
from loopscope.link.shadow import Shadow, merged
from loopscope.link.steering import Steering
from loopscope.link.verbs import CONTROL, Attach, Controls, arguments
from loopscope.link.wire import EngineInfo, Hello, Request, Summary, Welcome, encode, negotiate
from loopscope.recording.bus import bus
from loopscope.recording.feed import Held, Released, Snapshotted, Status
from loopscope.recording.gate import Steerable, gatehouse
from loopscope.recording.inert import inert
from loopscope.recording.plain import plain

__all__ = ["LONGEST_LINE", "Hub", "Viewer"]

LONGEST_LINE = 8 << 20
"""Bytes of the longest event that is sent; viewers get the whole state in place of a longer one."""
_HELD_BYTES = 1 << 16
_AT_ONCE = 1_000
_OBSERVE_ONLY = (
    "this process lets itself be observed only: start it with `loopscope run --control`, LOOPSCOPE=control or "
    "loopscope.listen(control=True)"
)
_NOT_ASKED = "this viewer only observes: attach with --control to steer"


class Viewer(Protocol):
    """One connection that was let in."""

    client: str
    controls: bool
    resume: bool
    position: int | None

    def begin(self, position: int, lines: list[bytes]) -> None:
        """Send these lines, then what the backlog has from this position on."""
        ...

    def pump(self) -> None:
        """Send what there is and what the other side has room for."""
        ...


class Hub:
    """Serves the viewers of one process.

    Args:
        entry: how the process is found.
        intake: where its events come in.
        gate: holds its batches.
        limits: how much is kept, and for how many viewers.
        state: what the engines knew before the first event that is in the intake.
    """

    def __init__(self, entry: Entry, intake: Intake, gate: HoldingGate, limits: Limits, state: Snapshot) -> None:
        self.entry = entry
        self.attached = threading.Event()
        """Set once a viewer has attached, for whoever waits for the first one."""
        self.renamed: Callable[[Entry], object] = lambda _entry: None
        """Called when what the entry tells has changed."""
        self.viewers: dict[int, Viewer] = {}
        self.steering = Steering(gate, lambda: [run.scope for run in self._shadow.running])
        self._controls = Controls(self.steering, lambda: self._shadow.scopes)
        self._limits = limits
        self._intake = intake
        self._gate = gate
        self._backlog = Backlog(limits.backlog)
        self._status_due = False
        with bus.lock:
            self._seq = bus.next_seq()
        self._shadow = Shadow(state)
        self._open()

    def drain(self) -> bool:
        """Take in what waits and send it on. Whether there is more."""
        for item in self._intake.take(_AT_ONCE):
            self._take_in(item)
        lost = self._intake.take_lost()
        if lost:
            self._recover(lost)
        self.pump()
        if self._shadow.graphs != self.entry.graphs:
            self.entry = msgspec.structs.replace(self.entry, graphs=self._shadow.graphs)
            self.renamed(self.entry)
        return len(self._intake) > 0

    def _catch_up(self) -> None:
        """Take in all that waited when this was called; the program may go on to publish for ever."""
        for _ in range(len(self._intake) // _AT_ONCE + 1):
            self.drain()

    def pump(self) -> None:
        """Let every viewer send what it can."""
        for viewer in list(self.viewers.values()):
            viewer.pump()

    def read(self, position: int, room: int) -> Reading:
        """Some lines of the backlog."""
        return self._backlog.read(position, room)

    def behind(self, position: int) -> int:
        """How many lines there are after this position."""
        return self._backlog.end - position

    def status_changed(self) -> None:
        """Tell all viewers what is in force, soon and once. Callable from any thread."""
        if not self._status_due:
            self._status_due = True
            self._intake.urge(self._tell_status)

    def newcomer(self, engine: Steerable) -> None:
        """An engine was made while we listen: where it is the only one, what holds for it holds for all.

        Called on any thread, with the lock of the bus held.
        """
        if gatehouse.engines() == [engine]:
            self.steering.adopt(engine)
            assume = engine.detector.assume_delivery
            self._intake.urge(lambda: self._assume_delivery(assume=assume))

    def allow_control(self) -> None:
        """Let viewers that come from now on steer, where they ask for it."""
        self.entry = msgspec.structs.replace(self.entry, control=True)
        self.renamed(self.entry)

    def welcome(self, hello: Hello) -> Welcome:
        """What to answer a viewer that may come in.

        Raises:
            RefusedError: where no version suits both, or there are too many already.
        """
        version = negotiate(hello)
        if len(self.viewers) >= self._limits.viewers:
            raise RefusedError("too-many", f"{self._limits.viewers} viewers are attached already")
        self._catch_up()
        entry = self.entry
        return Welcome(
            version=version, session=entry.session, pid=os.getpid(), name=entry.name, python=entry.python,
            loopscope=_version(), started=entry.started, control=entry.control and hello.control,
            capabilities=self._capabilities(hello), graphs=entry.graphs, engines=self._engines(), seq=self._seq,
            summary=self._summary(),
        )  # fmt: skip

    def joined(self, number: int, viewer: Viewer) -> None:
        """A viewer was welcomed."""
        self.viewers[number] = viewer
        self.status_changed()

    def left(self, number: int) -> None:
        """A viewer is gone, however it went. With the last one that steers, nothing is held any more."""
        viewer = self.viewers.pop(number, None)
        if viewer is None:
            return
        self._look_around()
        if viewer.controls and viewer.resume and not any(other.controls for other in self.viewers.values()):
            self.steering.let_go(f"{viewer.client} left")
        self.status_changed()

    def answer(self, viewer: Viewer, request: Request) -> object:
        """Do what a viewer asks; what to answer.

        Raises:
            RefusedError: where it may not, or it cannot be done.
        """
        if request.verb == "attach":
            return self._attach(viewer, arguments(request, Attach))
        if request.verb not in CONTROL:
            raise RefusedError("unknown-verb", inert(f"no verb {request.verb!r}; known are {', '.join(CONTROL)}", 300))
        if not viewer.controls:
            raise RefusedError("not-allowed", _NOT_ASKED if self.entry.control else _OBSERVE_ONLY)
        return self._controls.do(request, viewer.client)

    def _attach(self, viewer: Viewer, asked: Attach) -> object:
        if viewer.position is not None:
            raise RefusedError("bad-request", "this viewer is attached already")
        self._catch_up()
        since = asked.since if asked.session == self.entry.session else None
        start = self._backlog.start(since)
        viewer.begin(start.position, start.lines)
        self._look_around()
        self.attached.set()
        if self._gate.status().waiting:
            self.steering.resume(None, f"{viewer.client} is here")
        return {"seq": self._seq, "resumed": since is not None and not start.lines}

    def _assume_delivery(self, *, assume: bool) -> None:
        if self._shadow.assume_delivery(assume=assume):
            self._open(broken=True)

    def _look_around(self) -> None:
        """While somebody is attached, events are sent as they come."""
        self._intake.eager = any(viewer.position is not None for viewer in self.viewers.values())

    def _take_in(self, item: Any) -> None:
        if isinstance(item, (Held, Released)):
            self._keep(_line(item))
        elif callable(item):
            item()
        else:
            self._event(item)

    def _event(self, event: Event) -> None:
        self._shadow.observe(event)
        seq = getattr(event, "seq", None)
        self._seq = max(self._seq, seq or 0)
        line = encode(event)
        if len(line) > LONGEST_LINE:
            self._gap(1)
            return
        self._keep(line, seq)

    def _keep(self, line: bytes, seq: int | None = None) -> None:
        self._backlog.add(line, seq)
        if self._backlog.is_full:
            self._open()

    def _recover(self, lost: int) -> None:
        """The program was faster than this thread for too long: what the engines know now replaces what was lost."""
        with bus.lock:
            rest = self._intake.take()
            newest = bus.next_seq()
            engines = gatehouse.engines()
            state = merged(engines, gatehouse.base) if engines else None
        for item in rest:
            self._take_in(item)
        if state is not None:
            self._shadow.replace(state)
        self._seq = newest
        self._gap(lost)

    def _gap(self, lost: int) -> None:
        gap = Gap(seq=self._seq, ts=None, thread_id=None, run_id=None, lost=lost)
        self._backlog.add(encode(gap))
        self._open(broken=True)

    def _open(self, *, broken: bool = False) -> None:
        state = Snapshotted(
            seq=self._seq, state=self._shadow.snapshot(), runs=self._shadow.running, status=self._status(),
            held=tuple(_short(hold.told()) for hold in self._gate.held()),
        )  # fmt: skip
        self._backlog.open(self._seq, encode(state), broken=broken)

    def _tell_status(self) -> None:
        self._status_due = False
        self._keep(encode(self._status()))

    def _status(self) -> Status:
        controllers = sum(viewer.controls for viewer in self.viewers.values())
        return msgspec.structs.replace(self._gate.status(), viewers=len(self.viewers), controllers=controllers)

    def _capabilities(self, hello: Hello) -> dict[str, str]:
        why = "" if self.entry.control and hello.control else _NOT_ASKED if self.entry.control else _OBSERVE_ONLY
        return dict.fromkeys(CONTROL, why)

    def _engines(self) -> tuple[EngineInfo, ...]:
        return tuple(
            EngineInfo(number=number, name=engine.name, enforced=engine.enforced, policy=engine.policy.to_dict())
            for number, engine in gatehouse.numbered()
        )

    def _summary(self) -> Summary:
        return Summary(
            batches=self._shadow.batches,
            scopes=len(self._shadow.scopes),
            worst=self._shadow.worst,
            held=len(self._gate.held()),
            viewers=len(self.viewers),
        )


def _line(message: Held | Released) -> bytes:
    return encode(_short(message) if isinstance(message, Held) else message)


def _short(held: Held) -> Held:
    """The same with long arguments cut: a viewer draws them, and gets them whole with the `batch` event."""
    if len(encode(held)) <= _HELD_BYTES:
        return held
    room = _HELD_BYTES // (2 * len(held.calls))
    calls = tuple(msgspec.structs.replace(call, args=plain(call.args, room)) for call in held.calls[:200])
    return msgspec.structs.replace(held, calls=calls)


def _version() -> str:
    from loopscope import __version__  # noqa: PLC0415 - the package's own name; it loads nothing more

    return __version__
