"""Breakpoints as text: a row each, how often each holds, and what is typed."""

from __future__ import annotations

import pytest

from loopscope.engine.breakpoints import KINDS, Breakpoint, parse
from loopscope.session.session import Session
from loopscope.views import breakpoints
from loopscope.views.model import line_width, plain
from tests.views.support import Story, looping, texts


def with_points(*written: str) -> Session:
    session = looping(6).session()
    session.breakpoints += [parse(text) for text in written]
    session.halts.look(session.breakpoints, len(session))
    return session


def test_a_row_each() -> None:
    """On or off, number, condition, hits up to the cursor and in all."""
    session = with_points("stop", "once hash A >= 2", "tool bash")
    session.breakpoints[2] = Breakpoint("tool", "bash", enabled=False)
    assert texts(breakpoints.body(session, 34)) == [
        "● 1 stop                       1/2",
        "● 2 once hash A >= 2           4/5",
        "○ 3 tool bash                  0/0",
    ]
    assert breakpoints.summary(session) == "2 on, 1 off"


def test_where_one_holds_it_stands_out_and_the_chosen_one_is_marked() -> None:
    """Off ones are dim."""
    session = with_points("stop", "batch 2", "stop")
    session.breakpoints[2] = Breakpoint("stop", enabled=False)
    first, second, third = breakpoints.body(session, 40, 1)
    assert (first[2].style, second[2].style, third[2].style) == ("title", "text", "dim")
    assert [line[0].mark for line in (first, second, third)] == ["", "cursor", ""]


def test_what_is_not_counted_yet_and_what_another_process_counts() -> None:
    """Three dots; the times that the process held a batch."""
    session = looping(6).session()
    session.breakpoints += [parse("stop"), parse("tool bash")]
    assert [line[-1] for line in texts(breakpoints.body(session, 30))] == ["…", "…"]
    counted = texts(breakpoints.body(session, 30, hits={parse("stop"): 7}))
    assert [line.split()[-1] for line in counted] == ["×7", "×0"]


def test_none_and_the_keys() -> None:
    """How to get one, and what can be done with those that are there."""
    session = looping().session()
    assert "b sets one at the batch" in " ".join(texts(breakpoints.body(session, 30)))
    assert breakpoints.summary(session) == ""
    session.breakpoints.append(parse("stop"))
    assert breakpoints.summary(session) == "1 on"
    assert texts(breakpoints.body(session, 30, hints=(("i", "new"), ("x", "remove"))))[1:] == ["", "i new  x remove"]


@pytest.mark.parametrize("width", [1, 8, 20, 60])
def test_it_fits_and_hostile_text_is_seen(width: int) -> None:
    """Whatever was typed."""
    session = with_points("argument \x1b\\[2J\u202e", "tool " + "long" * 100)
    for line in (*breakpoints.body(session, width), *breakpoints.forms(width)):
        assert line_width(line) <= max(width, 9)
        assert plain(line).isprintable()


def test_the_forms_are_those_of_the_engine() -> None:
    """Every kind, and `once`."""
    text = "\n".join(texts(breakpoints.forms(80)))
    assert all(form in text for form in KINDS)
    assert "once ..." in text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "a condition, as below"),
        ("stop", "any hard stop"),
        (" once tool bash ", "any batch that calls this tool, one time"),
        ("sotp", "unknown kind 'sotp'"),
        ("batch x", "'x' is no number; it is written batch N"),
        ("batch inf", "'inf' is no number"),
        ("argument (", "the pattern is wrong"),
    ],
)
def test_what_is_typed_is_told(text: str, says: str) -> None:
    """What it stops at, or what is wrong with it."""
    point, said = breakpoints.read(text)
    assert says in said
    assert (point is None) == (not text.strip() or "no number" in says or "unknown" in says or "wrong" in says)


@pytest.mark.parametrize(
    "text", ["batch 1234567", "usage cost_usd >= 0.5", "once hash A >= 12345678", "usage batches >= 4"]
)
def test_what_is_written_reads_back(text: str) -> None:
    """Large numbers in full."""
    assert breakpoints.written(parse(text)) == text
    assert parse(breakpoints.written(parse(text))) == parse(text)


def test_why_none_is_reached() -> None:
    """None there, none on, none that holds on that side."""
    session = Story().call("x", {}).session()
    assert breakpoints.none_there(session, 1) == "there is no breakpoint; b sets one at this batch, B lists them"
    session.breakpoints.append(Breakpoint("stop", enabled=False))
    assert breakpoints.none_there(session, 1).startswith("1 breakpoint, none of them on")
    session.breakpoints.append(parse("stop"))
    assert breakpoints.none_there(session, 1) == "no breakpoint holds after batch 1 in t/r"
    session.lane = None
    assert breakpoints.none_there(session, -1).startswith("no breakpoint holds before batch 1 in ")
    assert breakpoints.arrived(session, parse("once stop")) == "breakpoint once stop, batch 1"
