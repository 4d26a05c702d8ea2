"""What each verb takes and does. The names are those of the Debug Adapter Protocol where it has one for the act.

Apart from the connection, which knows sizes and rates but no meaning, and from the steering, which knows no viewers.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from loopscope.engine.breakpoints import Breakpoint
from loopscope.engine.events import ScopeKey
from loopscope.link.refusal import RefusedError
from loopscope.link.steering import Steering
from loopscope.link.wire import Request
from loopscope.recording.feed import Place
from loopscope.recording.inert import inert

__all__ = ["CONTROL", "Attach", "Controls", "Disconnect", "arguments"]


class Attach(Struct, frozen=True, forbid_unknown_fields=True):
    """Begin to send events."""

    since: int | None = None
    """The newest event that the viewer has; None where it has none."""
    session: str | None = None
    """The session that `since` is of."""


class Disconnect(Struct, frozen=True, forbid_unknown_fields=True):
    """End the connection."""

    resume: bool = True
    """Whether pauses end with the last controlling viewer. False: they stay for the longest pause."""


class _Scoped(Struct, frozen=True, forbid_unknown_fields=True):
    scope: Place | None = None

    @property
    def key(self) -> ScopeKey | None:
        return None if self.scope is None else self.scope.key


class _SetPolicy(_Scoped, frozen=True, forbid_unknown_fields=True):
    policy: dict[str, Any] | None = None
    changes: dict[str, Any] | None = None
    engine: int | None = None


class _SetBreakpoints(Struct, frozen=True, forbid_unknown_fields=True):
    breakpoints: tuple[Breakpoint, ...]


def arguments(request: Request, kind: type[Any]) -> Any:
    """The arguments of a request as the verb has them.

    Raises:
        RefusedError: where they are others.
    """
    try:
        return msgspec.json.decode(request.arguments, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise RefusedError("bad-request", inert(f"{request.verb}: {error}", 300)) from None


class Controls:
    """The acts of control that a viewer may ask for.

    Args:
        steering: does them.
        known: every scope there is, so that one misspelt is refused and not paused for ever.
    """

    def __init__(self, steering: Steering, known: Callable[[], Container[ScopeKey]]) -> None:
        self._steering = steering
        self._known = known

    def do(self, request: Request, by: str) -> object:
        """Do it; what to answer.

        Raises:
            RefusedError: where it cannot be done; nothing was changed.
        """
        verb = _VERBS[request.verb]
        asked = arguments(request, verb.takes)
        if isinstance(asked, _Scoped) and asked.key is not None:
            self._check(asked.key)
        return verb.does(self._steering, asked, by)

    def _check(self, scope: ScopeKey) -> None:
        if scope not in self._known() and scope not in self._steering.open_scopes():
            raise RefusedError(
                "no-such-scope", inert(f"no scope {scope.thread_id} / {scope.run_id} is known here", 300)
            )


def _pause(steering: Steering, asked: _Scoped, by: str) -> None:
    steering.pause(asked.key, by)


def _continue(steering: Steering, asked: _Scoped, by: str) -> None:
    steering.resume(asked.key, by)


def _next(steering: Steering, asked: _Scoped, by: str) -> None:
    steering.step(asked.key, by)


def _pass_once(steering: Steering, asked: _Scoped, by: str) -> object:
    return {"batches": steering.pass_once(asked.key, by)}


def _stop(steering: Steering, asked: _Scoped, by: str) -> object:
    if asked.key is not None and asked.key not in steering.open_scopes():
        raise RefusedError("no-such-scope", "no run goes on there: it has ended already")
    return {"scopes": steering.stop(asked.key, by)}


def _reset(steering: Steering, asked: _Scoped, by: str) -> None:
    steering.reset(asked.key, by)


def _set_policy(steering: Steering, asked: _SetPolicy, by: str) -> object:  # noqa: ARG001 - as every verb
    if (asked.policy is None) == (asked.changes is None):
        raise RefusedError("bad-request", "setPolicy: give either `policy`, whole, or `changes`")
    in_force = steering.set_policy(asked.key, asked.policy, asked.changes, asked.engine)
    return {"engines": [each._asdict() for each in in_force]}


def _set_breakpoints(steering: Steering, asked: _SetBreakpoints, by: str) -> None:  # noqa: ARG001 - as every verb
    steering.break_at(asked.breakpoints)


class _Verb(NamedTuple):
    takes: type[Any]
    does: Callable[[Steering, Any, str], object]


_VERBS = {
    "pause": _Verb(_Scoped, _pause),
    "continue": _Verb(_Scoped, _continue),
    "next": _Verb(_Scoped, _next),
    "passOnce": _Verb(_Scoped, _pass_once),
    "setPolicy": _Verb(_SetPolicy, _set_policy),
    "setBreakpoints": _Verb(_SetBreakpoints, _set_breakpoints),
    "stop": _Verb(_Scoped, _stop),
    "reset": _Verb(_Scoped, _reset),
}
CONTROL = tuple(_VERBS)
"""The verbs that need control."""
