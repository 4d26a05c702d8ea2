"""Whether a tool failed, also where only its text tells.

Many tools catch their own errors and return them as ordinary text with the status `success`. The rules are narrow,
since a page about errors is not an error: JSON whose own fields say so, and text that begins as error messages do.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

__all__ = ["Failure", "failure"]

_LOOKED_AT = 400
"""Characters at the beginning of a text within which an error message shows itself."""
_HEAD = 5_000
"""Characters within which the exception that a failure names is looked for."""
_MAX_JSON = 1_000_000
_NAME = r"(?:[a-z_]\w*\.){0,8}[A-Z]\w*(?:Error|Exception|Warning|Interrupt|Timeout|Exit)"
_BEGINS = re.compile(
    rf"\s*(?:<(?:tool_use_)?error>|(?:tool |fatal |internal )?error\b\s*(?:[:(]|executing |invoking |calling |in tool )"
    rf"|traceback \(most recent call last\)|exception\s*:|(?-i:{_NAME})\s*[:(]"
    r"|(?:command )?(?:exited|failed) with (?:exit )?(?:code|status)[: ]+-?[1-9]|exit code[: ]+-?[1-9])",
    re.IGNORECASE,
)
_NAMED = re.compile(
    rf"\s*(?:Error:|Error (?:invoking|executing) tool .{{0,4000}}? with error:)?\s*(?P<name>{_NAME})\s*[(:]", re.DOTALL
)
_REFUSED = re.compile(r"\s*Error invoking tool .* with error:", re.DOTALL)
"""How LangGraph's tool node answers arguments that the tool's schema refuses."""
_ERROR_FIELDS = ("error", "errors", "exception", "error_message", "errorMessage")
_FLAGS = {"is_error": True, "isError": True, "success": False, "ok": False}
_EXIT_CODES = ("exit_code", "exitCode", "returncode", "return_code")
_BAD = frozenset({"error", "failed", "failure"})


class Failure(NamedTuple):
    """What is known of a tool's outcome."""

    failed: bool
    error_type: str | None
    """The class of the exception, where the text begins by naming it."""


def failure(text: str, status: object = None) -> Failure:
    """Whether a result is a failure.

    Args:
        text: the whole text of the result.
        status: the tool message's. `error` is believed; `success` stands in every other one, errors or not.
    """
    told = _error_in(text)
    if told is None and status != "error":
        return Failure(failed=False, error_type=None)
    head = (told or text)[:_HEAD]
    named = _NAMED.match(head)
    if named:
        return Failure(failed=True, error_type=named["name"].rpartition(".")[2])
    return Failure(failed=True, error_type="ToolInvocationError" if _REFUSED.match(head) else None)


def _error_in(text: str) -> str | None:
    """The part of a text that tells of an error; None if none does."""
    if _BEGINS.match(text, 0, _LOOKED_AT):
        return text
    if len(text) > _MAX_JSON or text.lstrip()[:1] != "{":
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _error_field(found, text) if isinstance(found, dict) else None


def _error_field(fields: dict[str, Any], text: str) -> str | None:
    told = next((fields[name] for name in _ERROR_FIELDS if fields.get(name)), None)
    if told is not None:
        return told if isinstance(told, str) else text
    status = fields.get("status")
    says_so = (
        any(fields.get(name) is bad for name, bad in _FLAGS.items())
        or any(type(fields.get(name)) is int and fields[name] != 0 for name in _EXIT_CODES)
        or (isinstance(status, str) and status.lower() in _BAD)
    )
    return text if says_so else None
