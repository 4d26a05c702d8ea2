"""Laps, failures, standstill, repeats in a batch and budgets: their rows, gauges, circle lines and witness strip."""

from __future__ import annotations

import pytest

from loopscope.engine.events import Call, Usage, Witness
from loopscope.engine.policy import BOUNDED, PROGRESS, Policy
from loopscope.session.session import Session
from loopscope.views import bounds, detect, inspector
from loopscope.views.bounds import Meter, Streak
from loopscope.views.model import Span, plain
from tests.views.support import Story, texts

LAYERS = ("cycle", "error_streak", "stagnation", "repeat_in_batch")


def at(story: Story, number: int) -> Session:
    """The session with its cursor there."""
    session = story.session()
    session.seek(number)
    return session


def rows(session: Session, width: int = 78) -> list[str]:
    """What is drawn of the further layers, without what pads the bars."""
    found = detect.data(session)
    assert found is not None
    return [" ".join(line.split()) for line in texts(bounds.draw(found.streaks, found.progress, width))]


def streak(session: Session, layer: str, label: str = "") -> Streak:
    """One of the further layers."""
    found = detect.data(session)
    assert found is not None
    return next(row for row in found.streaks if row.layer == layer and row.label == label)


def meters(session: Session) -> dict[str, Meter]:
    """The budgets by their counters."""
    found = detect.data(session)
    assert found is not None
    return {meter.counter: meter for meter in found.meters}


def failing(times: int, policy: Policy = BOUNDED) -> Story:
    """Failures of one tool, each another one."""
    story = Story(policy)
    for n in range(times):
        story.call("sql", {"query": f"{n}"}, f"no such table: {'x' * n}", status="error")
    return story


def test_a_run_of_failures_on_its_way() -> None:
    """Counted with the results of the batch at the cursor, with the warning that it had and the distance."""
    assert streak(at(failing(1), 1), "error_streak").state == "repeat"
    assert "error_streak ████ ┊ ┃ 1 = 2 to WARN of 3/5" in rows(at(failing(2), 1))
    assert "error_streak ████████████╋ ┃ 3 ▲ warned #3, 2 to STOP" in rows(at(failing(3), 3))
    assert any(row.startswith("error_streak") and row.endswith("5 ■ STOP of 3/5") for row in rows(at(failing(5), 5)))
    assert any(line.endswith("5 ■ STOP") for line in rows(at(failing(5), 5), 60))


def test_the_rows_before_anything_has_begun() -> None:
    """Each layer that the policy limits has one, and says that there is nothing to count yet."""
    assert rows(at(Story(BOUNDED).call("a", {"path": "x"}), 1)) == [
        "cycle batches ┊ ┃ 0 · no circle of 3/5",
        "cycle tools ┃ 0 · no circle of 6",
        "error_streak ┊ ┃ 0 · 3 to WARN of 3/5",
        "stagnation results ┊ ┃ 0 · no value yet of 3/5",
        "repeat_in_batch ┃ 0 · none of 3",
    ]
    assert not rows(at(Story().call("a", {"path": "x"}), 1))


def circling(laps: int, policy: Policy = BOUNDED) -> Story:
    """Search and open, each time the same two, with results that are new."""
    story = Story(policy)
    for n in range(laps):
        story.call("search", {"query": "x"}, f"found {n}").call("open", {"path": "y"}, f"page {n}")
    return story


def test_a_circle_has_a_line_in_words() -> None:
    """The block and back to where it began, by hash and by tools, and the batch with which it began."""
    session = at(circling(4), 8)
    found = rows(session)
    assert found[:4] == [
        "cycle batches ████████████╋███ ┃ 4 ▲ warned #7, 1 to STOP",
        "A → B → A since #1",
        "cycle tools █████████████▎ ┃ 4 = 4 to WARN of 6",
        "search → open → search since #1",
    ]
    (line,) = (line for line in detect.body(session, 78) if plain(line).startswith("   A → B"))
    assert line[-1] == Span("  since #1", "dim", link=1)
    narrow = next(line for line in rows(session, 24) if "since" in line)
    assert narrow == "A → B → A since #1"


def test_a_circle_of_batches_with_several_calls() -> None:
    """Names of one batch are joined; a block that repeats by its tools alone goes on with new arguments."""
    story = Story(Policy().with_(cycle={"names": {"warn": 3, "hard_limit": 4}}))
    for n in range(3):
        story.batch(Call(f"{n}1", "b", {"query": f"{n}"}), Call(f"{n}2", "a", {})).call("c", {"query": f"{n}"})
    found = streak(at(story, 6), "cycle", "tools")
    assert (found.value, found.circle, found.warned, found.state) == (3, ("a+b", "c"), 6, "warn")
    assert rows(at(story, 6)) == ["cycle tools ███████████████╋ ┃ 3 ▲ warned #6, 2 to STOP", "a+b → c → a+b since #1"]
    assert streak(at(story.call("c", {}), 7), "cycle", "tools").warned is None


def test_a_limit_that_is_a_stop_only_without_news() -> None:
    """Under `progress` a circle goes on above its limit while it brings something new; then it warns, and says so."""
    limits = {"hash": {"warn": 3, "hard_limit": 4}, "names": {"warn": None, "hard_limit": None}}
    policy = PROGRESS.with_(cycle=limits, stagnation={}, warn_threshold=9, hard_limit=9)
    assert streak(at(circling(5, policy), 10), "cycle", "batches").state == "warn"
    story = Story(policy)
    for _ in range(4):
        story.call("search", {"query": "x"}, "found").call("open", {"path": "y"}, "page")
    assert streak(at(story, 8), "cycle", "batches").state == "stop"


def test_a_layer_with_one_limit_alone() -> None:
    """A warning without a stop never stops, and that is said; a stop needs no warning to be drawn."""
    story = circling(7, Policy(warn_threshold=20, hard_limit=20).with_(cycle={"names": {"warn": 6}}))
    assert rows(at(story, 14))[0].endswith("7 ▲ warned #12, no stop set")
    assert rows(at(story, 14), 60)[0].endswith("7 ▲ no stop set")
    hard = circling(2, Policy().with_(cycle={"hash": {"hard_limit": 4}}))
    assert rows(at(hard, 4))[0].endswith("2 = 1 to WARN (identical)")


def test_a_limit_that_is_never_reached_says_so() -> None:
    """A circle that goes round for ever, whose windows other layers have no limit for, and one that cannot be known."""
    far = Policy(
        warn_threshold=5000, hard_limit=5000, window_size=5000, tool_freq_warn=5000, tool_freq_hard_limit=5000
    ).with_(cycle={"hash": {"hard_limit": 5000}})
    assert rows(at(circling(2, far), 4))[0].endswith("2 = far of 5000")
    lost = Streak("stagnation", "x", 1, 2, 3, bounds.NOTHING, "")
    assert plain(bounds.draw([lost], [], 78)[0]).rstrip().endswith("1 = never  of 2/3")


def test_the_witness_strip() -> None:
    """For each iteration whether there was progress; each leads to its batch; what is not in yet is not there."""
    story = Story(BOUNDED)
    for n in (1, 2, 2, 2, 3, 4, 4):
        story.call("poll", {"query": f"{len(story.events)}"}, f"state {n}")
    found = rows(at(story, 7))
    assert found[-2:] == ["progress ··==··= · yes = no", "repeat_in_batch ┃ 0 · none of 3"]
    data = detect.data(at(story, 4))
    assert data is not None
    assert data.progress == ((1, True), (2, True), (3, False), (4, False))
    assert data.streaks[3].value == 2
    data = detect.data(at(story.call("poll", {}), 8))
    assert data is not None
    assert data.progress[-1] == (7, False)


def test_the_strip_shows_the_newest_where_it_is_narrow() -> None:
    """As many as have room."""
    story = Story(BOUNDED)
    for n in range(80):
        story.call("poll", {"query": f"{n}"}, f"{n}")
    session = at(story, 80)
    assert " ".join(rows(session, 40)[-2].split()[:2]) == "progress " + "·" * 14
    assert rows(session, 160)[-2].split()[1] == "·" * bounds.STRIP


def test_a_witness_of_the_programs_own() -> None:
    """Its value counts, and the distance is asked with that value again."""
    policy = Policy().with_(stagnation={"witness": "score", "mode": "improves", "warn": 2, "hard_limit": 3})
    story = Story(policy)
    for n, score in enumerate((1, 2, 2)):
        story.call("try", {"query": f"{n}"}, f"{n}")
        story.events.append(Witness(values={"score": score}, **story._common()))
    found = streak(at(story, 3), "stagnation", "score")
    assert (found.value, found.state) == (1, "repeat")
    assert [fire and fire.more for fire in found.distance[:2]] == [1, 2]
    assert streak(at(story, 2), "stagnation", "score").value == 0
    assert rows(at(story, 3))[-1] == "progress ··= · yes = no"


def test_the_error_that_comes_again() -> None:
    """The witness `last_error` stands still where the next failure says the same."""
    policy = Policy().with_(stagnation={"witness": "last_error", "warn": 2, "hard_limit": 4})
    story = Story(policy)
    for n in range(2):
        story.call("sql", {"query": f"{n}"}, "no such table", status="error").call("look", {"query": f"{n}"}, f"{n}")
    story.call("sql", {"query": "2"}, "no such table", status="error")
    assert streak(at(story, 4), "stagnation", "last_error").value == 0
    found = streak(at(story, 5), "stagnation", "last_error")
    assert (found.value, [fire and fire.more for fire in found.distance[:2]]) == (1, [1, 3])


def test_one_call_several_times_in_a_batch() -> None:
    """The call that comes most; the warning is of this batch, and there is never a stop."""
    story = Story(BOUNDED).batch(*(Call(f"{n}", "read", {"path": "a"}) for n in range(2)), Call("9", "b", {}))
    story.batch(*(Call(f"1{n}", "read", {"path": "b"}) for n in range(3)))
    assert rows(at(story, 1))[-1] == "repeat_in_batch read █████████████▎ ┃ 2 = 1 to WARN of 3"
    assert rows(at(story, 2))[-1].endswith("3 ▲ warned #2, never stops")
    story.batch(*(Call(f"2{n}", "read", {"path": "b"}) for n in range(3)))
    assert rows(at(story, 3))[-1].endswith("3 ▲ never stops of 3")


CYCLES = Policy(warn_threshold=9, hard_limit=9).with_(cycle={"hash": {"warn": 3}})
BUDGET = {
    "iterations": {"limit": 10},
    "total_tokens": {"limit": 20_000, "warn": 0.5},
    "cost_usd": {"limit": 1.0},
    "wall_clock_s": {"limit": 60},
    "requests_per_minute": {"limit": 30},
}


def spending(times: int, **more: object) -> Story:
    """Batches that cost the same each, a second and a half apart."""
    story = Story(Policy().with_(budget=BUDGET), **more)  # type: ignore[arg-type]
    for n in range(times):
        story.call("a", {"query": f"{n}"}, "x", usage=Usage(1000, 200, 0.05))
    return story


def test_budgets_have_gauges() -> None:
    """Spent, limit, and how long it lasts at the pace so far: batches, seconds, or what is left of a rate."""
    session = at(spending(3), 3)
    lines = [" ".join(line.split()) for line in texts(detect.body(session, 100, dense=True))]
    first = lines.index("BUDGETS with all sub-agents warn at 50-80%")
    assert [line.split("┃")[1] for line in lines[first + 1 : first + 6]] == [
        " 3 / 10 · 5 to WARN",
        " 3,600 / 20.0k · ~6 to WARN",
        " $0.1500 / $1.00 · ~13 to WARN",
        " 4.00s / 1m00s · 44.0s to WARN",
        " 3 / 30 · 21 to WARN",
    ]
    assert any(line.startswith("BUDGETS    ") for line in texts(detect.body(session, 50, dense=True)))


def test_a_budget_that_is_warned_of_and_spent() -> None:
    """Once warned, the stop is next; past the limit it stops again and again."""
    assert bounds.ahead(meters(at(spending(9), 9))["iterations"]) == ("■ 1 more batch = STOP", "bar_stop")
    assert bounds.ahead(meters(at(spending(9), 9))["total_tokens"]) == ("■ about 8 more batches = STOP", "bar_stop")
    spent = meters(at(spending(11), 11))["iterations"]
    assert (spent.state, bounds.ahead(spent)) == ("stop", ("■ 1 more batch = STOP again", "bar_stop"))
    lines = texts(detect.body(at(spending(11), 11), 78, dense=True))
    assert any(line.startswith(" iterations ") and line.endswith("11 / 10         ■ STOP") for line in lines)
    assert bounds.ahead(meters(at(spending(1), 1))["wall_clock_s"]) == ("▲ 48.0s more = WARN", "bar_warn")
    assert bounds.ahead(meters(at(spending(1), 1))["requests_per_minute"]) == ("▲ 23 more = WARN", "bar_warn")


def test_a_budget_that_costs_nothing_has_no_pace() -> None:
    """A run that records no usage: the gauge stands at nothing, and no batch is foretold."""
    story = Story(Policy().with_(budget={"cost_usd": {"limit": 1.0}})).call("a", {})
    assert meters(at(story, 1))["cost_usd"].more is None
    assert bounds.ahead(meters(at(story, 1))["cost_usd"]) == ("▲ 0.8 more = WARN", "bar_warn")


def test_a_budget_is_that_of_the_caller_where_more_is_spent_there() -> None:
    """A hand-off resets nothing: the gauge of a sub-agent is the account above it, by name."""
    story = spending(4).in_scope("t", "r/sub").start("helper", ("t", "r"))
    story.call("b", {"query": "x"}, usage=Usage(100, 20, 0.01))
    session = at(story, 5)
    found = meters(session)
    assert (found["iterations"].value, found["iterations"].whose) == (5, "r")
    lines = texts(detect.body(session, 100, dense=True))
    assert any(line.startswith(" iterations  of r ") for line in lines)
    story.in_scope("t", "r").call("a", {"query": "own"})
    assert meters(at(story, 6))["iterations"].whose == ""


def test_a_caller_in_another_thread_has_its_whole_name() -> None:
    """Its run alone would not say where it is."""
    story = spending(3).in_scope("other", "x").start("helper", ("t", "r")).call("b", {"query": "x"})
    assert meters(at(story, 4))["iterations"].whose == "t/r"


def test_parents_in_a_ring_and_a_parent_that_is_not_there() -> None:
    """Whoever says what about parents, each account is looked at once."""
    story = Story(Policy().with_(budget={"iterations": {"limit": 10}}))
    story.start("a", ("t", "s")).call("x", {}).in_scope("t", "s").start("b", ("t", "r")).call("x", {})
    assert meters(at(story, 2))["iterations"].value == 2
    story.in_scope("u", "r").start("c", ("nobody", "knows")).call("x", {})
    assert meters(at(story, 3))["iterations"].value == 1


@pytest.mark.parametrize(
    ("story", "number", "said"),
    [
        (failing(3), 3, ["error_streak"]),
        (circling(3, CYCLES), 6, ["cycle  batches", "   A → B → A"]),
        (failing(4, Policy().with_(stagnation={"witness": "last_error", "warn": 1})), 2, []),
        (Story(BOUNDED).batch(*(Call(f"{n}", "r", {"path": "b"}) for n in range(3))), 1, ["repeat_in_batch  r"]),
        (spending(9), 8, [" iterations"]),
        (Story().call("a", {}), 1, []),
    ],
)  # fmt: skip
def test_why_shows_the_row_of_the_layer_that_decided(story: Story, number: int, said: list[str]) -> None:
    """Under its title, before the numbered lines; nothing for the two layers that count by window."""
    session = at(story, number)
    found = texts(bounds.evidence(session, 78))
    assert len(found) == len(said)
    assert all(line.startswith(start) for line, start in zip(found, said, strict=True))
    lines = texts(inspector.body(session, 78))
    why = next(place for place, line in enumerate(lines) if line.startswith("WHY"))
    assert lines[why + 1 : why + 1 + len(found)] == found


def test_why_shows_the_budget_that_decided_alone() -> None:
    """Others have no row there."""
    policy = Policy().with_(budget={"iterations": {"limit": 2}, "tool_calls": {"limit": 9}})
    session = at(Story(policy).call("a", {}).call("b", {}), 2)
    assert [line.split()[0] for line in texts(bounds.evidence(session, 78))] == ["iterations"]


def test_why_shows_the_strip_of_a_standstill() -> None:
    """With the witness and its strip."""
    story = Story(BOUNDED)
    for n in range(4):
        story.call("poll", {"query": f"{n}"}, "same")
    session = at(story, 4)
    assert [" ".join(line.split()) for line in texts(bounds.evidence(session, 78))] == [
        "stagnation results ████████████╋ ┃ 3 ▲ warned #4, 2 to STOP",
        "progress ·=== · yes = no",
    ]


def test_no_evidence_without_batches() -> None:
    """There is no verdict."""
    assert not bounds.evidence(Story().session(), 78)


def test_the_strip_of_a_scope_among_others() -> None:
    """Batches of other scopes between its own are passed over; a step back and forth says the same."""
    story = Story(BOUNDED)
    for n in range(4):
        story.in_scope("t", "r").call("poll", {"query": f"{n}"}, "same")
        story.in_scope("t", "other").call("poll", {"query": f"{n}"}, f"{n}")
    session = at(story, 7)
    seen = detect.data(session)
    assert seen is not None
    assert seen.progress == ((1, True), (3, False), (5, False), (7, False))
    session.seek(5)
    assert [moved for _, moved in (detect.data(session) or seen).progress] == [True, False, False]
    session.seek(7)
    assert (detect.data(session) or seen).progress == seen.progress
