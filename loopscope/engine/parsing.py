"""Plain data into the parts of a policy: one reader a setting, each adding to the list of problems instead of raising.

Apart from the policy, which only says what there is; every problem of a file is told at once. What a reader gives back
with a problem is good for finding further ones, and for nothing else.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, get_args

from msgspec import Struct

from loopscope.engine.sections import (
    COUNTERS,
    DEFAULT_BUDGET_WARN,
    Budget,
    Cycle,
    OnStop,
    Pair,
    RepeatInBatch,
    Stagnation,
    WitnessMode,
)
from loopscope.errors import Problem

__all__ = ["INTEGERS", "READERS", "Limits", "unknown"]

Reader: TypeAlias = Callable[[str, Any, list[Problem]], Any]


class Limits(Struct, frozen=True, order=True):
    """The two limits of one tool's frequency, in calls within the frequency window."""

    warn: int
    hard_limit: int


def unknown(name: str, known: Iterable[str]) -> Problem:
    """The problem of a name that there is not, with the nearest one that there is."""
    near = difflib.get_close_matches(str(name), list(known), n=1)
    hint = f", did you mean {near[0]}?" if near else f"; known are {', '.join(sorted(known))}"
    return Problem(str(name), f"unknown setting{hint}")


def _table(name: str, value: object, known: Iterable[str], problems: list[Problem]) -> Mapping[str, Any]:
    """The entries of a section that it may have; structs are taken as they are."""
    if isinstance(value, Struct):
        return {field: getattr(value, field) for field in value.__struct_fields__}
    if not isinstance(value, Mapping):
        problems.append(Problem(name, f"must be a table, is {value!r:.80}"))
        return {}
    known = list(known)
    dotted = [f"{name}.{field}" for field in known]
    problems.extend(unknown(f"{name}.{field}", dotted) for field in value if field not in known)
    return {field: value[field] for field in known if field in value}


def _integer(name: str, value: object, problems: list[Problem]) -> object:
    if type(value) is not int:
        problems.append(Problem(name, f"must be a whole number, is {value!r:.80}"))
    return value


def _limit(name: str, value: object, problems: list[Problem]) -> Any:
    """A whole number from 1, or nothing for never."""
    if value is not None and (type(value) is not int or value < 1):
        problems.append(Problem(name, f"must be a whole number from 1 or null, is {value!r:.80}"))
        return None
    return value


def _choice(*choices: str) -> Reader:
    def read(name: str, value: object, problems: list[Problem]) -> object:
        if value not in choices:
            problems.append(Problem(name, f"must be {', '.join(choices[:-1])} or {choices[-1]}, is {value!r:.80}"))
        return value

    return read


def _flag(name: str, value: object, problems: list[Problem]) -> object:
    if type(value) is not bool:
        problems.append(Problem(name, f"must be true or false, is {value!r:.80}"))
    return value


def _overrides(name: str, value: object, problems: list[Problem]) -> dict[str, Limits]:
    limits: dict[str, Limits] = {}
    if not isinstance(value, Mapping):
        problems.append(Problem(name, f"must be a table of tools, is {value!r:.80}"))
        return limits
    for tool, pair in value.items():
        where = f"{name}.{tool}"
        parts = _tool_limits(where, pair, problems)
        numbers = {part: _integer(f"{where}.{part}", number, problems) for part, number in parts.items()}
        if numbers:
            limits[str(tool)] = Limits(numbers.get("warn"), numbers.get("hard_limit"))  # type: ignore[arg-type]
    return limits


def _tool_limits(where: str, pair: object, problems: list[Problem]) -> Mapping[str, Any]:
    names = ("warn", "hard_limit")
    if isinstance(pair, (list, tuple)) and len(pair) == 2:  # noqa: PLR2004 - DeerFlow's (warn, hard_limit)
        return dict(zip(names, pair, strict=True))
    if not isinstance(pair, (Mapping, Limits)):
        problems.append(Problem(where, f"must be {{warn, hard_limit}} or a pair of numbers, is {pair!r:.80}"))
        return {}
    found = _table(where, pair, names, problems)
    problems.extend(Problem(f"{where}.{name}", "is missing") for name in names if name not in found)
    return found


def _identity_fields(name: str, value: object, problems: list[Problem]) -> dict[str, tuple[str, ...]]:
    fields: dict[str, tuple[str, ...]] = {}
    if not isinstance(value, Mapping):
        problems.append(Problem(name, f"must be a table of tools, is {value!r:.80}"))
        return fields
    for tool, names in value.items():
        if isinstance(names, (list, tuple)) and names and all(isinstance(field, str) for field in names):
            fields[str(tool)] = tuple(names)
        else:
            problems.append(Problem(f"{name}.{tool}", f"must be a list of argument names, is {names!r:.80}"))
    return fields


def _pair(name: str, value: object, problems: list[Problem]) -> Pair:
    found = _table(name, value, ("warn", "hard_limit"), problems)
    pair = Pair(**{part: _limit(f"{name}.{part}", number, problems) for part, number in found.items()})
    _ordered(name, pair, problems)
    return pair


def _ordered(name: str, pair: Pair, problems: list[Problem]) -> None:
    if pair.warn is not None and pair.hard_limit is not None and pair.hard_limit < pair.warn:
        message = f"must be at least {name}.warn ({pair.warn}), is {pair.hard_limit}"
        problems.append(Problem(f"{name}.hard_limit", message))


def _cycle(name: str, value: object, problems: list[Problem]) -> Cycle:
    found = _table(name, value, ("max_period", "hash", "names"), problems)
    parts: dict[str, Any] = {
        part: _pair(f"{name}.{part}", found[part], problems) for part in found if part != "max_period"
    }
    if "max_period" in found:
        parts["max_period"] = period = _limit(f"{name}.max_period", found["max_period"], problems)
        if period == 1:
            problems.append(Problem(f"{name}.max_period", "must be at least 2, is 1"))
    return Cycle(**parts)


def _stagnation(name: str, value: object, problems: list[Problem]) -> Stagnation:
    found = dict(_table(name, value, ("witness", "mode", "warn", "hard_limit"), problems))
    for part in ("warn", "hard_limit"):
        if part in found:
            found[part] = _limit(f"{name}.{part}", found[part], problems)
    if not isinstance(found.get("witness", ""), str):
        problems.append(Problem(f"{name}.witness", f"must be the name of a witness, is {found.pop('witness')!r:.80}"))
    if "mode" in found:
        _choice(*get_args(WitnessMode))(f"{name}.mode", found["mode"], problems)
    stagnation = Stagnation(**found)
    _ordered(name, stagnation.limits, problems)
    return stagnation


def _repeat_in_batch(name: str, value: object, problems: list[Problem]) -> RepeatInBatch:
    found = _table(name, value, ("warn",), problems)
    return RepeatInBatch(_limit(f"{name}.warn", found.get("warn"), problems))


def _budget(name: str, value: object, problems: list[Problem]) -> dict[str, Budget]:
    budgets: dict[str, Budget] = {}
    for counter, entry in _table(name, value, COUNTERS, problems).items():
        where = f"{name}.{counter}"
        found = _table(where, entry, ("limit", "warn"), problems)
        limit, warn = found.get("limit"), found.get("warn")
        warn = DEFAULT_BUDGET_WARN if warn is None else warn
        if limit is not None and not _positive(limit):
            problems.append(Problem(f"{where}.limit", f"must be a number above 0 or null, is {limit!r:.80}"))
        if not _positive(warn) or warn > 1:
            problems.append(Problem(f"{where}.warn", f"must be a share above 0 and up to 1, is {warn!r:.80}"))
        if limit is not None:
            budgets[counter] = Budget(limit, warn)
    return budgets


def _positive(value: object) -> bool:
    return type(value) in (int, float) and value > 0 and value != float("inf")  # type: ignore[operator]


READERS: dict[str, Reader] = {
    "warn_threshold": _integer,
    "hard_limit": _integer,
    "window_size": _integer,
    "max_tracked_threads": _integer,
    "tool_freq_warn": _integer,
    "tool_freq_hard_limit": _integer,
    "tool_freq_overrides": _overrides,
    "identity": _choice("salient", "full_args"),
    "identity_fields": _identity_fields,
    "read_window": _choice("buckets", "exact"),
    "tool_freq_window": _choice("limits", "unbounded"),
    "severity_first": _flag,
    "scope": _choice("run", "thread"),
    "result_aware": _flag,
    "cycle": _cycle,
    "error_streak": _pair,
    "stagnation": _stagnation,
    "repeat_in_batch": _repeat_in_batch,
    "budget": _budget,
    "on_stop": _choice(*get_args(OnStop)),
}
"""How each setting of a policy is read, by its name."""

INTEGERS = tuple(name for name, reader in READERS.items() if reader is _integer)
"""The thresholds that are whole numbers from 1."""
