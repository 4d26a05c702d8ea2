"""Calls in a few words: `search("rust tls alpn")`, by the arguments that count for their identity."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from loopscope.engine.events import Batch, Call
from loopscope.engine.identity import Identity, normalise
from loopscope.engine.policy import Policy
from loopscope.recording.inert import inert
from loopscope.session.session import Session

__all__ = ["HEAVY", "Keyed", "batch_label", "bounded", "call_label", "keyed", "labelled", "tool_names", "unenforced"]

HEAVY = 250_000
"""Bytes of a line above which it is not read between two frames; for a label the tools' names must do then."""
_LONGEST = 200
"""Characters of a label; no column is wider."""
_DEEPEST = 8
_MOST = 64
_ITEMS, _CHARACTERS = 2_000, 100_000
"""What is kept of a value in all."""


class Keyed(NamedTuple):
    """What a call is counted by."""

    key: str
    used: tuple[str, ...] | None
    """The arguments that the key is made of; None where it is not made of single arguments."""
    ignored: tuple[str, ...]
    """The arguments that it leaves out."""


def keyed(call: Call, policy: Policy) -> Keyed:
    """The key of a call under this policy, and what of its arguments is in it."""
    identity = Identity(policy)
    key = identity.key(call)
    try:
        args, fallback = normalise(call.args)
    except Exception:  # noqa: BLE001 - arguments that JSON cannot hold have a key that is not made of them
        return Keyed(key, None, ())
    if call.key is not None or fallback is not None:
        return Keyed(key, None, ())
    used = identity.used(Call(call.id, call.name, args))
    return Keyed(key, used, () if used is None else tuple(name for name in args if name not in used))


class _Room:
    """What is left for the rest of a value."""

    def __init__(self) -> None:
        self.items = _ITEMS
        self.characters = _CHARACTERS

    def value(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            fields = {str(key)[:_LONGEST]: self.value(value[key], depth + 1) for key in self._some(value, depth)}
            left = len(value) - len(fields)
            return f"{{… {left}}}" if left and not fields else fields | ({"…": f"{left} more"} if left else {})
        if isinstance(value, (list, tuple)):
            found = [self.value(item, depth + 1) for item in self._some(value, depth)]
            left = len(value) - len(found)
            return f"[… {left}]" if left and not found else found + ([f"… {left} more"] if left else [])
        return value

    def _text(self, value: str) -> str:
        room = min(_LONGEST * 10, self.characters)
        self.characters -= min(len(value), room)
        return value if len(value) <= room else f"{value[:room]}… {len(value):,} characters"

    def _some(self, value: Iterable[Any], depth: int) -> Iterator[Any]:
        """The first items, as many as there is room for."""
        for item in islice(value, _MOST if depth < _DEEPEST else 0):
            if self.items < 1 or self.characters < 1:
                return
            self.items -= 1
            if isinstance(value, dict):
                self.characters -= min(len(str(item)), _LONGEST)
            yield item


def bounded(value: Any) -> Any:
    """The value with long texts, long lists and deep nesting cut, so that drawing it never costs what it weighs."""
    return _Room().value(value, 0)


def _short(value: Any) -> str:
    return inert(json.dumps(bounded(value), ensure_ascii=False, default=str), _LONGEST)


def call_label(call: Call, policy: Policy) -> str:
    """One call: the tool's name and the arguments that count, as text that is safe to draw."""
    return labelled(call, keyed(call, policy))


def labelled(call: Call, found: Keyed) -> str:
    """As `call_label`, where it is known what the call is counted by."""
    name = inert(call.name or "", _LONGEST) or "(no name)"
    if found.used is None:
        return f"{name}({inert(found.key, _LONGEST)})"
    args = normalise(call.args).args
    return f"{name}({', '.join(_short(args[field]) for field in found.used)})"


def unenforced(session: Session) -> str:
    """Why a stop stopped nothing."""
    return "other limits then" if session.timeline.lived.enforced else "only watched"


def tool_names(names: tuple[str, ...]) -> str:
    """The tools of a batch, each once: `search x3, open`."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    first = list(counts.items())[:_MOST]
    return ", ".join(
        (inert(name, _LONGEST) or "(no name)") + (f" x{count}" if count > 1 else "") for name, count in first
    )


def _label(batch: Batch, policy: Policy) -> str:
    first = call_label(batch.calls[0], policy)
    more = len(batch.calls) - 1
    return f"{first} +{more}" if more else first


_LABELS: WeakKeyDictionary[Session, dict[tuple[int, str], str]] = WeakKeyDictionary()


def batch_label(session: Session, number: int) -> str:
    """A batch in a few words of its own: equal hashes need not be equal calls."""
    row = session.row(number)
    known = _LABELS.setdefault(session, {})
    label = known.get((number, row.hash))
    if label is None:
        if len(known) > 10 * _LONGEST:
            known.clear()
        light = session.timeline.batches.length[number - 1] <= HEAVY
        batch = session.batch(number) if light else None
        policy = session.timeline.policy_at(number)
        label = known[number, row.hash] = _label(batch, policy) if batch is not None else tool_names(row.names)
    return label
