"""Which scopes are paused, and which steps are owed: the memory of the gate, without threads or time.

Apart from the gate, which asks it once for every batch that arrives.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from loopscope.engine.events import ScopeKey

__all__ = ["REMEMBERED", "Pauses", "Why"]

Why: TypeAlias = Literal["pause", "next", "wait"]
"""What a batch is held for: somebody paused, somebody stepped before, or nobody is watching yet."""
REMEMBERED = 1_000
"""Scopes that are named in pauses, at most; the oldest is forgotten first."""


class Pauses:
    """Pauses for all and per scope. A scope let go on while all are paused is an exception until the next pause."""

    __slots__ = ("everywhere", "running", "scopes", "steps")

    def __init__(self) -> None:
        self.everywhere: Why | None = None
        self.scopes: dict[ScopeKey, Why] = {}
        self.running: dict[ScopeKey, None] = {}
        """Exceptions from a pause of all."""
        self.steps: dict[ScopeKey | None, None] = {}
        """Scopes, or None for any, whose next batch is let through."""

    def __bool__(self) -> bool:
        return self.everywhere is not None or bool(self.scopes)

    def pause(self, scope: ScopeKey | None, why: Why = "pause") -> None:
        """Hold the next batch of this scope, or of every scope."""
        if scope is None:
            self.everywhere = why
            self.running.clear()
            self.steps.clear()
            return
        self.scopes.pop(scope, None)
        self.scopes[scope] = why
        self.running.pop(scope, None)
        self.steps.pop(scope, None)
        _bound(self.scopes)

    def resume(self, scope: ScopeKey | None) -> None:
        """Hold nothing more in this scope, or anywhere."""
        if scope is None:
            self.everywhere = None
            self.scopes.clear()
            self.running.clear()
            self.steps.clear()
            return
        self.scopes.pop(scope, None)
        self.steps.pop(scope, None)
        if self.everywhere is not None:
            self.running[scope] = None
            _bound(self.running)

    def owe(self, scope: ScopeKey | None) -> None:
        """Let the next batch of this scope, or of any, through in spite of its pause."""
        self.steps[scope] = None
        _bound(self.steps)

    def why(self, scope: ScopeKey) -> Why | None:
        """What the batch that arrives in this scope is to be held for; a step that is owed is used up by it."""
        why = self.scopes.get(scope)
        if why is None and scope not in self.running:
            why = self.everywhere
        if why is None:
            return None
        for owed in (scope, None):
            if owed in self.steps:
                del self.steps[owed]
                return None
        return why


def _bound(known: dict[ScopeKey, Why] | dict[ScopeKey, None] | dict[ScopeKey | None, None]) -> None:
    while len(known) > REMEMBERED:
        known.pop(next(iter(known)))  # type: ignore[arg-type]  # a key of its own
