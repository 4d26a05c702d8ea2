"""Detect: counts against limits, the distance to fire in words, warnings, and what was spent."""

from __future__ import annotations

import pytest

from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, Call, Usage
from loopscope.engine.policy import BOUNDED, PROGRESS, Policy
from loopscope.session.session import Session
from loopscope.views import detect
from loopscope.views.model import line_width
from tests.session.support import Line, Memory, session_of
from tests.views.support import Story, looping, texts


def pane(session: Session, width: int = 78) -> list[str]:
    """The pane as text, without empty lines."""
    return texts(detect.body(session, width, dense=True))


def at(story: Story, number: int) -> Session:
    """The session with its cursor there."""
    session = story.session()
    session.seek(number)
    return session


def test_a_run_on_its_way_to_a_stop() -> None:
    """Everything that the pane tells, at the second of equal batches."""
    assert texts(detect.body(at(looping(), 2), 78)) == [
        "DISTANCE TO FIRE  after #2",
        " A       ▲ one more identical batch = WARN   ■ three more = STOP",
        " search  ▲ 28 more calls = WARN   ■ 48 more = STOP",
        "",
        "identical_call_set  last 20 batches                             warn 3  hard 5",
        ' A search("rust tls")     ████████    ┊       ┃   2 = 1 to WARN',
        "",
        "tool_frequency  last 50 calls                                 warn 30  hard 50",
        " search                   ▊           ┊       ┃   2 = 28 to WARN",
        "",
        "WARNINGS  none",
        "",
        "SPENT  by t/r so far",
        " batches 2   calls 2   model calls 2   tokens not recorded   cost not recorded",
        " time 2.00s",
    ]


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (1, "▲ two more identical batches = WARN   ■ four more = STOP"),
        (2, "▲ one more identical batch = WARN   ■ three more = STOP"),
        (3, "■ two more identical batches = STOP"),
        (4, "■ one more identical batch = STOP"),
        (5, "■ one more identical batch = STOP again"),
    ],
)
def test_the_distance_in_words(number: int, said: str) -> None:
    """What comes, and after how many more; once warned, only the stop is left."""
    assert pane(at(looping(), number))[1] == f" A       {said}"


@pytest.mark.parametrize(
    ("number", "note"),
    [
        (1, "· 2 to WARN"),
        (2, "= 1 to WARN"),
        (3, "▲ warned #3, 2 to STOP"),
        (4, "▲ warned #3, 1 to STOP"),
        (5, "■ STOP"),
    ],
)
def test_a_row_says_how_far_it_is(number: int, note: str) -> None:
    """In a glyph and a few words behind its count."""
    row = next(line for line in pane(at(looping(), number)) if line.startswith(' A search("'))
    assert row.endswith(f"{number} {note}")
    narrow = next(line for line in pane(at(looping(), number), 46) if line.startswith(" A sea"))
    assert narrow.endswith(f"{number} {note.replace('warned #3, ', '')}")


def test_a_stop_by_the_other_layer_says_so() -> None:
    """The last of many different reads: repeating it would be stopped by its frequency."""
    story = Story(Policy(tool_freq_warn=3, tool_freq_hard_limit=4))
    for n in range(3):
        story.call("read", {"path": str(n)})
    lines = pane(at(story, 3))
    assert lines[1] == " C     ■ one more identical batch = STOP by tool_frequency"
    assert lines[2] == " read  ■ one more call = STOP"
    assert next(line for line in lines if line.startswith(' C read("')).endswith("1 · 1 to STOP (frequency)")


def test_a_limit_that_the_window_cannot_hold_never_fires() -> None:
    """That is worth knowing of a policy, and is said with the reason."""
    never = Policy(warn_threshold=8, hard_limit=9, window_size=5, tool_freq_warn=2000, tool_freq_hard_limit=2000)
    lines = pane(at(looping(3, policy=never), 3))
    assert lines[1] == " A       · never: window_size is below warn_threshold"
    assert lines[2] == " search  · further than 1,000 more"
    assert next(line for line in lines if line.startswith(' A search("')).endswith("3 = never")
    assert next(line for line in lines if line.startswith(" search     ")).endswith("3 = far")
    warned = Policy(warn_threshold=2, hard_limit=9, window_size=5, tool_freq_warn=2000, tool_freq_hard_limit=2000)
    assert pane(at(looping(3, policy=warned), 3))[1] == " A       · never: window_size is below hard_limit"


def test_what_came_once_does_not_crowd_the_pane() -> None:
    """A few rows of it, the newest ones; the rest in one line. What repeats has a row of its own."""
    story = Story()
    for n in range(8):
        story.call("read", {"path": str(n)})
    lines = pane(at(story, 8))
    assert [line[1] for line in lines if 'read("' in line] == ["H", "G", "F", "E"]
    assert " 4 more, none above 1" in lines
    for n in range(8):
        story.call("read", {"path": str(n)})
    assert len([line for line in pane(at(story, 16)) if 'read("' in line]) == 8


def test_the_batch_at_the_cursor_always_has_a_row() -> None:
    """Also where twelve others count more; what moved at this step is strong."""
    story = Story(Policy(window_size=50))
    for _ in range(2):
        for n in range(12):
            story.call("read", {"path": str(n)})
    session = at(story.call("write", {"path": "new"}), 25)
    rows = [line for line in detect.body(session, 78, dense=True) if '("' in line[0].text]
    assert len(rows) == 10
    assert [line[0].mark for line in rows] == [""] * 9 + ["strong"]


def test_a_row_leads_to_its_newest_batch() -> None:
    """A hash to its batch, a tool to its call, a warning to where it was queued and delivered."""
    links = {span.link for line in detect.body(at(looping(), 4), 78) for span in line if span.link}
    assert links == {3, 4}


def test_limits_of_a_tools_own() -> None:
    """They are what its bar is drawn against, and they are told."""
    policy = Policy(window_size=9).with_(tool_freq_overrides={"search": {"warn": 9, "hard_limit": 12}})
    lines = pane(at(looping(3, policy=policy), 3))
    assert lines[2] == " search  ▲ six more calls = WARN   ■ nine more = STOP"
    assert any("search  own limits 9/12" in line for line in lines)


def test_the_way_of_a_warning_that_is_assumed() -> None:
    """Queued, taken for delivered before the next batch, and how often it was ignored since."""
    assert pane(at(looping(), 3))[7:9] == ["WARNINGS", " ▲ A 3/3  queued #3  waits for the next model call"]
    assert pane(at(looping(), 4))[8] == " ▲ A 3/3  queued #3  delivered before #4 (assumed)  ignored once"
    assert pane(at(looping(), 5))[8] == " ▲ A 3/3  queued #3  delivered before #4 (assumed)  ignored twice"
    story = looping(3).call("other", {})
    assert pane(at(story, 4))[-4] == " ▲ A 3/3  queued #3  delivered before #4 (assumed)  not ignored so far"


def test_the_way_of_a_warning_that_is_recorded() -> None:
    """Nothing is assumed where the recording tells; dropped ones are told too."""
    story = looping(3, policy=Policy())
    session = story.session()
    (record,) = session.state_at(3).warnings
    story.warned("queued", record.text).warned("delivered", record.text).call("search", {"query": "rust tls"})
    assert pane(at(story, 4))[8] == " ▲ A 3/3  queued #3  delivered before #4  ignored once"
    story = looping(3, policy=Policy()).warned("queued", record.text).warned("dropped", record.text)
    assert pane(at(story.call("other", {}), 4))[-4] == " ▲ A 3/3  queued #3  dropped before a model call"


def test_a_delivery_before_any_further_batch() -> None:
    """Delivered to a model call that is still going on: there is no batch after it yet."""
    session = at(looping(3), 3)
    (record,) = session.state.warnings
    record.state = "delivered"
    assert pane(session)[8] == " ▲ A 3/3  queued #3  delivered  not ignored so far"


def test_a_warning_of_a_tool() -> None:
    """It has the tool's name."""
    story = Story(Policy(tool_freq_warn=2, tool_freq_hard_limit=9))
    for n in range(2):
        story.call("read", {"path": str(n)})
    assert " ▲ read 2/2  queued #2  waits for the next model call" in pane(at(story, 2))


def test_what_was_spent() -> None:
    """Batches, calls, tokens, cost and time of the scope at the cursor."""
    story = Story().batch(Call("1", "a", {}), Call("2", "b", {}), usage=Usage(1000, 200, 0.25))
    story.batch(usage=Usage(300, 50, 1.0)).call("a", {}, usage=Usage(60_000, 50, 1.0))
    assert pane(at(story, 2), 120)[-2:] == [
        "SPENT  by t/r so far",
        " batches 2   calls 3   model calls 3   tokens 61.6k (61.3k in, 300 out)   cost $2.25   time 2.00s",
    ]
    assert pane(looping(1, timed=False).session())[-1].endswith("time not recorded")


def test_a_hard_limit_that_news_hold_off_is_no_stop() -> None:
    """Under a policy that asks for news a count may be above its limit, and the run goes on."""
    story = Story(PROGRESS)
    for n in range(6):
        story.call("read_log", {"query": "same"}, f"line {n}")
    lines = pane(at(story, 6))
    assert next(line for line in lines if line.startswith(" A read_log")).endswith("6 ▲ warned #3, 5 to STOP")
    assert lines[1:3] == [
        " A         ▲ three more identical batches = WARN by stagnation",
        "           ■ five more = STOP",
    ]
    story = Story(PROGRESS)
    for _ in range(6):
        story.call("read_log", {"query": "same"}, "nothing")
    lines = pane(at(story, 6))
    assert next(line for line in lines if line.startswith(" A read_log")).endswith("6 ■ STOP")
    assert lines[1] == " A         ■ one more identical batch = STOP again"


def test_what_else_has_begun_to_count_is_among_the_distances() -> None:
    """A streak or a circle that goes on, and a budget that is half spent; not what another layer says first."""
    policy = BOUNDED.with_(budget={"tool_calls": {"limit": 9}, "model_calls": {"limit": 90}})
    story = Story(policy)
    for n in range(6):
        story.call("ab"[n % 2], {"path": f"{n}"}, f"{n}")
    assert pane(at(story, 6))[1:5] == [
        " F            ▲ two more identical batches = WARN   ■ four more = STOP",
        " b            ▲ three more calls = WARN by stagnation",
        "              ■ five more = STOP by stagnation",
        " cycle tools  ▲ six more batches round that circle = WARN",
    ]
    assert pane(at(story, 6))[5] == " tool_calls   ▲ about 2 more batches = WARN"


def test_a_recording_without_batches() -> None:
    """There is nothing to count, and that is said."""
    assert pane(session_of([])) == ["nothing is counted before the first batch with calls"]


@pytest.mark.parametrize("width", [30, 46, 60, 78, 120])
def test_no_line_is_wider_than_the_pane(width: int) -> None:
    """With wide characters in names and arguments too."""
    story = Story(BOUNDED)
    for n in range(9):
        story.call("会議室" * 5, {"query": "日本語" * 9, "n": n}, "x")
    for number in (1, 3, 9):
        assert max(line_width(line) for line in detect.body(at(story, number), width)) <= width


def test_a_view_gives_what_is_asked_for() -> None:
    """Some lines of it are the same lines."""
    session = looping().session()
    whole = detect.body(session, 78)
    assert detect.height(session, 78) == len(whole)
    assert detect.lines(session, 3, 4, 78) == whole[3:7]


def test_what_came_before_what_is_kept() -> None:
    """A run that was come upon late: its window counts batches that nobody can look at any more."""
    detector = LoopDetector()
    for n in range(1, 4):
        detector.observe(Batch(seq=n, ts=None, thread_id="t", run_id="r", calls=(Call(None, "gone", {"n": 1}),)))
    stream = [
        Batch(seq=n, ts=None, thread_id="t", run_id="r", calls=(Call(None, "find", {"n": n}),)) for n in range(4, 6)
    ]
    session = Session("memory", Memory([None, *stream]))
    session.timeline.restore(detector.snapshot())
    session.append([Line(event, place, 1) for place, event in enumerate(stream, 1)])
    session.seek(2)
    shown = "\n".join(pane(session))
    assert " ? before #1: " in shown
    found = detect.data(session)
    assert found is not None
    assert [(gauge.name, gauge.value, gauge.latest) for gauge in found.repeats] == [
        ("?", 3, None),
        ("B", 1, 2),
        ("A", 1, 1),
    ]
    assert [(gauge.subject, gauge.value, gauge.latest) for gauge in found.tools] == [("gone", 3, None), ("find", 2, 2)]
    assert "▲ warned before #1, 2 to" in "\n".join(texts(detect.body(session, 120)))
