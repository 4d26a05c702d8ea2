"""A batch as it can be drawn: cut once, kept for a while, and read by a thread where it weighs."""

from __future__ import annotations

from typing import Any

import pytest

from loopscope.engine.events import Call
from loopscope.engine.policy import Policy
from loopscope.session.session import Session
from loopscope.views import inspector, sight, within
from loopscope.views.calls import HEAVY, bounded
from loopscope.views.copying import copied
from tests.session.support import session_of
from tests.views.support import Story, texts

HUGE = 3 * HEAVY


def heavy(**more: Any) -> Story:
    """Two calls, one with an argument that weighs, and their results; then a small batch."""
    story = Story(**more)
    story.batch(
        Call("a", "write_file", {"path": "notes.md", "content": "wörds and " * (HUGE // 10)}),
        Call("b", "search", {"query": "tls"}),
    )
    return story.result("a", "written").result("b", "nothing").call("search", {"query": "tls"}, "nothing")


@pytest.fixture
def weighed(monkeypatch: pytest.MonkeyPatch) -> Session:
    """Its first batch has more lines, and so more bytes here, than what is read at once."""
    monkeypatch.setattr(sight, "HEAVY", 2)
    return heavy().session()


def items(value: Any) -> int:
    """Values in a value."""
    if isinstance(value, dict):
        return 1 + sum(map(items, value.values()))
    return 1 + sum(map(items, value)) if isinstance(value, list) else 1


def test_what_is_kept_of_a_batch_does_not_weigh() -> None:
    """The arguments, the key and the result of a call are cut; the tool's name, the label and the size are whole."""
    session = heavy().session()
    found = sight.look(session, 1)
    assert found is not None
    first, second = found.calls
    assert len(str(first)) < 20_000
    assert first.call.args["content"].endswith(f"… {HUGE:,} characters")
    assert first.label.startswith('write_file({"content": "w')
    assert (second.call.args, second.label) == ({"query": "tls"}, 'search("tls")')
    assert second.result is not None
    assert (second.result.content, second.result.size) == ("nothing", 7)
    assert sight.look(session, 1) is found
    session.seek(1)
    drawn = texts(inspector.batch_lines(session, 60))
    assert any(line.startswith(f'   content ({HUGE:,} characters): "wörds') for line in drawn)
    assert sum(map(len, drawn)) < 2_000


def test_arguments_that_are_one_long_text() -> None:
    """How long it is stands before its beginning."""
    session = Story().call("say", "words " * 1_000).session()
    assert texts(inspector.batch_lines(session, 60))[2].startswith('   (6,000 characters) "words words')


def test_it_is_looked_at_again_when_another_result_is_in() -> None:
    """As where a run goes on while one looks."""
    story = Story().batch(Call("a", "search", {"query": "tls"}))
    session = story.session()
    before = sight.look(session, 1)
    assert before is not None
    assert before.calls[0].result is None
    events = list(story.result("a", "found").events)
    again = session_of(events)
    session.append([_Line(events[-1], len(events) - 1)])
    session._store = again._store
    after = sight.look(session, 1)
    assert after is not None
    assert after.calls[0].result is not None


class _Line:
    length = 1

    def __init__(self, event: Any, offset: int) -> None:
        self.event = event
        self.offset = offset


def test_many_batches_are_not_kept_for_ever() -> None:
    """Only some of those that were looked at."""
    story = Story()
    for n in range(200):
        story.call("search", {"query": str(n)}, "nothing")
    session = story.session()
    for n in range(1, 201):
        sight.look(session, n)
    assert len(sight._KNOWN[session]) <= 64


def test_what_weighs_is_not_read_where_somebody_waits_for_a_frame(weighed: Session) -> None:
    """Its size is told meanwhile, and as many events within the batch as there are when it is read."""
    session = weighed
    session.seek(1)
    assert not sight.ready(session, 1)
    assert sight.ready(session, 2)
    drawn = texts(inspector.batch_lines(session, 60, wait=False))
    assert " write_file, search" in drawn
    assert " 3 B, being read …" in drawn
    quick = within.steps(session, 1, wait=False)
    assert [step.text for step in quick if step.kind == "call"] == ["call 1 of 2: write_file", "call 2 of 2: search"]
    assert [step.text for step in quick if step.kind == "result"] == ["result 1 of 2", "result 2 of 2"]
    assert not sight.ready(session, 1)
    whole = within.steps(session, 1)
    assert [step.kind for step in whole] == [step.kind for step in quick]
    assert whole[-1].text == "result 2 of 2: 7 B"
    assert sight.ready(session, 1)
    assert texts(inspector.batch_lines(session, 60, wait=False)) == texts(inspector.batch_lines(session, 60))


def test_a_heavy_line_that_is_gone_is_looked_for_once(weighed: Session) -> None:
    """A thread would look for it for ever."""
    session = weighed
    session._store.events[1] = None  # type: ignore[attr-defined]
    session.seek(1)
    assert sight.look(session, 1) is None
    assert sight.ready(session, 1)
    assert " its line is not in the file any more" in texts(inspector.batch_lines(session, 60, wait=False))


def test_a_line_that_is_another_batch_now_is_gone() -> None:
    """Where a file was written anew, its calls are not those that were decided."""
    session = heavy().session()
    session._store.events[1] = session.batch(2)  # type: ignore[attr-defined]
    assert sight.look(session, 1) is None


@pytest.mark.parametrize(
    "value",
    [
        [[[["x" * 50] * 60] * 60] * 60] * 60,
        {str(n): {str(m): ["y" * 90] * 60 for m in range(60)} for n in range(60)},
        ["z" * 1_900] * 60 * 60,
    ],
    ids=["lists", "objects", "texts"],
)
def test_a_value_that_is_wide_and_deep_is_cut_in_all(value: Any) -> None:
    """Each part may be small: what counts is what all of it would be."""
    found = bounded(value)
    assert items(found) < 4_000
    assert len(str(found)) < 300_000
    assert "more" in str(found)


def test_a_copy_does_not_flood_a_terminal() -> None:
    """Fifty calls with large arguments each: some of them, and how many there are beside."""
    calls = [Call(str(n), "write", {str(m): f"{n}" + "w" * 1_990 for m in range(45)}) for n in range(60)]
    text = copied(Story(Policy()).batch(*calls).session())
    assert len(text) < 300_000
    assert "… 48 more calls" not in text
    assert "more calls" in text
