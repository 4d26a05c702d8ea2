"""The line of every key in a TOML or JSON text that already parsed.

The standard parsers give values without places, and a message about a limit has to name its line. This reads only keys
and brackets; the values are the parsers' business, so it may assume that the text is well formed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TypeAlias

__all__ = ["KeyPath", "json_lines", "split_key", "toml_lines"]

KeyPath: TypeAlias = tuple[str, ...]
"""A dotted key in its parts."""

_WORD = re.compile(
    r"""
      (?P<skip>[ \t\r]+ | \#[^\n]*)
    | (?P<string>\"\"\"(?:\\.|[^\\])*?\"{3,5} | '''.*?'{3,5} | "(?:\\.|[^"\\\n])*" | '[^'\n]*')
    | (?P<mark>[\n\[\]{},.:=])
    | (?P<bare>[^\s\#"'\[\]{},.:=]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_DEPTH = {"[": 1, "{": 1, "]": -1, "}": -1}


def toml_lines(text: str) -> dict[KeyPath, int]:
    """The line, from 1, of every table and key of a TOML document."""
    scanner = _Scanner(text, _toml_string, lines_matter=True)
    scanner.document()
    return scanner.lines


def json_lines(text: str) -> tuple[dict[KeyPath, int], list[KeyPath]]:
    """The line, from 1, of every key of a JSON document, arrays left out; and the keys that it has more than once."""
    scanner = _Scanner(text, json.loads, lines_matter=False)
    scanner.value(())
    return scanner.lines, scanner.repeated


def split_key(text: str) -> KeyPath | None:
    """A dotted key in its parts, quoted as in TOML: `a."b.c".d`. None if it is not one."""
    scanner = _Scanner(text, _toml_string, lines_matter=True)
    path = scanner.key()
    return path if scanner.ended and all(path) else None


def _toml_string(quoted: str) -> str:
    import tomllib  # noqa: PLC0415 - few keys are quoted

    return str(tomllib.loads(f"key = {quoted}")["key"])


class _Scanner:
    """One pass over the words of a text; each method leaves the first word that is not its own."""

    def __init__(self, text: str, unquote: Callable[[str], str], *, lines_matter: bool) -> None:
        self.lines: dict[KeyPath, int] = {}
        self.repeated: list[KeyPath] = []
        self._text = text
        self._unquote = unquote
        self._skipped = {"skip"} if lines_matter else {"skip", "\n"}
        self._start = self._end = 0
        self._line = 1
        self._kind = self._word = ""
        self._advance()

    @property
    def ended(self) -> bool:
        return not self._word

    def _advance(self) -> None:
        while match := _WORD.match(self._text, self._end):
            self._line += self._text.count("\n", self._start, match.start())
            self._start, self._end = match.span()
            self._kind, self._word = match.lastgroup or "", match.group()
            if self._kind not in self._skipped and self._word not in self._skipped:
                return
        self._kind = self._word = ""

    def document(self) -> None:
        table: KeyPath = ()
        while not self.ended:
            if self._word == "[":
                table = self._header()
            else:
                self._member(table)

    def _header(self) -> KeyPath:
        line = self._line
        while self._word == "[":
            self._advance()
        path = self.key()
        self._record((), path, line)
        while self._word == "]":
            self._advance()
        return path

    def _member(self, table: KeyPath) -> None:
        """A key with its value, or one mark between two of them."""
        if self._kind == "mark":
            self._advance()
            return
        line = self._line
        path = self.key()
        self._record(table, path, line)
        self._advance()
        self.value(table + path)

    def key(self) -> KeyPath:
        parts = []
        while self._kind in {"bare", "string"}:
            parts.append(self._word if self._kind == "bare" else self._unquote(self._word))
            self._advance()
            if self._word != ".":
                return tuple(parts)
            self._advance()
        return (*parts, "")

    def _record(self, table: KeyPath, path: KeyPath, line: int) -> None:
        """A dotted key also opens the tables that it names, where nothing did before."""
        if table + path in self.lines:
            self.repeated.append(table + path)
        for length in range(1, len(path)):
            self.lines.setdefault(table + path[:length], line)
        self.lines[table + path] = line

    def value(self, path: KeyPath) -> None:
        if self._word == "{":
            self._advance()
            while self._word not in {"}", ""}:
                self._member(path)
            self._advance()
        elif self._word == "[":
            self._skip_array()
        else:
            while self._word not in {"\n", ",", "}", "]", ""}:
                self._advance()

    def _skip_array(self) -> None:
        depth = 0
        while self._word:
            depth += _DEPTH.get(self._word, 0)
            self._advance()
            if depth == 0:
                return
