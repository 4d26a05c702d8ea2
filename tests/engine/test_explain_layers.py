"""Why the layers beyond the first two warned or stopped, and the nearest settings that would have changed it."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings

from loopscope.engine.events import Control, Event, Header
from loopscope.engine.nearest import changed, fold_scope
from loopscope.engine.policy import Policy
from loopscope.engine.sections import Budget, Cycle, Pair, RepeatInBatch, Stagnation
from loopscope.session.session import Session
from loopscope.session.steps import Steps
from loopscope.session.timeline import Origin
from tests.engine.layered import policies, streams
from tests.engine.turns import ROOMY, events, start, told, turn
from tests.session.support import session_of


def session(policy: Policy, turns: Iterable[str]) -> Session:
    return session_of(list(events(turns)), Origin(policy))


def verdict(policy: Policy, turns: Iterable[str], number: int) -> str:
    return session(policy, turns).row(number).decision.action


AB = ["a", "b"] * 8


def test_a_cycle_names_its_laps_and_its_block() -> None:
    """By hash with the batches' letters, oldest first; one lap more would not have warned."""
    policy = ROOMY.with_(cycle=Cycle(hash=Pair(3, 5)))
    lines = session(policy, AB).explain(6).lines
    assert lines[:2] == (
        "rule cycle found 3 laps of A B (by hash) that end at #6",
        "warning limit is 3: cycle.hash.warn (default)",
    )
    assert lines[-1] == "nearest settings that would not warn #6: cycle.hash.warn >= 4 (still stopped first at #10)"
    stopped = session(policy, AB).explain(11)
    assert stopped.headline == "STOP cycle A 5/5"
    assert stopped.lines[0] == "rule cycle found 5 laps of B A (by hash) that end at #11"
    assert stopped.lines[-1] == (
        "nearest settings that would not stop #11: "
        "cycle.hash.hard_limit >= 6 (then stopped first at #12, from 9 on never)"
    )


def test_a_cycle_of_names_is_told_apart_from_one_of_hashes() -> None:
    """Also where both readings have the same limit: the one that went round is named, and only its limit helps."""
    turns = [f"{tool}:{n}" for n in range(4) for tool in ("search", "fetch")]
    for cycle in (Cycle(hash=Pair(3), names=Pair(3)), Cycle(names=Pair(3))):
        explanation = session(ROOMY.with_(cycle=cycle), turns).explain(6)
        assert explanation.lines[0] == "rule cycle found 3 laps of search fetch (by tool names) that end at #6"
        assert explanation.lines[1] == "warning limit is 3: cycle.names.warn (default)"
        assert [(change.setting, change.value) for change in explanation.changes] == [("cycle.names.warn", 4)]


def test_where_both_readings_go_round_no_single_limit_helps() -> None:
    """The other one would stop it."""
    explanation = session(ROOMY.with_(cycle=Cycle(hash=Pair(None, 3), names=Pair(None, 3))), AB).explain(6)
    assert explanation.lines[1] == "hard limit is 3: cycle.hash.hard_limit (default)"
    assert explanation.lines[-1] == "no single setting would not stop this batch"


def test_a_cycle_that_new_results_kept_from_stopping() -> None:
    """It warns at its hard limit, where it has no other."""
    policy = ROOMY.with_(cycle=Cycle(names=Pair(None, 3)), result_aware=True)
    explanation = session(policy, [f"{tool}:{n}>{n}" for n in range(5) for tool in "ab"]).explain(6)
    assert explanation.headline == "WARN cycle C 3/3" or explanation.headline.startswith("WARN cycle")
    assert explanation.lines[1] == "warning limit is 3: cycle.names.hard_limit (default)"
    assert [(change.setting, change.value) for change in explanation.changes] == [("cycle.names.hard_limit", 4)]


def test_an_error_streak_tells_at_which_results_it_was_found() -> None:
    """The batch whose results completed it, and the next one, which it stops."""
    policy = ROOMY.with_(error_streak=Pair(2, 3))
    shown = session(policy, [f"a:{n}>!x" for n in range(3)] + ["b:1>ok", "b:2"])
    assert shown.explain(2).lines[:2] == (
        "rule error_streak counted 2 batches in a row in which every call failed, the results of #2 included",
        "warning limit is 2: error_streak.warn (default)",
    )
    assert (
        shown.explain(3).lines[0].endswith("3 batches in a row in which every call failed, the results of #3 included")
    )
    assert shown.explain(3).lines[-1] == (
        "nearest settings that would not stop #3: error_streak.hard_limit >= 4 (no stop in this scope)"
    )
    assert shown.explain(4).lines[0].endswith("in which every call failed, and so stops the batch that came next")
    assert [(change.setting, change.value) for change in shown.explain(4).changes] == [("error_streak.hard_limit", 4)]
    assert shown.explain(5).headline == "PASS E seen once"


@pytest.mark.parametrize(
    ("witness", "turns"),
    [("results", [f"a:{n}>x" for n in range(4)]), ("last_error", [f"a:{n}>!line {n}" for n in range(4)])],
)
def test_stagnation_names_its_witness(witness: str, turns: list[str]) -> None:
    """How many iterations brought no progress, and the limit that a longer wait would need."""
    shown = session(ROOMY.with_(stagnation=Stagnation(witness, warn=1, hard_limit=3)), turns)
    assert shown.explain(2).lines[:2] == (
        f"rule stagnation saw no progress of the witness {witness} for one iteration, the results of #2 included",
        "warning limit is 1: stagnation.warn (default)",
    )
    stopped = shown.explain(4)
    assert stopped.lines[0].endswith(f"witness {witness} for 3 iterations in a row, the results of #4 included")
    assert [(change.setting, change.value, change.verdict) for change in stopped.changes] == [
        ("stagnation.hard_limit", 4, "pass")
    ]


def test_a_repeat_names_the_tool() -> None:
    """One more in the batch would have been needed."""
    explanation = session(ROOMY.with_(repeat_in_batch=RepeatInBatch(2)), ["a:1, b:1, a:1, a:1"]).explain(1)
    assert explanation.headline == "WARN repeat_in_batch a 3/2"
    assert explanation.lines[:2] == (
        "rule repeat_in_batch found one call of a 3 times in this batch",
        "warning limit is 2: repeat_in_batch.warn (default)",
    )
    assert [(change.setting, change.value) for change in explanation.changes] == [("repeat_in_batch.warn", 4)]


def test_a_budget_names_its_counter_and_what_would_let_it_go_on() -> None:
    """No value is tried, since others spend it too; above what was spent it passes, at it it does not."""
    policy = ROOMY.with_(budget={"iterations": Budget(3)})
    turns = [f"a:{n}" for n in range(5)]
    shown = session(policy, turns)
    stopped = shown.explain(4)
    assert stopped.headline == "STOP budget iterations 4/3"
    assert stopped.lines[:3] == (
        "rule budget: iterations stands at 4, sub-agents and their callers counted together",
        "hard limit is 3: budget.iterations.limit (default)",
        "no warning was given before",
    )
    assert stopped.lines[-1] == "budget.iterations.limit above what was spent would let it go on"
    assert verdict(policy.with_(budget={"iterations": Budget(4)}), turns, 4) == "hard_stop"
    assert verdict(policy.with_(budget={"iterations": Budget(4.5, warn=1)}), turns, 4) == "pass"
    warned = session(policy.with_(budget={"iterations": Budget(4, warn=0.5)}), turns).explain(2)
    assert warned.lines[1] == "warning limit is 2: budget.iterations.warn (default)"


def test_a_spent_budget_is_no_way_out_for_another_layer() -> None:
    """A limit of the first layer would not spare a batch that a budget stops too; nor does it end the stops."""
    policy = ROOMY.with_(warn_threshold=3, hard_limit=3, window_size=9, budget={"iterations": Budget(4)})
    stream: list[Event] = [
        start("s", "r"),
        *turn(1, "a"),
        *turn(2, "a"),
        *turn(3, "@s x"),
        *turn(4, "a"),
        *turn(5, "a"),
    ]
    shown = session_of(stream, Origin(policy))
    assert [shown.row(n).state for n in range(1, 6)] == ["new", "repeat", "new", "stop", "stop"]
    explanation = shown.explain(4)
    assert explanation.headline == "STOP identical_call_set A 3/3"
    assert explanation.lines[-1] == "no single setting would not stop this batch"
    roomier = session_of(stream, Origin(policy.with_(budget={"iterations": Budget(5)}))).explain(4)
    assert roomier.lines[-1].startswith(
        "nearest settings that would not stop #4: "
        "hard_limit >= 4 (then stopped first at #5, warnings 0 → 1); or window_size <= 2"
    )


def test_values_of_later_iterations_are_not_the_newest_ones() -> None:
    """The fold that asks for batch 4 ends before batch 5: what the program told from there on is not in it."""
    policy = ROOMY.with_(stagnation=Stagnation("score", warn=2, hard_limit=9))
    stream = [event for n in range(1, 9) for event in (*turn(10 * n, f"a:{n}>{n}"), told(score=n if n > 4 else 1))]
    (change,) = session_of(stream, Origin(policy)).explain(3).changes
    assert (change.setting, change.value, change.verdict) == ("stagnation.warn", 3, "pass")
    assert change.effect.warnings == 1


def test_a_reset_ends_what_a_batch_can_bring() -> None:
    """A value that is told after it belongs to no batch, here as in the run."""
    policy = ROOMY.with_(stagnation=Stagnation("score", hard_limit=1))
    reset = Control(seq=0, ts=None, thread_id=None, run_id=None, action="reset")
    stream: list[Event] = [*turn(1, "a:1>1"), told(score=1), *turn(3, "a:2>2"), reset, told(score=1), *turn(5, "a:3>3")]
    shown = session_of(stream, Origin(policy))
    assert [shown.row(n).state for n in (1, 2, 3)] == ["new"] * 3
    assert [d.action for d in fold_scope(Steps(shown.timeline, [1, 2, 3]))] == ["pass"] * 3
    stream[stream.index(reset)] = Header(format="loopscope/1")
    segments = session_of(stream, Origin(policy))
    assert [d.action for d in fold_scope(Steps(segments.timeline, [1, 2, 3]))] == ["pass"] * 3


@given(policies(eviction=False, budgets=False), streams(late=False))
@settings(max_examples=40)
def test_every_nearest_setting_does_what_it_says(policy: Policy, stream: list[Event]) -> None:
    """Replayed in full, the named value gives the verdict and the stops that it says; its neighbour changes nothing."""
    shown = session_of(stream, Origin(policy))
    for number in list(shown.timeline.notable)[:5]:
        decision, key = shown.row(number).decision, shown.timeline.scope_of(number)
        for change in shown.explain(number).changes:
            then = session_of(stream, Origin(changed(policy, change.setting, change.value)))
            assert then.row(number).decision.action == change.verdict != decision.action
            verdicts = [then.row(n).decision.action for n in then.timeline.scopes[key].batches]
            assert (verdicts.count("hard_stop"), verdicts.count("warn")) == (
                change.effect.stops,
                change.effect.warnings,
            )
            near = change.value + (-1 if change.value > change.before else 1)
            if near != change.before:
                neighbour = session_of(stream, Origin(changed(policy, change.setting, near)))
                assert neighbour.row(number).decision.action == decision.action
            if change.never is not None:
                spared = session_of(stream, Origin(changed(policy, change.setting, change.never)))
                assert all(spared.row(n).decision.action != "hard_stop" for n in spared.timeline.scopes[key].batches)
