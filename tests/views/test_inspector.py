"""Inspect: calls, keys, results and sightings of a batch, and why its verdict."""

from __future__ import annotations

from typing import Any

import pytest

from loopscope.engine.events import Call, RunEnd, Usage
from loopscope.session.session import Session
from loopscope.views import inspector, why
from loopscope.views.model import line_width
from tests.session.support import session_of
from tests.views.support import Story, looping, texts


def pane(session: Session, width: int = 60) -> list[str]:
    """The batch at the cursor as text, without its explanation."""
    return texts(inspector.batch_lines(session, width))


def test_a_batch() -> None:
    """Its calls, the key and what that leaves out, the result and where it was seen before, hash, letter, sightings."""
    assert pane(looping().session()) == [
        "batch 5   1 call",
        ' search {"query": "rust tls", "top_k": 5}',
        '   key     {"query": "rust tls"}',
        "   ignored top_k",
        "   result  13 B  same text as #4",
        "     nothing found",
        f" hash {looping().session().row(5).hash}   alias A",
        " seen #1 #2 #3 #4 #5 #6",
    ]


def test_the_head_tells_what_is_known() -> None:
    """Message, node, model, tokens and cost, as far as the recording has them; and what the model said."""
    story = Story().batch(
        Call("1", "a", {}),
        usage=Usage(1000, 234, 0.5),
        message_id="m-88",
        node="agent",
        model="m",
        text="I will look\nagain " + "and again " * 30,
    )
    assert pane(story.session(), 70)[:4] == [
        "batch 1   1 call   message m-88   node agent   model m   1,234 tokens",
        "$0.5000",
        ' says "I will look"',
        "  again and again and again and again and again and again and again …",
    ]
    assert pane(Story().batch(Call("1", "a", {}), usage=Usage(None, 7)).session())[0] == "batch 1   1 call   7 tokens"


def test_long_arguments_take_a_line_each() -> None:
    """And are cut where they take too many; other arguments than an object are wrapped."""
    story = Story().call("write", {"path": "a.py", "content": "x = 1\n" * 30, "mode": None})
    lines = pane(story.session(), 50)
    assert lines[1:3] == [" write", '   path: "a.py"']
    assert lines[3].startswith('   content: "x = 1\\nx = 1\\nx')
    many = Story().call("a", {f"field {n}": "value " * 3 for n in range(30)})
    shown = pane(many.session(), 50)
    assert shown[inspector.ARGUMENT_LINES + 1].endswith("…")
    assert shown[inspector.ARGUMENT_LINES + 2].startswith("   key")
    text = Story().call("say", "words " * 20)
    assert pane(text.session(), 40)[1:4] == [
        " say",
        '   "words words words words words',
        "     words words words words words words",
    ]


@pytest.mark.parametrize(
    ("status", "more", "said"),
    [
        ("ok", {"size": 4100}, "4.1 kB"),
        ("error", {"error_type": "TimeoutError"}, "4 B  error  TimeoutError"),
    ],
)
def test_a_result(status: str, more: dict[str, Any], said: str) -> None:
    """Its whole size, whether it is an error, and of what kind."""
    lines = pane(Story().call("a", {}, "text", status=status, **more).session())
    assert f"   result  {said}" in lines


def test_a_result_is_shown_by_its_beginning() -> None:
    """A few lines of it; an empty one has none, one that is not in yet says so."""
    assert [
        line for line in pane(Story().call("a", {}, "\n".join("abcdefgh")).session()) if line.startswith("     ")
    ] == [
        "     a",
        "     b",
        "     c",
        "     d …",
    ]
    empty = pane(Story().call("a", {}, "").session())
    assert empty[3] == "   result  0 B"
    assert empty[4].startswith(" hash")
    assert "   result  none recorded" in pane(Story().call("a", {}).session())
    stopped = looping(4, enforced=True).call("search", {"query": "rust tls", "top_k": 5}).session()
    assert "   result  not run: the batch was stopped" in pane(stopped)


def test_a_recorded_key_says_what_it_is() -> None:
    """The arguments are not as they were; the key is what counted."""
    lines = pane(Story().call("a", {"token": "***"}, key="~" + "ab" * 16).session())
    assert lines[2:4] == [
        "   key     ~" + "ab" * 16,
        "           recorded: the arguments are not as they were",
    ]


def test_many_calls_are_cut() -> None:
    """Fifty are drawn, and how many more there are is told."""
    story = Story().batch(*[Call(str(n), "a", {"path": str(n)}) for n in range(60)])
    assert " … 10 more calls" in pane(story.session())


def test_sightings_around_the_cursor() -> None:
    """Of many, the nearest; each leads to its batch, but the one at the cursor."""
    session = looping(80).session()
    session.seek(40)
    seen = " ".join(line.strip() for line in pane(session, 60)[7:])
    assert seen.startswith("seen … 15 earlier #16 #17 ")
    assert seen.endswith(" #40 #41 #42 #43 #44 #45 #46 #47 #48 #49 #50 #51 #52 … 28 later")
    links = [span.link for line in inspector.batch_lines(session, 60)[7:] for span in line if span.link]
    assert links == [n for n in range(16, 53) if n != 40]


def test_a_line_that_is_gone() -> None:
    """What the strip knows is shown, and that the rest is not there any more."""
    session = looping(2).session()
    store: Any = session._store
    store.events = [None] * len(store.events)
    assert pane(session)[1:3] == [" search", " its line is not in the file any more"]


def test_the_pane_ends_with_why() -> None:
    """The quick explanation until the whole one is there, which is said."""
    session = looping().session()
    quick = texts(inspector.body(session, 60, searching=True))
    assert quick[8:10] == ["", "WHY STOPPED  STOP identical_call_set A 5/5"]
    assert quick[-1].endswith(why.SEARCHING)
    whole = texts(inspector.body(session, 60, session.explain(), dense=True))
    assert whole[8] == "WHY STOPPED  STOP identical_call_set A 5/5"
    assert any("nearest settings that would not stop #5" in line for line in whole)


def test_references_in_why_lead_to_their_batches() -> None:
    """Every #n that exists."""
    session = looping().session()
    lines = why.body(session.explain(), len(session), 60)
    assert {span.link for line in lines for span in line} >= {1, 2, 3, 4, 5}


@pytest.mark.parametrize(("number", "title"), [(1, "WHY NOT"), (3, "WHY WARNED"), (5, "WHY STOPPED")])
def test_why_has_a_title(number: int, title: str) -> None:
    """By the verdict."""
    session = looping().session()
    assert texts(why.body(session.explain(number), 6, 60))[0].startswith(title)


def test_why_on_a_very_narrow_screen() -> None:
    """Words are cut rather than lost."""
    session = looping().session()
    assert max(line_width(line) for line in why.body(session.explain(), 6, 12)) <= 12


def test_a_recording_without_batches() -> None:
    """There is nothing to inspect, and that is said."""
    assert texts(inspector.body(session_of([]), 60)) == ["no batch with calls in this recording"]


@pytest.mark.parametrize("width", [24, 34, 50, 78, 150])
def test_no_line_is_wider_than_the_pane(width: int) -> None:
    """With wide characters in names, arguments and results too."""
    story = Story().batch(
        Call("1", "会議室" * 20, {"query": "日本語" * 50, "室" * 30: ["室" * 40] * 5}),
        Call("2", "b", "語" * 90),
        message_id="識" * 50,
    )
    session = story.result("1", "結果" * 300, status="error", error_type="誤" * 80).session()
    assert max(line_width(line) for line in inspector.body(session, width)) <= width


def test_a_view_gives_what_is_asked_for() -> None:
    """Some lines of it are the same lines."""
    session = looping().session()
    whole = inspector.body(session, 60)
    assert inspector.height(session, 60) == len(whole)
    assert inspector.lines(session, 3, 4, 60) == whole[3:7]


def test_how_the_run_ended_at_its_last_batch() -> None:
    """With the reason where there is one; not at the batches before it, nor while it goes on."""
    story = looping(2)
    session = story.session()
    session.seek(2)
    assert not any("run  ended" in line for line in texts(inspector.batch_lines(session, 60)))
    session = story.end("completed").session()
    session.seek(2)
    assert texts(inspector.batch_lines(session, 60))[-1] == " run  ended completed"
    session.seek(1)
    assert not any("run  ended" in line for line in texts(inspector.batch_lines(session, 60)))
    story.events.append(RunEnd(status="error", reason="RecursionError: " + "limit " * 20, **story._common()))
    session = story.session()
    session.seek(2)
    lines = inspector.batch_lines(session, 40)
    assert texts(lines)[-6].startswith(" run  ended error: RecursionError:")
    assert max(line_width(line) for line in lines) <= 40
