"""The whole state of a detector as plain values, versioned: JSON holds it, another process can go on from it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from loopscope.engine.scope import Spent, WarningRecord

__all__ = ["SNAPSHOT_VERSION", "ScopeSnapshot", "Snapshot"]

SNAPSHOT_VERSION = 1


class ScopeSnapshot(Struct, frozen=True):
    """One scope: each layer's state by the layer's name."""

    thread_id: str | None
    run_id: str | None
    layers: dict[str, Any]
    warnings: tuple[WarningRecord, ...]
    spent: Spent
    trail: dict[str, Any] | None = None
    """What its batches brought, under a policy that looks at results."""


class Snapshot(Struct, frozen=True):
    """A detector between two events. `msgspec.json` reads and writes it; unknown fields are ignored."""

    version: int
    batches: int
    """Batches with calls so far: the number of the newest one."""
    assume_delivery: bool
    policy: dict[str, Any]
    scope_policies: tuple[tuple[str | None, str | None, dict[str, Any]], ...]
    scopes: tuple[ScopeSnapshot, ...]
    """Least recently used first."""
    callless: tuple[tuple[str | None, str | None, Spent], ...]
    """What scopes without any call have spent."""
    accounts: tuple[tuple[str | None, str | None, dict[str, Any]], ...] = ()
    """The budgets' accounts by scope."""
    parents: tuple[tuple[str | None, str | None, str | None, str | None], ...] = ()
    """Child and parent scopes."""
