"""The guard: the engine in a running program. Calls in, the text that stops them out, events to whoever listens.

It knows no framework: an adapter tells it which agent loop is meant (`Guard.ids`), what was said and what came back.
It holds the one lock from giving a `seq` to queueing the event, and feeds every event to the engine first, so that
live and replayed state are equal.
"""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from loopscope.adapters.context import stamp
from loopscope.adapters.loops import Loop, Outcome, Said, StopWord
from loopscope.adapters.publisher import Publisher
from loopscope.adapters.scope_id import NO_THREAD, Invocation, ScopeIds
from loopscope.adapters.steering import Steered
from loopscope.adapters.stop_reasons import StopReason, StopReasons
from loopscope.engine.decision import Decision
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Call, Graph
from loopscope.engine.policy import DEFAULT, Policy
from loopscope.engine.sections import OnStop
from loopscope.engine.texts import stop_text
from loopscope.recording.bus import bus
from loopscope.recording.gate import JUDGE, Arrival, Ruling, gatehouse
from loopscope.recording.preview import PREVIEW, preview
from loopscope.recording.redaction import Redactor
from loopscope.recording.writer import Recorder

__all__ = ["LOOP_CAPPED", "Guard", "Shape"]

LOOP_CAPPED: Final = "loop_capped"
"""The stop reason of a run that was stopped for looping: DeerFlow's word."""
_REASONS: dict[str, StopWord] = {"budget": "budget_capped", "stagnation": "stagnated"}
"""Stop reasons of other layers."""
_UNREAD_REASONS = 1_000
_CALLS_ALONE = DEFAULT.to_dict().keys() | {"identity", "identity_fields", "on_stop"}
"""Settings of layers for which the calls are enough: no results, no usage, no time."""

_NOTHING_SAID = Said()

M = TypeVar("M")
Shape: TypeAlias = Callable[[], tuple[str | None, Graph | None]]
"""The name and the graph of the agent whose hook is running, where they are known."""


class Guard(Steered):
    """One engine with one policy, for any number of runs, threads and agents.

    Args:
        policy: the limits.
        recorder: where the events go, besides the process's observers.
        redactor: takes secrets out of what is published.
        shape: asked once per invocation that somebody watches.
        name: what a person calls it.
    """

    def __init__(
        self, policy: Policy, recorder: Recorder | None, redactor: Redactor, shape: Shape, name: str = "guard"
    ) -> None:
        self.name = name
        self.policy = policy
        self.recorder = recorder
        self.detector = LoopDetector(policy, assume_delivery=not self.enforced)
        self.ids: ScopeIds[Loop] = ScopeIds(2 * policy.max_tracked_threads, self._make, self._lost)
        self._publisher = Publisher(self.detector)
        self._redactor = redactor
        self._shape = shape
        self.full = recorder is not None or not policy.to_dict().keys() <= _CALLS_ALONE
        """Whether every event is made even if nobody is on the bus: for a recording, or for layers that look at more
        than calls."""
        self.heard = recorder is not None
        """Whether anybody has listened. Secrets are masked from then on, and a call that holds one has another key."""
        self._reasons = StopReasons(_UNREAD_REASONS)
        self._failed: list[Loop] = []
        if recorder is not None:
            # Behind the recorder's own, and so called before it.
            atexit.register(_tell_ends, weakref.ref(self))
        gatehouse.register(self)

    def begin(self, runtime: Any) -> Loop:
        """An agent begins."""
        loop = self.ids.begin(runtime)
        if self._failed and not loop.prefix:
            self._bury(loop)
        if self.full or bus.active:
            self._announce(loop)
        return loop

    def arrival(
        self, loop: Loop, calls: tuple[Call, ...], task_id: object, said: Said, heartbeat: Callable[[], object] | None
    ) -> Arrival | None:
        """The batch as it stands before a gate; None where it calls nothing, or was decided or ruled on already.

        Whoever asks the gate puts its ruling into the loop, where `decide` finds it.
        """
        if not calls or loop.ruling is not None or (task_id == loop.last.task_id and type(task_id) is str):
            return None
        self.full = self.heard = True
        self._announce(loop)
        shown = tuple(map(self._redactor.call, calls))
        return Arrival(loop.key, shown, self, said.message_id, said.node, heartbeat)

    def decide(
        self, loop: Loop, calls: tuple[Call, ...], task_id: str | None, said: Callable[[M], Said], message: M
    ) -> str | None:
        """Account the calls of one AI message.

        Args:
            loop: the agent loop that it belongs to.
            calls: what the model asked for, in its order; may be empty.
            task_id: names this execution of the node. The same one again is answered as before and counts nothing.
            said: reads the rest of `message`; called where somebody watches.
            message: the framework's own.

        Returns:
            The text that takes the place of the calls, or None to let them run.
        """
        last = loop.last
        if task_id == last.task_id and type(task_id) is str:
            loop.stopped = last.stopped
            return last.text
        text = None
        if self.heard or bus.active or loop.recorders:
            text = self._decide_fully(loop, calls, said(message))
        elif self.full:
            text = self._decide_quietly(loop, calls, said(message) if self.detector.policy.budget else _NOTHING_SAID)
        elif calls:
            with bus.lock:
                if len(calls) == 1:
                    decision = self.detector.observe_call(loop.place, calls[0])
                else:
                    decision = self.detector.observe(msgspec.structs.replace(loop.place, calls=calls))[0]
            loop.stopped = None
            if decision.action != "pass":
                loop.waiting = True
                text = self._act(loop, decision, calls)
        last.task_id, last.text, last.stopped = task_id, text, loop.stopped
        return text

    def take(self, loop: Loop) -> tuple[str, ...]:
        """The warnings for the next request to the model, oldest first; from here on they count as delivered."""
        with bus.lock:
            texts = self.detector.pending(loop.key)
            for text in texts:
                self._publisher.warned(loop, "delivered", text)
        loop.waiting = False
        loop.failure = None
        return texts

    def failed(self, loop: Loop, texts: Sequence[str], error: BaseException, *, paused: bool = False) -> None:
        """The request did not get through: its warnings wait again, before all others.

        An error may yet be made good by a retry further out, so the end of the loop is told when nothing more can
        come of it.
        """
        loop.waiting = True
        with bus.lock:
            for text in texts:
                self._publisher.warned(loop, "requeued", text)
            if paused or not loop.announced:
                return
            if isinstance(error, Exception):
                loop.failure = self._redactor.text(f"{type(error).__name__}: {error}"[:300])
                self._failed = [*self._failed[-99:], loop]
            else:
                self._publisher.end(loop, "cancelled", type(error).__name__)

    def report(self, loop: Loop, outcomes: Iterable[Outcome]) -> None:
        """What the tools gave back since the newest AI message; what was published already is left out."""
        self.full = True
        self._announce(loop)
        fresh = [outcome for outcome in outcomes if (outcome.message_id or outcome.call_id) not in loop.reported]
        show = self._redactor.preview if self.heard or bus.active or loop.recorders else preview
        shown = [show(outcome.content) for outcome in fresh]
        with bus.lock:
            for child in list(loop.children.values()):
                child.guard.abandon(child)
            for outcome, part in zip(fresh, shown, strict=True):
                loop.reported.add(outcome.message_id or outcome.call_id)
                if self._publisher.result(loop, outcome, part):
                    loop.waiting = True

    def witness(self, loop: Loop, values: Mapping[str, object]) -> None:
        """What the program's witnesses are, now that the newest iteration is complete."""
        self.full = True
        self._announce(loop)
        shown = {name: self._redactor.value(value) for name, value in values.items()}
        with bus.lock:
            loop.waiting = self._publisher.witness(loop, shown) or loop.waiting

    def end(self, loop: Loop) -> None:
        """An agent ended by itself: what it was to be warned of is dropped, its histories stay."""
        with bus.lock:
            for text in self.detector.pending(loop.key):
                self._publisher.warned(loop, "dropped", text)
            if loop.announced:
                self._publisher.end(loop, loop.stopped or "completed")
            self._leave(loop)

    def abandon(self, loop: Loop) -> None:
        """An agent is over without having said so, since the one that delegated to it went on."""
        with bus.lock:
            self._lost(loop)
            self._leave(loop)

    def settle(self, loop: Loop) -> None:
        """Give recordings a moment to get on their way to the disk; without the lock."""
        bus.settle()
        for recorder in loop.recorders:
            recorder.settle()

    def on_stop(self, loop: Loop) -> OnStop:
        """What is done to the batch that was just rejected; of what a person stopped by hand nobody is asked again."""
        with bus.lock:
            return "strip" if loop.stopped == "cancelled" else self.detector.policy_of(loop.key).on_stop

    def escalate(self, loop: Loop, text: str) -> None:
        """A person is to decide how this loop goes on: for now, it is over."""
        with bus.lock:
            if loop.announced:
                self._publisher.end(loop, "escalated", self._redactor.text(text, PREVIEW))
        self.settle(loop)

    def pardon(self, loop: Loop) -> None:
        """A person lets a loop go on that was stopped."""
        with bus.lock:
            self._reasons.take(loop.key.run_id)
            loop.stopped = loop.note = loop.last.text = loop.last.stopped = None

    def consume_stop_reason(self, run_id: object) -> StopReason | None:
        """Why this run was stopped, once; None where it was not. Takes a run id, or a context's `stop_reason`."""
        with bus.lock:
            if isinstance(run_id, StopReason):
                return self._reasons.take(run_id.run_id)
            return self._reasons.take(None if run_id is None else str(run_id))

    def reset(self, thread_id: object = None) -> None:
        """Forget everything, or every scope and stop reason of one thread."""
        thread = None if thread_id is None else str(thread_id)
        with bus.lock:
            loops = list(self.ids.open_scopes())
            for key in [key for key in self.detector.scopes if thread in (None, key.thread_id)]:
                recorders = {recorder for loop in loops if loop.key == key for recorder in loop.recorders}
                self._publisher.reset(key, recorders | ({self.recorder} if self.recorder else set()))
            self.detector.reset(thread)
            self._reasons.forget(thread)
            if thread is None:
                self.ids.forget()

    def close(self) -> None:
        """Tell the end of all loops that never will, and end the recording."""
        self.tell_ends()
        recorder, self.recorder = self.recorder, None
        if recorder is not None:
            with bus.lock:
                for loop in self.ids.open_scopes():
                    loop.recorders = tuple(other for other in loop.recorders if other is not recorder)
            recorder.close()

    def tell_ends(self) -> None:
        """Nothing more is heard of any loop: the program ends."""
        with bus.lock:
            for loop in list(self.ids.open_scopes()):
                self._lost(loop)

    def _make(self, invocation: Invocation, prefix: str, context: object, thread: object) -> Loop:
        return Loop(self, invocation, prefix, context, thread)

    def _announce(self, loop: Loop) -> None:
        if loop.announced:
            return
        agent, graph = self._shape_of(loop)
        with bus.lock:
            if isinstance(loop.parent, Loop):
                loop.parent.children[loop.prefix] = loop
            self._publisher.start(loop, agent or _node_of(loop.prefix), graph)

    def _shape_of(self, loop: Loop) -> tuple[str | None, Graph | None]:  # noqa: ARG002 - it is the running one
        return self._shape()

    def _decide_fully(self, loop: Loop, calls: tuple[Call, ...], said: Said) -> str | None:
        self.full = self.heard = True
        self._announce(loop)
        ruling, loop.ruling = loop.ruling or JUDGE, None
        calls = tuple(map(self._redactor.call, calls))
        said = said._replace(text=self._redactor.text(said.text, PREVIEW) if said.text else None)
        with bus.lock:
            loop.reported.clear()
            decision = self._publisher.batch(loop, calls, said)
            loop.stopped = None
            text = None if decision is None else self._rule(loop, decision, calls, ruling)
        self.settle(loop)
        return text

    def _decide_quietly(self, loop: Loop, calls: tuple[Call, ...], said: Said) -> str | None:
        """For layers that look at more than calls, where nobody listens: no secret leaves, so none is looked for."""
        self._announce(loop)
        with bus.lock:
            loop.reported.clear()
            decision = self._publisher.batch(loop, calls, said)
            loop.stopped = None
            if decision is None or decision.action == "pass":
                return None
            loop.waiting = True
            return self._act(loop, decision, calls)

    def _rule(self, loop: Loop, decision: Decision, calls: tuple[Call, ...], ruling: Ruling) -> str | None:
        """As `_act`, unless somebody at the gate wanted it otherwise."""
        if ruling.verdict == "judge":
            return self._act(loop, decision, calls)
        if ruling.verdict == "pass":
            return None
        self._note(loop, "cancelled")
        return f"[FORCED STOP] The run was stopped by {ruling.by or 'an operator'}. The last calls were not made."

    def _act(self, loop: Loop, decision: Decision, calls: tuple[Call, ...]) -> str | None:
        """The text that takes the place of the calls where the decision rejects them."""
        if decision.action != "hard_stop":
            return None
        self._note(loop, _REASONS.get(decision.layer or "", LOOP_CAPPED))
        return stop_text(decision, [call.name for call in calls if call.name])

    def _note(self, loop: Loop, reason: StopWord) -> None:
        """Keep the reason of a stop for whoever asks."""
        loop.stopped = reason
        note = loop.note = StopReason(reason, loop.key.run_id)
        with bus.lock:
            self._reasons.put(loop.key.run_id, note, loop.key.thread_id)
        if loop.parent is None or loop.context is not loop.parent.context:
            stamp(loop.context, "stop_reason", note)

    def _bury(self, loop: Loop) -> None:
        """Tell the end of runs whose model call failed, once their thread has begun another one."""
        with bus.lock:
            for old in self._failed:
                same_thread = old.key.thread_id == loop.key.thread_id != NO_THREAD
                if old.failure and same_thread and old.invocation is not loop.invocation:
                    self._lost(old)
            self._failed = [old for old in self._failed if old.failure]

    def _lost(self, loop: Loop) -> None:
        if loop.announced:
            self._publisher.end(loop, "error" if loop.failure else "unknown", loop.failure)
        loop.failure = None

    def _leave(self, loop: Loop) -> None:
        for child in list(loop.children.values()):
            child.guard.abandon(child)
        if isinstance(loop.parent, Loop):
            loop.parent.children.pop(loop.prefix, None)
        self.ids.end(loop)


def _tell_ends(known: weakref.ref[Guard]) -> None:
    guard = known()
    if guard is not None and guard.recorder is not None:
        guard.tell_ends()


def _node_of(prefix: str) -> str | None:
    """The node that an unnamed sub-agent runs in, which is often named after it."""
    parts = [part for part in prefix.split("|") if not part.isdigit()]
    node = parts[-1].partition(":")[0] if parts else ""
    return node if node not in ("", "tools") else None
