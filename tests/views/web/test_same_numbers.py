"""A page, a picture, the text and the screen say the same: all are drawn from the presenters."""

from __future__ import annotations

import re
from functools import cache
from xml.etree import ElementTree as ET

import pytest

from loopscope.api import open as open_session
from loopscope.engine.explain import headline
from loopscope.engine.policy import BOUNDED
from loopscope.samples import samples
from loopscope.session.letters import letter_name
from loopscope.session.session import Session
from loopscope.views import bounds, detect, graph, scopes, text, timeline
from loopscope.views.model import plain
from loopscope.views.topbar import verdict
from loopscope.views.web.page import page
from loopscope.views.web.picture import picture
from tests.views.web.reading import ReadPage, text_of

NAMES = [sample.name for sample in samples()]
WIDE = 500
"""Columns in which every sample's strip is whole, with three cells a batch."""
_SVG = "{http://www.w3.org/2000/svg}"


@cache
def opened(name: str) -> tuple[Session, ReadPage, str]:
    """A sample, its page and its text."""
    session = open_session(f"sample:{name}")
    return session, ReadPage(page(session)), text.render(session, width=WIDE)


def part(whole: str, name: str) -> list[str]:
    """The lines of a pane in the text."""
    found = whole.split(f"{name}\n{'─' * len(name)}\n")[1]
    return found.split("\n\n")[0].splitlines()


def whole(value: str) -> int:
    return int(value.replace(",", ""))


@pytest.mark.parametrize("name", NAMES)
def test_the_head_tells_cursor_verdict_and_totals(name: str) -> None:
    """In the words of the bar at the top."""
    session, read, shown = opened(name)
    head = text_of(next(read.all("header")))
    bar = shown.splitlines()[0]
    words = verdict(session).text[2:]
    assert words in head
    assert words in bar
    assert f"batch {session.cursor} of {len(session)}" in head
    assert re.search(rf"\b{session.cursor}/{len(session)}\b", bar)
    verdicts = [session.timeline.verdict(n).action for n in range(1, len(session) + 1)]
    assert whole(read.facts["batches"]) == len(verdicts)
    assert whole(read.facts["warnings"]) == verdicts.count("warn")
    assert whole(read.facts["stops"].split()[0]) == verdicts.count("hard_stop")


@pytest.mark.parametrize("name", NAMES)
def test_the_strip_has_the_letters_counts_and_states_of_the_timeline(name: str) -> None:
    """Every batch of the lane, on the page as drawn and as said, in the text, and in the session."""
    session, read, shown = opened(name)
    rows = [session.row(number) for number in session.batches]
    states = [row.state if row.n <= session.cursor else "ahead" for row in rows]
    letters, counts = [letter_name(row.letter) for row in rows], [row.decision.hash_count for row in rows]
    assert read.columns == list(zip([row.n for row in rows], letters, counts, states, strict=True))
    assert read.drawn == list(zip(letters, counts, strict=True))
    lines = {line.split()[0]: line[timeline.LABELS :].split() for line in part(shown, "Timeline")}
    assert lines["hash"] == letters
    assert lines["count"] == [str(count) for count in counts]
    assert lines["state"] == [{"new": "·", "repeat": "=", "warn": "▲", "stop": "■", "ahead": "░"}[s] for s in states]


@pytest.mark.parametrize("name", NAMES)
def test_detect_has_the_counts_limits_and_distances_of_the_pane(name: str) -> None:
    """Row by row, in the same order."""
    session, read, shown = opened(name)
    found = detect.data(session)
    assert found is not None
    gauges = [*found.repeats, *found.tools]
    rows = [row for row in read.rows("detect", "meters") if len(row) > 1]
    labels = [f"{gauge.name} {gauge.label}".strip() for gauge in gauges]
    assert [row[0] for row in rows] == [" ".join(label.split()) for label in labels]
    assert [tuple(map(whole, row[1:4])) for row in rows] == [(g.value, g.warn, g.hard) for g in gauges]
    assert [row[4] for row in rows] == ["".join(words for words, _ in detect.say(gauge)) for gauge in gauges]
    pane = part(shown, "Detect")
    bars = [re.search(r"┃ +([\d,]+) (.*)", line) for line in pane]
    counted = [whole(bar[1]) for bar in bars if bar]
    assert counted == [gauge.value for gauge in gauges]
    for gauge in gauges:
        if gauge.moved:
            assert all(any(words in line for line in pane) for words, _ in detect.say(gauge))


@pytest.mark.parametrize("name", NAMES)
def test_warnings_and_spendings_are_those_of_the_pane(name: str) -> None:
    """Subject, count, when it was queued, what became of it, how often it was ignored; calls and batches."""
    session, read, shown = opened(name)
    found = detect.data(session)
    assert found is not None
    rows = [row for row in read.rows("detect") if len(row) == 4]
    assert len(rows) == len(found.warnings)
    pane = " ".join(" ".join(part(shown, "Detect")).split())
    for row, record in zip(rows, found.warnings, strict=True):
        assert f"{record.count:g}/{record.threshold:g}" in row[0]
        assert row[1] == f"#{record.batch}"
        queued = re.search(rf"queued #{record.batch} delivered ([^▲]*?) (?:ignored (\S+(?: times)?)|not ignored)", pane)
        assert queued is not None
        assert row[2:] == [queued[1].strip(), queued[2] or "not so far"]
    spent = {text_of(pair[0]): text_of(pair[1]) for pair in next(read.section("detect").iter("dl"))}
    assert f"batches {spent['batches']} calls {spent['calls']} model calls {spent['model calls']}" in pane


@pytest.mark.parametrize("name", NAMES)
def test_every_warning_and_stop_is_a_row(name: str) -> None:
    """With its count and its verdict in the words of the session; rows between them are told or counted."""
    session, read, _ = opened(name)
    told = 0
    for row in read.rows("decisions"):
        if len(row) == 1:
            told += whole(row[0].split()[1])
            continue
        number = whole(row[0])
        told += 1
        assert number == told
        shown = session.row(number)
        decision = shown.decision
        said = shown.state if decision.action == "pass" else headline(decision, session.letters(shown.scope))
        assert row[-1] == said
        assert whole(row[-2]) == decision.hash_count
        assert row[-3].split()[0] == letter_name(shown.letter)
    assert told == len(session)


@pytest.mark.parametrize("name", NAMES)
def test_the_explanations_are_those_of_why(name: str) -> None:
    """The first one is the cursor's, line by line the same as in the text."""
    session, read, shown = opened(name)
    numbers = [session.cursor] if session.first_stop() is None else []
    first = {d.scope: d.batch for d in reversed(session.timeline.decisions) if d.action == "hard_stop"}
    numbers += sorted(first.values())
    lists = [[text_of(line) for line in found] for found in read.all("ol", "why")]
    assert lists == [[" ".join(line.split()) for line in session.explain(number).lines] for number in numbers]
    pane = " ".join(" ".join(part(shown, "Why")).split())
    assert all(f"{number} {line}" in pane for number, line in enumerate(lists[0], 1))


@pytest.mark.parametrize("name", NAMES)
def test_scopes_and_graph_are_those_of_the_panes(name: str) -> None:
    """The tree with its worst verdicts and batches, and the nodes with their visits."""
    session, read, shown = opened(name)
    tree = scopes.rows(session)
    rows = read.rows("scopes")
    assert [whole(row[2]) for row in rows] == [row.batches for row in tree]
    assert [row[1] for row in rows] == [{"pass": "pass", "warn": "warn", "hard_stop": "stop"}[r.worst] for r in tree]
    assert [whole(line.split()[-1]) for line in part(shown, "Scopes")] == [row.batches for row in tree]
    nodes = graph.data(session).nodes
    assert [row[1] for row in read.rows("graph")] == [f"{node.visits:,}" if node.visits else "" for node in nodes]
    drawn = [text_of(text) for text in next(read.section("graph").iter("svg")).iter("text")]
    visits = [whole(count[1:]) for count in drawn if count.startswith("×")]
    assert visits == [node.visits for node in nodes if node.visits]


@pytest.mark.parametrize("name", NAMES)
def test_the_picture_has_the_same_counts(name: str) -> None:
    """Drawn, and in the words for who cannot see them."""
    session, _, _ = opened(name)
    root = ET.fromstring(picture(session))  # noqa: S314 - made here
    texts = [(text.get("class") or "", "".join(text.itertext())) for text in root.iter(f"{_SVG}text")]
    rows = [session.row(number) for number in session.batches]
    assert [word for look, word in texts if look.startswith("letter")] == [letter_name(row.letter) for row in rows]
    counts = [int(word) for look, word in texts if look.startswith("count")]
    assert counts == [row.decision.hash_count for row in rows]
    found = detect.data(session)
    assert found is not None
    said = "".join(root.find(f"{_SVG}desc").itertext())  # type: ignore[union-attr]
    for gauge in (*found.repeats, *found.tools):
        assert any(word == f"{gauge.value:,}" for _, word in texts)
        assert f"{gauge.name} {gauge.label}: {gauge.value}, ".strip() in said
    assert any(verdict(session).text[2:] == word for _, word in texts)


@pytest.mark.parametrize("name", ["sql-retry-storm", "search-fetch-alternation", "parallel-subagents"])
def test_what_bounds_a_loop_has_the_same_numbers_everywhere(name: str) -> None:
    """Laps, streaks and budgets: value, limits and what comes next, in the pane and on the page."""
    budget = {"tool_calls": {"limit": 30}, "total_tokens": {"limit": 20_000}, "wall_clock_s": {"limit": 3600}}
    session = open_session(f"sample:{name}", BOUNDED.with_(budget=budget))
    found = detect.data(session)
    assert found is not None
    assert (len(found.streaks), len(found.meters)) == (5, 3)
    rows = [row for row in ReadPage(page(session)).rows("detect", "meters") if len(row) > 1]
    pane = part(text.render(session, width=WIDE), "Detect")
    for row, streak in zip(rows[-8:-3], found.streaks, strict=True):
        assert row[1:4] == [str(streak.value), str(streak.warn), str(streak.hard or "none")]
        assert any(line.startswith(streak.layer) and f"┃{streak.value:>4} " in line for line in pane)
    for row, meter in zip(rows[-3:], found.meters, strict=True):
        note = plain(bounds.meter_note(meter))
        assert (row[0].split(" of ")[0], row[4]) == (meter.counter, note)
        assert f"{row[1]} / {row[3]}" == bounds.spent(meter)
        assert any(line.startswith(f" {meter.counter} ") and line.endswith(note) for line in pane)
    assert f": {found.streaks[0].value}, {plain(bounds.streak_note(found.streaks[0], roomy=False))}" in picture(session)
