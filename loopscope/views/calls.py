"""Calls in a few words: `search("rust tls alpn")`, by the arguments that count for their identity."""

from __future__ import annotations

import json
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from loopscope.engine.events import Batch, Call
from loopscope.engine.identity import Identity, normalise
from loopscope.engine.policy import Policy
from loopscope.recording.inert import inert
from loopscope.session.session import Session

__all__ = ["Keyed", "batch_label", "bounded", "call_label", "keyed", "tool_names", "unenforced"]

_HEAVY = 1_000_000
"""Bytes of a line above which it is not read for a label: the tools' names must do."""
_LONGEST = 200
"""Characters of a label; no column is wider."""
_DEEPEST = 8
_MOST = 64


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


def bounded(value: Any, depth: int = 0) -> Any:
    """The value with long texts, long lists and deep nesting cut, so that drawing it never costs what it weighs."""
    if isinstance(value, str):
        return value if len(value) <= _LONGEST * 10 else value[: _LONGEST * 10] + f"… {len(value):,} characters"
    if isinstance(value, dict):
        if depth >= _DEEPEST:
            return f"{{… {len(value)}}}"
        return {str(key)[:_LONGEST]: bounded(value[key], depth + 1) for key in list(value)[:_MOST]} | _rest(value)
    if isinstance(value, (list, tuple)):
        if depth >= _DEEPEST:
            return f"[… {len(value)}]"
        rest = [f"… {len(value) - _MOST} more"] if len(value) > _MOST else []
        return [bounded(item, depth + 1) for item in value[:_MOST]] + rest
    return value


def _rest(value: dict[Any, Any]) -> dict[str, Any]:
    return {"…": f"{len(value) - _MOST} more"} if len(value) > _MOST else {}


def _short(value: Any) -> str:
    return inert(json.dumps(bounded(value), ensure_ascii=False, default=str), _LONGEST)


def call_label(call: Call, policy: Policy) -> str:
    """One call: the tool's name and the arguments that count, as text that is safe to draw."""
    name = inert(call.name or "", _LONGEST) or "(no name)"
    found = keyed(call, policy)
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


_LABELS: WeakKeyDictionary[Session, dict[tuple[str, int], str]] = WeakKeyDictionary()


def batch_label(session: Session, number: int) -> str:
    """A batch in a few words; its line is read once for all batches of the same hash."""
    row = session.row(number)
    known = _LABELS.setdefault(session, {})
    place = (row.hash, session.timeline.batches.calls[number - 1])
    label = known.get(place)
    if label is None:
        if len(known) > 10 * _LONGEST:
            known.clear()
        light = session.timeline.batches.length[number - 1] <= _HEAVY
        batch = session.batch(number) if light else None
        policy = session.timeline.policy_at(number)
        label = known[place] = _label(batch, policy) if batch is not None else tool_names(row.names)
    return label
