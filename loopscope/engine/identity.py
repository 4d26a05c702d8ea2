"""What makes two batches the same: a call gives a key, the keys of a batch give its hash.

Value for value what DeerFlow logs as `call_hash` (SPEC §2; deer-flow issues 1905 and 2116 tell why only some
arguments count). It stands apart since recordings, middleware and what-ifs must all agree on it, and since it is the
engine's hot path: `json.dumps` with options builds an encoder on each call, which costs more than all the rest of a
decision.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from json import encoder as _json
from typing import Any, NamedTuple, TypeVar

from loopscope.engine.events import Call
from loopscope.engine.policy import Policy

__all__ = ["SALIENT", "Identified", "Identity", "Normalised", "batch_hash", "call_key", "dumps", "normalise"]

D = TypeVar("D", int, None)
SALIENT = ("path", "url", "query", "command", "pattern", "glob", "cmd")
"""The arguments that tell calls of an unknown tool apart; the others (descriptions, limits) are ignored."""
LINES_PER_BUCKET = 200
"""`read_file` calls whose windows fall in the same buckets of this many lines are the same."""
_WHOLE_ARGS = frozenset({"write_file", "str_replace"})

_quote: Callable[[str], str] = _json.encode_basestring_ascii

try:
    # Half the cost of hashlib's, and there on machines whose OpenSSL forbids MD5.
    from _md5 import md5 as _md5  # type: ignore[import-not-found]
except ImportError:  # pragma: no cover - interpreters built without it
    from functools import partial
    from hashlib import md5

    _md5 = partial(md5, usedforsecurity=False)


def _slow_dumps(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _make_dumps() -> Callable[[object], str]:
    """`_slow_dumps` without its costs where the interpreter has the C encoder.

    It is built without the table that finds circular values, so that threads can share it; a circular value then ends
    in RecursionError, and every error is raised again by the real `json.dumps`, whose kind of error counts.
    """
    make: Any = getattr(_json, "c_make_encoder", None)
    if make is None:  # pragma: no cover - interpreters without the C encoder
        return _slow_dumps
    encode = make(None, str, _quote, None, ": ", ", ", True, False, True)
    join = "".join

    def fast_dumps(value: object) -> str:
        if type(value) is str:
            return _quote(value)
        try:
            return join(encode(value, 0))
        except Exception:  # noqa: BLE001 - whatever it is, the real one tells it better
            return _slow_dumps(value)

    return fast_dumps


dumps = _make_dumps()
"""`json.dumps(value, sort_keys=True, default=str)`, to the letter, errors too."""


class Normalised(NamedTuple):
    """Arguments as the rules of identity see them."""

    args: dict[str, Any]
    """The JSON object; empty where the model sent none."""
    fallback: str | None
    """What stands for arguments that are no object; None where there is an object or nothing."""


def normalise(args: object) -> Normalised:
    """Tell an object from a string that holds one, from other JSON, from text, from nothing.

    Raises:
        Exception: whatever `json.dumps` raises for a value that it cannot write.
    """
    if isinstance(args, dict):
        return Normalised(args, None)
    if args is None:
        return Normalised({}, None)
    if not isinstance(args, str):
        return Normalised({}, dumps(args))
    try:
        parsed = json.loads(args)
    except (ValueError, RecursionError):
        return Normalised({}, args)
    return Normalised(parsed, None) if isinstance(parsed, dict) else Normalised({}, dumps(parsed))


def _line(value: object, default: D) -> int | D:
    if value is None:
        return default
    try:
        return int(value)  # type: ignore[call-overload, no-any-return]
    except Exception:  # noqa: BLE001 - a live argument may be any object
        return default


def _window_key(args: dict[str, Any]) -> str:
    """`read_file`: the path and the buckets of the first and the last line."""
    start = _line(args.get("start_line"), 1)
    end = _line(args.get("end_line"), start)
    low, high = (start, end) if start <= end else (end, start)
    first, last = (max(low, 1) - 1) // LINES_PER_BUCKET, (max(high, 1) - 1) // LINES_PER_BUCKET
    return f"{args.get('path') or ''}:{first}-{last}"


def _exact_window_key(args: dict[str, Any]) -> str:
    """`read_file` since deer-flow pull request 5486: the path and the lines asked for; with no last one, to the end."""
    start, end = _line(args.get("start_line"), 1), _line(args.get("end_line"), None)
    if end is None:
        return f"{args.get('path') or ''}:{max(start, 1)}-"
    low, high = (start, end) if start <= end else (end, start)
    return f"{args.get('path') or ''}:{max(low, 1)}-{max(high, 1)}"


class Identified(NamedTuple):
    """What identity says of a batch."""

    hash: str
    repeats: tuple[tuple[str, str, int], ...]
    """Calls that occur more than once: what their key is known by, their tool, how often, in model order."""


class Identity:
    """The identity of one policy, ready for use; makes no changes and can be shared by threads."""

    __slots__ = ("_fields", "_full", "_special", "_window_key")

    def __init__(self, policy: Policy) -> None:
        self._full = policy.identity == "full_args"
        self._window_key = _exact_window_key if policy.read_window == "exact" else _window_key
        self._fields = policy.identity_fields
        self._special = _WHOLE_ARGS | {"read_file", *self._fields}

    def key(self, call: Call) -> str:
        """The key of one call. Total: arguments that JSON cannot hold give a key that equals no other call's."""
        if call.key is not None:
            return call.key
        name, args = call.name or "", call.args
        if type(args) is dict and not self._full and name not in self._special:
            # The common case, free of calls: one salient argument that is a string.
            only = ""
            for field in args:
                if field in _SALIENT_SET and args[field] is not None:
                    if only or type(args[field]) is not str:
                        break
                    only = field
            else:
                if only:
                    return f'{{"{only}": {_quote(args[only])}}}'
        try:
            return self._general(name, args)
        except Exception as error:  # noqa: BLE001 - json raises what a hostile __str__ raises
            return f"!{type(error).__name__}:{call.id}"

    def _general(self, name: str, raw: object) -> str:
        args, fallback = normalise(raw)
        fields = self._fields.get(name)
        if fields is not None:
            return _subset(args, fields, fallback)
        if name == "read_file" and fallback is None:
            return self._window_key(args)
        if self._full or name in _WHOLE_ARGS:
            return dumps(args) if fallback is None else fallback
        return _subset(args, SALIENT, fallback)

    def used(self, call: Call) -> tuple[str, ...] | None:
        """The argument names that the key is made of; None where it is made of all of them, or of no names at all."""
        name = call.name or ""
        if call.key is not None or not isinstance(call.args, dict):
            return None
        fields = self._fields.get(name)
        if fields is None:
            if name == "read_file":
                return tuple(f for f in ("path", "start_line", "end_line") if call.args.get(f) is not None)
            if self._full or name in _WHOLE_ARGS:
                return None
            fields = SALIENT
        return tuple(field for field in fields if call.args.get(field) is not None) or None

    def read(self, calls: Sequence[Call]) -> Identified:
        """The hash of a batch, and the calls that occur more than once in it."""
        if len(calls) == 1:
            return Identified(self.hash(calls), ())
        parts = [f"{call.name or ''}:{self.key(call)}" for call in calls]
        if len(set(parts)) == len(parts):
            return Identified(_hash_of(sorted(parts)), ())
        counts = Counter(parts)
        first = {part: call.name or "" for part, call in zip(reversed(parts), reversed(calls), strict=True)}
        repeats = tuple((_hash_of([part]), first[part], count) for part, count in counts.items() if count > 1)
        return Identified(_hash_of(sorted(parts)), repeats)

    def hash(self, calls: Sequence[Call]) -> str:
        """The hash of a batch: 12 hex digits, the same for every order of the calls."""
        if len(calls) != 1:
            return self.read(calls).hash
        name = calls[0].name or ""
        text = f"[{_quote(f'{name}:{self.key(calls[0])}')}]"
        digest: str = _md5(text.encode("ascii")).hexdigest()
        return digest[:12]


_SALIENT_SET = frozenset(SALIENT)


def _hash_of(parts: Iterable[str]) -> str:
    digest: str = _md5(f"[{', '.join([_quote(part) for part in parts])}]".encode("ascii")).hexdigest()
    return digest[:12]


def _subset(args: dict[str, Any], fields: Iterable[str], fallback: str | None) -> str:
    chosen = {field: args[field] for field in fields if args.get(field) is not None}
    if chosen:
        return dumps(chosen)
    return dumps(args) if fallback is None else fallback


def call_key(call: Call, policy: Policy) -> str:
    """The key of one call under this policy (SPEC §2)."""
    return Identity(policy).key(call)


def batch_hash(calls: Sequence[Call], policy: Policy) -> str:
    """The hash of a batch under this policy: the first 12 hex digits of an MD5 over its sorted keys (SPEC §2)."""
    return Identity(policy).hash(calls)
