"""Which policy is in force: flags over the recording's own over the project's file over the defaults."""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from loopscope.engine.events import Event, Header, PolicySet
from loopscope.engine.policy import DEFAULT, PRESETS, Policy
from loopscope.errors import PolicyError, Problem
from loopscope.recording.dotted import flat
from loopscope.settings.documents import Document, find, read
from loopscope.settings.overrides import Override, apply, parse_override

__all__ = ["PRESETS", "RECORDING", "Choice", "Settings", "flat", "load_policy", "load_settings"]

RECORDING = "recording"
"""The origin of a limit that the recording brings."""
_PARTNERS = {"hard_limit": "warn_threshold", "tool_freq_hard_limit": "tool_freq_warn"}


@dataclass(frozen=True, slots=True)
class Settings:
    """A policy, and where each of its limits came from."""

    policy: Policy = DEFAULT
    origins: Mapping[str, str] = field(default_factory=dict)
    """By dotted field: `loopscope.toml:14`, `--set hard_limit=9`, `recording` or a preset's name."""

    def origin(self, name: str) -> str:
        """Where this field came from; `default` where nothing set it."""
        return self.origins.get(name, "default")


@dataclass(frozen=True, slots=True)
class Choice:
    """What the user asked for, to be laid over what a recording brings."""

    base: Settings = field(default_factory=Settings)
    """`--policy`, else the project's file, else the defaults."""
    fixed: bool = False
    """True with `--policy`: the recording's own policy does not count."""
    overrides: tuple[Override, ...] = ()

    @classmethod
    def of(cls, policy: str | None = None, sets: Sequence[str] = (), project: Path | None = None) -> Choice:
        """Reads the flags and finds the project's file.

        Args:
            policy: a file or a preset's name.
            sets: `KEY=VALUE` each.
            project: where the search for the project's file begins; None does not search.

        Raises:
            PolicyError: with every wrong flag and every wrong value of the file.
        """
        overrides = tuple(_collect(sets))
        if policy is not None:
            return cls(load_settings(policy), fixed=True, overrides=overrides)
        file = find(project) if project is not None else None
        return cls(_from_document(read(file)) if file else Settings(), overrides=overrides)

    @property
    def settings(self) -> Settings:
        """The policy where no recording brings one.

        Raises:
            PolicyError: if an override breaks a rule.
        """
        return _overridden(self.base.policy.to_dict(), dict(self.base.origins), self.overrides)

    def over(self, recorded: Mapping[str, Any] | None) -> Settings:
        """The policy for a recording that ran under `recorded`, None where it does not say.

        Raises:
            PolicyError: if an override, or a known setting of the recording, breaks a rule.
        """
        if recorded is None or self.fixed:
            return self.settings
        values = {name: value for name, value in recorded.items() if name in Policy.__struct_fields__}
        return _overridden(values, dict.fromkeys(flat(values), RECORDING), self.overrides)

    def rewrite(self, event: Event) -> Event:
        """The event with the overrides laid over the policy that it sets; any other event as it is.

        Raises:
            PolicyError: if the policy in force from there on breaks a rule.
        """
        if self.fixed or not isinstance(event, (Header, PolicySet)):
            return event
        recorded = event.policy
        if recorded is None:
            _ = self.settings
            return event
        self.over(recorded)
        return replace(event, policy=_lay(recorded, self.overrides)) if self.overrides else event


def load_policy(path: str) -> Policy:
    """A policy from a TOML, YAML or JSON file, or a preset's name.

    Raises:
        PolicyError: with file and line of every wrong value, or if there is no such file or preset.
    """
    return load_settings(path).policy


def load_settings(path: str) -> Settings:
    """As `load_policy`, with the line that each limit came from.

    Raises:
        PolicyError: as `load_policy`.
    """
    preset = PRESETS.get(path)
    if preset is not None:
        return Settings(preset, dict.fromkeys(flat(preset.to_dict()), f"preset {path}"))
    file = Path(path)
    if not os.path.exists(path) and not file.suffix:  # noqa: PTH110 - the one that a name of any length does not fail
        near = difflib.get_close_matches(path, PRESETS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"presets are {', '.join(PRESETS)}"
        raise PolicyError([Problem("", f"no such policy file or preset; {hint}", path)])
    return _from_document(read(file, path))


def _from_document(document: Document) -> Settings:
    origins = {".".join(path): document.where(path) for path in document.lines}
    return _located(_parse(document.values, origins, document.name), origins)


def _collect(sets: Iterable[str]) -> Iterator[Override]:
    problems: list[Problem] = []
    for text in sets:
        try:
            yield parse_override(text)
        except PolicyError as error:
            problems += error.problems
    if problems:
        raise PolicyError(problems)


def _overridden(values: Mapping[str, Any], origins: dict[str, str], overrides: Sequence[Override]) -> Settings:
    """The settings with all overrides laid over them, and the flags as the origins of what they set."""
    values = _lay(values, overrides)
    for override in overrides:
        name = ".".join(override.path)
        origins = {known: place for known, place in origins.items() if not known.startswith(f"{name}.")}
        origins |= dict.fromkeys((name, *flat(override.value, override.path)), override.where)
    return _located(_parse(values, origins, ""), origins)


def _lay(values: Mapping[str, Any], overrides: Sequence[Override]) -> Mapping[str, Any]:
    """The overrides over plain settings, in their order."""
    problems: list[Problem] = []
    for override in overrides:
        try:
            values = apply(values, override)
        except PolicyError as error:
            problems += error.problems
    if problems:
        raise PolicyError(problems)
    return _complete(values)


def _located(policy: Policy, origins: Mapping[str, str]) -> Settings:
    """The policy with the places of its own fields; a limit that a tool takes from the general ones has their place."""
    places = {}
    for name in flat(policy.to_dict()):
        table, _, limit = name.rpartition(".")
        general = f"tool_freq_{limit}" if table.startswith("tool_freq_overrides.") else ""
        place = origins.get(name) or origins.get(table) or origins.get(general)
        if place:
            places[name] = place
    return Settings(policy, places)


def _complete(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """`--set tool_freq_overrides.bash.hard_limit=300` says nothing of the warning: the general one holds."""
    tools = values.get("tool_freq_overrides")
    if not isinstance(tools, Mapping):
        return values
    general = {
        "warn": values.get("tool_freq_warn", DEFAULT.tool_freq_warn),
        "hard_limit": values.get("tool_freq_hard_limit", DEFAULT.tool_freq_hard_limit),
    }
    whole = {tool: general | dict(pair) if isinstance(pair, Mapping) else pair for tool, pair in tools.items()}
    return {**values, "tool_freq_overrides": whole}


def _parse(values: Mapping[str, Any], origins: Mapping[str, str], source: str) -> Policy:
    """The policy, or every problem with the place of the value that made it, in the order of the lines."""
    try:
        return Policy.parse(values)
    except PolicyError as error:
        placed = [each._replace(where=_place(each.field, origins, source)) for each in error.problems]
        raise PolicyError(sorted(placed, key=lambda each: _line_of(each.where))) from None


def _line_of(place: str) -> float:
    """The line of a place in a file; flags come behind all of them."""
    line = place.rpartition(":")[2]
    return int(line) if line.isdecimal() and not place.startswith("--") else math.inf


def _place(name: str, origins: Mapping[str, str], source: str) -> str:
    """The flag that set the field, the limit that it is compared with, or what is in it; else where one of these is."""
    table, _, limit = name.rpartition(".")
    partner = _PARTNERS.get(name) or (f"{table}.warn" if limit == "hard_limit" else "")
    around = [".".join(name.split(".")[:length]) for length in range(name.count(".") + 1, 0, -1)]
    within = [known for known in origins if known.startswith(f"{name}.")]
    places = [origins[known] for known in (*around, partner, *within) if known in origins]
    return next((place for place in places if place.startswith("--")), places[0] if places else source)
