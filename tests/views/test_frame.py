"""The notebook's frame holds what the terminal and `explain` show, and nothing that a browser could run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import to_builtins

import loopscope
from loopscope.engine.policy import DEFAULT
from loopscope.recording.inert import inert
from loopscope.samples import samples
from loopscope.session.session import Session
from loopscope.views import decisions, detect, graph, inspector, scopes, timeline, topbar
from loopscope.views.frame import TABS, Live, Shown, draft_of, frame, lanes
from loopscope.views.model import plain
from tests.session.support import session_of
from tests.views.support import Story, looping


def shown(session: Session, tab: Any = "why", **more: Any) -> dict[str, Any]:
    return frame(session, shown=Shown(tab), **more)


def strings(value: Any) -> Iterator[str]:
    """Every text in plain data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)


def words(found: dict[str, Any]) -> list[str]:
    return ["".join(span[0] for span in line) for line in found["lines"]]


@pytest.mark.parametrize("name", [sample.name for sample in samples()])
def test_the_numbers_of_every_sample_are_those_of_the_panes_and_of_explain(name: str) -> None:
    """Timeline, counts, verdict, why, batch, decisions, scopes and graph, at the stop, the first and the last batch."""
    session = loopscope.open(f"sample:{name}")
    for number in sorted({1, session.cursor, len(session)}):
        session.seek(number)
        found = shown(session)
        assert found["verdict"] == topbar.verdict(session).text
        rows = [session.row(n) for n, *_ in found["columns"]]
        assert [(c[2], c[3]) for c in found["columns"]] == [
            (row.decision.hash_count, row.state if row.n <= number else "ahead") for row in rows
        ]
        data = detect.data(session)
        assert data is not None
        gauges = [count for section in found["sections"][:2] for count in section["counts"]]
        assert [(g["value"], g["warn"], g["hard"], g["state"]) for g in gauges] == [
            (g.value, g.warn, g.hard, g.state) for g in (*data.repeats, *data.tools)
        ]
        explained = session.explain(search=False)
        said = " ".join("".join(words(found)).split())
        for line in explained.lines:
            assert "".join(inert(line, 2000).split()) in "".join(said.split()).replace("\u200b", "")
        panes = {
            "batch": inspector.batch_lines(session, 100),
            "scopes": scopes.body(session, 100),
            "graph": graph.body(session, 100),
        }
        for tab, lines in panes.items():
            assert words(shown(session, tab)) == [plain(line) for line in lines][:400]
        log = decisions.Log(session)
        assert words(shown(session, "decisions"))[1:] == [plain(line) for line in log.lines(0, 399, 100)]


def test_it_is_json_of_bounded_size() -> None:
    """Whatever the run weighs, a frame is a few kilobytes of plain data."""
    story = Story()
    for number in range(3_000):
        story.call("search", {"query": f"q{number % 7}", "more": "x" * 500}, "found " * 50)
    session = story.session()
    for tab in TABS:
        text = json.dumps(shown(session, tab, overrides={"hard_limit": 9}))
        assert len(text) < 200_000


def test_nothing_in_it_is_drawn_as_it_came() -> None:
    """Control characters, and what turns text around, are visible escapes, in every tab."""
    evil = "\x1b]0;x\x07\u202e<script>alert(1)</script>\x00"
    story = Story().in_scope(evil, evil)
    for _ in range(6):
        story.call(evil, {evil: evil, "query": evil}, evil)
    session = story.session()
    tried = {evil: 3, "hard_limit": 9, "stagnation.witness": evil}
    for tab in TABS:
        texts = list(strings(shown(session, tab, overrides=tried)))
        assert len(texts) > 50
        assert not [text for text in texts if {"\x1b", "\x07", "\u202e", "\x00"} & {*text}]


def test_an_override_shows_its_states_and_its_difference() -> None:
    """Those that the what-if computes."""
    session = looping(8).session()
    tried = {"hard_limit": 7}
    draft, problem = draft_of(session, tried)
    trial = session.attempt(draft.policy)
    assert trial is not None
    found = shown(session, "whatif", overrides=tried, trial=trial)
    assert problem == found["problem"] == ""
    assert found["override"] == [trial.state(n) for n in range(1, 9)]
    count = len(session.whatif(draft.policy).differing)
    assert found["difference"].startswith(f"{count} decisions differ, first at #5.")
    assert any(found["difference"].split(". ")[1][:10] in line for line in words(found))
    limits = {limit["name"]: limit for limit in found["limits"]}
    assert (limits["hard_limit"]["value"], limits["hard_limit"]["baseline"]) == (7, 5)


def test_an_override_that_cannot_be_is_told_and_the_rest_holds() -> None:
    """As the policy says it, with the nearest thing that can be done."""
    session = looping(6).session()
    found = shown(session, overrides={"hard_limit": 1, "no_such": 2, "window_size": 9})
    assert "hard_limit" in found["problem"]
    assert "there is no setting no_such" in found["problem"]
    assert next(limit["value"] for limit in found["limits"] if limit["name"] == "window_size") == 9


def test_what_has_names_offers_them() -> None:
    """With what the run has, where that is a name of its own; a number offers nothing."""
    limits = {limit["name"]: limit for limit in shown(looping(6).session())["limits"]}
    assert limits["result_aware"]["choices"] == [False, True]
    assert limits["hard_limit"]["choices"] == []
    tried = shown(looping(6).session(), overrides={"stagnation.witness": "coverage"})["limits"]
    witness = next(limit for limit in tried if limit["name"] == "stagnation.witness")
    assert (witness["value"], witness["choices"]) == ("coverage", ["results", "last_error", "coverage"])


def test_what_is_being_tried_says_so() -> None:
    """Until the run is decided again."""
    session = looping(6).session()
    found = shown(session, overrides={"hard_limit": 9}, searching=True)
    assert found["difference"] == "the run is decided again …"
    assert set(found["override"]) == {""}


def test_a_run_without_a_batch() -> None:
    """Nothing is shown, and nothing fails."""
    session = session_of([])
    for tab in TABS:
        found = shown(session, tab)
        assert (found["cursor"], found["total"], found["state"], found["columns"]) == (0, 0, "none", [])


def test_lanes_and_live() -> None:
    """What the timeline can show is all, each thread and each scope; a live run brings how it stands."""
    session = looping(3).in_scope("t", "other").call("search", {"query": "b"}, "x").session()
    assert [label for label, _ in lanes(session)][:2] == ["all scopes", "thread t"]
    live = Live(mode="paused", words="PAUSED", held="t/r  search()", following=False)
    found = shown(session, live=live)
    assert found["live"] == to_builtins(live)
    assert sum(here for _, here in found["lanes"]) == 1
    assert found["export"]["toml"].startswith("warn_threshold = 3")
    assert "Policy.parse" in found["export"]["python"]
    assert found["limits_from"] == "defaults"
    assert session.policy == DEFAULT


def test_a_long_lane_has_an_overview() -> None:
    """Of the whole, while the strip has the columns that there is room for, the cursor's among them."""
    session = looping(300).session()
    for cursor in (1, 30, 151, 299, 300):
        for columns in (4, 24, 31, 60):
            session.seek(cursor)
            drawn = frame(session, shown=Shown(columns=columns))["columns"]
            assert [n for n, *_, here in drawn if here] == [cursor]
            assert len(drawn) == columns
    found = frame(session, shown=Shown(columns=20))
    assert len(found["columns"]) == 20
    assert len(found["overview"]) == 240
    assert found["length"] == 300
    assert timeline.page(session, timeline.LABELS + 20).first == found["first"]
