"""Layers that look at results: failures in a row, witnesses without progress, limits that look for anything new."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from loopscope.engine import trail
from loopscope.engine.decision import Decision
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, ScopeKey
from loopscope.engine.joins import Place
from loopscope.engine.policy import PRESETS, Policy
from loopscope.engine.sections import Cycle, Pair, Stagnation, WitnessMode
from loopscope.engine.trail import Outcome, normalised_error
from tests.engine.support import TESTS, read
from tests.engine.turns import ROOMY, Tape, events, play, result, say, told, turn

FAILING = ROOMY.with_(error_streak=Pair(3, 5))


def stagnating(witness: str = "results", mode: WitnessMode = "changes", **limits: int) -> Policy:
    return ROOMY.with_(stagnation=Stagnation(witness, mode, **limits))


def numbered(calls: Iterable[str]) -> list[str]:
    """Calls with ever new arguments: `a>x` becomes `a:1>x`."""
    return [call.replace(">", f":{n}>") for n, call in enumerate(calls, 1)]


def test_a_streak_is_found_at_the_last_result_and_stops_the_next_batch() -> None:
    """The second failure is a decision of its own with the second batch's number; the third batch is stopped."""
    policy = ROOMY.with_(error_streak=Pair(None, 2))
    stream = [*events(numbered(["a>!x"] * 2)), *turn(9, "b:1, c:2")]
    detector = LoopDetector(policy)
    first, second, found, carried = (decision for event in stream for decision in detector.observe(event))
    assert [say(first), say(second)] == ["pass", "pass"]
    assert found == Decision(
        2, 4, "t", "r", second.hash, 1, "hard_stop", layer="error_streak", tool="a", count=2, threshold=2, at="result"
    )
    assert (carried.batch, carried.seq, carried.at) == (3, 9, "batch")
    assert say(carried) == "hard_stop error_streak a 2/2"


def test_a_streak_warns_once_and_ends_with_a_call_that_works() -> None:
    """Three failures warn, the fourth says nothing; a batch of which one call works ends the stretch."""
    turns = numbered(["a>!1", "a>!2", "b>!3", "a>!4", "a>!5"])
    assert play(ROOMY.with_(error_streak=Pair(3)), [*turns, "a:6>!6, b:6>ok", *turns[:3]]) == [
        "pass",
        "pass",
        "pass; warn error_streak b 3/3 (result)",
        *["pass"] * 5,
        "pass; warn error_streak b 3/3 (result)",
    ]


def test_a_call_has_one_result() -> None:
    """A second result for the same place changes nothing: the streak grows with the next batch alone."""
    detector = LoopDetector(ROOMY.with_(error_streak=Pair(2)))
    key, failure = ScopeKey("t", "r"), Outcome("a", "x", failed=True, error="x")
    asked = [event for event in events(["a:1", "a:2"]) if isinstance(event, Batch)]
    detector.fold(asked[0], "one", ("a",))
    assert [detector.fold_result(key, Place(1, 0), failure, seq) for seq in (7, 8)] == [(), ()]
    detector.fold(asked[1], "two", ("a",))
    assert [say(decision) for decision in detector.fold_result(key, Place(2, 0), failure, 9)] == [
        "warn error_streak a 2/2 (result)"
    ]


def test_siblings_that_fail_together_are_one_failure() -> None:
    """Two batches of three failing calls are a streak of two, of no one tool."""
    found = play(ROOMY.with_(error_streak=Pair(2)), ["a:1>!x, a:2>!x, b:3>!x"] * 2)
    assert found == ["pass", "pass; warn error_streak 2/2 (result)"]


def test_a_batch_whose_results_are_not_in_neither_extends_nor_breaks() -> None:
    """The second batch gets one of its two results: the streak goes on over it, and takes it in once it has both."""
    tape = Tape(FAILING)
    assert tape.turn("a:1>!x") == "pass"
    assert tape.turn("a:2>!x, a:3") == "pass"
    assert tape.turn("a:4>!x") == "pass"
    assert tape.turn("a:5>!x") == "pass; warn error_streak a 3/3 (result)"
    assert tape.feed(result(90, "r", "3-1", "!x")) == []
    assert tape.turn("a:6>!x") == "pass; hard_stop error_streak a 5/5 (result)"


def test_a_stop_that_waits_falls_on_one_batch() -> None:
    """A message without calls is not that batch; where nothing new is found the batch after it passes."""
    tape = Tape(FAILING)
    for n in range(5):
        tape.turn(f"a:{n}>!x")
    assert tape.turn("") == ""
    assert tape.turn("b:1") == "hard_stop error_streak a 5/5"
    assert tape.turn("b:2") == "pass"


def test_a_stop_that_waits_gives_way_to_a_more_severe_one() -> None:
    """The sixth equal batch is stopped as identical, and what waited has had its batch."""
    policy = FAILING.with_(hard_limit=6, warn_threshold=6)
    assert play(policy, [*["a:1>!x"] * 5, "a:1", "b:2"])[4:] == [
        "pass; hard_stop error_streak a 5/5 (result)",
        "hard_stop identical_call_set 6/6",
        "pass",
    ]


def test_of_two_stops_that_wait_the_earlier_layer_stops() -> None:
    """Results that come late let both layers find a stop before the next batch comes."""
    policy = ROOMY.with_(error_streak=Pair(None, 2), stagnation=Stagnation("results", hard_limit=1))
    tape = Tape(policy)
    first, second, third = (tape.ask(f"a:{n}>{brought}") for n, brought in enumerate(["!x", "!y", "y"]))
    assert tape.feed(*first, *second) == ["hard_stop error_streak a 2/2 (result)"]
    assert tape.feed(*third) == ["hard_stop stagnation 1/1 (result)"]
    assert tape.turn("b") == "hard_stop error_streak a 2/2"


def test_a_warning_of_one_layer_never_hides_a_stop_of_the_other() -> None:
    """At one result the streak warns and stagnation stops: the stop is told, and the warning at the next one."""
    policy = ROOMY.with_(error_streak=Pair(2), stagnation=Stagnation("results", hard_limit=1))
    assert play(policy, numbered(["a>!x", "a>!x", "a>!y"])) == [
        "pass",
        "pass; hard_stop stagnation 1/1 (result)",
        "hard_stop stagnation 1/1; warn error_streak a 3/2 (result)",
    ]


def test_of_two_warnings_at_a_result_the_streak_is_told_first() -> None:
    """One is emitted; the other one at the next result."""
    policy = ROOMY.with_(error_streak=Pair(2), stagnation=Stagnation("results", warn=1))
    assert play(policy, numbered(["a>!x"] * 3))[1:] == [
        "pass; warn error_streak a 2/2 (result)",
        "pass; warn stagnation 2/1 (result)",
    ]


def test_results_that_stay_the_same_are_no_progress() -> None:
    """The third equal batch is the second iteration without progress; another result, or another tool's, is some."""
    found = play(stagnating(warn=2, hard_limit=3), numbered(["a>x", "a>x", "a>x", "a>x", "b>x", "b>x", "b>x", "b>y"]))
    assert found == [
        "pass",
        "pass",
        "pass; warn stagnation 2/2 (result)",
        "pass; hard_stop stagnation 3/3 (result)",
        "hard_stop stagnation 3/3",
        "pass",
        "pass; warn stagnation 2/2 (result)",
        "pass",
    ]


def test_results_are_compared_in_call_order() -> None:
    """The order in which they come does not matter, the order of the calls does."""
    tape = Tape(stagnating(warn=1))
    tape.turn("a:1>x, a:2>y")
    assert tape.feed(*reversed(tape.ask("a:3>x, a:4>y"))) == ["warn stagnation 1/1 (result)"]
    assert tape.turn("a:5>y, a:6>x") == "pass"


def test_the_last_error_is_compared_without_its_numbers() -> None:
    """Numbers and white space may differ; what works is progress, and does not hide the failure before it."""
    turns = [
        "a:1>!Error at line 12  of 0xfe",
        "a:2>!error at line 7 of 0xab12",
        "a:3>ok",
        "a:4>!Error at line 1 of 0x1",
        "a:5>!No",
    ]
    assert play(stagnating("last_error", warn=1), turns) == [
        "pass",
        "pass; warn stagnation 1/1 (result)",
        "pass",
        "pass; warn stagnation 1/1 (result)",
        "pass",
    ]


def test_the_last_error_is_that_of_the_failed_calls_alone() -> None:
    """Beside it other calls may work and bring something new each time; another tool's failure is another one."""
    turns = ["a:1>!boom, b:1>1", "b:2>2, a:2>!boom", "b:3>!boom"]
    assert play(stagnating("last_error", warn=1), turns) == ["pass", "pass; warn stagnation 1/1 (result)", "pass"]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("  File 'x.py', line 12\n\tKeyError: 7 ", "file 'x.py', line #\n\tkeyerror: #".replace("\n\t", " ")),
        ("at 0xDEADBEEF in 3f2504e04f89", "at # in #"),
        ("decade", "decade"),
        ("long " * 100, ("long " * 100)[:400]),
    ],
    ids=["numbers", "addresses", "words", "beginning"],
)
def test_normalised_errors(text: str, kept: str) -> None:
    """Numbers, addresses, long hexadecimal words, white space and case are gone, and all but the beginning."""
    assert normalised_error(text) == kept


@pytest.mark.parametrize(
    ("mode", "values", "counts"),
    [
        ("changes", [1, 1, 2, 2, 2, 1], [0, 1, 0, 1, 2, 0]),
        ("increases", [1, 2, 2, 1, 2], [0, 0, 1, 2, 0]),
        ("decreases", [3, 2, 2, 4, 1], [0, 0, 1, 2, 0]),
        ("shrinks", [["a", "b"], ["b"], ["b"], ["c"], [], ["a"]], [0, 0, 1, 2, 0, 1]),
        ("improves", [3, 5, 4, 5, 6, 6], [0, 0, 1, 2, 0, 1]),
        ("increases", [1, "none", "none", None], [0, 0, 1, 0]),
        ("shrinks", [1, 1, 2], [0, 1, 0]),
    ],
)
def test_modes_of_a_witness(mode: WitnessMode, values: Sequence[Any], counts: list[int]) -> None:
    """Iterations in a row without progress; values that cannot be compared show progress where they differ."""
    tape = Tape(stagnating("score", mode, hard_limit=1))
    found = []
    for n, value in enumerate(values):
        tape.turn(f"a:{n}>{n}")
        found.append(tape.feed(told(score=value, other=0)))
    assert found == [[f"hard_stop stagnation {count}/1 (result)"] if count else [] for count in counts]


def test_a_value_may_come_before_the_results_of_its_iteration() -> None:
    """Then it is judged when they are in; the last one of several counts."""
    tape = Tape(stagnating("score", warn=1))
    first = tape.ask("a:1>x")
    assert tape.feed(told(score=4), told(score=5), *first) == []
    second = tape.ask("a:2>y")
    assert tape.feed(told(score=4), told(score=5)) == []
    assert tape.feed(*second) == ["warn stagnation 1/1 (result)"]


def test_values_beyond_the_first_of_a_finished_iteration_are_passed_over() -> None:
    """One value an iteration: what is told again, or of other names, does not move the next iteration's value."""
    tape = Tape(stagnating("score", hard_limit=1))
    assert tape.feed(told(score=1)) == []
    tape.turn("a:1>x")
    assert tape.feed(told(score=1), told(score=2), told(other=1)) == []
    tape.turn("a:2>y")
    assert tape.feed(told(score=2)) == []
    tape.turn("a:3>z")
    assert tape.feed(told(score=2)) == ["hard_stop stagnation 1/1 (result)"]
    assert tape.turn("a:4>w") == "hard_stop stagnation 1/1"


def test_a_value_of_an_iteration_that_never_finished_is_passed_over() -> None:
    """Neither extends nor breaks: the next iteration is compared with the one before it."""
    tape = Tape(stagnating("score", hard_limit=1))
    tape.turn("a:1>x")
    tape.feed(told(score=1))
    tape.turn("a:2")
    tape.feed(told(score=7))
    tape.turn("a:3>y")
    assert tape.feed(told(score=1)) == ["hard_stop stagnation 1/1 (result)"]


def test_what_brings_something_new_each_time_is_warned_once_and_never_stopped() -> None:
    """Polling a growing log: the hard limit counts only what brought nothing new."""
    aware = Policy(result_aware=True)
    assert play(aware, [f"tail>{n}" for n in range(9)]) == [*["pass"] * 2, "warn identical_call_set 3/3", *["pass"] * 6]


def test_what_brings_nothing_new_stops_one_later() -> None:
    """The first one was new: with a limit of three, two stale ones and the one being decided stop at the fourth."""
    aware = Policy(warn_threshold=3, hard_limit=3, result_aware=True)
    assert play(aware, ["ls>x"] * 5) == ["pass", "pass", "warn identical_call_set 3/3"] + [
        f"hard_stop identical_call_set {n}/3" for n in (4, 5)
    ]


def test_a_first_occurrence_is_not_stale_after_anything_new() -> None:
    """Its answer may be known from another call: the three occurrences after it are stale, and stop the fifth."""
    aware = ROOMY.with_(warn_threshold=4, hard_limit=4, result_aware=True)
    assert play(aware, ["ls:1>x", *["ls:2>x"] * 5])[4:] == [
        "warn identical_call_set 4/4",
        "hard_stop identical_call_set 5/4",
    ]


def test_one_whose_results_are_not_in_is_not_stale() -> None:
    """Calls that were never answered are no proof that nothing moves."""
    aware = Policy(warn_threshold=9, hard_limit=9, result_aware=True)
    assert set(play(aware.with_(warn_threshold=2, hard_limit=2), ["ls"] * 9)[2:]) == {"pass"}


def test_editing_and_testing_is_not_stopped_but_failing_is() -> None:
    """Equal test results are not stale while edits in between bring something new, unless they are errors."""
    aware = ROOMY.with_(warn_threshold=3, hard_limit=3, result_aware=True)
    passing = [turn for n in range(6) for turn in ("test>2 red", f"edit:{n}>{n}")]
    assert not any(words.startswith("hard_stop") for words in play(aware, passing))
    failing = [turn for n in range(6) for turn in ("test>!2 red", f"edit:{n}>{n}")]
    assert play(aware, failing)[6] == "hard_stop identical_call_set 4/3"
    repeating = [turn for n in range(6) for turn in ("test>2 red", f"edit:{n}>done")]
    assert play(aware, repeating)[8] == "hard_stop identical_call_set 5/3"


def test_something_new_in_between_counts_also_when_it_comes_late() -> None:
    """An edit's result that comes after the next test was asked for still lies between the two tests."""
    aware = ROOMY.with_(warn_threshold=2, hard_limit=2, result_aware=True)
    tape = Tape(aware)
    tape.turn("test>red")
    edit = tape.ask("edit:1>1")
    test = tape.ask("test>red")
    tape.feed(*edit, *test)
    assert tape.turn("test") == "pass"
    again = Tape(aware)
    again.turn("test>red")
    edit = again.ask("edit:1>1")
    again.turn("test>red")
    assert again.turn("test") == "hard_stop identical_call_set 3/2"


def test_a_tool_is_stopped_for_calls_that_brought_nothing_new() -> None:
    """New arguments, the same answer: the first answer was new, so a limit of three stops at the fourth call."""
    aware = ROOMY.with_(tool_freq_warn=2, tool_freq_hard_limit=3, result_aware=True)
    assert play(aware, numbered(["find>none"] * 4)) == [
        "pass",
        "warn tool_frequency find 2/2",
        "pass",
        "hard_stop tool_frequency find 4/3",
    ]
    assert set(play(aware, [f"find:{n}>{n}" for n in range(9)])[2:]) == {"pass"}


def test_a_cycle_is_stopped_when_its_newest_laps_were_stale() -> None:
    """Of five laps the newest three without the last one: laps three and four must have brought nothing new."""
    aware = ROOMY.with_(cycle=Cycle(2, Pair(None, 5)), result_aware=True)
    stale = ["a>x", "b>y"] * 5
    assert play(aware, stale)[8:] == ["pass", "hard_stop cycle 5/5"]
    early = ["a>x", "b>y", "a>new", "b>y", "a>x", "b>y", "a>x", "b>y", "a", "b"]
    assert play(aware, early)[9] == "hard_stop cycle 5/5"
    late = ["a>x", "b>y", "a>x", "b>y", "a>x", "b>y", "a>x", "b>new", "a", "b"]
    assert play(aware, late)[9] == "warn cycle 5/5"


def test_a_cycle_too_short_to_judge_is_not_stopped() -> None:
    """Of two laps the newest half is the last one, which cannot be known: it warns once, at its hard limit.

    Of three laps the second one is looked at: at batch 6 it begins after b was new, at batch 7 it does not.
    """
    aware = ROOMY.with_(cycle=Cycle(3, Pair(None, 2)), result_aware=True)
    turns = ["a>x", "b>y"] * 4
    assert play(aware, turns[:7]) == [*["pass"] * 3, "warn cycle 2/2", "pass", "pass", "hard_stop cycle 3/2"]


def test_a_result_is_new_again_after_a_thousand_others() -> None:
    """Only the last 1,000 distinct results are known; one that comes again is among the last ones."""
    aware = ROOMY.with_(
        warn_threshold=2, hard_limit=2, result_aware=True, tool_freq_warn=5000, tool_freq_hard_limit=5000
    )
    assert [stale_after(aware, others) for others in (0, 999, 1000)] == [True, True, False]


def test_what_waits_to_be_forgotten_is_new_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Old results and hashes are dropped some hundred at a time; those behind the last thousand do not count till then.

    A snapshot holds only the ones that count, oldest first, and goes on from there.
    """
    monkeypatch.setattr(trail, "DISTINCT_KEPT", 3)
    monkeypatch.setattr(trail, "_SLACK", 2)
    aware = ROOMY.with_(result_aware=True)
    assert [stale_after(aware, others) for others in range(8)] == [True] * 3 + [False] * 5
    for others in range(8):
        tape = Tape(aware)
        for n in range(others):
            tape.turn(f"ls:{n}>{n}")
        again = LoopDetector(aware)
        again.restore(tape.detector.snapshot())
        for detector in (tape.detector, again):
            tape.detector = detector
            tape.turn("ls:0>0")
            (scope,) = detector.snapshot().scopes
            assert scope.trail is not None
            kept = [*range(max(others - 2, 1), others), 0]
            assert scope.trail["seen"] == [("ls", str(n)) for n in kept]
            assert scope.trail["batches"][-1][6] == (1 if 1 <= others <= 3 else 0)
        assert tape.detector.snapshot() == again.snapshot()


def stale_after(policy: Policy, others: int) -> bool:
    """Whether the tool's result is known after so many others."""
    tape = Tape(policy)
    tape.turn("ls:1>x")
    for n in range(others):
        tape.turn(f"other:{n}>{n}")
    tape.turn("ls:2>x")
    scope = tape.detector.scope(ScopeKey("t", "r"))
    assert scope is not None
    assert scope.trail is not None
    return scope.trail.not_new(others + 2, 0)


def test_where_no_digest_is_known_size_and_text_stand_for_it() -> None:
    """A log whose beginning alone was kept is another result when it has grown."""
    aware = ROOMY.with_(warn_threshold=2, hard_limit=2, result_aware=True)
    for sizes, verdict in (([10, 10], "hard_stop identical_call_set 3/2"), ([10, 20], "pass")):
        tape = Tape(aware)
        for n, size in enumerate(sizes):
            tape.ask("tail:f>x")
            tape.feed(result(90 + n, "r", f"{tape.seq - 2}-0", "begin", digest=None, size=size))
        assert tape.turn("tail:f") == verdict


def test_results_that_belong_to_nothing_are_passed_over() -> None:
    """Of a scope that is not there, of an id that is not open, a second time, or of a batch from long ago."""
    tape = Tape(ROOMY.with_(error_streak=Pair(1)))
    assert tape.feed(result(1, "nobody", "1-0", "!x"), told(score=1)) == []
    old = tape.ask("a:0>!x")
    assert tape.feed(result(90, "r", "77-7", "!x")) == []
    assert tape.turn("a:1>!x") == "pass; warn error_streak a 1/1 (result)"
    assert tape.feed(result(90, "r", "3-0", "!x")) == []
    for n in range(120):
        tape.turn(f"b:{n}>{n}")
    assert tape.feed(*old) == []


def test_a_result_closes_the_newest_call_with_its_id() -> None:
    """Ids come again: the newer batch has its result first, then the older one, each at its own first open call."""
    tape = Tape(ROOMY.with_(error_streak=Pair(2)))
    one, two = turn(1, "a:1, a:2>!x")[0], turn(1, "a:3")[0]
    tape.feed(one, two)
    assert tape.feed(result(8, "r", "1-0", "!x"), result(9, "r", "1-1", "!y")) == []
    assert tape.feed(result(10, "r", "1-0", "!z")) == ["warn error_streak a 2/2 (result)"]


def test_a_policy_that_does_not_look_forgets_what_was_brought() -> None:
    """Results that nobody looked at leave a hole: what came before it is not taken for what came last."""
    aware = ROOMY.with_(warn_threshold=3, hard_limit=3, tool_freq_warn=4, tool_freq_hard_limit=4, result_aware=True)
    tape = Tape(aware)
    for _ in range(3):
        tape.turn("ls>x")
    tape.detector.adopt(ROOMY)
    assert tape.turn("a>x") == "pass"
    tape.detector.adopt(aware)
    assert tape.turn("ls>x") == "warn tool_frequency ls 4/4"


def test_a_smaller_window_forgets_which_calls_brought_nothing() -> None:
    """The three stale calls before it are four calls ago; in a window of three only the newest ones count."""
    aware = ROOMY.with_(tool_freq_warn=2, tool_freq_hard_limit=9, window_size=9, result_aware=True)
    tape = Tape(aware)
    for n in range(5):
        tape.turn(f"find:{n}>none")
    tape.detector.adopt(aware.with_(tool_freq_hard_limit=3, window_size=3))
    assert tape.turn("find:5>1") == "hard_stop tool_frequency find 3/3"
    assert tape.turn("find:6>2") == "pass"
    tape.detector.adopt(aware.with_(tool_freq_hard_limit=3, window_size=1))
    assert tape.turn("find:7>none") == "pass"


CASES = TESTS / "cases"
TRUTH = list(csv.DictReader((CASES / "TRUTH.tsv").read_text().splitlines(), delimiter="\t"))


def worst_of(case: str, policy: Policy) -> set[str]:
    detector = LoopDetector(policy)
    return {decision.action for event in read(CASES / f"{case}.jsonl") for decision in detector.observe(event)}


@pytest.mark.parametrize(
    ("preset", "loops_flagged", "loops_stopped", "healthy_flagged", "healthy_stopped"),
    [("deerflow", 15, 14, 5, 5), ("bounded", 20, 16, 6, 5), ("progress", 20, 10, 6, 0)],
)
def test_the_figures_of_the_presets(
    preset: str, loops_flagged: int, loops_stopped: int, healthy_flagged: int, healthy_stopped: int
) -> None:
    """On the public cases, twenty loops and eight healthy runs: how many each preset flags, and how many it stops."""
    found = {row["case"]: worst_of(row["case"], PRESETS[preset]) for row in TRUTH}
    for truth, all_of, flagged, stopped in (
        ("loop", 20, loops_flagged, loops_stopped),
        ("ok", 8, healthy_flagged, healthy_stopped),
    ):
        actions = [found[row["case"]] for row in TRUTH if row["truth"] == truth]
        assert len(actions) == all_of
        assert sum(bool(found - {"pass"}) for found in actions) == flagged
        assert sum("hard_stop" in found for found in actions) == stopped


@pytest.mark.parametrize("row", TRUTH, ids=lambda row: row["case"])
def test_the_first_warning_and_stop_of_a_case(row: dict[str, str]) -> None:
    """Under the first two layers they come at the batches that the table names."""
    detector = LoopDetector()
    decisions = [d for event in read(CASES / f"{row['case']}.jsonl") for d in detector.observe(event)]
    first = {
        action: next((str(d.batch) for d in decisions if d.action == action), "-") for action in ("warn", "hard_stop")
    }
    assert (first["warn"], first["hard_stop"]) == (row["first_warn"], row["first_hard_stop"])
