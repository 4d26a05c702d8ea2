"""The batch as text to be pasted elsewhere."""

from __future__ import annotations

import json

from loopscope.views.copying import copied
from tests.session.support import session_of
from tests.views.support import Story, looping


def test_where_it_is_what_it_was_and_why() -> None:
    """The calls are JSON that can be read again; the reasons are those of the screen."""
    session = looping(5).session()
    lines = copied(session).splitlines()
    assert lines[0] == "memory  t/r  batch 5 of 5"
    assert json.loads(lines[1]) == {"name": "search", "args": {"query": "rust tls", "top_k": 5}}
    assert "WHY STOPPED  STOP identical_call_set A 5/5" in lines


def test_nothing_acts_where_it_is_pasted() -> None:
    """Escapes of a recording are shown as text."""
    session = Story().call("a\x1b]0;t\x07", {"x": "\x1b[2J"}, "\x1b[31mred").session()
    assert "\x1b" not in copied(session)


def test_without_a_batch_or_its_line() -> None:
    """Both are told."""
    assert copied(session_of([])) == "no batch with calls\n"
    story = looping(1)
    session = story.session()
    session._store.events[1] = None  # type: ignore[attr-defined]
    assert "its line is not in the file any more" in copied(session)
