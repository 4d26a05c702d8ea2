"""Calls in a few words, and what they are counted by."""

from __future__ import annotations

from typing import Any

import pytest

from loopscope.engine.events import Call
from loopscope.engine.policy import Policy
from loopscope.views.calls import batch_label, bounded, call_label, keyed, tool_names
from tests.views.support import Story


@pytest.mark.parametrize(
    ("name", "args", "label"),
    [
        ("search", {"query": "rust tls", "top_k": 5}, 'search("rust tls")'),
        ("grep", {"pattern": "x", "path": "src"}, 'grep("src", "x")'),
        ("read_file", {"path": "a.py", "start_line": 3, "end_line": 9}, 'read_file("a.py", 3, 9)'),
        ("plan", {"steps": [1, 2]}, 'plan({"steps": [1, 2]})'),
        ("write_file", {"path": "a", "content": "b"}, 'write_file({"content": "b", "path": "a"})'),
        ("bash", '{"command": "ls"}', 'bash("ls")'),
        ("bash", "not json", "bash(not json)"),
        (None, None, "(no name)({})"),
        ("日本", {"query": "\x1b[31m"}, r'日本("\u001b[31m")'),
    ],
)
def test_a_call_is_told_by_what_counts(name: str | None, args: Any, label: str) -> None:
    """The arguments of its key, else the key; nothing of it can act on a terminal."""
    assert call_label(Call("1", name, args), Policy()) == label


def test_what_a_key_leaves_out() -> None:
    """Ignored are the arguments that differ without making another batch; a recorded key says nothing of arguments."""
    call = Call("1", "search", {"query": "x", "top_k": 5, "path": None})
    assert keyed(call, Policy()) == ('{"query": "x"}', ("query",), ("top_k", "path"))
    assert keyed(call, Policy(identity="full_args")).ignored == ()
    assert keyed(Call("1", "search", {"query": "***"}, "~ab"), Policy()) == ("~ab", None, ())


def test_arguments_that_json_cannot_hold() -> None:
    """They have a key of their own and are no reason to fail."""

    class Strange:
        def __str__(self) -> str:
            raise ValueError

    assert keyed(Call("1", "a", Strange()), Policy()) == ("!ValueError:1", None, ())


def test_heavy_values_are_cut() -> None:
    """Drawing arguments never costs what they weigh; what was left out is told."""
    assert bounded("x" * 5000) == "x" * 2000 + "… 5,000 characters"
    assert bounded(list(range(70)))[-1] == "… 6 more"
    assert bounded({str(n): n for n in range(70)})["…"] == "6 more"
    assert bounded([1, "a", None]) == [1, "a", None]
    deep: Any = "end"
    deeper: Any = "end"
    for _ in range(20):
        deep, deeper = [deep], {"k": deeper}
    assert "[… 1]" in str(bounded(deep))
    assert "{… 1}" in str(bounded(deeper))


def test_the_tools_of_a_batch() -> None:
    """Each once, with how often."""
    assert tool_names(("search", "open", "search", "")) == "search x2, open, (no name)"


def test_a_batch_is_told_by_its_first_call() -> None:
    """And how many more there are; its line is read once for all batches of the same hash."""
    story = Story().batch(Call("1", "search", {"query": "x"}), Call("2", "open", {"url": "u"}), Call("3", "a", {}))
    session = story.call("open", {"url": "u"}).session()
    assert batch_label(session, 1) == 'search("x") +2'
    assert batch_label(session, 2) == 'open("u")'
    store: Any = session._store
    reads = store.reads
    assert batch_label(session, 1) == 'search("x") +2'
    assert store.reads == reads


def test_a_batch_whose_line_is_gone_is_told_by_its_tools() -> None:
    """So is one whose line is too heavy to be read for a label."""
    story = Story().call("search", {"query": "x"}).call("open", {"url": "u"})
    session = story.session()
    story_events: Any = session._store
    story_events.events[1] = None
    session.timeline.batches.length[1] = 2_000_000
    assert (batch_label(session, 1), batch_label(session, 2)) == ("search", "open")


def test_labels_are_forgotten_where_there_are_very_many() -> None:
    """A run of thousands of different batches does not fill the memory with words."""
    story = Story()
    for n in range(2100):
        story.call("open", {"url": str(n)})
    session = story.session()
    assert {batch_label(session, n) for n in range(1, 2101)} == {f'open("{n}")' for n in range(2100)}


def test_equal_hashes_have_the_words_of_their_own_calls() -> None:
    """Whichever is asked for first: two reads of one bucket are not the same lines."""
    story = Story()
    for start in (1, 11):
        story.call("read_file", {"path": "log", "start_line": start, "end_line": start + 9}, "lines")
    session = story.session()
    assert session.row(1).hash == session.row(2).hash
    assert batch_label(session, 2) == 'read_file("log", 11, 20)'
    assert batch_label(session, 1) == 'read_file("log", 1, 10)'
