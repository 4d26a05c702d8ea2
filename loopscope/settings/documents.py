"""Reads one policy file, whatever its format, into plain values and the line of each."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loopscope.errors import PolicyError, Problem
from loopscope.settings.positions import KeyPath, json_lines, toml_lines

__all__ = ["Document", "find", "read"]

SECTION = "loop_detection"
"""DeerFlow keeps its limits under this key of its YAML file."""
_NAMES = ("loopscope.toml", "pyproject.toml")
_Parsed = tuple[Any, dict[KeyPath, int]]


@dataclass(frozen=True, slots=True)
class Document:
    """What a policy file says, and where it says it."""

    values: Mapping[str, Any]
    name: str
    """The file as a reader would name it: relative to the working directory."""
    lines: Mapping[KeyPath, int]

    def where(self, path: KeyPath) -> str:
        """`file:line` of a key, or of the nearest table around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return f"{self.name}:{self.lines[path]}" if path else self.name


def find(start: Path) -> Path | None:
    """The nearest `loopscope.toml`, or `pyproject.toml` with `[tool.loopscope]`, in `start` or above it."""
    for folder in (start, *start.parents):
        for name in _NAMES:
            file = folder / name
            if file.is_file() and (name == _NAMES[0] or _has_table(file)):
                return file
    return None


def _has_table(pyproject: Path) -> bool:
    """A pyproject.toml that is broken, or not ours to read, is no policy."""
    try:
        text = pyproject.read_text("utf-8-sig")
        if "loopscope" not in text:
            return False
        import tomllib  # noqa: PLC0415 - few projects need it

        return "loopscope" in tomllib.loads(text).get("tool", {})
    except (OSError, ValueError, AttributeError):
        return False


def read(file: Path, name: str | None = None) -> Document:
    """The settings of one file: all of it, its `loop_detection` section, or `[tool.loopscope]` of a pyproject.toml.

    Args:
        file: its ending tells the format.
        name: what messages call it; by default its path from the working directory.

    Raises:
        PolicyError: if it cannot be read, is not of its ending's format, has a key twice, or holds no table.
    """
    name = name or _display(file)
    values, lines = _parse(file, name)
    pyproject = file.name == _NAMES[1]
    for key in ("tool", "loopscope") if pyproject else (SECTION,):
        if isinstance(values, Mapping) and key in values:
            values = values[key]
            lines = {path[1:]: line for path, line in lines.items() if path[0] == key and path[1:]}
        elif pyproject:
            raise PolicyError([Problem("", "has no [tool.loopscope]", name)])
    if values is None:
        values = {}
    if not isinstance(values, Mapping):
        raise PolicyError([Problem("", f"must be a table of settings, is {values!r:.80}", name)])
    return Document(values, name, lines)


def _display(file: Path) -> str:
    try:
        return os.path.relpath(file)
    except ValueError:  # another drive
        return str(file)


def _parse(file: Path, name: str) -> _Parsed:
    parser = _PARSERS.get(file.suffix.lower())
    if parser is None:
        raise PolicyError([Problem("", f"a policy file ends in {', '.join(_PARSERS)}", name)])
    try:
        text = file.read_text("utf-8-sig")
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}{_similar(file)}"
        raise PolicyError([Problem("", reason, name)]) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise PolicyError([Problem("", "is not UTF-8", f"{name}:{line}")]) from None
    try:
        return parser(text, name)
    except RecursionError:
        raise PolicyError([Problem("", "is nested too deeply", name)]) from None


def _similar(file: Path) -> str:
    """The policy file beside the one that is missing whose name is most like it."""
    try:
        names = [other.name for other in file.parent.iterdir() if other.suffix in _PARSERS]
    except OSError:
        return ""
    near = difflib.get_close_matches(file.name, names, n=1)
    return f"; did you mean {file.with_name(near[0])}?" if near and near[0] != file.name else ""


def _toml(text: str, name: str) -> _Parsed:
    import tomllib  # noqa: PLC0415 - as above

    try:
        return tomllib.loads(text), toml_lines(text)
    except ValueError as error:
        message = str(error)
        place = re.search(r" \(at line (\d+), column \d+\)$", message)
        line = int(place[1]) if place else text.count("\n") + 1
        reason = message[: place.start()] if place else message.removesuffix(" (at end of document)")
        raise _malformed("TOML", reason, name, line) from None


def _json(text: str, name: str) -> _Parsed:
    try:
        values = json.loads(text) if text.strip() else None
    except json.JSONDecodeError as error:
        raise _malformed("JSON", error.msg, name, error.lineno) from None
    except ValueError as error:
        raise _malformed("JSON", str(error), name, 1) from None
    lines, repeated = json_lines(text)
    if repeated:
        raise PolicyError([_twice(path, f"{name}:{lines[path]}") for path in repeated])
    return values, lines


def _yaml(text: str, name: str) -> _Parsed:
    import yaml  # noqa: PLC0415 - 15 ms that only a YAML file is to cost

    lines: dict[KeyPath, int] = {}
    repeated: list[Problem] = []

    def build(loader: yaml.SafeLoader, node: yaml.Node | None, path: KeyPath) -> Any:
        if not isinstance(node, yaml.MappingNode) or len(path) > _DEEPEST:
            return None if node is None else loader.construct_object(node, deep=True)
        own = [key.value for key, _ in node.value]
        loader.flatten_mapping(node)
        values: dict[str, Any] = {}
        for key, value in node.value:
            # As written: a tool that is called `on` or `1` is neither a boolean nor a number.
            here = (*path, str(key.value))
            if not path and SECTION in own and here[0] != SECTION:
                continue
            if own.count(key.value) > 1 and here in lines:
                repeated.append(_twice(here, f"{name}:{key.start_mark.line + 1}"))
            lines[here] = key.start_mark.line + 1
            values[here[-1]] = build(loader, value, here)
        return values

    try:
        loader = yaml.SafeLoader(text)
        values = build(loader, loader.get_single_node(), ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _malformed("YAML", error.problem or "wrong", name, mark.line + 1 if mark else 1) from None
    except (yaml.YAMLError, ValueError) as error:
        raise _malformed("YAML", str(error).splitlines()[0], name, 1) from None
    if repeated:
        raise PolicyError(repeated)
    return values, lines


_DEEPEST = 4
"""Tables within tables that a policy can have, and one for the section; below it a value is just a value."""


def _twice(path: KeyPath, where: str) -> Problem:
    return Problem(".".join(path), "is set more than once", where)


def _malformed(language: str, reason: str, name: str, line: int) -> PolicyError:
    return PolicyError([Problem("", f"is not {language}: {reason}", f"{name}:{line}")])


_PARSERS: dict[str, Callable[[str, str], _Parsed]] = {".toml": _toml, ".yaml": _yaml, ".yml": _yaml, ".json": _json}
