"""Observes a program with nothing in it changed: for `loopscope run`, and for LOOPSCOPE=1 in one that imports us.

Apart from all that it puts together, since nothing of it may be loaded before the program itself loads LangGraph: only
then is there something to observe, and a program that never does so is left alone.
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

    from loopscope.engine.policy import Policy

__all__ = ["arm", "disarm", "from_environment"]

_AWAITED = "langgraph.pregel"
"""Loaded by whatever makes a graph, and complete when it is."""
_OFF = frozenset({"", "0", "false", "no", "off"})


class _Plan:
    """What is to be done once LangGraph is there."""

    def __init__(self) -> None:
        self.control = False
        self.wait = False
        self.record: str | None = None
        self.policy: str | None = None
        """As JSON."""
        self.hold: int | None = None
        """A file from which nothing can be read until the debugger that began this program is there."""
        self.begun = False


class _Finder:
    """Finds nothing itself, but hears of the import of one module, once."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module as the other finders find it, with a word to us when it is complete."""
        if name != _AWAITED:
            return None
        _forget_finder()
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                _hear_of(spec)
                return spec
        return None


_finder = _Finder()
_plan: _Plan | None = None


def from_environment() -> None:
    """Do what the variable LOOPSCOPE asks for: `1` to be observed, `control` to be steered as well."""
    value = os.environ.get("LOOPSCOPE", "").strip().lower()
    if value not in _OFF:
        arm(control=value == "control")


def arm(  # noqa: PLR0913 - each is asked for by itself
    *,
    control: bool = False,
    wait: bool = False,
    record: str | None = None,
    policy: str | None = None,
    hold: int | None = None,
    lines: bool = False,
) -> None:
    """Observe every graph of this process, and let viewers look at it.

    Args:
        control: let viewers that ask for it steer.
        wait: hold the first batch until a viewer is there.
        record: file to which the runs are recorded.
        policy: the limits that decide, as JSON; nothing is ever warned or stopped.
        hold: a file; the first graph waits until there is something to be read from it, or its end.
        lines: what is written is to be seen line by line, as on a terminal.
    """
    global _plan
    first, _plan = _plan is None, _plan or _Plan()
    _plan.control |= control
    _plan.wait |= wait
    _plan.record = _plan.record or record
    _plan.policy = _plan.policy or policy
    if hold is not None:
        os.set_inheritable(hold, False)
        _plan.hold = hold
    reconfigure: Any = getattr(sys.stdout, "reconfigure", None)
    if lines and reconfigure is not None:
        reconfigure(line_buffering=True)
    if not first:
        return
    loaded = sys.modules.get(_AWAITED)
    if loaded is not None and not getattr(loaded.__spec__, "_initializing", False):
        _begin()
    else:
        sys.meta_path.insert(0, _finder)
        atexit.register(_note_nothing)


def disarm() -> None:
    """Observe nothing after all: this process is a viewer."""
    global _plan  # noqa: PLW0603 - a process is observed once
    _plan = None
    _forget_finder()


def _forget_finder() -> None:
    sys.meta_path[:] = [each for each in sys.meta_path if each is not _finder]


def _hear_of(spec: ModuleSpec) -> None:
    loader = spec.loader
    execute: Any = getattr(loader, "exec_module", None)

    def and_begin(module: ModuleType) -> None:
        del loader.exec_module  # type: ignore[union-attr]  # what was set below
        execute(module)
        _begin()

    loader.exec_module = and_begin  # type: ignore[union-attr, method-assign]  # for this one time


def _begin() -> None:
    """Put in everything. What cannot be had is told and done without."""
    plan = _plan
    if plan is None or plan.begun:
        return
    plan.begun = True
    try:
        policy = _policy(plan.policy)
        _tap(policy)
    except Exception as error:  # noqa: BLE001 - the program goes on all the same
        _tell(f"this program cannot be observed: {error!r}")
        return
    # What is registered last is called first, and viewers are to see how runs ended.
    for put_in in (_record, _listen):
        try:
            put_in(plan, policy)
        except Exception as error:  # noqa: BLE001 - as above
            _tell(str(error))
    atexit.register(_tell_ends)


def _policy(text: str | None) -> Policy:
    import json  # noqa: PLC0415 - nothing is loaded before it is needed

    from loopscope.engine.policy import DEFAULT, Policy  # noqa: PLC0415 - as above

    return DEFAULT if text is None else Policy.parse(json.loads(text))


def _tap(policy: Policy) -> None:
    from loopscope.adapters.tap.handler import tap  # noqa: PLC0415 - as above
    from loopscope.adapters.tap.hook import install  # noqa: PLC0415 - as above

    install(tap(policy=policy))


def _record(plan: _Plan, policy: Policy) -> None:
    from loopscope.recording.bus import bus  # noqa: PLC0415 - as above
    from loopscope.recording.writer import Recorder  # noqa: PLC0415 - as above

    if plan.record is not None:
        recorder = Recorder(plan.record, policy=policy, enforced=False)
        bus.subscribe(recorder.put, recorder.settle)


def _listen(plan: _Plan, _: Policy) -> None:
    from loopscope.link.endpoint import listen  # noqa: PLC0415 - as above

    link = listen(control=plan.control)
    if plan.wait:
        link.hold_first_batch()
    if plan.hold is not None:
        # Its end is read where the debugger was closed, or killed, before it came.
        os.read(plan.hold, 1)
        os.close(plan.hold)


def _tell_ends() -> None:
    """Nothing more is heard of any run: the program ends."""
    from loopscope.recording.gate import gatehouse  # noqa: PLC0415 - as above

    for engine in gatehouse.engines():
        getattr(engine, "tell_ends", int)()


def _note_nothing() -> None:
    """Say why there is no recording, unless something worse was said."""
    if _plan is not None and _plan.record is not None and not _plan.begun and not hasattr(sys, "last_value"):
        _tell(f"{_plan.record}: nothing was recorded, since no graph of LangGraph ran")


def _tell(message: str) -> None:
    sys.stderr.write(f"loopscope: {' '.join(message.split())}\n")
