from __future__ import annotations

import copy
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from loopscope.adapters.messages import newest_ai, stopped, warning_message, without_calls

CALL = {"name": "bash", "args": {"command": "ls"}, "id": "c1", "type": "tool_call"}
TEXT = "[FORCED STOP] enough"
BLOCK = {"type": "text", "text": f"\n\n{TEXT}"}


def calling(content: Any = "", **fields: Any) -> AIMessage:
    return AIMessage(content, id="m1", tool_calls=[CALL], **fields)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("I look", f"I look\n\n{TEXT}"),
        ("", f"\n\n{TEXT}"),
        ([], [BLOCK]),
        (["I look"], ["I look", BLOCK]),
        ([{"type": "text", "text": "I look"}], [{"type": "text", "text": "I look"}, BLOCK]),
    ],
)
def test_the_text_is_appended_in_the_form_of_the_content(content: Any, expected: Any) -> None:
    """A blank line and the text, or one more block of text."""
    assert without_calls(calling(content), TEXT).content == expected


def test_content_of_a_type_that_no_message_should_have() -> None:
    """A message that was built past the checks still ends as text."""
    nothing = AIMessage.model_construct(content=None, id="m1", tool_calls=[CALL])
    number = AIMessage.model_construct(content=7, id="m1", tool_calls=[CALL])
    assert without_calls(nothing, TEXT).content == TEXT
    assert without_calls(number, TEXT).content == f"7\n\n{TEXT}"


@pytest.mark.parametrize(
    "block",
    [
        {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "ls"}},
        {"type": "tool_call", "id": "c1", "name": "bash", "args": {}},
        {"type": "tool_call_chunk", "id": "c1", "name": "bash", "args": "{", "index": 0},
        {"type": "invalid_tool_call", "id": "c1", "name": "bash", "args": "{", "error": None},
        {"type": "input_json_delta", "partial_json": "{", "index": 1},
        {"type": "function_call", "call_id": "c1", "name": "bash", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c1", "name": "bash", "input": "ls"},
        {"toolUse": {"toolUseId": "c1", "name": "bash", "input": {}}},
        {"functionCall": {"name": "bash", "args": {}}},
        {"type": "non_standard", "value": {"type": "function_call", "name": "bash"}},
    ],
)
def test_blocks_that_call_tools_go_and_all_others_stay(block: dict[str, Any]) -> None:
    """Every provider's form of a call; what the model thought and said is kept in its order."""
    thought, said = {"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "I look"}
    assert without_calls(calling([thought, said, block]), TEXT).content == [thought, said, BLOCK]


def test_server_tools_that_have_run_already_stay() -> None:
    """Their call and result are one turn of the provider's; without the call the result has nothing to belong to."""
    ran = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    assert without_calls(calling([ran, found]), TEXT).content == [ran, found, BLOCK]


def test_every_copy_of_the_calls_goes() -> None:
    """Parsed, invalid and the provider's raw ones; other raw fields stay."""
    raw = {
        "tool_calls": [{"id": "c1", "function": {"name": "bash"}}],
        "function_call": {"name": "bash"},
        "refusal": None,
    }
    invalid: Any = [{"name": "bash", "args": "{", "id": "c2", "error": "not JSON", "type": "invalid_tool_call"}]
    made = without_calls(calling("x", additional_kwargs=raw, invalid_tool_calls=invalid), TEXT)
    assert (made.tool_calls, made.invalid_tool_calls, made.additional_kwargs) == ([], [], {"refusal": None})


@pytest.mark.parametrize(
    ("field", "before", "after"),
    [
        ("finish_reason", "tool_calls", "stop"),
        ("finish_reason", "function_call", "stop"),
        ("finish_reason", "length", "length"),
        ("stop_reason", "tool_use", "end_turn"),
        ("stopReason", "tool_use", "end_turn"),
        ("stop_reason", "max_tokens", "max_tokens"),
    ],
)
def test_the_finish_reason_is_that_of_an_answer(field: str, before: str, after: str) -> None:
    """Where it said that tools were to be called; another reason is the provider's own business."""
    made = without_calls(calling(response_metadata={field: before, "model_name": "m"}), TEXT)
    assert made.response_metadata == {field: after, "model_name": "m"}


def test_chunks_lose_their_pieces_of_calls() -> None:
    """A streamed message is replaced by one of its own class."""
    chunk = AIMessageChunk(
        content="x",
        id="m1",
        tool_call_chunks=[{"name": "bash", "args": "{}", "id": "c1", "index": 0, "type": "tool_call_chunk"}],
    )
    made = without_calls(chunk, TEXT)
    assert type(made) is AIMessageChunk
    assert (made.id, made.tool_calls, made.tool_call_chunks) == ("m1", [], [])
    assert chunk.tool_call_chunks


def test_the_input_is_never_changed() -> None:
    """The state's own message may be in other checkpoints and requests."""
    message = calling(
        [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "c1", "name": "bash", "input": {}}],
        additional_kwargs={"tool_calls": [{"id": "c1"}]},
        response_metadata={"finish_reason": "tool_calls"},
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
        name="agent",
    )
    before = copy.deepcopy(message)
    made = without_calls(message, TEXT)
    assert message == before
    assert (made.id, made.name, made.usage_metadata) == ("m1", "agent", before.usage_metadata)


def test_the_calls_do_not_come_back_from_a_checkpoint() -> None:
    """What is stored and read again still calls nothing."""
    raw = {"tool_calls": [{"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}]}
    made = without_calls(AIMessage("x", id="m1", additional_kwargs=raw), TEXT)
    serde = JsonPlusSerializer()
    again = serde.loads_typed(serde.dumps_typed(made))
    assert again.tool_calls == []
    assert again == made


def test_the_newest_ai_message_and_what_is_behind_it() -> None:
    """Tool messages of the same turn are looked past, anything else is a newer turn."""
    ai, result = calling(), ToolMessage("r", tool_call_id="c1", id="t1")
    assert newest_ai([HumanMessage("x"), ai]) == (ai, [])
    assert newest_ai([ai, result, result]) == (ai, [result, result])
    assert newest_ai([ai, HumanMessage("x")])[0] is None
    assert newest_ai([ai, SystemMessage("x"), result])[0] is None
    assert newest_ai([])[0] is None


def test_a_stop_removes_the_tool_messages_of_the_calls_it_removes() -> None:
    """Those of other calls stay, as does one without an id, which cannot be named."""
    mine, other = ToolMessage("r", tool_call_id="c1", id="t1"), ToolMessage("r", tool_call_id="c9", id="t2")
    nameless = ToolMessage("r", tool_call_id="c1")
    removed, replaced = stopped(calling(), [mine, other, nameless], TEXT)
    assert removed == RemoveMessage(id="t1")
    assert replaced.id == "m1"


def test_the_warning_is_one_named_human_message() -> None:
    """Joined by a blank line."""
    message = warning_message(("one", "two"))
    assert (type(message), message.name, message.content, message.id) == (
        HumanMessage,
        "loop_warning",
        "one\n\ntwo",
        None,
    )
