"""One event as one line of JSON and back: the same bytes in a recording and on a live link.

Apart from files and sockets, which both use it. msgspec does nearly all lines; what it refuses (NaN, lone surrogates,
numbers out of range, fields that another producer left out) goes to the standard decoder, at ten times the cost.
"""

from __future__ import annotations

import functools
import json
import math
import re
from typing import Any, get_args

import msgspec
from msgspec import Struct

from loopscope.engine.events import FORMAT, Call, Event, Header, Result, Usage
from loopscope.recording.plain import plain
from loopscope.recording.preview import digest

__all__ = ["decode", "encode", "is_newer"]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Event).decode
_KINDS: dict[str, type[Struct]] = {str(kind.__struct_config__.tag): kind for kind in get_args(Event)}
_VERSION = re.compile(r"loopscope/(\d{1,9})(\.|$)")
_MAJOR = int(FORMAT.partition("/")[2])


def encode(event: Event) -> bytes:
    """The event as one line of JSON in UTF-8, without the newline. Never raises an Exception.

    What JSON has no form for is written as text, NaN and infinity as null or as text, lone surrogates spelled out.
    """
    try:
        return _encode(event)
    except Exception:  # noqa: BLE001 - a value of any type may be inside, and raise what it likes
        return _encode(plain(event))


def decode(line: bytes | bytearray | memoryview) -> Event | None:
    """The event of one line; None where its kind is unknown, as a later version may write it.

    Fields that may be null may be missing. A result without a digest gets one where its content is whole.

    Raises:
        ValueError: where the line is not one JSON object in UTF-8, or breaks the format; the message says how.
    """
    try:
        event = _decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _decode_leniently(bytes(line))
    return _with_digest(event) if type(event) is Result and event.digest is None else event


def is_newer(header: Header) -> bool:
    """Whether the header is of a format that this version cannot read.

    Raises:
        ValueError: where the format is no format of ours at all.
    """
    version = _VERSION.match(header.format)
    if version is None:
        raise ValueError(f"format must be {FORMAT}, is {header.format!r:.80}")
    return int(version[1]) > _MAJOR


def _decode_leniently(line: bytes) -> Event | None:
    data = _parse(line)
    if not isinstance(data, dict):
        raise ValueError(f"must be a JSON object, is {line.strip()[:40].decode(errors='replace')!r}")  # noqa: TRY004 - callers catch one kind
    kind = data.get("kind")
    if not isinstance(kind, str):
        raise ValueError("has no `kind`")  # noqa: TRY004 - callers catch one kind
    if kind not in _KINDS:
        return None
    _repair(data, _KINDS[kind])
    try:
        event: Event = msgspec.convert(data, Event)
    except msgspec.ValidationError as error:
        if kind == "header" and _VERSION.match(str(data.get("format"))):
            return Header(format=data["format"])
        raise ValueError(f"{kind}: {error}") from None
    return _with_digest(event) if type(event) is Result and event.digest is None else event


def _parse(line: bytes) -> Any:
    try:
        return json.loads(line.decode())
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 at byte {error.start + 1}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error.msg} (character {error.pos + 1})") from None


def _repair(data: dict[str, Any], kind: type[Struct]) -> None:
    """Fill in what may be null, leave out nulls that mean the default, and make numbers those that the fields take."""
    shape = _shape(kind)
    for name in shape.nullable:
        data.setdefault(name, None)
    for name in shape.defaulted:
        if data.get(name, "") is None:
            del data[name]
    for name, value in data.items():
        if isinstance(value, float):
            data[name] = _number(value, whole=name in shape.whole)
    if kind is Result and data.get("content") is None:
        data["content"] = ""
    for name, part in (("calls", Call), ("usage", Usage)):
        inner = data.get(name)
        for item in inner if isinstance(inner, list) else [inner]:
            if name in kind.__struct_fields__ and isinstance(item, dict):
                _repair(item, part)


class _Shape(Struct, frozen=True):
    nullable: tuple[str, ...]
    """Required fields that may be null."""
    defaulted: tuple[str, ...]
    """Fields with a default that may not be null."""
    whole: frozenset[str]
    """Fields that take no fractions."""


@functools.cache
def _shape(kind: type[Struct]) -> _Shape:
    fields = msgspec.structs.fields(kind)
    return _Shape(
        tuple(field.name for field in fields if field.required and _takes_null(field.type)),
        tuple(field.name for field in fields if not field.required and not _takes_null(field.type)),
        frozenset(field.name for field in fields if field.type is int or get_args(field.type) == (int, type(None))),
    )


def _takes_null(kind: Any) -> bool:
    return kind is Any or type(None) in get_args(kind)


def _number(value: float, *, whole: bool) -> float | int | None:
    if not math.isfinite(value):
        return None
    return int(value) if whole and value.is_integer() else value


def _with_digest(result: Result) -> Result:
    if result.size is None:
        return result
    size = len(result.content.encode("utf-8", "surrogatepass"))
    return msgspec.structs.replace(result, digest=digest(result.content)) if size == result.size else result
