"""`KEY=VALUE` of the command line: dotted keys, values as in JSON or TOML."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from loopscope.errors import PolicyError, Problem
from loopscope.settings.positions import KeyPath, split_key

__all__ = ["Override", "apply", "parse_override"]

_KEY_AND_VALUE = re.compile(r"""((?:"(?:\\.|[^"\\])*"|'[^']*'|[^="'])+)=(.*)""", re.DOTALL)
_LIMITS = ("warn", "hard_limit")


class Override(NamedTuple):
    """One setting of the command line."""

    path: KeyPath
    value: Any
    where: str
    """The flag as it was typed, for messages and as the origin of the limit."""


def parse_override(text: str) -> Override:
    """Reads one `KEY=VALUE`.

    KEY is dotted; a name that holds dots may be quoted (`tool_freq_overrides."web.search".warn`). VALUE is JSON, else
    a TOML value, else text.

    Raises:
        PolicyError: if it is not of that form.
    """
    match = _KEY_AND_VALUE.fullmatch(text)
    path = split_key(match[1].strip()) if match else None
    if match is None or path is None:
        raise PolicyError([Problem("", "write KEY=VALUE, for example hard_limit=9", f"--set {text}")])
    return Override(_whole_tool(path), _value(match[2].strip()), f"--set {text}")


def _whole_tool(path: KeyPath) -> KeyPath:
    """Tool names with dots may also stand unquoted, since what follows them is known."""
    table, *inner = path
    if table == "tool_freq_overrides" and inner[1:] and inner[-1] in _LIMITS:
        return (table, ".".join(inner[:-1]), inner[-1])
    if table == "identity_fields" and inner:
        return (table, ".".join(inner))
    return path


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    import tomllib  # noqa: PLC0415 - most values are JSON as well

    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return parsed["value"] if len(parsed) == 1 else text


def apply(values: Mapping[str, Any], override: Override) -> dict[str, Any]:
    """The settings with one of them changed; a half limit of a tool takes its other half from the general limits.

    Raises:
        PolicyError: if the key leads into something that is no table.
    """
    return _assign(values, override.path, override)


def _assign(table: Mapping[str, Any], path: KeyPath, override: Override) -> dict[str, Any]:
    key, rest = path[0], path[1:]
    if not rest:
        return {**table, key: override.value}
    inner = table.get(key, {})
    if isinstance(inner, (list, tuple)) and len(inner) == len(_LIMITS):
        inner = dict(zip(_LIMITS, inner, strict=True))
    if not isinstance(inner, Mapping):
        done = ".".join(override.path[: -len(rest)])
        raise PolicyError([Problem(".".join(override.path), f"{done} has no settings of its own", override.where)])
    return {**table, key: _assign(inner, rest, override)}
