"""A grid: settings of a policy, the values that each is to take, and every valid policy that comes of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import product
from math import prod
from typing import Any, NamedTuple, TypeAlias

from loopscope.engine.nearest import changed
from loopscope.engine.policy import Policy
from loopscope.engine.sections import COUNTERS
from loopscope.errors import PolicyError, UsageError

__all__ = ["Cell", "Grid", "Values", "default_grid", "parse_grid"]

Number: TypeAlias = int | float
Values: TypeAlias = tuple[Number, ...]
"""Of settings, in their order, or of one setting."""

MOST_CELLS = 1_000_000
_NUMBER = r"(\d{1,15}(?:\.\d{1,6})?)"
_RANGE = re.compile(rf"{_NUMBER}(?:\.\.{_NUMBER}(?:\.\.{_NUMBER})?)?")
_FORM = "must be NAME=3..12, NAME=3..30..3 or NAME=10,20,40"
_FRACTIONS = "budget."
"""How a setting begins that takes parts of one: money, seconds, the share that warns."""
_RELATIVE = "must be at least"
"""How a problem begins that another value of the grid may solve."""


class Cell(NamedTuple):
    """One setting of the grid."""

    values: Values
    """In the order of the grid's settings."""
    policy: Policy


class Grid(NamedTuple):
    """Settings and the values that each is to take."""

    settings: tuple[str, ...]
    values: tuple[Values, ...]

    def cells(self, base: Policy) -> Iterator[Cell]:
        """Every combination that is a valid policy; a hard limit below its warning is none."""
        for values in product(*self.values):
            policy = base
            try:
                policy = _changed(base, dict(zip(self.settings, values, strict=True)))
            except PolicyError:
                continue
            yield Cell(values, policy)

    def now(self, base: Policy) -> tuple[Number | None, ...]:
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
    values: list[Values] = []
    for text in texts:
        name, sign, spec = text.partition("=")
        if not sign or not name.strip() or not spec:
            raise UsageError(f"--grid {text!r}: {_FORM}")
        if name.strip() in settings:
            raise UsageError(f"--grid {text!r}: {name.strip()} is named twice; give all its values in one --grid")
        settings.append(name.strip())
        values.append(_values(spec, text, fractions=settings[-1].startswith(_FRACTIONS)))
        _check(name.strip(), values[-1], base, text)
    cells = prod(len(choice) for choice in values)
    if cells > MOST_CELLS:
        raise UsageError(f"--grid: {cells:,} cells are too many; {MOST_CELLS:,} is the most")
    return Grid(tuple(settings), tuple(values))


def _values(spec: str, text: str, *, fractions: bool) -> Values:
    found: list[Number] = []
    for part in spec.split(","):
        match = _RANGE.fullmatch(part.strip())
        if match is None or ("." in part.replace("..", "") and not fractions):
            raise UsageError(f"--grid {text!r}: {_FORM}")
        first, last, step = (Decimal(number or 0) for number in match.groups())
        if match[2] is None:
            last = first
        if match[3] is None:
            # One apart is what counts are; of money and seconds nobody can tell.
            step = Decimal(first == last or first == int(first))
        if not step or last < first:
            raise UsageError(f"--grid {text!r}: {_FORM}")
        if (many := int((last - first) / step) + 1) > MOST_CELLS:
            raise UsageError(f"--grid {text!r}: {_FORM}, of at most {MOST_CELLS:,} values; {many:,} are too many")
        found.extend(_plain(first + place * step) for place in range(many))
    return tuple(dict.fromkeys(found))


def _plain(number: Decimal) -> Number:
    return int(number) if number == int(number) else float(number)


def _check(name: str, values: Sequence[Number], base: Policy, text: str) -> None:
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


def _changed(base: Policy, changes: Mapping[str, Number]) -> Policy:
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
            policy = changed(policy, name, int(value))
    return policy.with_(tool_freq_overrides={**policy.tool_freq_overrides, **tools}) if tools else policy


def _with_budget(policy: Policy, name: str, value: Number) -> Policy:
    """Another limit of a budget, or share of it that warns; the other one stays."""
    counter, _, part = name.removeprefix("budget.").partition(".")
    known = policy.budget.get(counter)
    if counter not in COUNTERS or not (part == "limit" or (part == "warn" and known is not None)):
        raise KeyError(name)
    own = {} if known is None else {"limit": known.limit, "warn": known.warn}
    return policy.with_(budget={**policy.budget, counter: {**own, part: value}})


def _value(policy: Policy, name: str) -> Number | None:
    """The policy's own value of a setting; None where it is off."""
    if name.startswith("tool_freq_overrides."):
        tool, _, part = name.removeprefix("tool_freq_overrides.").rpartition(".")
        limit: int = getattr(policy.frequency_limits(tool), part)
        return limit
    owner: Any = policy
    for part in name.split("."):
        owner = owner.get(part) if isinstance(owner, Mapping) else getattr(owner, part, None)
    return owner if isinstance(owner, (int, float)) else None
