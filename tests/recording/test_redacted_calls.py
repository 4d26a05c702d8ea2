"""Calls as they may be recorded: masked or cut arguments, and the key by which the call still counts."""

from __future__ import annotations

import math
import random
import re
import sys
from collections.abc import Callable
from typing import Any
from unittest.mock import ANY

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, Call
from loopscope.engine.identity import Identity, call_key
from loopscope.engine.policy import DEFAULT, Policy
from loopscope.recording.codec import decode, encode
from loopscope.recording.named import MASK
from loopscope.recording.redaction import LONGEST_ARGS, Redactor
from tests.recording.seeded import some

AT: dict[str, Any] = {"seq": 7, "ts": 1.5, "thread_id": "t", "run_id": None}
KEYED = re.compile(r"~[0-9a-f]{32}\Z")


def test_a_call_without_secrets_is_the_same_object() -> None:
    """Nothing is copied where nothing changes, whatever the arguments are made of."""
    redactor = Redactor()
    for args in (
        {"command": "ls"},
        {"max_tokens": 5, "x": [1, 2.5, None, True, {"y": "z"}]},
        {"note": "the key to the token of the author"},
        '{"command": "ls"}',
        '{"token": null}',
        "",
        None,
        7,
        {},
        {"password": None, "secret": True, "token": 12, "pwd": ""},
        {"x" * 100: 1},
        {"日本": "語"},
    ):
        call = Call("c", "tool", args)
        assert redactor.call(call) is call


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        ({"x": math.nan}, {"x": "NaN"}),
        ({"x": {1}}, {"x": "{1}"}),
        ({1: "x"}, {"1": "x"}),
        ({"x": "\ud800"}, {"x": r"\ud800"}),
        ({"\ud800": 1}, {r"\ud800": 1}),
        ({"x": 1 + 2j}, {"x": "(1+2j)"}),
        (
            {"pin": 1234, "token": 5, "password": [1, {"a": "b"}, False]},
            {"pin": MASK, "token": 5, "password": [MASK, {"a": MASK}, False]},
        ),
        ('{"password": "a", "b": "é"}', '{"password": "<redacted>", "b": "é"}'),
        ('{"password": "a"', '{"password": "<redacted>"'),
        ({"sk-" + "a1" * 20: 1}, {MASK: 1}),
        (
            {"pair": ["password", "abc"], "list": ["password", "user", "mail"]},
            {"pair": ["password", MASK], "list": ["password", "user", "mail"]},
        ),
        ({"key": "password", "value": 5}, {"key": "password", "value": MASK}),
    ],
)
def test_a_call_that_is_changed_carries_a_digest_of_its_key(args: Any, shown: Any) -> None:
    """The arguments are safe and legible, and the key is the same for the same arguments, and for no others."""
    redactor = Redactor()
    call = redactor.call(Call("c", "tool", args))
    assert call.args == shown
    assert KEYED.match(call.key or "")
    assert redactor.call(Call("d", "tool", args)).key == call.key
    assert redactor.call(Call("c", "tool", {"password": "other"})).key != call.key
    assert redactor.call(call) == call
    again = decode(encode(Batch(**AT, calls=(call,))))
    assert isinstance(again, Batch)
    assert again.calls == (call,)


def test_the_digest_is_of_the_key_under_the_policy_in_force() -> None:
    """Calls that the policy's identity takes for the same have the same digest, others have not."""
    first, second = (Call("c", "http", {"url": "https://x", "token": f"abc{n}"}) for n in (1, 2))
    salient = Redactor()
    assert salient.call(first).key == salient.call(second).key
    full = Redactor(key_of=Identity(Policy(identity="full_args")).key)
    assert full.call(first).key != full.call(second).key
    full.key_of = Identity(DEFAULT).key
    assert full.call(first).key == salient.call(first).key


def test_arguments_that_cannot_be_written_have_a_key_of_their_own() -> None:
    """A circular argument equals no other call, and the exception is named."""
    circular: dict[str, Any] = {}
    circular["self"] = circular
    call = Redactor().call(Call("c7", "tool", circular))
    assert call.key == "!ValueError:c7"
    assert call.args == {"self": "<circular>"}
    assert Redactor().call(Call("c7", "tool", "!ValueError:c7 password=x1y2z")).key is not None


def test_a_raw_text_cannot_pose_as_an_unwritable_key() -> None:
    """Text that looks like such a key would carry its secret into the file."""
    call = Redactor().call(Call("c", "tool", "!password=abc123 :c"))
    assert KEYED.match(call.key or "")


def test_a_key_that_is_there_already_stays() -> None:
    """What was redacted elsewhere keeps the key it was given there."""
    call = Redactor().call(Call("c", "tool", {"password": "abc"}, key="~1234"))
    assert call == Call("c", "tool", {"password": MASK}, key="~1234")


def test_arguments_that_are_too_long_are_cut_and_carry_the_digest() -> None:
    """The beginning of each text stays, so that a person can tell what it was; a secret across the cut does not."""
    redactor = Redactor()
    secret = "sk-" + "a1" * 20
    text = "x" * 1980 + " " + secret + "y " * LONGEST_ARGS
    call = redactor.call(Call("c", "write", {"path": "a.txt", "content": text}))
    assert call.args["path"] == "a.txt"
    assert call.args["content"].startswith("x" * 900)
    assert len(call.args["content"]) < 2100
    assert "sk-" not in call.args["content"]
    assert KEYED.match(call.key or "")
    assert redactor.call(Call("c", "write", {"path": "a.txt", "content": text + "!"})).key == call.key
    assert redactor.call(Call("c", "write_file", {"path": "a.txt", "content": text + "!"})).key != call.key
    many = redactor.call(Call("c", "write", {"rows": ["x" * 100] * 2000}))
    assert len(many.args["rows"]) < 700


def test_arguments_that_fail_when_they_are_looked_at_are_no_trouble() -> None:
    """Arguments that raise when they are read or compared become text."""

    class Array(list[int]):
        def __eq__(self, other: object) -> bool:
            raise ValueError("ambiguous")

        __hash__ = None

    class Shrinking(dict[str, int]):
        pass

    assert Redactor().call(Call("c", "tool", {"x": Array([1])})).args == {"x": [1]}
    assert Redactor().call(Call("c", "tool", Shrinking(x=1))).args == {"x": 1}
    assert Redactor().call(Call("c", "tool", {"x": ANY})).args == {"x": "<ANY>"}


def test_a_call_on_a_stack_without_room_is_no_trouble() -> None:
    """Deep in a recursion the arguments cannot be walked; the call then equals no other, and the agent goes on."""
    nested: Any = "end"
    for _ in range(60):
        nested = [nested]

    def dive(levels: int) -> Call:
        return dive(levels - 1) if levels else Redactor().call(Call("c", "tool", {"x": nested}))

    depth = 0
    frame: Any = sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    assert dive(sys.getrecursionlimit() - depth - 40) == Call("c", "tool", "…", "!RecursionError:c")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["path", "query", "x", "token"]) | st.text(max_size=4), inner, max_size=4)
        ),
        max_leaves=8,
    )
)
def test_the_key_of_the_recorded_call_is_the_key_of_the_live_one(args: Any) -> None:
    """Written and read again, a call counts as it counted live, under both identities."""
    for policy in (DEFAULT, Policy(identity="full_args")):
        for name in ("bash", "read_file", "write_file"):
            live = Redactor(key_of=Identity(policy).key).call(Call("c", name, args))
            again = decode(encode(Batch(**AT, calls=(live,))))
            assert isinstance(again, Batch)
            assert call_key(again.calls[0], policy) == call_key(live, policy)


def test_verdicts_are_the_same_with_and_without_redaction() -> None:
    """A run full of secrets is warned and stopped at the same batches, live and from its recording."""
    dice = random.Random(7)  # noqa: S311 - the same run each time
    redactor = Redactor()
    shapes: list[Callable[[str], Any]] = [
        lambda s: {"command": f"deploy --token {s}"},
        lambda s: {"query": "x", "password": s},
        lambda s: {"x": {1: s}},
    ]
    secrets = [some(dice, 12) for _ in range(4)]
    plainly, safely, replayed = LoopDetector(), LoopDetector(), LoopDetector()
    actions = set[str]()
    for seq in range(400):
        args = dice.choice(shapes)(dice.choice(secrets))
        call = Call(f"c{seq}", dice.choice(["bash", "http"]), args)
        at = AT | {"seq": seq, "run_id": dice.choice(["r1", "r2"])}
        original = Batch(**at, calls=(call,))
        safe = Batch(**at, calls=(redactor.call(call),))
        again = decode(encode(safe))
        assert again is not None
        (expected,) = plainly.observe(original)
        (live,) = safely.observe(safe)
        (replay,) = replayed.observe(again)
        assert live == replay
        for decision in (live, replay):
            assert (decision.action, decision.layer, decision.tool, decision.count, decision.hash_count) == (
                expected.action,
                expected.layer,
                expected.tool,
                expected.count,
                expected.hash_count,
            )
        actions.add(expected.action)
    assert actions == {"pass", "warn", "hard_stop"}
