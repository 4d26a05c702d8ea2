"""A grid: settings of a policy, the values that each is to take, and every valid policy that comes of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

from loopscope.engine.nearest import changed
from loopscope.engine.policy import Policy
from loopscope.engine.sections import COUNTERS
from loopscope.errors import PolicyError, UsageError

__all__ = ["Cell", "Grid", "default_grid", "parse_grid"]

MOST_CELLS = 1_000_000
_RANGE = re.compile(r"(\d+)(?:\.\.(\d+)(?:\.\.(\d+))?)?")
_FORM = "must be NAME=3..12, NAME=3..30..3 or NAME=10,20,40"
_RELATIVE = "must be at least"
"""How a problem begins that another value of the grid may solve."""


class Cell(NamedTuple):
    """One setting of the grid."""

    values: tuple[int, ...]
    """In the order of the grid's settings."""
    policy: Policy


class Grid(NamedTuple):
    """Settings and the values that each is to take."""

    settings: tuple[str, ...]
    values: tuple[tuple[int, ...], ...]

    def cells(self, base: Policy) -> Iterator[Cell]:
        """Every combination that is a valid policy; a hard limit below its warning is none."""
        for values in product(*self.values):
            policy = base
            try:
                policy = _changed(base, dict(zip(self.settings, values, strict=True)))
            except PolicyError:
                continue
            yield Cell(values, policy)

    def now(self, base: Policy) -> tuple[int | None, ...]:
        """The base's own values of the settings; None for a limit that is off."""
        return tuple(_value(base, name) for name in self.settings)


def default_grid(base: Policy) -> Grid:
    """The grid where a user names none: around the base's own limits."""
    windows = {10, 20, 40, base.window_size}
    often = {base.tool_freq_warn, base.tool_freq_hard_limit, 2 * base.tool_freq_hard_limit}
    return Grid(
        ("hard_limit", "window_size", "tool_freq_hard_limit"),
        (tuple(range(base.warn_threshold, base.warn_threshold + 10)), tuple(sorted(windows)), tuple(sorted(often))),
    )


def parse_grid(texts: Iterable[str], base: Policy) -> Grid:
    """A grid from `NAME=3..12`, `NAME=3..30..3` (in steps) or `NAME=10,20,40`, one text a setting.

    Raises:
        UsageError: if a text is not of this form, a setting is not known, named twice or takes none of the values, or
            the grid has more than a million cells.
    """
    settings: list[str] = []
    values: list[tuple[int, ...]] = []
    for text in texts:
        name, sign, spec = text.partition("=")
        if not sign or not name.strip() or not spec:
            raise UsageError(f"--grid {text!r}: {_FORM}")
        if name.strip() in settings:
            raise UsageError(f"--grid {text!r}: {name.strip()} is named twice; give all its values in one --grid")
        settings.append(name.strip())
        values.append(_values(spec, text))
        _check(name.strip(), values[-1], base, text)
    cells = prod(len(choice) for choice in values)
    if cells > MOST_CELLS:
        raise UsageError(f"--grid: {cells:,} cells are too many; {MOST_CELLS:,} is the most")
    return Grid(tuple(settings), tuple(values))


def _values(spec: str, text: str) -> tuple[int, ...]:
    found: list[int] = []
    for part in spec.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last, step = (int(number) if number else None for number in match.groups()) if match else (None,) * 3
        last, step = first if last is None else last, 1 if step is None else step
        if first is None or last is None or not step or last < first or (last - first) // step >= MOST_CELLS:
            raise UsageError(f"--grid {text!r}: {_FORM}")
        found.extend(range(first, last + 1, step))
    return tuple(dict.fromkeys(found))


def _check(name: str, values: Sequence[int], base: Policy, text: str) -> None:
    """A setting that no value of the grid makes valid is a mistake in its name or its kind."""
    problem: PolicyError | None = None
    for value in values:
        try:
            _changed(base, {name: value})
        except PolicyError as error:
            if all(found.message.startswith(_RELATIVE) for found in error.problems):
                return
            problem = error
        except (AttributeError, KeyError, TypeError, ValueError):
            raise UsageError(f"--grid {text!r}: there is no setting {name!r}") from None
        else:
            return
    raise UsageError(f"--grid {text!r}: {problem}")


def _changed(base: Policy, changes: Mapping[str, int]) -> Policy:
    """All changes at once, since a warning and its hard limit may only fit together."""
    plain = {name: value for name, value in changes.items() if "." not in name}
    policy = base.with_(**plain) if plain else base
    tools: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        if name.startswith("tool_freq_overrides."):
            tool, _, part = name.removeprefix("tool_freq_overrides.").rpartition(".")
            limits = policy.frequency_limits(tool)
            tools.setdefault(tool, {"warn": limits.warn, "hard_limit": limits.hard_limit})[part] = value
        elif name.startswith("budget."):
            policy = _with_budget(policy, name, value)
        elif "." in name:
            policy = changed(policy, name, value)
    return policy.with_(tool_freq_overrides={**policy.tool_freq_overrides, **tools}) if tools else policy


def _with_budget(policy: Policy, name: str, limit: int) -> Policy:
    """Another limit of a budget; the share that warns stays."""
    counter, _, part = name.removeprefix("budget.").partition(".")
    if part != "limit" or counter not in COUNTERS:
        raise KeyError(name)
    known = policy.budget.get(counter)
    own = {"limit": limit} if known is None else {"limit": limit, "warn": known.warn}
    return policy.with_(budget={**policy.budget, counter: own})


def _value(policy: Policy, name: str) -> int | None:
    """The policy's own value of a setting; None where it is off."""
    if name.startswith("tool_freq_overrides."):
        tool, _, part = name.removeprefix("tool_freq_overrides.").rpartition(".")
        limit: int = getattr(policy.frequency_limits(tool), part)
        return limit
    owner: Any = policy
    for part in name.split("."):
        owner = owner.get(part) if isinstance(owner, Mapping) else getattr(owner, part, None)
    return owner if isinstance(owner, int) else None
