"""The overrides that a person is trying: one or some policies beside the baseline, changed setting by setting.

Values alone, so that undo is to keep the one before. What they do to the run is asked of `whatif`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args, get_origin

import msgspec
from msgspec.structs import fields

from loopscope.engine.policy import BOUNDED, PRESETS, Policy
from loopscope.engine.sections import BUILT_IN_WITNESSES, COUNTERS, WitnessMode
from loopscope.errors import PolicyError, Problem
from loopscope.session.timeline import Timeline

__all__ = ["MOST_COLUMNS", "Draft", "Path", "Value", "changes", "choices", "get", "kind", "put", "settings", "tools_of"]

Path: TypeAlias = tuple[str, ...]
"""A setting by its names from the outermost table on; a tool's name may hold dots."""
Value: TypeAlias = int | float | str | bool | None
Kind: TypeAlias = Literal["count", "limit", "amount", "choice", "other"]
"""`limit` is a count or off, `amount` is one of a budget or off; `other` can only come with a preset."""

MOST_COLUMNS = 4
"""Overrides that are compared at once."""
_MOST_TOOLS = 12
_TOOLS = "tool_freq_overrides"
_FIRST: tuple[Path, ...] = (
    ("warn_threshold",), ("hard_limit",), ("window_size",), ("tool_freq_warn",), ("tool_freq_hard_limit",),
    ("identity",),
)  # fmt: skip
_LAYERS: tuple[Path, ...] = (
    ("result_aware",),
    ("cycle", "max_period"),
    ("cycle", "hash", "warn"), ("cycle", "hash", "hard_limit"),
    ("cycle", "names", "warn"), ("cycle", "names", "hard_limit"),
    ("error_streak", "warn"), ("error_streak", "hard_limit"),
    ("stagnation", "witness"), ("stagnation", "mode"), ("stagnation", "warn"), ("stagnation", "hard_limit"),
    ("repeat_in_batch", "warn"),
)  # fmt: skip
_CHOICES: Mapping[Path, tuple[Value, ...]] = {
    **{(info.name,): get_args(info.type) for info in fields(Policy) if get_origin(info.type) is Literal},
    **{(info.name,): (False, True) for info in fields(Policy) if info.type is bool},
    ("stagnation", "witness"): BUILT_IN_WITNESSES,
    ("stagnation", "mode"): get_args(WitnessMode),
}
_BUDGETS: Mapping[str, float] = {
    "iterations": 25, "model_calls": 25, "tool_calls": 50, "input_tokens": 100_000, "output_tokens": 20_000,
    "total_tokens": 100_000, "cost_usd": 1.0, "wall_clock_s": 300, "requests_per_minute": 60,
}  # fmt: skip
"""Where a budget begins that is put on."""
_STARTS: Mapping[str, int] = {"warn": 3, "hard_limit": 5, "max_period": 6}
"""Where a limit begins that is put on and that `bounded` does not have."""


class Draft(NamedTuple):
    """The baseline, and the overrides beside it, one of which is being changed."""

    baseline: Policy
    columns: tuple[Policy, ...]
    active: int = 0

    @classmethod
    def of(cls, baseline: Policy) -> Draft:
        """Nothing is changed yet."""
        return cls(baseline, (baseline,))

    @property
    def policy(self) -> Policy:
        """The override that is being changed."""
        return self.columns[self.active]

    @property
    def changed(self) -> bool:
        """Whether any override is another one than the baseline."""
        return self.columns != (self.baseline,)

    def take(self, policy: Policy) -> Draft:
        """Another policy in the column that is being changed."""
        return self._replace(columns=(*self.columns[: self.active], policy, *self.columns[self.active + 1 :]))

    def with_(self, path: Path, value: Value) -> Draft:
        """One setting changed.

        Raises:
            PolicyError: if the value breaks a rule.
        """
        return self.take(put(self.policy, path, value))

    def step(self, path: Path, by: int) -> Draft:
        """One setting so many steps up or down.

        Raises:
            PolicyError: if the value breaks a rule, or the setting has no steps.
        """
        return self.with_(path, _stepped(path, get(self.policy, path), by))

    def reset(self, path: Path) -> Draft:
        """One setting as in the baseline.

        Raises:
            PolicyError: if that breaks a rule together with the others.
        """
        if path[0] == _TOOLS and path[1] not in self.baseline.tool_freq_overrides:
            own = {tool: pair for tool, pair in self.policy.tool_freq_overrides.items() if tool != path[1]}
            return self.take(self.policy.with_(tool_freq_overrides=own))
        return self.with_(path, get(self.baseline, path))

    def beside(self) -> Draft:
        """A further column that begins as the active one is, and is the active one then."""
        if len(self.columns) == MOST_COLUMNS:
            return self
        return self._replace(columns=(*self.columns, self.policy), active=len(self.columns))

    def without(self) -> Draft:
        """The active column is gone; the last one becomes the baseline."""
        left = (*self.columns[: self.active], *self.columns[self.active + 1 :])
        return self._replace(columns=left or (self.baseline,), active=max(0, self.active - 1))

    def turn(self, by: int) -> Draft:
        """The column beside it, round to the first one."""
        return self._replace(active=(self.active + by) % len(self.columns))

    def name(self, column: int) -> str:
        """What a column is called: the preset that it is, else `override`, with its number where there are some."""
        policy = self.columns[column]
        preset = next((name for name, known in PRESETS.items() if known == policy), None)
        if preset is not None and policy != self.baseline:
            return preset
        return "override" if len(self.columns) == 1 else f"override {column + 1}"


def tools_of(timeline: Timeline) -> list[str]:
    """The tools that were called, most often first."""
    calls: Counter[str] = Counter()
    for names, count in Counter(timeline.batches.names).items():
        for name in timeline.names.values[names]:
            calls[name] += count
    return [name for name, _ in calls.most_common() if name]


def settings(draft: Draft, tools: Sequence[str]) -> list[Path]:
    """The settings that can be tried, those that are asked for most first.

    Args:
        draft: what its policies set is among them.
        tools: those that were called, most often first.
    """
    policies = (draft.baseline, *draft.columns)
    own = dict.fromkeys(tool for policy in policies for tool in policy.tool_freq_overrides)
    shown = dict.fromkeys((*own, *tools[:_MOST_TOOLS]))
    found = [
        *_FIRST,
        *((_TOOLS, tool, part) for tool in shown for part in ("warn", "hard_limit")),
        *_LAYERS,
        *(("budget", counter, "limit") for counter in COUNTERS),
        *(path for path in _CHOICES if path != ("on_stop",)),
        ("max_tracked_threads",),
        *changes(draft.baseline, *draft.columns),
    ]
    return list(dict.fromkeys(found))


def changes(before: Policy, *others: Policy) -> list[Path]:
    """The settings in which any of these policies differs from the first one."""
    plain = [_flat(msgspec.to_builtins(policy)) for policy in (before, *others)]
    paths = dict.fromkeys(path for values in plain for path in values)
    return [path for path in paths if any(values.get(path) != plain[0].get(path) for values in plain[1:])]


def _flat(values: Any, path: Path = ()) -> dict[Path, Any]:
    if not isinstance(values, Mapping):
        return {path: values}
    return {inner: value for key, each in values.items() for inner, value in _flat(each, (*path, key)).items()}


def get(policy: Policy, path: Path) -> Value:
    """The value of a setting; a tool without limits of its own has the general ones, a budget that is off None."""
    found: Any = policy
    if path[0] == _TOOLS:
        found, path = policy.frequency_limits(path[1]), path[2:]
    for name in path:
        found = found.get(name) if isinstance(found, dict) else getattr(found, name, None)
    value: Value = list(found) if isinstance(found, tuple) else found  # type: ignore[assignment]
    return value


def put(policy: Policy, path: Path, value: Value) -> Policy:
    """The policy with one setting changed.

    Raises:
        PolicyError: if the value breaks a rule.
    """
    data: dict[str, Any] = msgspec.to_builtins(policy)
    if path[0] == _TOOLS:
        limits = policy.frequency_limits(path[1])
        data[_TOOLS][path[1]] = {"warn": limits.warn, "hard_limit": limits.hard_limit}
    if path[0] == "budget" and value is None:
        data["budget"].pop(path[1], None)
        return Policy.parse(data)
    table = data
    for name in path[:-1]:
        table = table.setdefault(name, {})
    table[path[-1]] = value
    return Policy.parse(data)


def choices(path: Path) -> Sequence[Value]:
    """What a setting can be that has names for it; of numbers nothing."""
    return _CHOICES.get(path, ())


def kind(path: Path) -> Kind:
    """What values a setting takes."""
    if path in _CHOICES:
        return "choice"
    if path[0] == "budget":
        return "amount" if path[-1] == "limit" else "other"
    if path[0] == _TOOLS:
        return "count"
    if path not in _DEFAULTS:
        return "other"
    return "count" if len(path) == 1 else "limit"


def _stepped(path: Path, value: Value, by: int) -> Value:
    what = kind(path)
    if what == "choice":
        choices = _CHOICES[path]
        place = choices.index(value) if value in choices else 0
        return choices[(place + (1 if by > 0 else -1)) % len(choices)]
    if what == "amount":
        return _amount(path[1], value, by)
    if what == "other" or isinstance(value, str):
        raise PolicyError([Problem(".".join(path), "has no steps; a preset sets it")])
    if value is None:
        return _start(path) if by > 0 else None
    wanted = int(value) + by
    if wanted >= 1:
        return wanted
    return None if what == "limit" and value == 1 else 1


def _start(path: Path) -> int:
    known = get(BOUNDED, path)
    return known if isinstance(known, int) else _STARTS[path[-1]]


def _amount(counter: str, value: Value, by: int) -> float | None:
    """Two leading digits are what a step moves; below the least one a budget is off."""
    if value is None or isinstance(value, str):
        return _BUDGETS[counter] if by > 0 else None
    least = 0.01 if counter == "cost_usd" else 1
    size = max(least, 10.0 ** (math.floor(math.log10(max(value, least))) - 1))
    wanted = round(value + by * size, 2)
    if wanted < least:
        return None
    return wanted if counter == "cost_usd" else int(wanted)


_DEFAULTS = _flat(msgspec.to_builtins(Policy()))
"""The value that each setting has where nobody sets it."""
