"""Any value as plain data that every JSON parser takes: the last resort of the codec, the first step of redaction.

Apart since it must never fail: arguments of live tools hold sets, NaN, numpy numbers, circular lists and objects whose
`__str__` raises. What JSON has no form for becomes text, as `json.dumps(default=str)` would have it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import UNSET, Struct

__all__ = ["DEPTH", "MORE", "plain", "well_formed"]

DEPTH = 64
"""Levels of nesting that are kept: far more than a tool's arguments have, far less than any parser's limit."""
MORE = "…"
"""Stands for what was left out."""
_BITS = 13_000
"""Longest integer that is written as a number; Python refuses to print those of more than 4,300 digits."""
_ROOM = 64_000_000


def plain(
    value: object, room: int = _ROOM, longest: int = _ROOM, clean: Callable[[str, int], str] | None = None
) -> Any:
    """The value as dicts with text keys, lists, text, finite numbers, booleans and None. Never raises an Exception.

    Args:
        value: anything.
        room: about how many characters to keep in all; what comes after is `…`.
        longest: the most characters to keep of any one text.
        clean: given each text and how much of it to keep, gives back what to put in its place.
    """
    return _Plain(room, longest, clean or _beginning).of(value, 0)


def _beginning(text: str, limit: int) -> str:
    return well_formed(text[:limit])


def well_formed(text: str) -> str:
    r"""The text with lone surrogates spelled out (`\ud800`), since UTF-8 has no form for them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


class _Plain:
    """One conversion: what room is left, and which containers it is inside of."""

    __slots__ = ("_clean", "_inside", "_longest", "_room")

    def __init__(self, room: int, longest: int, clean: Callable[[str, int], str]) -> None:
        self._room = room
        self._longest = longest
        self._clean = clean
        self._inside: set[int] = set()

    def of(self, value: object, depth: int) -> Any:
        self._room -= 1
        if value is None or value is True or value is False:
            return value
        if isinstance(value, str):
            return self._text(str.__str__(value))
        if isinstance(value, int):
            bits = int.bit_length(value)
            return int.__int__(value) if bits <= _BITS else f"<integer of {bits} bits>"
        if isinstance(value, float):
            return float.__float__(value) if math.isfinite(value) else _not_finite(value)
        if isinstance(value, (list, tuple, Mapping, Struct)):
            return self._container(value, depth + 1)
        return self._text(_str(value))

    def _container(self, value: list[Any] | tuple[Any, ...] | Mapping[Any, Any] | Struct, depth: int) -> Any:
        if depth > DEPTH:
            return MORE
        if id(value) in self._inside:
            return "<circular>"
        self._inside.add(id(value))
        try:
            if isinstance(value, (list, tuple)):
                return self._list(value, depth)
            items = _fields(value) if isinstance(value, Struct) else value.items()
            return self._dict(items, depth)
        except Exception:  # noqa: BLE001 - a user's mapping may raise whatever it likes
            return _str(value)
        finally:
            self._inside.discard(id(value))

    def _list(self, value: Iterable[object], depth: int) -> list[Any]:
        kept: list[Any] = []
        for item in list(value):
            if self._room <= 0:
                kept.append(MORE)
                break
            kept.append(self.of(item, depth))
        return kept

    def _dict(self, items: Iterable[tuple[object, object]], depth: int) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, item in list(items):
            if self._room <= 0:
                kept[MORE] = MORE
                break
            name = self._text(_key(key))
            kept[name] = self.of(item, depth)
        return kept

    def _text(self, text: str) -> str:
        most = max(0, min(self._longest, self._room))
        self._room -= len(text)
        if len(text) > most:
            return f"{self._clean(text, most)}{MORE}({len(text):,} characters)"
        return self._clean(text, most)


def _fields(struct: Struct) -> list[tuple[object, object]]:
    """The fields as msgspec writes them: a number that is not finite is null, since the field takes numbers alone."""
    config = struct.__struct_config__
    fields: list[tuple[object, object]] = [] if config.tag is None else [(config.tag_field, config.tag)]
    for name in struct.__struct_fields__:
        value = getattr(struct, name)
        if value is not UNSET:
            fields.append((name, None if isinstance(value, float) and not math.isfinite(value) else value))
    return fields


def _key(key: object) -> str:
    """A key as `json.dumps` writes it."""
    if isinstance(key, str):
        return str.__str__(key)
    if key is None or key is True or key is False:
        return {None: "null", True: "true", False: "false"}[key]
    return _str(key)


def _not_finite(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "Infinity" if number > 0 else "-Infinity"


def _str(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a live argument may be any object
        return f"<{type(value).__name__}>"
