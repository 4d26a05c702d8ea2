"""Breakpoints: each kind's text form, what it stops at, and how a wrong one is refused."""

from __future__ import annotations

from typing import Any

import pytest

from loopscope.engine.breakpoints import Breakpoint, Moment, hits, parse
from loopscope.engine.decision import Decision
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, ScopeKey
from loopscope.errors import UsageError
from tests.engine.support import batch


def moment(*batches: Batch, letter: str = "A") -> Moment:
    """The last of these batches, just decided."""
    detector = LoopDetector()
    decisions = [decision for event in batches for decision in detector.observe(event)]
    last = batches[-1]
    return Moment(
        decisions[-1], last.calls, [call.name or "" for call in last.calls], detector.scope(last.scope), letter
    )


FIVE = [batch(n, ("bash", {"command": "ls -la"})) for n in range(1, 6)]
HASH = moment(FIVE[0]).decision.hash


@pytest.mark.parametrize(
    ("text", "on_first", "on_third", "on_fifth"),
    [
        ("stop", False, False, True),
        ("warn", False, True, False),
        ("layer identical_call_set", False, True, True),
        ("layer tool_frequency", False, False, False),
        ("scope t", True, True, True),
        ("scope t/r", True, True, True),
        ("scope t/other", False, False, False),
        ("tool bash", True, True, True),
        ("tool grep", False, False, False),
        ("hash A", True, True, True),
        ("hash A >= 3", False, True, True),
        (f"hash {HASH} >= 5", False, False, True),
        ("batch 3", False, True, False),
        ("pending", False, True, False),
        ("argument ls\\s+-la", True, True, True),
        ("argument ^rm", False, False, False),
        ("usage tool_calls >= 3", False, True, True),
        ("usage seconds >= 4", False, False, True),
    ],
)
def test_what_each_kind_stops_at(text: str, on_first: bool, on_third: bool, on_fifth: bool) -> None:
    """On the first, the third (warned) and the fifth (stopped) of five equal batches."""
    point = parse(text)
    moments = [moment(*FIVE[:n]) for n in (1, 3, 5)]
    assert [hits(point, m) for m in moments] == [on_first, on_third, on_fifth]
    assert str(point) == text
    assert not hits(Breakpoint(point.kind, point.subject, point.at_least, enabled=False), moments[2])


def test_once_is_one_shot() -> None:
    """The word in front is no part of the condition."""
    point = parse("once hash A >= 4")
    assert (point.kind, point.subject, point.at_least, point.one_shot) == ("hash", "A", 4, True)


def test_arguments_that_are_text_and_scopes_without_a_name() -> None:
    """A raw string is searched as it is; a missing id is written as a dash; an evicted scope has used nothing."""
    raw = moment(batch(1, ("bash", "rm -rf"), scope=(None, None)))
    assert hits(parse("argument ^rm"), raw)
    assert hits(parse("scope -/-"), raw)
    evicted = raw._replace(scope=None)
    assert not hits(parse("usage batches >= 0"), evicted)
    assert not hits(parse("pending"), evicted)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "unknown kind ''"),
        ("sotp", "unknown kind 'sotp'"),
        ("stop now", "nothing is expected after the kind"),
        ("tool", "says not what; it is written tool NAME"),
        ("hash >= 3", "says not what; it is written hash HASH|LETTER"),
        ("hash A >= x", "'x' is no number"),
        ("batch first", "'first' is no number; it is written batch N"),
        ("argument (", "the pattern is wrong"),
        ("usage money >= 3", "'money' is not counted"),
        ("once", "unknown kind 'once'"),
    ],
)
def test_a_wrong_one_is_refused(text: str, problem: str) -> None:
    """In one line, with how it is written."""
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert problem in str(caught.value)


def test_a_breakpoint_is_plain_data() -> None:
    """It can be stored and sent as JSON."""
    import msgspec

    point = parse("once usage cost_usd >= 0.5")
    sent: Any = msgspec.json.decode(msgspec.json.encode(point), type=Breakpoint)
    assert sent == point
    assert isinstance(moment(FIVE[0]).decision, Decision)
    assert moment(FIVE[0]).decision.scope == ScopeKey("t", "r")
