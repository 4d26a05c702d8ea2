"""Budgets: what is counted, to whom it is charged, and that no hand-off begins one anew."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Control, Header, PolicySet, ScopeKey, Usage
from loopscope.engine.policy import Policy
from loopscope.engine.sections import Budget
from tests.engine.turns import ROOMY, Tape, play, start, turn

KEY = ScopeKey("t", "r")


def limited(**limits: float | Budget) -> Policy:
    budget = {name: Budget(limit) if isinstance(limit, (int, float)) else limit for name, limit in limits.items()}
    return ROOMY.with_(budget=budget)


def usage(tokens_in: int | None = None, tokens_out: int | None = None, cost: float | None = None) -> Usage:
    return Usage(tokens_in, tokens_out, cost)


@pytest.mark.parametrize(
    ("counter", "limit", "before", "verdict"),
    [
        ("iterations", 3, ["a:1", "", "a:2"], "hard_stop budget iterations 3/3"),
        ("model_calls", 4, ["a:1", "", "a:2"], "hard_stop budget model_calls 4/4"),
        ("tool_calls", 5, ["a:1, a:2", "b:1, b:2"], "hard_stop budget tool_calls 5/5"),
        ("input_tokens", 30, ["a:1", ""], "hard_stop budget input_tokens 30/30"),
        ("output_tokens", 6, ["a:1", ""], "hard_stop budget output_tokens 6/6"),
        ("total_tokens", 36, ["a:1", ""], "hard_stop budget total_tokens 36/36"),
        ("cost_usd", 0.75, ["a:1", ""], "hard_stop budget cost_usd 0.75/0.75"),
    ],
)
def test_counters(counter: str, limit: float, before: list[str], verdict: str) -> None:
    """What is counted up to and with the batch that is decided; messages without calls are model calls too.

    A limit that the value does not reach yet does not stop.
    """
    for offset in (0, 1):
        tape = Tape(limited(**{counter: Budget(limit + offset, warn=1)}))
        for text in before:
            assert tape.turn(text, usage=usage(10, 2, 0.25)) in ("", "pass")
        assert tape.turn("z", usage=usage(10, 2, 0.25)) == ("pass" if offset else verdict)


def test_what_a_recording_does_not_tell_is_not_spent() -> None:
    """Without usage and without times neither tokens nor money, neither time nor rate are known."""
    everything = limited(
        input_tokens=1, output_tokens=1, total_tokens=1, cost_usd=0.1, wall_clock_s=1, requests_per_minute=1
    )
    tape = Tape(everything)
    assert tape.turn("a:1") == "pass"
    assert tape.turn("a:2", usage=usage()) == "pass"
    assert tape.turn("a:3", usage=usage(tokens_out=1)) == "hard_stop budget output_tokens 1/1"


def test_a_share_of_the_limit_warns_once() -> None:
    """Eight tenths unless it is set; then nothing until the limit, and from there on every batch is stopped."""
    found = play(limited(iterations=10), [f"a:{n}" for n in range(11)])
    assert found == [
        *["pass"] * 7,
        "warn budget iterations 8/8",
        "pass",
        *[f"hard_stop budget iterations {n}/10" for n in (10, 11)],
    ]
    assert (
        play(limited(iterations=Budget(10, warn=0.25)), [f"a:{n}" for n in range(3)])[2]
        == "warn budget iterations 3/2.5"
    )


def test_counters_warn_each_for_itself_in_their_order() -> None:
    """Two that cross at once are told one after the other, iterations first."""
    policy = limited(tool_calls=Budget(8, warn=0.5), iterations=Budget(4, warn=0.5))
    assert play(policy, ["a:1, a:2", "a:3, a:4", "a:5", "a:6"]) == [
        "pass",
        "warn budget iterations 2/2",
        "warn budget tool_calls 5/4",
        "hard_stop budget iterations 4/4",
    ]


def test_a_used_up_counter_beats_one_that_warns() -> None:
    """Also where the one that warns comes first."""
    policy = limited(iterations=Budget(9, warn=0.1), tool_calls=2)
    assert play(policy, ["a:1, a:2"]) == ["hard_stop budget tool_calls 2/2"]


def test_time_runs_from_the_first_event_and_is_never_summed() -> None:
    """From the start of the run, calls or not; parallel sub-agents do not make their parent's time run faster."""
    tape = Tape(limited(wall_clock_s=Budget(60, warn=1)))
    tape.feed(start("r", ts=100.0), start("s1", "r", ts=110.0), start("s2", "r", ts=110.0))
    assert tape.turn("@s1 a", ts=150.0) == "pass"
    assert tape.turn("@s2 a", ts=150.0) == "pass"
    assert tape.turn("b", ts=159.5) == "pass"
    assert tape.turn("@s1 b", ts=160.0) == "hard_stop budget wall_clock_s 60/60"
    assert tape.turn("@s1 c") == "pass"
    assert tape.turn("@s1 d", ts=90.0) == "pass"


def test_the_clock_of_a_parent_that_never_spoke_starts_with_its_first_child() -> None:
    """A graph that only hands on has no event of its own; a start without a time leaves the clock to the next event."""
    tape = Tape(limited(wall_clock_s=Budget(50, warn=1)))
    tape.feed(start("s1", "r", ts=100.0), start("s2", "r"))
    assert tape.turn("@s2 a", ts=149.0) == "pass"
    account = tape.detector.account(KEY)
    assert account is not None
    assert account.started == 100.0
    assert tape.turn("@s2 a", ts=150.0) == "hard_stop budget wall_clock_s 50/50"


def test_the_rate_counts_the_model_calls_of_the_last_minute() -> None:
    """A call exactly sixty seconds ago is out; calls of sub-agents count for their parents too."""
    tape = Tape(limited(requests_per_minute=Budget(3, warn=1)))
    tape.feed(start("s", "r"))
    assert tape.turn("a:1", ts=0.0) == "pass"
    assert tape.turn("", ts=30.0) == ""
    assert tape.turn("@s a:2", ts=60.0) == "pass"
    assert tape.turn("a:3", ts=61.0) == "hard_stop budget requests_per_minute 3/3"
    assert tape.turn("a:4", ts=119.0) == "hard_stop budget requests_per_minute 3/3"
    assert tape.turn("a:5", ts=180.0) == "pass"


def test_two_agents_that_hand_a_task_back_and_forth_share_a_budget() -> None:
    """Each stays below the cap, their lead's account does not: the sixth batch is stopped, whoever makes it."""
    tape = Tape(limited(iterations=6))
    tape.feed(start("lead"), start("planner", "lead"), start("coder", "lead"))
    found = [tape.turn(f"@{run} ask:{n}") for n in range(4) for run in ("planner", "coder")]
    assert found == [
        *["pass"] * 4,
        "warn budget iterations 5/4.8",
        *[f"hard_stop budget iterations {n}/6" for n in (6, 7, 8)],
    ]
    own = tape.detector.account(ScopeKey("t", "coder"))
    assert own is not None
    assert own.value("iterations", None) == 4


def test_a_chain_of_hand_offs_is_charged_to_the_top() -> None:
    """Each new run is the child of the one before: the first one pays for all of them."""
    tape = Tape(limited(tool_calls=5))
    tape.feed(start("1"), *[start(str(n), str(n - 1)) for n in range(2, 10)])
    found = [tape.turn(f"@{n} a") for n in range(1, 10)]
    assert [words.split()[0] for words in found] == [*["pass"] * 3, "warn", *["hard_stop"] * 5]
    assert tape.detector.lineage(ScopeKey("t", "3")) == tuple(ScopeKey("t", run) for run in "321")


def test_a_warning_of_a_parents_budget_is_given_once() -> None:
    """It is the parent's counter that warned: another child is not told again, its own counter still warns."""
    tape = Tape(limited(iterations=Budget(10, warn=0.3)))
    tape.feed(start("s1", "r"), start("s2", "r"))
    found = [tape.turn(text) for text in ("@s1 a:1", "@s1 a:2", "@s2 a:3", "@s1 a:4", "@s2 a:5", "@s2 a:6")]
    assert found == [
        "pass",
        "pass",
        "warn budget iterations 3/3",
        "warn budget iterations 3/3",
        "pass",
        "warn budget iterations 3/3",
    ]


def test_parents_in_a_ring_are_charged_once_each() -> None:
    """Hostile recordings do not make the engine run in circles."""
    tape = Tape(limited(iterations=3))
    tape.feed(start("r", "s"), start("s", "r"), start("x", "x"))
    assert [tape.turn(f"@{run} a:{n}") for n, run in enumerate("rsr")][-1] == "hard_stop budget iterations 3/3"
    assert tape.turn("@x a") == "pass"


def test_touching_a_child_keeps_its_ancestors() -> None:
    """The lead's histories outlive other runs that come in between, also when a new child needs the room."""
    policy = limited(iterations=90).with_(max_tracked_threads=3, hard_limit=3, warn_threshold=3)
    tape = Tape(policy)
    tape.feed(start("s1", "r"), start("s2", "r"))
    for text in ("same", "same", "@s1 a", "@x a", "@s1 b", "@y a", "@s2 a", "@z a", "@s2 b"):
        assert tape.turn(text) == "pass"
    assert tape.turn("same") == "hard_stop identical_call_set 3/3"
    full = Tape(policy)
    full.feed(start("s", "r"))
    for text in ("same", "same", "@x a", "@y a", "@s a"):
        assert full.turn(text) == "pass"
    assert full.turn("same") == "hard_stop identical_call_set 3/3"


def test_without_budgets_ancestors_are_evicted_like_any_scope() -> None:
    """DeerFlow knows no parents: under its layers alone their order of use is that of their own batches."""
    tape = Tape(ROOMY.with_(max_tracked_threads=2, hard_limit=2, warn_threshold=2))
    tape.feed(start("s1", "r"), start("s2", "r"))
    assert [tape.turn(text) for text in ("same", "@s1 a", "@s2 a", "same")] == ["pass"] * 4


def test_a_scope_that_is_evicted_keeps_its_account() -> None:
    """Two scopes with room for one: neither gets a new budget by the other's batch."""
    tape = Tape(limited(iterations=3).with_(max_tracked_threads=1))
    found = [tape.turn(f"@{run} a:{n}") for n in range(3) for run in ("x", "y")]
    assert [words.split()[0] for words in found] == ["pass", "pass", "pass", "pass", "hard_stop", "hard_stop"]


def test_accounts_and_parents_are_bounded_and_those_in_use_stay() -> None:
    """A long-lived child stays its lead's child however many short runs begin; the oldest unused ones are forgotten."""
    tape = Tape(limited(iterations=1000, wall_clock_s=1000).with_(max_tracked_threads=2))
    tape.feed(start("long", "lead"), start("idle", "lead"))
    for n in range(300):
        tape.feed(start(f"short{n}", "lead"))
        tape.turn("@long a")
    assert len(tape.detector._accounts.scopes) == len(tape.detector._accounts.parents) == 128
    assert tape.detector.lineage(ScopeKey("t", "long")) == (ScopeKey("t", "long"), ScopeKey("t", "lead"))
    assert tape.detector.lineage(ScopeKey("t", "idle")) == (ScopeKey("t", "idle"),)
    lead = tape.detector.account(ScopeKey("t", "lead"))
    assert lead is not None
    assert lead.value("iterations", None) == 300


def reset(run: str | None) -> Control:
    return Control(seq=0, ts=None, thread_id=None if run is None else "t", run_id=run, action="reset")


def test_a_reset_gives_a_new_budget() -> None:
    """Of one scope: its own account alone; of all: every account. Who is whose parent stays known."""
    tape = Tape(limited(iterations=2))
    tape.feed(start("s", "r"))
    stopped = "hard_stop budget iterations 2/2"
    assert [tape.turn("@s a"), tape.turn("@s b")] == ["pass", stopped]
    tape.feed(reset("s"))
    assert tape.turn("@s c") == "hard_stop budget iterations 3/2"
    tape.feed(reset(None))
    assert [tape.turn("@s d"), tape.turn("e")] == ["pass", stopped]
    tape.detector.reset("elsewhere")
    assert tape.turn("f") == "hard_stop budget iterations 3/2"
    tape.detector.reset("t")
    assert tape.turn("g") == "pass"


def test_a_budget_that_is_lowered_counts_from_the_next_batch_on() -> None:
    """What is spent stays spent; a budget of one scope's own policy counts as soon."""
    for place in ({"thread_id": None, "run_id": None}, {"thread_id": "t", "run_id": "r"}):
        tape = Tape(limited(iterations=1000))
        tape.detector = LoopDetector(limited(iterations=1000), follow_policy=True)
        assert [tape.turn(f"a:{n}", ts=float(n)) for n in range(4)] == ["pass"] * 4
        tape.feed(PolicySet(seq=0, ts=None, policy={"budget": {"iterations": {"limit": 5, "warn": 1}}}, **place))
        assert tape.turn("b", ts=5.0) == "hard_stop budget iterations 5/5"


def test_a_new_segment_knows_no_parents() -> None:
    """A header begins with fresh state."""
    tape = Tape(limited(iterations=2))
    tape.feed(start("s", "r"))
    tape.turn("@s a")
    tape.feed(Header(format="loopscope/1"))
    assert [tape.turn("@s b"), tape.turn("c")] == ["pass", "pass"]


def test_a_budget_of_one_scopes_own_policy() -> None:
    """It runs from the scope's start; the others have none."""
    policy: dict[str, Any] = {"budget": {"wall_clock_s": {"limit": 10, "warn": 1}}}
    detector = LoopDetector()
    tape = Tape(ROOMY)
    tape.detector = detector
    tape.feed(
        PolicySet(seq=0, ts=None, thread_id="t", run_id="r", policy=policy), start("r", ts=5.0), start("x", ts=5.0)
    )
    assert tape.turn("a", ts=14.0) == "pass"
    assert tape.turn("@x a", ts=20.0) == "pass"
    assert tape.turn("b", ts=15.0) == "hard_stop budget wall_clock_s 10/10"
    assert detector.account(ScopeKey("t", "x")) is None
    assert detector.over_budget(KEY, 15.0)
    assert not detector.over_budget(KEY, 14.0)
    assert not detector.over_budget(ScopeKey("t", "x"), 99.0)


def test_a_decision_names_its_counter() -> None:
    """Only a budget's decision has the field."""
    detector = LoopDetector(limited(cost_usd=Budget(2, warn=0.5)))
    batches = [turn(n, f"a:{n}", usage=usage(cost=0.5))[0] for n in (1, 2)]
    plain, warned = (decision for event in batches for decision in detector.observe(event))
    assert (plain.action, plain.counter) == ("pass", UNSET)
    assert (warned.action, warned.layer, warned.counter, warned.tool) == ("warn", "budget", "cost_usd", None)
    assert (warned.count, warned.threshold) == (1.0, 1.0)
