"""Takes secrets out of events where the events are made, so that none is ever queued, written or sent.

Verdicts must not suffer: a call that is changed here carries a digest of the key that it had (SPEC §2), under a random
key that lives and dies with the process. Apart from the shapes of secrets, which know only text; here are calls and
results.
"""

from __future__ import annotations

import functools
import json
import math
import os
import re
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec

from loopscope.engine.events import Batch, Call, Control, Event, Result, RunEnd, Warned, Witness
from loopscope.engine.identity import Identity
from loopscope.engine.policy import DEFAULT
from loopscope.errors import UsageError
from loopscope.recording.named import MASK, is_secret_name, masked
from loopscope.recording.plain import DEPTH, MORE, plain, well_formed
from loopscope.recording.preview import PREVIEW, Preview, text_of, whole
from loopscope.recording.shapes import mask, may_hold_secret

__all__ = ["LONGEST_ARGS", "MASK", "Redactor"]

LONGEST_ARGS = 65_536
"""Characters of text in the arguments of one call; of longer ones only the beginning of each text is recorded."""
LONGEST_TEXT = 2_000
"""Characters that are kept of each text of a call that is too long."""
_MARGIN = 1_024
"""Characters that are looked at beyond a cut, so that a secret across it is seen whole."""
_LONGEST_NAME = 64
_INTEGERS = range(-(1 << 63), 1 << 64)
_DEFAULT_KEY = Identity(DEFAULT).key
_SALT = os.urandom(32)
_E = TypeVar("_E", bound=Event)


class Redactor:
    """Masks secrets in calls, results and texts, and leaves alone what has none. Safe from any thread.

    Args:
        patterns: regular expressions of further secrets; whatever they match is masked.
        key_of: the key of a call under the policy in force (`Identity(policy).key`).

    Raises:
        UsageError: with every pattern that is no regular expression, or that matches nothing at all.
    """

    def __init__(self, patterns: Iterable[str] = (), *, key_of: Callable[[Call], str] = _DEFAULT_KEY) -> None:
        self._patterns = _compiled(patterns)
        self.key_of = key_of
        """The key of a call before anything in it is masked; set it anew when the policy's identity changes."""

    def text(self, text: str, limit: int | None = None) -> str:
        """The text with its secrets masked and no lone surrogates.

        Args:
            text: anything.
            limit: the most characters to give back; a secret across the cut does not stay in part.
        """
        if limit is None or len(text) <= limit:
            return self._cleaned(text) if self._suspicious(text) else text
        window = text[: limit + _MARGIN]
        if not self._suspicious(window):
            return window[:limit]
        clean = self._cleaned(window)
        return (clean if len(text) <= len(window) else clean[: max(0, len(clean) - _MARGIN)])[:limit]

    def call(self, call: Call) -> Call:
        """The call as it may be recorded; the very same object where nothing had to change.

        Where something is masked or cut, or where the arguments do not survive JSON, the arguments are plain data, and
        `key` is `~` and 32 hex digits of a keyed BLAKE2b of the key that the call had. Where it had none, since its
        arguments cannot be written at all, `key` is `!`, the exception's name and the call's id.
        """
        try:
            return self._call(call)
        except Exception as error:  # noqa: BLE001 - no room on the stack, or changed by another thread meanwhile
            return Call(call.id, call.name, MORE, f"!{type(error).__name__}:{call.id}")

    def _call(self, call: Call) -> Call:
        texts: list[str] = []
        survives = _survives(call.args, texts, DEPTH)
        text = texts[0] if len(texts) == 1 else "\n".join(texts)
        long = len(text) > LONGEST_ARGS
        if survives and not long and not self._suspicious(text):
            return call
        args = self.value(call.args, LONGEST_ARGS, LONGEST_TEXT) if long else self.value(call.args)
        if not long and _same(args, call.args):
            return call
        return Call(call.id, call.name, args, self._key(call))

    def value(self, value: object, room: int = LONGEST_ARGS * 2, longest: int = LONGEST_ARGS * 2) -> Any:
        """Any value as plain data with its secrets masked: by their shape, by their name, and inside of JSON in text.

        Args:
            value: anything.
            room: about how many characters to keep in all.
            longest: the most characters to keep of any one text.
        """
        return _by_name(plain(value, room, longest, self._in_text))

    def preview(self, content: object, limit: int = PREVIEW) -> Preview:
        """The fields of a `result` event; where a secret is masked, the digest is keyed, so that it cannot be guessed.

        Args:
            content: text, a list of content blocks, or any other value.
            limit: the most characters of text to keep.
        """
        text = text_of(content)
        size, digest = whole(text)
        shown = self.text(text, limit)
        as_it_was = shown in {text[:limit], well_formed(text[:limit])}
        return Preview(shown, size, digest if as_it_was else _keyed(text, 8))

    def event(self, event: _E) -> _E:
        """Any event as it may be recorded; the very same object where nothing had to change.

        For events that were made elsewhere (imports, links). The texts that identify (names, ids, threads) stay.
        """
        changes = self._changes(event)
        return msgspec.structs.replace(event, **changes) if changes else event

    def _changes(self, event: Event) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        if isinstance(event, Batch):
            calls = tuple(map(self.call, event.calls))
            if any(new is not old for new, old in zip(calls, event.calls, strict=True)):
                changes["calls"] = calls
        if isinstance(event, Witness):
            values = self.value(event.values)
            if values != event.values:
                changes["values"] = values
        for kind, field in _TEXTS:
            text = getattr(event, field) if isinstance(event, kind) else None
            if text and (clean := self.text(text)) != text:
                changes[field] = clean
        if isinstance(event, Result) and "content" in changes and event.digest is not None:
            changes["digest"] = _keyed(event.digest, 8)
        return changes

    def _suspicious(self, text: str) -> bool:
        """Whether `_cleaned` could change the text."""
        if may_hold_secret(text) or self._patterns:
            return True
        if text.isascii():
            return False
        try:
            text.encode()
        except UnicodeEncodeError:
            return True
        return False

    def _cleaned(self, text: str) -> str:
        text = mask(well_formed(text))
        for pattern in self._patterns:
            text = pattern.sub(MASK, text)
        return text

    def _in_text(self, text: str, limit: int) -> str:
        """A text of an argument, which may be JSON itself."""
        if len(text) <= limit and text[:1] in {"{", "["} and self._suspicious(text):
            try:
                inside = json.loads(text)
                clean = self.value(inside)
                return text if clean == inside else json.dumps(clean, ensure_ascii=False)
            except (ValueError, RecursionError):
                pass
        return self.text(text, limit)

    def _key(self, call: Call) -> str:
        if call.key is not None:
            return call.key
        key = self.key_of(call)
        unwritable = key.startswith("!") and key.endswith(f":{call.id}") and not isinstance(call.args, str)
        return key if unwritable else f"~{_keyed(key, 16)}"


_TEXTS = ((Batch, "text"), (Result, "content"), (Warned, "text"), (RunEnd, "reason"), (Control, "by"))


def _compiled(patterns: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    compiled: list[re.Pattern[str]] = []
    wrong: list[str] = []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        try:
            compiled.append(re.compile(pattern))
        except (re.error, TypeError, RecursionError, OverflowError) as error:
            wrong.append(f"redaction pattern {pattern!r:.80} is no regular expression: {error}")
            continue
        if compiled[-1].search(""):
            wrong.append(f"redaction pattern {pattern!r:.80} matches the empty text, and so everything")
    if wrong:
        raise UsageError("; ".join(wrong))
    return tuple(compiled)


def _keyed(text: str, size: int) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), key=_SALT, digest_size=size).hexdigest()


def _survives(value: Any, texts: list[str], depth: int) -> bool:
    """Whether the value is the same after JSON and no field has a secret's name; gathers its texts on the way."""
    kind = type(value)
    if kind is str:
        texts.append(value)
        return True
    if kind is dict and depth:
        for name, item in value.items():
            if type(name) is not str or len(name) > _LONGEST_NAME or _is_odd_name(name):
                return False
            if type(item) is str:
                texts.append(item)
            elif not _survives(item, texts, depth - 1):
                return False
        return True
    if kind is list and depth:
        return all(_survives(item, texts, depth - 1) for item in value)
    return value is None or kind is bool or (kind is int and value in _INTEGERS) or _is_finite(value)


def _is_finite(value: object) -> bool:
    return type(value) is float and math.isfinite(value)


@functools.lru_cache(4096)
def _is_odd_name(name: str) -> bool:
    """Whether a field of this name needs a closer look, at its value or at the name."""
    return is_secret_name(name) or mask(well_formed(name)) != name


def _same(clean: object, value: object) -> bool:
    try:
        return bool(clean == value)
    except Exception:  # noqa: BLE001 - arrays and mocks compare as they like
        return False


def _by_name(value: Any) -> Any:
    """Plain data with the values of secret fields masked."""
    if isinstance(value, dict):
        named = next((value[key] for key in ("name", "key", "header", "field") if isinstance(value.get(key), str)), "")
        if "value" in value and is_secret_name(named):
            value = value | {"value": _leaves(named, value["value"])}
        return {name: _leaves(name, item) if is_secret_name(name) else _by_name(item) for name, item in value.items()}
    if isinstance(value, list):
        return _pairs([_by_name(item) for item in value])
    return value


def _pairs(items: list[Any]) -> list[Any]:
    """A header as a pair, and a command line as a list: the item behind a secret's name is masked."""
    for at in range(len(items) - 1):
        name = items[at]
        pair = len(items) == 2 or (isinstance(name, str) and name.startswith("-"))  # noqa: PLR2004 - name and value
        if pair and isinstance(name, str) and len(name) <= _LONGEST_NAME and is_secret_name(name):
            items[at + 1] = _leaves(name, items[at + 1])
    return items


def _leaves(name: str, value: Any) -> Any:
    """Everything below a secret field masked; what stands for nothing stays, and so do counts of tokens."""
    if isinstance(value, str):
        return masked(name, value)
    if isinstance(value, dict):
        return {key: _leaves(name, item) for key, item in value.items()}
    if isinstance(value, list):
        return [_leaves(name, item) for item in value]
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return MASK if number and "token" not in name.lower() else value
