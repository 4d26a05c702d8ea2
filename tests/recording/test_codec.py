from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
from collections import UserDict
from enum import IntEnum, StrEnum
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscope.engine.events import (
    Batch,
    Call,
    Control,
    DecisionMade,
    Event,
    Gap,
    Graph,
    GraphEdge,
    GraphNode,
    Header,
    PolicySet,
    Result,
    RunEnd,
    RunStart,
    Usage,
    Warned,
    Witness,
)
from loopscope.engine.identity import dumps
from loopscope.recording.codec import decode, encode, is_newer
from loopscope.recording.plain import DEPTH, plain
from loopscope.recording.preview import Preview, preview, text_of

AT: dict[str, Any] = {"seq": 7, "ts": 1.5, "thread_id": "t", "run_id": None}
ONE_OF_EACH: list[Event] = [
    Header(format="loopscope/1", producer="p", created="2026-11-30T00:00:00Z", policy={"hard_limit": 5}, enforced=True),
    RunStart(**AT, agent="lead", graph=Graph((GraphNode("a", "A"),), (GraphEdge("a", "a", conditional=True),))),
    Batch(**AT, calls=(Call("c", "bash", {"command": "ls"}), Call(None, None, "raw", "~00")), usage=Usage(1, 2, 0.5)),
    Result(**AT, call_id="c", status="error", content="no", size=9, digest="0" * 16, error_type="ToolException"),
    DecisionMade(
        **AT,
        batch_seq=6,
        hash="0" * 12,
        hash_count=3,
        action="warn",
        layer="identical_call_set",
        tool=None,
        count=3,
        threshold=3,
    ),
    Warned(**AT, state="requeued", text="stop it"),
    Witness(**AT, values={"open": [1, 2]}),
    PolicySet(**AT, policy={"hard_limit": 6}),
    Control(**AT, action="pass_once", by="someone"),
    RunEnd(**AT, status="loop_capped", reason="why"),
    Gap(**AT, lost=3),
]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec=None)), inner, max_size=4),
    max_leaves=12,
)


class Unprintable:
    """An argument whose text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Broken(UserDict[str, int]):
    """A mapping that cannot be read."""

    def items(self) -> Any:
        """Fail."""
        raise KeyError("gone")


class Colour(StrEnum):
    """Text that is more than text."""

    RED = "red"


class Level(IntEnum):
    """A number that is more than a number."""

    HIGH = 3


ODD = st.recursive(
    JSON
    | st.sampled_from([20, 5000]).map(lambda digits: 10**digits)
    | st.sampled_from(
        [
            {1, 2},
            frozenset(),
            {1: 2},
            {None: 1, True: 2},
            {(1, 2): 3},
            b"x",
            1 + 2j,
            object(),
            Unprintable(),
            Broken(),
            Colour.RED,
        ]
    )
    | st.sampled_from([Level.HIGH, range(3), dt.date(2026, 11, 30), ValueError("x"), type, {Colour.RED: 1}]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3),
    max_leaves=8,
)


def batch(args: Any) -> Batch:
    return Batch(**AT, calls=(Call("c", "tool", args),))


def args_of(event: Event | None) -> Any:
    assert isinstance(event, Batch)
    return event.calls[0].args


def strictly(line: bytes) -> Any:
    """What the strictest parser makes of the line: no NaN, no lone surrogates, no line breaks."""
    assert b"\n" not in line
    return msgspec.json.decode(line)


@pytest.mark.parametrize("event", ONE_OF_EACH, ids=lambda event: type(event).__name__)
def test_each_kind_comes_back_as_it_was(event: Event) -> None:
    """Encoding and decoding lose nothing of any kind of event."""
    assert decode(encode(event)) == event
    assert decode(bytearray(encode(event))) == event


@given(ODD)
def test_encoding_is_total(args: Any) -> None:
    """Whatever the arguments hold, the line is one that strict parsers and our own reader take."""
    line = encode(batch(args))
    assert strictly(line)["seq"] == 7
    assert isinstance(decode(line), Batch)


@given(ODD)
def test_plain_data_is_json_and_stays_as_it_is(value: Any) -> None:
    """Plain data survives JSON: written and read again it is the same, and the same again when made plain."""
    data = plain(value)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert plain(data) == data


@given(JSON)
def test_arguments_are_read_as_the_standard_decoder_reads_them(value: Any) -> None:
    """The key of a call cannot depend on which of the two decoders read its line."""
    text = json.dumps(value)
    line = json.dumps({"kind": "batch", "seq": 1, "ts": 2, "thread_id": "t", "run_id": "r", "calls": [{"args": value}]})
    assert dumps(args_of(decode(line.encode()))) == dumps(json.loads(text))


@pytest.mark.parametrize(
    "text",
    ["-0", "-0.0", "1e5", "1E400", "1e-400", "18446744073709551616", "NaN", "-Infinity", r'"\ud800"', r'"\udc00x"'],
)
def test_odd_numbers_and_text_are_read_as_the_standard_decoder_reads_them(text: str) -> None:
    """Numbers and escapes at the edges of what JSON allows and a little past them."""
    line = f'{{"kind":"witness","seq":1,"ts":2,"thread_id":"t","run_id":"r","values":{{"v":{text}}}}}'
    event = decode(line.encode())
    assert isinstance(event, Witness)
    assert repr(event.values["v"]) == repr(json.loads(text))


def test_a_field_that_is_unset_stays_unset() -> None:
    """What the fast way leaves out, the slow way leaves out as well; and a producer may write null in its place."""
    fields: dict[str, Any] = {
        "batch_seq": 6,
        "hash": "0",
        "hash_count": 1,
        "action": "pass",
        "layer": None,
        "count": 3.5,
    }
    event = DecisionMade(**AT, **fields, tool="\ud800", threshold=None)
    line = encode(event)
    assert b"counter" not in line
    assert decode(line) == msgspec.structs.replace(event, tool=r"\ud800")
    assert decode(line.replace(b'"at"', b'"counter":null,"at"')) == msgspec.structs.replace(event, tool=r"\ud800")


def test_circular_and_deep_arguments_are_cut_where_they_are_too_much() -> None:
    """A list inside itself and a tower of lists are written as far as they make sense."""
    circular: list[Any] = [1]
    circular.append(circular)
    assert args_of(decode(encode(batch(circular)))) == [1, "<circular>"]
    deep: Any = "end"
    for _ in range(100_000):
        deep = [deep]
    assert decode(encode(batch(deep))) is not None
    shown, levels = plain(deep), 0
    while isinstance(shown, list):
        shown, levels = shown[0], levels + 1
    assert (shown, levels) == ("…", DEPTH)


def test_what_json_cannot_hold_is_text() -> None:
    """Sets, infinities, surrogates and broken objects stay legible."""
    values = [{1}, math.inf, -math.inf, math.nan, "\ud800", Unprintable(), 10**5000, Colour.RED, Level.HIGH, Broken()]
    assert plain(values) == [
        "{1}",
        "Infinity",
        "-Infinity",
        "NaN",
        r"\ud800",
        "<Unprintable>",
        "<integer of 16610 bits>",
        "red",
        3,
        "{}",
    ]
    assert plain({2: 1, None: 2, True: 3, "\ud800": 4}) == {"2": 1, "null": 2, "true": 3, r"\ud800": 4}


def test_plain_data_is_cut_to_the_room_that_it_may_have() -> None:
    """Long text tells its length, and lists and objects end where the room ends."""
    assert plain(["x" * 50], longest=5) == ["xxxxx…(50 characters)"]
    assert plain(["x" * 20, "y", "z"], room=10) == ["xxxxxxxx…(20 characters)", "…"]
    assert plain({"a": "x" * 20, "b": 1}, room=10) == {"a": "xxxxxxx…(20 characters)", "…": "…"}


def test_numbers_that_are_not_finite_are_null_in_fields() -> None:
    """A field that takes numbers gets null in place of NaN, by the fast way and by the slow one."""
    for args in ({}, {"odd": "\ud800"}):
        event = Batch(
            seq=1,
            ts=math.nan,
            thread_id=None,
            run_id=None,
            calls=(Call("c", "t", args),),
            usage=Usage(cost_usd=math.inf),
        )
        again = decode(encode(event))
        assert isinstance(again, Batch)
        assert again.ts is None
        assert again.usage == Usage()


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ('{"kind":"batch","seq":1,"calls":[{"name":"x"}]}', {"kind": "batch", "seq": 1, "calls": [{"name": "x"}]}),
        (
            '{"kind":"gap","seq":3.0,"ts":NaN,"thread_id":null,"run_id":null,"lost":2.0}',
            {"kind": "gap", "seq": 3, "lost": 2},
        ),
        ('{"kind":"run_start","seq":1}', {"kind": "run_start", "seq": 1}),
        ('{"kind":"result","seq":1,"status":"ok"}', {"kind": "result", "seq": 1, "status": "ok", "content": ""}),
        (
            '{"kind":"result","seq":1,"status":"ok","content":null}',
            {"kind": "result", "seq": 1, "status": "ok", "content": ""},
        ),
        ('{"kind":"run_end","seq":1,"status":null}', {"kind": "run_end", "seq": 1}),
        ('{"kind":"header","format":"loopscope/1","enforced":null}', {"kind": "header", "format": "loopscope/1"}),
        ('{"kind":"run_end","seq":1,"extra":[1]}', {"kind": "run_end", "seq": 1}),
        (
            '{"kind":"batch","seq":1,"calls":[],"usage":{"input_tokens":5.0,"cost_usd":1e999}}',
            {"kind": "batch", "seq": 1, "calls": [], "usage": {"input_tokens": 5}},
        ),
    ],
)
def test_what_may_be_null_may_be_missing(line: str, event: dict[str, Any]) -> None:
    """A producer that leaves out optional fields, or writes whole numbers as floats, is understood."""
    whole = {"ts": None, "thread_id": None, "run_id": None, "agent": None, "call_id": None} | event
    calls: list[dict[str, Any]] = whole.get("calls") or []
    whole["calls"] = [{"id": None, "name": None, "args": None} | call for call in calls]
    assert decode(line.encode()) == msgspec.convert(whole, Event)


@pytest.mark.parametrize(
    "line", ['{"kind":"telemetry","seq":1}', '{"kind":"telemetry","seq":"?","x":[1]}', '{"kind":"","a":NaN}']
)
def test_an_unknown_kind_is_no_event_and_no_error(line: str) -> None:
    """A later version may write kinds that this one does not know."""
    assert decode(line.encode()) is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "is not JSON: Expecting value (character 1)"),
        (b'{"kind":"gap","seq":1,"lo', "is not JSON: Unterminated string starting at (character 23)"),
        (b"\x80\x81", "is not UTF-8 at byte 1"),
        (b"[1]", "must be a JSON object, is '[1]'"),
        (b"{}", "has no `kind`"),
        (b'{"kind":3}', "has no `kind`"),
        (b'{"kind":"batch","seq":1}', "batch: Object missing required field `calls`"),
        (b'{"kind":"batch","calls":[]}', "batch: Object missing required field `seq`"),
        (b'{"kind":"batch","seq":1,"calls":[1]}', "batch: Expected `object`, got `int` - at `$.calls[0]`"),
        (b'{"kind":"gap","seq":1.5,"lost":1}', "gap: Expected `int`, got `float` - at `$.seq`"),
        (b'{"kind":"header","format":7}', "header: Expected `str`, got `int` - at `$.format`"),
        (b'{"kind":"witness","seq":1,"values":{"v":' + b"[" * 200_000, "is nested too deeply"),
    ],
)
def test_a_bad_line_is_a_value_error_that_says_what_is_wrong(line: bytes, reason: str) -> None:
    """One kind of error for every bad line, with the place."""
    with pytest.raises(ValueError, match=r".") as caught:
        decode(line)
    assert str(caught.value) == reason


def test_a_newer_header_is_told_even_where_its_fields_are_not_ours() -> None:
    """Only the format of a header of a later major version has to be readable."""
    event = decode(b'{"kind":"header","format":"loopscope/2","policy":"strict"}')
    assert event == Header(format="loopscope/2")
    assert isinstance(event, Header)
    assert is_newer(event)
    assert not is_newer(Header(format="loopscope/1"))
    assert not is_newer(Header(format="loopscope/1.4"))
    with pytest.raises(ValueError, match="format must be loopscope/1, is 'other/1'"):
        is_newer(Header(format="other/1"))


@pytest.mark.parametrize("content", ["", "four", "zwölf", "日本"])
def test_a_whole_result_without_a_digest_gets_one(content: str) -> None:
    """Where the size says that the content is whole, the digest is known; else it is not."""
    whole = Result(**AT, call_id="c", status="ok", content=content, size=len(content.encode()))
    cut = msgspec.structs.replace(whole, size=len(content.encode()) + 1)
    unknown = msgspec.structs.replace(whole, size=None)
    expected = hashlib.sha256(content.encode()).hexdigest()[:16]
    assert [getattr(decode(encode(event)), "digest", None) for event in (whole, cut, unknown)] == [expected, None, None]
    slow = b'{"kind":"result","seq":1,"status":"ok","content":"\\ud800","size":3}'
    assert getattr(decode(slow), "digest", None) == hashlib.sha256(b"\xed\xa0\x80").hexdigest()[:16]


def test_a_preview_has_the_beginning_and_the_measure_of_the_whole() -> None:
    """Two thousand characters unless told otherwise; size and digest are of the whole text."""
    text = "é" * 3000
    assert preview(text) == Preview("é" * 2000, 6000, hashlib.sha256(text.encode()).hexdigest()[:16])
    assert preview(text, limit=3).content == "ééé"
    assert preview("\ud800").size == 3


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("as it is", "as it is"),
        (None, ""),
        (["a", {"type": "text", "text": "b"}, {"text": "c"}], "a\nb\nc"),
        ([{"type": "image", "data": "00"}], '{"data": "00", "type": "image"}'),
        ({"rows": [1, 2]}, '{"rows": [1, 2]}'),
        (7, "7"),
        ({"type": "text", "text": 5}, '{"text": 5, "type": "text"}'),
        ([], ""),
    ],
)
def test_the_text_of_a_result_is_its_text_blocks(content: object, text: str) -> None:
    """Blocks of text are lines, everything else is JSON."""
    assert text_of(content) == text
