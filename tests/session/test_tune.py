"""Tuning: what is added up over runs, which cells no other one beats, and what is advised with which reasons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from loopscope.engine.policy import PRESETS, Policy
from loopscope.session.grid import parse_grid
from loopscope.session.summary import Label, Run, summarise
from loopscope.session.sweep import Outcome
from loopscope.session.timeline import Timeline
from loopscope.session.tune import Tuning, compare_policies, outcomes, tune
from tests.engine.support import TESTS, read
from tests.session.support import Line, session_of


def case(name: str) -> Timeline:
    path = next(path for path in (TESTS / "cases").glob(f"{name}-*.jsonl") if "expected" not in path.name)
    session = session_of([])
    session.append(Line(event, 0, 1) for event in read(path))
    return session.timeline


def tuned(
    labels: Mapping[str, Label | None], *grid: str, base: Policy | None = None, instead: tuple[str, ...] = ()
) -> Tuning:
    """A sweep over public cases."""
    base = base or Policy()
    parsed = parse_grid(grid, base)
    policies = [cell.policy for cell in parsed.cells(base)]
    known = {name: case(name) for name in labels}
    runs = [Run(name, len(known[name]), outcomes(known[name], policies), label) for name, label in labels.items()]
    others = {preset: [outcomes(known[name], [PRESETS[preset]])[0] for name in labels] for preset in instead}
    return tune(parsed, base, runs, others)


def test_what_separates_is_advised() -> None:
    """Five equal polls that end well against the same command for ever: a higher limit spares the one."""
    tuning = tuned({"09": "ok", "01": "loop"}, "hard_limit=4..8")
    assert tuning.advice.separates
    assert tuning.advice.best == (6,)
    assert tuning.advice.reasons == (
        "hard_limit=6: every loop stopped, no healthy run stopped",
        "1 of 1 healthy runs are warned",
        "2 more settings do the same; this one changes least",
    )
    best = next(cell for cell in tuning.cells if cell.values == (6,))
    assert (best.stopped, best.healthy_stopped, best.loops_not_stopped, best.median_first_stop) == (1, 0, 0, 6.0)
    assert (len(tuning.runs), tuning.loops, tuning.healthy) == (2, 1, 1)
    assert tuning.policies[2].hard_limit == 6


def test_what_cannot_be_separated_is_said() -> None:
    """A failing test with a new file each time, and a growing log: no limit of the first layers tells them apart."""
    tuning = tuned(
        {"26": "loop", "27": "ok"},
        "hard_limit=3..12",
        "window_size=10,20,40",
        "tool_freq_hard_limit=30..60..10",
        instead=("bounded", "progress"),
    )
    assert tuning.advice.best is None
    assert not tuning.advice.separates
    assert tuning.advice.reasons == (
        "no setting of this grid separates the labels: none stops every loop and spares every healthy run",
        "whatever stops 26 stops 27 too",
        "the most that can be stopped is 1 of 1 loops, with 1 of 1 healthy runs",
        "the preset bounded stops 1 of 1 loops and 1 of 1 healthy runs, and misses 0 loops altogether",
        "the preset progress stops 0 of 1 loops and 0 of 1 healthy runs, and misses 0 loops altogether",
    )
    assert [(pair.loop, pair.healthy) for pair in tuning.advice.inseparable] == [("26", ("27",))]


def test_a_compromise_is_told_with_its_price() -> None:
    """Some loops can be stopped without a healthy run, and what the others would cost is said."""
    tuning = tuned({"01": "loop", "26": "loop", "27": "ok"}, "hard_limit=5", "window_size=6,20")
    assert tuning.advice.best == (5, 6)
    assert tuning.advice.reasons == (
        "hard_limit=5, window_size=6: 1 of 2 loops stopped, no healthy run stopped",
        "1 of 1 healthy runs are warned",
        "no setting of this grid separates the labels: none stops every loop and spares every healthy run",
        "whatever stops 26 stops 27 too",
        "the most that can be stopped is 2 of 2 loops, with 1 of 1 healthy runs",
    )
    assert [cell.values for cell in tuning.front] == [(5, 6), (5, 20)]


def test_a_grid_that_stops_nothing_says_so() -> None:
    """The limits are too high for what there is."""
    advice = tuned({"28": "loop", "33": "ok"}, "hard_limit=5..6").advice
    assert advice.best is None
    assert advice.reasons[-1] == "none of its settings stops a loop at all"


@pytest.mark.parametrize(
    ("labels", "missing"),
    [
        ({"01": None}, "runs labelled loop and ok"),
        ({"01": "loop"}, "a run labelled ok"),
        ({"33": "ok"}, "a run labelled loop"),
    ],
)
def test_without_both_labels_nothing_is_advised(labels: Any, missing: str) -> None:
    """The numbers are there; what is right nobody has said."""
    tuning = tuned(labels, "hard_limit=5")
    assert tuning.advice.best is None
    assert tuning.advice.reasons == (f"without {missing} nobody can say which stop is right: give --labels",)


def test_a_grid_without_a_valid_cell_says_so() -> None:
    """Each limit below its warning."""
    tuning = tuned({"01": "loop"}, "hard_limit=1..2")
    assert (tuning.cells, tuning.front, tuning.policies) == ((), (), ())
    assert tuning.advice.reasons == ("no combination of the grid is a valid policy",)


def test_without_labels_the_front_saves_most_for_the_fewest_stops() -> None:
    """Runs that are spared against batches that are saved; of equal cells the one that changes least."""
    tuning = tuned({"01": None, "10": None}, "hard_limit=5..12")
    assert [(cell.values, cell.stopped, cell.saved_batches) for cell in tuning.front] == [((11,), 1, 1), ((5,), 2, 18)]


def many(count: int) -> Tuning:
    """As many loops and healthy runs as cannot be told apart."""
    found = [Outcome(None, 5, 1), Outcome(None, None)]
    base = Policy()
    runs = [Run(f"loop {n}", 9, found, "loop") for n in range(count)]
    runs += [Run(f"fine {n}", 9, found, "ok") for n in range(count)]
    return tune(parse_grid(["hard_limit=5..6"], base), base, runs)


def test_not_all_names_are_listed() -> None:
    """Six are enough to look at."""
    reasons = many(8).advice.reasons
    assert reasons[1] == ("whatever stops loop 0 stops fine 0, fine 1, fine 2, fine 3, fine 4, fine 5 and 2 more too")
    assert reasons[7] == "and so it is with 2 more loops"


def test_a_summary_counts_what_is_saved_and_what_is_lost() -> None:
    """What healthy runs would not have done is no gain."""
    runs = [
        Run("a", 9, [Outcome(3, 5, 4, 4, 40, 0.5)], "loop"),
        Run("b", 9, [Outcome(3, None)], "ok"),
        Run("c", 9, [Outcome(None, 7, 2, 2, 20, 0.1)], "ok"),
        Run("d", 9, [Outcome(None, None)], "loop"),
        Run("e", 9, [Outcome(None, 9, 1, 1, 10, 0.1)]),
    ]
    found = summarise((5,), runs, 0)
    assert (found.warned, found.stopped, found.median_first_stop) == (4, 3, 7.0)
    assert (found.saved_batches, found.saved_tokens, found.saved_cost_usd, found.lost_batches) == (5, 50, 0.6, 2)
    assert (found.healthy_warned, found.healthy_stopped, found.loops_missed, found.loops_not_stopped) == (2, 1, 1, 1)


def test_policies_are_compared_run_by_run() -> None:
    """The matrix of verdicts, with totals."""
    policies = {name: PRESETS[name] for name in ("deerflow", "progress")}
    timeline = case("27")
    run = Run("27", len(timeline), outcomes(timeline, list(policies.values())), "ok")
    comparison = compare_policies(policies, [run])
    assert comparison.names == ("deerflow", "progress")
    assert [outcome.first_stop for outcome in comparison.runs[0].outcomes] == [9, None]
    assert [total.healthy_stopped for total in comparison.totals] == [1, 0]
    assert (comparison.loops, comparison.healthy) == (0, 1)


def test_equal_outcomes_are_one_object() -> None:
    """Ten thousand cells that do the same cost one."""
    found = outcomes(case("01"), [Policy(hard_limit=9), Policy(hard_limit=9, tool_freq_warn=40)])
    assert found[0] is found[1]
