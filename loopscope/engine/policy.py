"""The policy: everything that decides, as one frozen value, and the reading of it from plain data.

Names, defaults and rules of the thresholds are those of DeerFlow's `loop_detection:` section (snapshot 2026-09-10),
so that its YAML can be used as it is. Where a policy file came from is not known here: `loopscope.settings` finds
files and lines.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from loopscope.errors import PolicyError, Problem

__all__ = ["DEFAULT", "IdentityMode", "Limits", "Policy"]

IdentityMode: TypeAlias = Literal["salient", "full_args"]


class Limits(Struct, frozen=True, order=True):
    """The two limits of one tool's frequency, in calls within the frequency window."""

    warn: int
    hard_limit: int


class Policy(Struct, frozen=True, kw_only=True):
    """Thresholds of the detector. All are inclusive: a count that reaches one fires it.

    Build one with keywords, `Policy.parse(mapping)` or `Policy.load(path)`; change one with
    `policy.with_(hard_limit=6)`.

    Raises:
        PolicyError: with every value that breaks a rule, not only the first.
    """

    warn_threshold: int = 3
    """Equal batches in the window that warn the model."""
    hard_limit: int = 5
    """Equal batches in the window that stop the run."""
    window_size: int = 20
    """Batches of one scope that are remembered."""
    max_tracked_threads: int = 100
    """Scopes (in spite of the name) that are remembered; the least recently used goes first."""
    tool_freq_warn: int = 30
    """Calls of one tool in the frequency window that warn the model."""
    tool_freq_hard_limit: int = 50
    """Calls of one tool in the frequency window that stop the run."""
    tool_freq_overrides: dict[str, Limits] = {}
    """Other frequency limits for single tools, by tool name."""
    identity: IdentityMode = "salient"
    """Which arguments make two calls the same: the salient ones, or all of them."""
    identity_fields: dict[str, tuple[str, ...]] = {}
    """The arguments that count for single tools, by tool name."""

    def __post_init__(self) -> None:
        if problems := list(_problems(self)):
            raise PolicyError(problems)

    def __hash__(self) -> int:
        return hash(msgspec.json.encode(self, order="deterministic"))

    @property
    def frequency_window(self) -> int:
        """Calls of one scope that the frequency layer remembers: enough for every limit to be reached."""
        highest = max((limits.hard_limit for limits in self.tool_freq_overrides.values()), default=0)
        return max(self.window_size, self.tool_freq_hard_limit, highest)

    def frequency_limits(self, tool: str) -> Limits:
        """The two limits of this tool: its own, else the general ones."""
        own = self.tool_freq_overrides.get(tool)
        return own if own is not None else Limits(self.tool_freq_warn, self.tool_freq_hard_limit)

    def with_(self, **changes: Any) -> Policy:
        """A copy with some fields changed; values as for `parse`.

        Raises:
            PolicyError: if a field is unknown or a value breaks a rule.
        """
        return Policy.parse(self.to_dict() | changes)

    def to_dict(self) -> dict[str, Any]:
        """The policy as plain data that `parse` takes and JSON holds; identity only where it is not the default."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        if self.identity == "salient":
            del data["identity"]
        if not self.identity_fields:
            del data["identity_fields"]
        return data

    @classmethod
    def parse(cls, mapping: Mapping[str, Any]) -> Policy:
        """A policy from plain data, as a file or a recording holds it.

        Args:
            mapping: fields by name. `tool_freq_overrides` maps a tool to `{warn, hard_limit}` or to a pair. DeerFlow's
                `enabled` is accepted and left to the application that reads it.

        Raises:
            PolicyError: with every unknown name, wrong type and broken rule.
        """
        fields: dict[str, Any] = {}
        problems: list[Problem] = []
        for name, value in mapping.items():
            reader = _READERS.get(name)
            if reader is None:
                problems.extend([_unknown(name, _READERS)] if name != "enabled" else [])
                continue
            before = len(problems)
            read = reader(name, value, problems)
            if len(problems) == before:
                fields[name] = read
        try:
            policy = cls(**fields)
        except PolicyError as error:
            raise PolicyError(problems + error.problems) from None
        if problems:
            raise PolicyError(problems)
        return policy

    @classmethod
    def recorded(cls, mapping: Mapping[str, Any]) -> Policy:
        """The policy of a recording: as `parse`, but settings that this version does not know are passed over.

        Raises:
            PolicyError: if a known setting breaks a rule.
        """
        return cls.parse({name: value for name, value in mapping.items() if name in _READERS})

    @classmethod
    def load(cls, path: str) -> Policy:
        """A policy from a TOML, YAML or JSON file, or a preset's name.

        Raises:
            PolicyError: with file and line of every wrong value.
            UnreadableInputError: if the file cannot be read or is not of its format.
        """
        from loopscope.settings import load_policy  # noqa: PLC0415 - the layer above, reached only when a user asks

        return load_policy(path)


def _unknown(name: str, known: Iterable[str]) -> Problem:
    near = difflib.get_close_matches(str(name), list(known), n=1)
    hint = f", did you mean {near[0]}?" if near else f"; known are {', '.join(sorted(known))}"
    return Problem(str(name), f"unknown setting{hint}")


def _integer(name: str, value: object, problems: list[Problem]) -> object:
    if type(value) is not int:
        problems.append(Problem(name, f"must be a whole number, is {value!r:.80}"))
        return None
    return value


def _overrides(name: str, value: object, problems: list[Problem]) -> dict[str, Limits]:
    limits: dict[str, Limits] = {}
    if not isinstance(value, Mapping):
        problems.append(Problem(name, f"must be a table of tools, is {value!r:.80}"))
        return limits
    for tool, pair in value.items():
        where = f"{name}.{tool}"
        parts = _pair(where, pair, problems)
        numbers = [_integer(f"{where}.{part}", number, problems) for part, number in parts.items()]
        if len(numbers) == 2 and all(type(number) is int for number in numbers):  # noqa: PLR2004 - warn and hard_limit
            limits[str(tool)] = Limits(*numbers)  # type: ignore[arg-type]
    return limits


def _pair(where: str, pair: object, problems: list[Problem]) -> dict[str, object]:
    if isinstance(pair, Limits):
        return {"warn": pair.warn, "hard_limit": pair.hard_limit}
    if isinstance(pair, (list, tuple)) and len(pair) == 2:  # noqa: PLR2004 - DeerFlow's (warn, hard_limit)
        return {"warn": pair[0], "hard_limit": pair[1]}
    if not isinstance(pair, Mapping):
        problems.append(Problem(where, f"must be {{warn, hard_limit}} or a pair of numbers, is {pair!r:.80}"))
        return {}
    names = ("warn", "hard_limit")
    problems.extend(
        _unknown(f"{where}.{extra}", [f"{where}.{n}" for n in names]) for extra in pair if extra not in names
    )
    problems.extend(Problem(f"{where}.{name}", "is missing") for name in names if name not in pair)
    return {name: pair[name] for name in names if name in pair}


def _identity(name: str, value: object, problems: list[Problem]) -> object:
    if value not in ("salient", "full_args"):
        problems.append(Problem(name, f"must be salient or full_args, is {value!r:.80}"))
    return value


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


_Reader: TypeAlias = Callable[[str, Any, list[Problem]], Any]
_READERS: dict[str, _Reader] = {
    "warn_threshold": _integer,
    "hard_limit": _integer,
    "window_size": _integer,
    "max_tracked_threads": _integer,
    "tool_freq_warn": _integer,
    "tool_freq_hard_limit": _integer,
    "tool_freq_overrides": _overrides,
    "identity": _identity,
    "identity_fields": _identity_fields,
}


def _problems(policy: Policy) -> Iterable[Problem]:
    """Every broken rule: whole numbers from 1, and no hard limit below its warning."""
    numbers = {name: getattr(policy, name) for name, reader in _READERS.items() if reader is _integer}
    for tool, limits in policy.tool_freq_overrides.items():
        numbers[f"tool_freq_overrides.{tool}.warn"] = limits.warn
        numbers[f"tool_freq_overrides.{tool}.hard_limit"] = limits.hard_limit
    for name, value in numbers.items():
        if type(value) is not int or value < 1:
            yield Problem(name, f"must be a whole number from 1, is {value!r:.80}")
    pairs = [("warn_threshold", "hard_limit"), ("tool_freq_warn", "tool_freq_hard_limit")]
    pairs += [
        (f"{base}.warn", f"{base}.hard_limit")
        for base in map("tool_freq_overrides.{}".format, policy.tool_freq_overrides)
    ]
    for warn, hard in pairs:
        if type(numbers[warn]) is int and type(numbers[hard]) is int and numbers[hard] < numbers[warn]:
            yield Problem(hard, f"must be at least {warn} ({numbers[warn]}), is {numbers[hard]}")


DEFAULT = Policy()
