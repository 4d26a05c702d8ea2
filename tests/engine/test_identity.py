"""Identity: each rule of the key, the hash, and that both are total and blind to order."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscope.engine.events import Call
from loopscope.engine.identity import SALIENT, Identity, batch_hash, call_key, dumps
from loopscope.engine.policy import Policy

DEFAULT = Policy()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ARGS = JSON | st.dictionaries(st.sampled_from([*SALIENT, "start_line", "end_line", "other"]), JSON, max_size=4)
NAMES = st.sampled_from(["read_file", "write_file", "str_replace", "bash", "", None]) | st.text(max_size=4)


def key(name: str | None, args: Any, policy: Policy = DEFAULT) -> str:
    return call_key(Call("id", name, args), policy)


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("bash", {"command": "ls", "description": "list"}, '{"command": "ls"}'),
        ("bash", {"command": None, "cmd": ""}, '{"cmd": ""}'),
        ("find", {"pattern": "a", "glob": 3}, '{"glob": 3, "pattern": "a"}'),
        ("other", {"b": 1, "a": [1.5]}, '{"a": [1.5], "b": 1}'),
        ("other", {}, "{}"),
        ("other", None, "{}"),
        ("other", "not json", "not json"),
        ("other", "", ""),
        ("other", "[2, 1]", "[2, 1]"),
        ("other", '{"query": "q", "page": 3}', '{"query": "q"}'),
        ("other", 7, "7"),
        ("other", True, "true"),
        ("search", {"query": "é\n"}, '{"query": "\\u00e9\\n"}'),
        ("write_file", {"path": "/a", "content": "x"}, '{"content": "x", "path": "/a"}'),
        ("str_replace", "raw", "raw"),
        ("str_replace", None, "{}"),
        ("read_file", {"path": "/a"}, "/a:0-0"),
        ("read_file", {"path": "/a", "start_line": 300, "end_line": 100}, "/a:0-1"),
        ("read_file", {"path": "/a", "start_line": 201}, "/a:1-1"),
        ("read_file", {"path": "/a", "start_line": 399.7, "end_line": "401"}, "/a:1-2"),
        ("read_file", {"path": "/a", "start_line": "many", "end_line": []}, "/a:0-0"),
        ("read_file", {"path": "", "start_line": -3, "end_line": None}, ":0-0"),
        ("read_file", {}, ":0-0"),
        ("read_file", "no object", "no object"),
    ],
)
def test_key_of_a_call(name: str, args: Any, expected: str) -> None:
    """Each rule of the key on an example worked out by hand."""
    assert key(name, args) == expected


def test_a_null_name_is_the_empty_name() -> None:
    """A call without a name hashes like one whose name is empty."""
    assert batch_hash([Call("a", None, {"q": 1})], DEFAULT) == batch_hash([Call("b", "", {"q": 1})], DEFAULT)


def test_a_recorded_key_counts_instead_of_the_arguments() -> None:
    """What a recorder hid is told apart by the key that it left."""
    assert call_key(Call("a", "bash", {"command": "<redacted>"}, key="~ff"), DEFAULT) == "~ff"


@given(st.lists(st.tuples(NAMES, ARGS), min_size=1, max_size=4))
def test_hash_is_the_md5_of_the_sorted_keys(calls: list[tuple[str | None, Any]]) -> None:
    """The hash is written out once more with the standard library, for every kind of argument."""
    batch = [Call(str(i), name, args) for i, (name, args) in enumerate(calls)]
    parts = sorted(f"{call.name or ''}:{call_key(call, DEFAULT)}" for call in batch)
    expected = hashlib.md5(json.dumps(parts).encode(), usedforsecurity=False).hexdigest()[:12]
    assert batch_hash(batch, DEFAULT) == expected


@given(st.lists(st.tuples(NAMES, ARGS), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_order_of_calls_never_changes_a_hash(calls: list[tuple[str | None, Any]], random: Any) -> None:
    """A batch is a set of calls."""
    batch = [Call("x", name, args) for name, args in calls]
    shuffled = random.sample(batch, len(batch))
    assert batch_hash(batch, DEFAULT) == batch_hash(shuffled, DEFAULT)


@given(JSON)
def test_dumps_is_json_dumps(value: Any) -> None:
    """The fast writer equals the standard one to the letter."""
    assert dumps(value) == json.dumps(value, sort_keys=True, default=str)


class Hostile:
    """An argument of a live program that does not want to be looked at."""

    def __int__(self) -> int:
        raise RuntimeError

    def __str__(self) -> str:
        raise RuntimeError


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def test_arguments_that_json_cannot_hold_equal_no_others() -> None:
    """Circular, too deep, unsortable and hostile arguments give a key with the error's name and the call's id."""
    circular: list[Any] = []
    circular.append(circular)
    errors = {
        "ValueError": circular,
        "RecursionError": deep(100_000),
        "TypeError": {1: 1, "a": 2},
        "RuntimeError": Hostile(),
    }
    for name, value in errors.items():
        args = value if isinstance(value, dict) else {"query": value}
        assert call_key(Call("c1", "tool", args), DEFAULT) == f"!{name}:c1"
        assert call_key(Call("c2", "tool", args), DEFAULT) == f"!{name}:c2"


def test_a_line_number_that_refuses_to_be_a_number_is_the_default() -> None:
    """`int()` may raise anything for an object of the program."""
    assert key("read_file", {"path": "/a", "start_line": Hostile()}) == "/a:0-0"


def test_full_args_counts_every_argument() -> None:
    """Under full_args only the rules for files stay, and what is no object keeps its fallback."""
    policy = Policy(identity="full_args")
    assert key("bash", {"command": "ls", "timeout": 3}, policy) == '{"command": "ls", "timeout": 3}'
    assert key("bash", "raw", policy) == "raw"
    assert key("read_file", {"path": "/a"}, policy) == "/a:0-0"


def test_a_users_fields_replace_every_other_rule_of_that_tool() -> None:
    """Fields of a tool count even for read_file; where none is there, all arguments do."""
    policy = Policy(identity_fields={"read_file": ("path", "mode"), "ask": ("who",)})
    assert key("read_file", {"path": "/a", "start_line": 7, "mode": "r"}, policy) == '{"mode": "r", "path": "/a"}'
    assert key("ask", {"what": 1}, policy) == '{"what": 1}'
    assert key("ask", "raw", policy) == "raw"


@pytest.mark.parametrize(
    ("call", "policy", "used"),
    [
        (Call("a", "bash", {"command": "ls", "x": 1}), DEFAULT, ("command",)),
        (Call("a", "bash", {"x": 1}), DEFAULT, None),
        (Call("a", "read_file", {"path": "/a", "end_line": 2}), DEFAULT, ("path", "end_line")),
        (Call("a", "write_file", {"path": "/a"}), DEFAULT, None),
        (Call("a", "bash", {"command": "ls"}), Policy(identity="full_args"), None),
        (Call("a", "bash", {"command": "ls", "x": 1}), Policy(identity_fields={"bash": ("x",)}), ("x",)),
        (Call("a", "bash", "raw"), DEFAULT, None),
        (Call("a", "bash", {"command": "ls"}, key="~0"), DEFAULT, None),
    ],
)
def test_which_arguments_a_key_is_made_of(call: Call, policy: Policy, used: tuple[str, ...] | None) -> None:
    """The screen can say which arguments were ignored."""
    assert Identity(policy).used(call) == used
