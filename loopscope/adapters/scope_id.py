"""Which agent loop a hook is called for: its thread, its run and its parent, told from LangGraph's `Runtime` (SPEC §4).

One file for every adapter, since all must give the same answer for the same run. LangGraph makes a new `Runtime` per
node and CPython reuses addresses, so an invocation is recognised by the `RunControl` that all its nodes share: it is
held strongly, compared by identity, and let go when the top-level agent ends or, against abnormal exits, when too
many have piled up.
"""

from __future__ import annotations

import os
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from loopscope.adapters.context import ABSENT, run_id_in, thread_id_in
from loopscope.engine.events import ScopeKey
from loopscope.recording.bus import bus

__all__ = ["NO_THREAD", "Invocation", "LastTask", "Run", "Scope", "ScopeIds", "is_open", "scope_at"]

NO_THREAD = "default"
"""The thread of runs that name none."""
_RUNS_PER_THREAD = 4
"""Unfinished runs of one thread that a resume may take up again: the newest ones."""


class Run:
    """A base id, over all the invocations that interrupts cut one run into."""

    __slots__ = ("_repeated", "generated", "id", "keys", "open", "thread_id")

    def __init__(self, run_id: str | None, thread_id: str, *, generated: bool = False) -> None:
        self.id = run_id
        self.thread_id = thread_id
        self.generated = generated
        """The caller named no run, so that nothing but its thread tells which run a resume belongs to."""
        self.keys: dict[str, ScopeKey] = {}
        """The agent loops that have begun and not ended, by namespace prefix; "" is the top level."""
        self.open = True
        """The agent at the top level has not ended."""
        self._repeated: dict[str, int] = {}

    def delegation(self, prefix: str) -> str:
        """The run id of an agent loop that begins within this run: fresh for each delegation."""
        if _has_task(prefix):
            return f"{self.id}/{prefix}"
        number = self._repeated[prefix] = self._repeated.get(prefix, 0) + 1
        return f"{self.id}/{prefix}" if number == 1 else f"{self.id}/{prefix}#{number}"


class Invocation:
    """One call of a graph from outside, with everything that runs inside of it."""

    __slots__ = ("__weakref__", "context", "control", "run", "scopes")

    def __init__(self, control: object, run: Run, context: object) -> None:
        self.control: object | None = control
        """None once it is let go, so that no other object is ever taken for it."""
        self.run = run
        self.context = context
        self.scopes: dict[str, Scope] = {}


class LastTask:
    """The newest execution of a node in which something was decided: the one that LangGraph may yet execute again."""

    __slots__ = ("stopped", "task_id", "text")

    def __init__(self) -> None:
        self.task_id: str | None = None
        self.stopped: Any = None
        """The adapter's own word for why they did not."""
        self.text: str | None = None
        """What took the place of the calls; None where they ran."""


class Scope:
    """One agent loop within one invocation; adapters subclass it for what they keep of a loop."""

    __slots__ = (
        "context",
        "invocation",
        "key",
        "last",
        "parent",
        "parent_key",
        "prefix",
        "resume_of",
        "resumed",
        "thread",
    )

    def __init__(self, invocation: Invocation, prefix: str, context: object, thread: object) -> None:
        self.invocation = invocation
        self.prefix = prefix
        self.context = context
        self.thread = thread
        """`execution_info.thread_id` as it came."""
        self.key = ScopeKey(None, None)
        self.parent: Scope | None = None
        """The loop that delegated to this one, where it was seen in this invocation."""
        self.parent_key: ScopeKey | None = None
        """None at the top level."""
        self.resumed = False
        """Its first hook was not the beginning of the agent."""
        self.resume_of: str | None = None
        """The run id that it takes up again."""
        self.last = LastTask()
        """What was decided last; a resume has that of the loop that it takes up."""

    def entered(self) -> None:
        """Called once it knows its key and its parent, under the lock."""


S = TypeVar("S", bound=Scope)


class _Seen(Generic[S]):
    """What one adapter knows of an invocation."""

    __slots__ = ("invocation", "scopes", "used")

    def __init__(self, invocation: Invocation) -> None:
        self.invocation = invocation
        self.scopes: dict[str, S] = {}
        self.used = True
        """A hook was called in it since it was last looked at for being given up."""


class _Place(NamedTuple):
    """Where a hook runs, read with care: the runtime may be an older LangGraph's, or a test's own object."""

    anchor: object
    prefix: str
    context: object
    thread: object
    run_id: object
    """The run that the caller names: text, None where it says None, or `ABSENT`."""

    @property
    def named_thread(self) -> str | None:
        named = thread_id_in(self.context)
        return named if named is not None else (str(self.thread) if self.thread else None)

    @property
    def thread_id(self) -> str:
        return self.named_thread or NO_THREAD


_invocations: weakref.WeakValueDictionary[int, Invocation] = weakref.WeakValueDictionary()
"""The running invocations of this process, by the address of their control object, held by the adapters."""


class ScopeIds(Generic[S]):
    """Finds the scope of a hook for one adapter. What it knows of a run is its own; the base ids are the process's.

    Args:
        limit: how many invocations are held that never told of their end.
        make: builds the adapter's scope.
        lost: called, under the lock, for each scope of an invocation that is given up without having ended.
    """

    def __init__(
        self, limit: int, make: Callable[[Invocation, str, object, object], S], lost: Callable[[S], object]
    ) -> None:
        self._limit = limit
        self._make = make
        self._lost = lost
        self._seen: OrderedDict[int, _Seen[S]] = OrderedDict()
        self._runs: OrderedDict[str, list[Run]] = OrderedDict()
        self._last: OrderedDict[tuple[str | None, str], LastTask] = OrderedDict()

    def find(self, runtime: Any) -> S:
        """The scope of a hook that is not the beginning of an agent: an invocation that starts with one is a resume."""
        try:
            control, info = runtime.control, runtime.execution_info
            seen = self._seen[id(control)]
            if seen.invocation.control is control:
                namespace = info.checkpoint_ns
                scope = seen.scopes[namespace[: namespace.rindex("|")] if "|" in namespace else ""]
                if scope.context is runtime.context and scope.thread == info.thread_id:
                    seen.used = True
                    return scope
        except (KeyError, AttributeError, TypeError):
            pass
        return self._find(_place(runtime), begins=False)

    def begin(self, runtime: Any) -> S:
        """The scope of the hook with which an agent begins."""
        return self._find(_place(runtime), begins=True)

    def end(self, scope: S) -> None:
        """This agent loop is over. With the one at the top level the whole invocation is let go."""
        invocation, prefix = scope.invocation, scope.prefix
        with bus.lock:
            seen = self._seen.get(id(invocation.control))
            if seen is not None and seen.scopes.get(prefix) is scope:
                del seen.scopes[prefix]
            if invocation.scopes.get(prefix) is scope:
                del invocation.scopes[prefix]
            invocation.run.keys.pop(prefix, None)
            self._last.pop((scope.key.thread_id, prefix), None)
            if not prefix:
                invocation.run.open = False
                self._seen.pop(id(invocation.control), None)
                _let_go(invocation)

    def record(self, scope: S) -> _Seen[S] | None:
        """What is known of this scope's invocation: whoever looks for it but once marks there that it goes on."""
        return self._seen.get(id(scope.invocation.control))

    def leave(self, control: object) -> None:
        """An invocation is over whose top level was never looked for here."""
        with bus.lock:
            seen = self._seen.get(id(control))
            if seen is not None and seen.invocation.control is control:
                del self._seen[id(control)]

    def open_scopes(self) -> Iterator[S]:
        """The scopes that have begun and not ended, oldest invocation first."""
        for seen in list(self._seen.values()):
            yield from list(seen.scopes.values())

    def forget(self) -> None:
        """Take no later invocation for the resume of an earlier one."""
        with bus.lock:
            self._runs.clear()
            self._last.clear()

    def _find(self, place: _Place, *, begins: bool) -> S:
        with bus.lock:
            seen = self._invocation(place, begins=begins)
            scope = seen.scopes.get(place.prefix)
            if scope is None or begins or scope.context is not place.context or scope.thread != place.thread:
                scope = self._enter(seen, place, begins=begins)
            return scope

    def _enter(self, seen: _Seen[S], place: _Place, *, begins: bool) -> S:
        invocation, prefix = seen.invocation, place.prefix
        if not prefix and place.run_id not in (ABSENT, invocation.run.id):
            # Only the top level sees the run id that the caller put into the config.
            invocation.run = Run(place.run_id, place.thread_id)  # type: ignore[arg-type]  # text or None
            self._remember(invocation.run)
        scope = self._make(invocation, prefix, place.context, place.thread)
        _identify(scope, place, begins=begins)
        last = (scope.key.thread_id, prefix)
        if not begins:
            scope.resumed = True
            scope.resume_of = self._resume_of(scope, place)
            scope.last = self._last.get(last, scope.last)
        if place.named_thread is not None:
            self._last[last] = scope.last
            self._last.move_to_end(last)
            if len(self._last) > self._limit:
                self._last.popitem(last=False)
        seen.scopes[prefix] = invocation.scopes[prefix] = scope
        invocation.run.keys[prefix] = scope.key
        scope.entered()
        return scope

    def _invocation(self, place: _Place, *, begins: bool) -> _Seen[S]:
        address = id(place.anchor)
        seen = self._seen.get(address)
        if seen is not None and seen.invocation.control is place.anchor:
            seen.used = True
            return seen
        invocation = _invocations.get(address)
        if invocation is None:
            invocation = Invocation(place.anchor, self._run(place, begins=begins), place.context)
            _invocations[address] = invocation
        self._remember(invocation.run)
        seen = self._seen[address] = _Seen(invocation)
        self._seen.move_to_end(address)
        while len(self._seen) > self._limit:
            self._give_up()
        return seen

    def _give_up(self) -> None:
        """Let go of the oldest invocation in which nothing has happened since it was last passed over."""
        address, seen = self._seen.popitem(last=False)
        while seen.used and self._seen:
            seen.used = False
            self._seen[address] = seen
            address, seen = self._seen.popitem(last=False)
        for scope in list(seen.scopes.values()):
            self._lost(scope)

    def _run(self, place: _Place, *, begins: bool) -> Run:
        """The base id of an invocation: that of the run which it resumes, or the caller's, or an opaque one."""
        run = self._resumed(place, begins=begins)
        if run is not None:
            self._supersede(run)
            return run
        if place.run_id is not ABSENT:
            return Run(place.run_id, place.thread_id)  # type: ignore[arg-type]  # text or None
        # Not from `uuid`, whose numbers a program may have made foreseeable: ours would put it off its count.
        return Run(os.urandom(16).hex(), place.thread_id, generated=True)

    def _resumed(self, place: _Place, *, begins: bool) -> Run | None:
        if place.named_thread is None:
            return None
        runs = [run for run in reversed(self._runs.get(place.thread_id, ())) if run.open]
        named = place.run_id
        for run in runs:
            key = run.keys.get(place.prefix) if place.prefix else None
            if key is not None and (_has_task(place.prefix) or not begins) and named in (ABSENT, run.id, key.run_id):
                return run
        for run in runs:
            # A sub-agent that begins first of all was delegated to before an interrupt, if the top level is an agent.
            if begins and not (place.prefix and "" in run.keys):
                continue
            if run.generated if named is ABSENT else run.id == named:
                return run
        return None

    def _supersede(self, run: Run) -> None:
        """Let go of the earlier invocations of a run that is resumed."""
        for address in [address for address, seen in self._seen.items() if seen.invocation.run is run]:
            del self._seen[address]

    def _resume_of(self, scope: S, place: _Place) -> str | None:
        runs = [run for run in reversed(self._runs.get(place.thread_id, ())) if run.open and run.keys]
        for run in [scope.invocation.run, *runs]:
            key = run.keys.get(scope.prefix)
            if key is not None:
                return key.run_id
        return runs[0].id if runs and not scope.prefix else scope.key.run_id

    def _remember(self, run: Run) -> None:
        runs = self._runs.setdefault(run.thread_id, [])
        self._runs.move_to_end(run.thread_id)
        if run not in runs:
            runs[:] = [*(other for other in runs if other.open), run][-_RUNS_PER_THREAD:]
        while len(self._runs) > self._limit:
            self._runs.popitem(last=False)


def scope_at(runtime: Any) -> Scope | None:
    """The scope that an adapter, whichever it is, has open where this runtime's node runs."""
    place = _place(runtime)
    invocation = _invocations.get(id(place.anchor))
    return invocation.scopes.get(place.prefix) if invocation is not None else None


def is_open(runtime: Any) -> bool:
    """Whether the agent loop of this place has begun before and not ended. At the top level there need be no other."""
    place = _place(runtime)
    invocation = _invocations.get(id(place.anchor))
    return not place.prefix or (invocation is not None and place.prefix in invocation.run.keys)


def _place(runtime: Any) -> _Place:
    info = getattr(runtime, "execution_info", None)
    control = getattr(runtime, "control", None)
    context = getattr(runtime, "context", None)
    namespace = getattr(info, "checkpoint_ns", None)
    run_id = run_id_in(context)
    if run_id is ABSENT:
        told = getattr(info, "run_id", None)
        run_id = told if isinstance(told, str) and told else ABSENT
    return _Place(
        anchor=runtime if control is None else control,
        prefix=namespace.rpartition("|")[0] if isinstance(namespace, str) else "",
        context=context,
        thread=getattr(info, "thread_id", None),
        run_id=run_id,
    )


def _identify(scope: Scope, place: _Place, *, begins: bool) -> None:
    """Give a scope its key, and the key of the loop that delegated to it."""
    run, prefix = scope.invocation.run, scope.prefix
    if not prefix:
        scope.key = ScopeKey(place.thread_id, run.id)
        return
    scope.parent, scope.parent_key = _parent(scope.invocation, prefix)
    known = run.keys.get(prefix)
    if not begins and known is not None and known.thread_id == place.thread_id:
        scope.key = known
        return
    own = _own_run_id(scope)
    scope.key = ScopeKey(place.thread_id, run.delegation(prefix) if own is None else own)


def _own_run_id(scope: Scope) -> str | None:
    """The run id that whoever delegated gave to this loop alone, in a context that is not the one around it."""
    parent, run = scope.parent, scope.invocation.run
    inherited = scope.invocation.context if parent is None else parent.context
    own = run_id_in(scope.context)
    if scope.context is inherited or not isinstance(own, str):
        return None
    around = (run.id, run_id_in(inherited), None if scope.parent_key is None else scope.parent_key.run_id)
    return None if own in around else own


def _has_task(prefix: str) -> bool:
    """Whether the namespace names the task that delegates, as it does not where a sub-agent has its own checkpoints."""
    return ":" in prefix.rpartition("|")[2] or prefix.rpartition("|")[2].isdigit()


def _parent(invocation: Invocation, prefix: str) -> tuple[Scope | None, ScopeKey]:
    """The nearest agent loop around this one: graphs in between that are no agents are no scopes."""
    parts = prefix.split("|")
    while parts:
        # A number tells apart the graphs that one task calls one after the other: they are siblings.
        while parts and parts[-1].isdigit():
            parts.pop()
        parts[-1:] = []
        outer = "|".join(parts)
        scope = invocation.scopes.get(outer)
        if scope is not None:
            return scope, scope.key
        if outer in invocation.run.keys:
            return None, invocation.run.keys[outer]
    return None, ScopeKey(invocation.run.thread_id, invocation.run.id)


def _let_go(invocation: Invocation) -> None:
    if _invocations.get(id(invocation.control)) is invocation:
        del _invocations[id(invocation.control)]
    invocation.control = None
