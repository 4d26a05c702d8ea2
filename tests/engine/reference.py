"""The two layers written a second time, slowly and straight from their description: what the engine must equal.

Lists and recounting in the place of windows that keep counts; only the policy is shared with the engine.
"""

from __future__ import annotations

from typing import Any

from loopscope.engine.policy import Policy


class Reference:
    """Decides batches given as (thread, run, hash, names)."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.scopes: dict[tuple[str | None, str | None], dict[str, Any]] = {}

    # ruff: noqa: C901 - a second writing in one piece, to be read beside the description
    def limits(self, name: str) -> tuple[int, int]:
        own = self.policy.tool_freq_overrides.get(name)
        return (
            (self.policy.tool_freq_warn, self.policy.tool_freq_hard_limit)
            if own is None
            else (own.warn, own.hard_limit)
        )

    def window(self) -> int:
        hard = [limits.hard_limit for limits in self.policy.tool_freq_overrides.values()]
        return max([self.policy.window_size, self.policy.tool_freq_hard_limit, *hard])

    def touch(self, key: tuple[str | None, str | None]) -> dict[str, Any]:
        scope = self.scopes.pop(key, None) or {"hashes": [], "warned": [], "names": [], "named": []}
        self.scopes[key] = scope
        while len(self.scopes) > self.policy.max_tracked_threads:
            del self.scopes[next(iter(self.scopes))]
        return scope

    def decide(
        self, key: tuple[str | None, str | None], digest: str, names: list[str]
    ) -> tuple[str, str | None, str | None, int | None, int | None]:
        policy, scope = self.policy, self.touch(key)
        scope["hashes"] = [*scope["hashes"], digest][-policy.window_size :]
        scope["warned"] = [mark for mark in scope["warned"] if mark in scope["hashes"]]
        count = scope["hashes"].count(digest)
        if count >= policy.hard_limit:
            return ("hard_stop", "identical_call_set", None, count, policy.hard_limit)
        candidate: tuple[str, str | None, int, int] | None = None
        if count >= policy.warn_threshold and digest not in scope["warned"]:
            candidate = ("identical_call_set", None, count, policy.warn_threshold)
        for name in filter(None, names):
            everything = [*scope["names"], name]
            scope["names"] = everything[-self.window() :]
            for gone in everything[: -self.window()]:
                if scope["names"].count(gone) < self.limits(gone)[0] and gone in scope["named"]:
                    scope["named"].remove(gone)
            n, (warn, hard) = scope["names"].count(name), self.limits(name)
            if n >= hard:
                return ("hard_stop", "tool_frequency", name, n, hard)
            if n >= warn:
                if name not in scope["named"] and candidate is None:
                    candidate = ("tool_frequency", name, n, warn)
            elif name in scope["named"]:
                scope["named"].remove(name)
        if candidate is None:
            return ("pass", None, None, None, None)
        layer, tool, n, warn = candidate
        if tool is None:
            scope["warned"].append(digest)
        elif scope["names"].count(tool) >= warn:
            scope["named"].append(tool)
        return ("warn", layer, tool, n, warn)
