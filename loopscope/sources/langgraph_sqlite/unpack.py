"""Stored values as plain structures, without importing or calling anything that they name.

LangGraph's own serializer imports the module that a blob names and calls what it finds there, which is right for the
program that wrote the blob and wrong for a file that somebody was handed. Here an object is only what was stored of
it: its module, its name and its fields. It stands apart because it is the one place that reads foreign bytes.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

import msgspec

__all__ = ["Delta", "Named", "Opaque", "Undecodable", "Unpacker", "damage"]

_MAX_DEPTH = 16
"""Objects within objects. LangGraph itself nests four or five; each level costs a hash of everything inside it."""
_MEMO_BYTES = 32 * 1024 * 1024
_CONSTRUCTORS = range(6)
"""Codes of `langgraph.checkpoint.serde.jsonplus`: `[module, name, value, ...]`, however it was to be called."""
_PARTS = 3
_DELTA_SNAPSHOT = 7


class Undecodable(ValueError):  # noqa: N818 - an outcome that the reader reports and goes on from
    """A stored value that is not read; the message says why."""


class Named(msgspec.Struct, frozen=True):
    """An object that the file names. It was not made."""

    module: str
    name: str
    value: Any
    """Its fields, or the arguments that it would have been made from."""


class Delta(msgspec.Struct, frozen=True):
    """The whole value of a channel that otherwise stores only its changes."""

    value: Any


class Opaque(msgspec.Struct, frozen=True):
    """A part of a value that could not be read, where the rest could."""

    reason: str


class Unpacker:
    """Reads stored values, and remembers up to 32 MB of those that come again in each checkpoint."""

    def __init__(self) -> None:
        self._decode = msgspec.msgpack.Decoder(ext_hook=self._extension).decode
        self._depth = 0
        self._memo: dict[bytes, Named | Delta | Opaque] = {}
        self._remembered = 0

    def value(self, kind: str | None, blob: object) -> Any:
        """What is stored in one column.

        Args:
            kind: the type that LangGraph stored beside it; None in the tables of early 2024, which hold JSON.
            blob: the column's value.

        Raises:
            Undecodable: it is damaged, pickled, encrypted or no value of this kind.
        """
        if kind in {"null", "empty"}:
            return None
        data = blob.encode("utf-8", "replace") if isinstance(blob, str) else blob
        if not isinstance(data, bytes):
            raise Undecodable(f"holds {type(blob).__name__} where bytes should be")
        if kind in {"bytes", "bytearray"}:
            return data
        if kind == "msgpack":
            return self._msgpack(data)
        if kind == "pickle" or (kind in {None, "json"} and data[:1] == b"\x80"):
            raise Undecodable("is pickled: never loaded, since loading runs what the file says")
        if kind is None or kind == "json":
            return _json(data)
        raise Undecodable(f"is stored as {kind[:40]}, which only the program that wrote it can read")

    def _msgpack(self, data: bytes) -> Any:
        try:
            return self._decode(data)
        except (ValueError, RecursionError) as error:
            raise Undecodable(damage(error)) from None

    def _extension(self, code: int, data: memoryview) -> Named | Delta | Opaque:
        """One object. Each checkpoint stores the whole list of messages, so most have been seen before."""
        if self._depth >= _MAX_DEPTH:
            return Opaque("is nested too deeply")
        digest = blake2b(data, digest_size=16, salt=code.to_bytes(1, "big", signed=True)).digest()
        found = self._memo.get(digest)
        if found is not None:
            return found
        self._depth += 1
        try:
            found = _structure(code, self._decode(data))
        except (ValueError, RecursionError) as error:
            found = Opaque(damage(error))
        finally:
            self._depth -= 1
        self._remember(digest, found, len(data))
        return found

    def _remember(self, digest: bytes, found: Named | Delta | Opaque, size: int) -> None:
        if self._remembered + size > _MEMO_BYTES:
            self._memo.clear()
            self._remembered = 0
        self._memo[digest] = found
        self._remembered += size


def damage(error: Exception) -> str:
    """Why a decoder gave up, to stand behind the name of what it was to decode."""
    return "is nested too deeply" if isinstance(error, RecursionError) else f"is damaged ({error})"


def _structure(code: int, inner: Any) -> Named | Delta | Opaque:
    if code == _DELTA_SNAPSHOT:
        return Delta(inner)
    if code in _CONSTRUCTORS and isinstance(inner, list) and len(inner) >= _PARTS:
        module, name, value = inner[:_PARTS]
        if isinstance(module, str) and isinstance(name, str):
            return Named(module, name, value)
    return Opaque(f"is an object of kind {code}")


def _json(data: bytes) -> Any:
    try:
        return json.loads(data, object_hook=_revive)
    except (ValueError, RecursionError) as error:
        raise Undecodable(damage(error)) from None


def _revive(value: dict[str, Any]) -> object:
    """LangChain's form of an object in JSON, its first and its second version."""
    path = value.get("id")
    if value.get("type") != "constructor" or "lc" not in value or not isinstance(path, list) or not path:
        return value
    *module, name = map(str, path)
    return Named(".".join(module), name, value.get("kwargs") or value.get("args"))
