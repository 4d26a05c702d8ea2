"""What a stopped loop hands to a person: why it was stopped, what was tried, and what the answer means.

The same for the middleware and for loops drawn by hand, so that one screen can ask for both. Apart from both since
waiting for a person is the framework's business, and what the person is shown is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.config import get_config

from loopscope.engine.identity import dumps
from loopscope.recording.preview import text_of

__all__ = ["Attempt", "answer_of", "can_wait", "drained", "question", "refused", "tried_in"]

_MOST = 10
"""Different attempts that are told, the newest ones."""
_RESULT = 300
"""Characters of a result that are told."""
_NO = ("", "no", "stop")


class Attempt(NamedTuple):
    """A batch of calls that was made, once or more."""

    calls: tuple[dict[str, Any], ...]
    """Name and args of each."""
    times: int
    result: str
    """The beginning of what came back the last time, errors too."""


def tried_in(messages: Sequence[AnyMessage]) -> tuple[Attempt, ...]:
    """What these messages show to have been tried, in the order of the last time of each."""
    attempts: dict[str, Attempt] = {}
    for place, message in enumerate(messages):
        if not isinstance(message, AIMessage) or not message.tool_calls:
            continue
        calls = tuple({"name": call["name"], "args": call["args"]} for call in message.tool_calls)
        key = _key(calls)
        before = attempts.pop(key, None)
        attempts[key] = Attempt(calls, 1 + (before.times if before else 0), _result(messages[place + 1 :]))
    return tuple(attempts.values())[-_MOST:]


def question(reason: str, text: str, message: AIMessage, tried: Sequence[Attempt], iterations: int) -> dict[str, Any]:
    """What is asked of a person, as plain data."""
    calls = [{"name": call["name"], "args": call["args"]} for call in message.tool_calls]
    told = [attempt._asdict() | {"calls": list(attempt.calls)} for attempt in tried]
    return {"reason": reason, "iterations": iterations, "text": text, "calls": calls, "tried": told}


def answer_of(answer: object) -> Literal["stop", "go", "advice"]:
    """What a person's answer means: nothing, False or "stop" ends it; a text is advice; anything else lets it go on."""
    if not answer or (isinstance(answer, str) and answer.strip().lower() in _NO):
        return "stop"
    return "advice" if isinstance(answer, str) else "go"


def refused(message: AIMessage, text: str, advice: str) -> list[ToolMessage]:
    """Answers to the calls of a message that were not made, which the model gets with what a person said."""
    content = f"{text}\n\nAdvice: {advice}"
    return [
        ToolMessage(content, tool_call_id=call["id"] or "", name=call["name"], status="error")
        for call in message.tool_calls
    ]


def drained(runtime: Any, reason: str) -> bool:
    """Ask the run to end behind this step, its state kept; False where the framework cannot."""
    request = getattr(getattr(runtime, "control", None), "request_drain", None)
    if request is None:
        return False
    request(reason)
    return True


def can_wait() -> bool:
    """Whether an interrupt would be stored. Where LangGraph does not say, `interrupt` itself decides."""
    configurable: Mapping[str, Any] = get_config().get("configurable", {})
    return configurable.get("__pregel_checkpointer", True) not in (None, False)


def _key(calls: Sequence[Mapping[str, Any]]) -> str:
    try:
        return dumps(calls)
    except Exception:  # noqa: BLE001 - circular, or too deep: equal to nothing but itself
        return f"!{id(calls)}"


def _result(behind: Sequence[AnyMessage]) -> str:
    texts: list[str] = []
    for message in behind:
        if isinstance(message, AIMessage):
            break
        if isinstance(message, ToolMessage):
            texts.append(text_of(message.content))
    return "\n".join(texts)[:_RESULT]
