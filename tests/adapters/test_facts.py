from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from loopscope.adapters.facts import calls_of, error_type_of, model_of, since_last_ai, text_of, usage_of
from loopscope.engine.events import Call, Usage

TOKENS: Any = {"input_tokens": 7, "output_tokens": 3, "total_tokens": 10}


def test_calls_keep_the_models_order() -> None:
    """Id, name and arguments as they are."""
    calls: Any = [{"name": n, "args": {"n": n}, "id": n} for n in "ba"]
    assert calls_of(AIMessage("", tool_calls=calls)) == (Call("b", "b", {"n": "b"}), Call("a", "a", {"n": "a"}))


@pytest.mark.parametrize(
    ("tokens", "told", "expected"),
    [
        (TOKENS, {}, Usage(7, 3, None)),
        (None, {}, None),
        (TOKENS, {"token_usage": {"prompt_tokens": 7, "cost": 0.5}}, Usage(7, 3, 0.5)),
        (TOKENS, {"usage": {"cost": 1}}, Usage(7, 3, 1.0)),
        (TOKENS, {"cost_usd": 0.25}, Usage(7, 3, 0.25)),
        (None, {"total_cost": 0.25}, Usage(None, None, 0.25)),
        (TOKENS, {"cost": True, "token_usage": "many"}, Usage(7, 3, None)),
    ],
)
def test_usage_and_cost_where_the_provider_tells_them(
    tokens: Any, told: dict[str, Any], expected: Usage | None
) -> None:
    """Cost in US dollars stands in one of a few places."""
    assert usage_of(AIMessage("", usage_metadata=tokens, response_metadata=told)) == expected


def test_the_models_name_where_the_provider_tells_it() -> None:
    """Under one of several names."""
    assert model_of(AIMessage("", response_metadata={"model_name": "m"})) == "m"
    assert model_of(AIMessage("", response_metadata={"model": "m2", "model_name": ""})) == "m2"
    assert model_of(AIMessage("", response_metadata={"model_name": 3})) is None


def test_the_text_beside_the_calls() -> None:
    """Text blocks joined; None where there are none; nothing where the content cannot be read."""
    assert text_of(AIMessage("hi")) == "hi"
    assert (
        text_of(AIMessage([{"type": "text", "text": "a"}, {"type": "tool_use", "id": "c", "name": "b", "input": {}}]))
        == "a"
    )
    assert text_of(AIMessage("")) is None
    assert text_of(AIMessage.model_construct(content=3)) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Error: OSError(28, 'No space left')\n Please fix your mistakes.", "OSError"),
        ("ValueError: bad", "ValueError"),
        ("sqlite3.OperationalError: no such column", "OperationalError"),
        (
            "Error invoking tool 'bash' with kwargs {'x': 1} with error:\n command: Field required",
            "ToolInvocationError",
        ),
        ("Error executing tool 'q' with kwargs {'a': 'b: c'} with error:\n KeyError('x')\n Please", "KeyError"),
        ("Error: nope is not a valid tool, try one of [bash].", None),
        ("it went wrong: TypeError: x", None),
        ("", None),
    ],
)
def test_the_class_of_an_error_that_the_text_names(text: str, expected: str | None) -> None:
    """At the beginning, as tool nodes and programs write it; a guess in the middle of a text is no fact."""
    failed = ToolMessage(text, tool_call_id="c", status="error")
    assert error_type_of(failed, text) == expected
    assert error_type_of(ToolMessage(text, tool_call_id="c"), text) is None


def test_the_class_of_an_error_that_is_the_artifact() -> None:
    """The exception itself says it best."""
    failed = ToolMessage("it failed", tool_call_id="c", status="error", artifact=TimeoutError())
    assert error_type_of(failed, "it failed") == "TimeoutError"


def test_tool_messages_since_the_last_ai_message() -> None:
    """Oldest first, also with other messages in between; none of an earlier turn."""
    first, second, third = (ToolMessage(t, tool_call_id=t) for t in "abc")
    messages = [AIMessage(""), first, AIMessage(""), second, HumanMessage("x"), third]
    assert since_last_ai(messages) == [second, third]
    assert since_last_ai([first]) == [first]
    assert since_last_ai([]) == []
