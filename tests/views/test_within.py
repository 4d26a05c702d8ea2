"""What the engine does within a batch, event by event."""

from __future__ import annotations

from loopscope.engine.events import Call
from loopscope.engine.policy import Policy
from loopscope.views import within
from loopscope.views.model import line_width
from tests.session.support import session_of
from tests.views.support import Story, looping, texts


def test_a_batch_from_its_calls_to_its_verdict() -> None:
    """The calls, the batch in its window, each tool in its own, the verdict, and the results."""
    story = Story().batch(Call("a", "search", {"q": 1}), Call("b", "open", {"q": 2}), Call("c", "search", {"q": 3}))
    session = story.result("a", "x" * 20).result("b", "no", "error").session()
    found = within.steps(session, 1)
    assert [step.kind for step in found] == ["call"] * 3 + ["count"] * 3 + ["verdict"] + ["result"] * 2
    assert [step.text for step in found][:3] == [
        'call 1 of 3: search({"q": 1})',
        'call 2 of 3: open({"q": 2})',
        'call 3 of 3: search({"q": 3})',
    ]
    assert found[3].text.endswith("1 in the last 20 batches; warn 3, hard 5")
    assert found[4].text == "tool search: 2 in the last 50 calls; warn 30, hard 50"
    assert (found[6].text, found[6].style) == ("· PASS A seen once", "ok")
    assert [step.text for step in found][7:] == ["result 1 of 3: 20 B", "result 2 of 3: error, 2 B"]


def test_a_warning_from_the_queue_to_the_model() -> None:
    """It is queued by one batch and delivered before the next, which the recording tells or not."""
    session = looping(5).session()
    assert [step.text for step in within.steps(session, 3)][-3:-1] == [
        "▲ WARN identical_call_set A 3/3",
        "a warning is queued for the model's next turn",
    ]
    assert within.steps(session, 4)[0].text == "warning of #3 for A delivered (assumed)"
    assert within.steps(session, 5)[0].kind == "call"
    policy = Policy(tool_freq_warn=2, tool_freq_hard_limit=9)
    story = Story(policy, enforced=True).call("search", {"n": 1}).call("search", {"n": 2})
    session = story.warned("requeued", "slow down").warned("delivered", "slow down").call("search", {"n": 3}).session()
    assert within.steps(session, 2)[-1].text == "warning put back: the model's turn failed"
    session = Story(policy).call("search", {"n": 1}).call("search", {"n": 2}).warned("dropped", "slow").session()
    assert within.steps(session, 2)[-1].text == "warning dropped"


def test_a_warning_for_a_tool() -> None:
    """It is named by the tool."""
    story = Story(Policy(tool_freq_warn=2, tool_freq_hard_limit=9))
    session = story.call("search", {"n": 1}).call("search", {"n": 2}).call("search", {"n": 3}).session()
    assert within.steps(session, 3)[0].text == "warning of #2 for search delivered (assumed)"


def test_what_a_stop_does() -> None:
    """Where the policy ran live the calls are removed; where it was only watched the tools ran."""
    for enforced, text in ((True, "the calls are removed, no tool runs"), (False, "only watched: the tools run")):
        session = looping(4, enforced=enforced).call("search", {"query": "rust tls", "top_k": 5}).session()
        assert text in [step.text for step in within.steps(session, 5)]


def test_a_batch_whose_line_is_gone() -> None:
    """Its tools are told by their names, which are kept."""
    story = looping(2)
    session = session_of([*story.events])
    session._store.events[1] = None  # type: ignore[attr-defined]
    assert within.steps(session, 1)[0].text == "call 1 of 1: search"


def test_a_call_without_a_name_is_counted_by_no_tool() -> None:
    """Only its batch is."""
    found = within.steps(Story().call(None, {"n": 1}).session(), 1)
    assert [step.kind for step in found] == ["call", "count", "verdict"]


def test_the_lines() -> None:
    """Which one is looked at is marked, those after it are dim, none is wider than asked for."""
    session = looping(3).session()
    found = within.steps(session, 3)
    lines = within.body(found, 1, 3, 40)
    assert texts(lines)[0].startswith("EVENTS #3  2 of 6   s and S step")
    assert [span.text[:1] for line in lines for span in line if span.style == "key"] == [" ", "▶", " ", " ", " ", " "]
    assert lines[2][1].mark == "cursor"
    assert lines[4][1].style == "ahead"
    assert max(map(line_width, lines)) <= 40


def test_a_verdict_that_comes_with_the_results() -> None:
    """The batch passes, its results come, and then a layer that looks at them decides."""
    policy = Policy(warn_threshold=9, hard_limit=9).with_(error_streak={"warn": 2, "hard_limit": 3})
    story = Story(policy)
    for n in range(3):
        story.call("sql", {"query": f"{n}"}, "no", status="error")
    session = story.session()
    told = [step.text for step in within.steps(session, 2)]
    assert told.index("· PASS B seen once") < told.index("result 1 of 1: error, 2 B")
    assert told[-2:] == ["▲ WARN error_streak sql 2/2", "a warning is queued for the model's next turn"]
    told = [step.text for step in within.steps(session, 3)]
    assert told[-2:] == ["■ STOP error_streak sql 3/3", "the scope's next batch is stopped for it"]
