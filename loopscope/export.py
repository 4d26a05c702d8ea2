"""A policy as the text of a policy file or of a program, apart from `settings`, which reads what this writes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from loopscope.engine.policy import Policy
from loopscope.recording.inert import inert

__all__ = ["DEERFLOW", "FORMATS", "to_json", "to_python", "to_toml", "to_yaml"]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
DEERFLOW = (
    "warn_threshold", "hard_limit", "window_size", "max_tracked_threads", "tool_freq_warn", "tool_freq_hard_limit",
    "tool_freq_overrides",
)  # fmt: skip
"""The settings of DeerFlow's `loop_detection:` section."""
_ODD = re.compile(r"[^ -~]")


def to_toml(policy: Policy, notes: Mapping[str, str] | None = None) -> str:
    """A `loopscope.toml` that names every setting; TOML has no null, so a limit that is off is left out.

    Args:
        policy: what to write.
        notes: a comment above a setting or table, by its name; one line each.
    """
    notes = notes or {}
    values = policy.to_dict()
    lines: list[str] = []
    for name, value in values.items():
        if not isinstance(value, Mapping):
            lines += [*_note(notes, name), f"{name} = {_toml_value(value)}"]
    for name, table in values.items():
        if isinstance(table, Mapping) and (table or name in notes):
            lines += ["", *_note(notes, name), *_toml_table(name, table)]
    return "\n".join(lines) + "\n"


def _note(notes: Mapping[str, str], name: str) -> list[str]:
    return [f"# {notes[name]}"] if name in notes else []


def _toml_table(name: str, table: Mapping[str, Any]) -> list[str]:
    entries = [f"{_toml_key(key)} = {_toml_value(value)}" for key, value in table.items() if value is not None]
    return [f"[{name}]", *entries]


def _toml_key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _toml_value(key)


def _toml_value(value: object) -> str:
    if isinstance(value, Mapping):
        pairs = [f"{_toml_key(key)} = {_toml_value(inner)}" for key, inner in value.items() if inner is not None]
        return f"{{ {', '.join(pairs)} }}" if pairs else "{}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    return _visible(json.dumps(value, ensure_ascii=False))


def _visible(text: str) -> str:
    """Quoted text with what is not visible in it escaped, in the way that TOML and Python share."""
    return _ODD.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    """Half of a surrogate pair, which TOML has no form for, is U+FFFD."""
    character = found[0]
    if inert(character) == character:
        return character
    code = ord(character)
    if code > 0xFFFF:  # noqa: PLR2004 - what four digits can say
        return f"\\U{code:08x}"
    return f"\\u{0xFFFD if 0xD800 <= code <= 0xDFFF else code:04x}"  # noqa: PLR2004 - the range of surrogates


def to_yaml(policy: Policy) -> str:
    """DeerFlow's `loop_detection:` section, which is a policy file too; what DeerFlow has not follows its settings."""
    import yaml  # noqa: PLC0415 - 15 ms that only this format is to cost

    values = _plain(policy)
    theirs = yaml.safe_dump({name: values.pop(name) for name in DEERFLOW}, sort_keys=False)
    ours = yaml.safe_dump(values, sort_keys=False) if values else ""
    note = "# loopscope's own: DeerFlow has no such settings\n" if values else ""
    return "loop_detection:\n" + "".join(f"  {line}" for line in f"{theirs}{note}{ours}".splitlines(keepends=True))


def to_json(policy: Policy) -> str:
    """A JSON file that names every setting."""
    return json.dumps(policy.to_dict(), indent=2) + "\n"


def to_python(policy: Policy) -> str:
    """A program's lines that build the policy."""
    entries = "".join(f"        {name!r}: {_visible(repr(value))},\n" for name, value in _plain(policy).items())
    return f"from loopscope import Policy\n\npolicy = Policy.parse(\n    {{\n{entries}    }}\n)\n"


def _plain(policy: Policy) -> dict[str, Any]:
    """The settings with lists in place of tuples."""
    plain: dict[str, Any] = json.loads(json.dumps(policy.to_dict()))
    return plain


FORMATS: Mapping[str, Callable[[Policy], str]] = {
    "toml": to_toml,
    "yaml": to_yaml,
    "json": to_json,
    "python": to_python,
}
"""The writers by the name that `loopscope config export --format` takes."""
