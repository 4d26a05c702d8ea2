"""Sweeps: look-ups that equal a fold, grids, and what is recommended."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscope.engine.policy import BOUNDED, PROGRESS, Policy
from loopscope.errors import UsageError
from loopscope.session.sweep import Grid, Outcome, Sweeper, parse_grid
from loopscope.session.timeline import Origin, Timeline
from loopscope.session.tune import Run, outcomes, tune
from loopscope.session.whatif import verdicts
from tests.engine.support import TESTS, batch, read
from tests.engine.test_detector import RUNS, events, policies
from tests.session.support import Line, session_of


def by_fold(timeline: Timeline, policy: Policy) -> Outcome:
    """The same, folded batch by batch and counted by hand."""
    first_warning: dict[Any, int] = {}
    first_stop: dict[Any, int] = {}
    saved = [0, 0, 0, 0.0]
    for decision in verdicts(timeline, policy)[0]:
        if decision.scope in first_stop:
            usage = timeline.batches.usage(decision.batch - 1)
            assert usage is not None
            saved[0] += 1
            saved[1] += timeline.batches.calls[decision.batch - 1]
            saved[2] += (usage.input_tokens or 0) + (usage.output_tokens or 0)
            saved[3] += usage.cost_usd or 0.0
        elif decision.action == "hard_stop":
            first_stop[decision.scope] = decision.batch
        elif decision.action == "warn":
            first_warning.setdefault(decision.scope, decision.batch)
    stops, warnings = first_stop.values(), first_warning.values()
    return Outcome(min(warnings, default=None), min(stops, default=None), *saved)  # type: ignore[arg-type]


@given(policies(), st.lists(policies(), min_size=1, max_size=6), RUNS)
@settings(max_examples=200)
def test_look_ups_equal_a_fold(baseline: Policy, cells: list[Policy], run: Any) -> None:
    """For random policies and runs: first warning, first stop and savings, also where scopes are evicted."""
    timeline = session_of(events(run), Origin(baseline)).timeline
    sweeper = Sweeper(timeline)
    for cell in cells:
        policy = cell.with_(max_tracked_threads=baseline.max_tracked_threads)
        assert sweeper.outcome(policy) == by_fold(timeline, policy)


def test_layers_beyond_counting_are_folded() -> None:
    """A preset with more layers gives what its fold gives."""
    timeline = session_of([batch(n, ("ab"[n % 2], {"query": str(n % 2)})) for n in range(1, 12)]).timeline
    for policy in (BOUNDED, PROGRESS):
        assert Sweeper(timeline).outcome(policy) == by_fold(timeline, policy)


def test_batches_without_usage_save_no_tokens() -> None:
    """What a recording does not tell is not made up."""
    from loopscope.engine.events import Batch, Call

    stream = [Batch(seq=n, ts=None, thread_id="t", run_id="r", calls=(Call("a", "x", {}),)) for n in range(1, 7)]
    outcome = Sweeper(session_of(stream).timeline).outcome(Policy(hard_limit=4))
    assert outcome == Outcome(3, 4, 2, 2, 0, 0.0)


@pytest.mark.parametrize(
    ("texts", "settings_", "values"),
    [
        (["hard_limit=3..6"], ("hard_limit",), ((3, 4, 5, 6),)),
        (["window_size=10,20,40", "hard_limit=5..9..2"], ("window_size", "hard_limit"), ((10, 20, 40), (5, 7, 9))),
        (["hard_limit=5,5..6,7"], ("hard_limit",), ((5, 6, 7),)),
        (["tool_freq_overrides.bash.hard_limit=60"], ("tool_freq_overrides.bash.hard_limit",), ((60,),)),
        (["hard_limit=1..2"], ("hard_limit",), ((1, 2),)),
    ],
)
def test_grids(texts: list[str], settings_: tuple[str, ...], values: Any) -> None:
    """Ranges, steps and lists."""
    assert parse_grid(texts, Policy()) == Grid(settings_, values)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("hard_limit", "must be NAME=3..12"),
        ("=3", "must be NAME=3..12"),
        ("hard_limit=x", "must be NAME=3..12"),
        ("hard_limit=9..3", "must be NAME=3..12"),
        ("hard_limit=1..9..0", "must be NAME=3..12"),
        ("hard_limit=1..2..3..4", "must be NAME=3..12"),
        ("hard_limit=1..99999999", "must be NAME=3..12"),
        ("hard_limt=3", "did you mean hard_limit?"),
        ("cycle.hsh.warn=3", "there is no setting"),
        ("identity.x=3", "there is no setting"),
    ],
)
def test_a_wrong_grid_is_refused(text: str, problem: str) -> None:
    """In one line that names the text."""
    with pytest.raises(UsageError) as caught:
        parse_grid([text], Policy())
    assert problem in str(caught.value)
    assert repr(text) in str(caught.value)


def test_too_large_a_grid_is_refused() -> None:
    """Before any work is done."""
    with pytest.raises(UsageError, match="too many"):
        parse_grid(["hard_limit=1..2000", "window_size=1..2000"], Policy())


def test_cells_are_the_valid_policies() -> None:
    """A hard limit below its warning is none; limits of tools and of other layers can be swept too."""
    grid = parse_grid(["warn_threshold=3..6", "hard_limit=4..6"], Policy())
    assert [cell.values for cell in grid.cells(Policy())] == [
        (3, 4), (3, 5), (3, 6), (4, 4), (4, 5), (4, 6), (5, 5), (5, 6), (6, 6),
    ]  # fmt: skip
    tools = parse_grid(["tool_freq_overrides.bash.warn=5", "tool_freq_overrides.bash.hard_limit=9"], Policy())
    (cell,) = tools.cells(Policy())
    assert cell.policy.frequency_limits("bash").hard_limit == 9
    cycles = parse_grid(["cycle.hash.hard_limit=5..6"], BOUNDED)
    assert [cell.policy.cycle.hash.hard_limit for cell in cycles.cells(BOUNDED)] == [5, 6]


def case(name: str) -> Timeline:
    path = next(path for path in (TESTS / "cases").glob(f"{name}-*.jsonl") if "expected" not in path.name)
    session = session_of([])
    session.append(Line(event, 0, 1) for event in read(path))
    return session.timeline


def test_what_separates_is_recommended() -> None:
    """Five equal polls that end well against the same command for ever: a higher limit spares the one."""
    runs = [Run("poll", case("09"), "ok"), Run("loop", case("01"), "loop")]
    tuning = tune(runs, parse_grid(["hard_limit=4..8"], Policy()), Policy())
    best = tuning.recommendation.best
    assert best is not None
    assert best.values == (6,)
    assert tuning.recommendation.reasons[0] == "hard_limit=6: every loop is stopped and no healthy run is"
    assert (best.stopped, best.healthy_stopped, best.loops_not_stopped, best.median_first_stop) == (1, 0, 0, 6.0)
    assert (tuning.runs, tuning.loops, tuning.healthy) == (2, 1, 1)


def test_what_cannot_be_separated_is_said() -> None:
    """A failing test with a new file each time, and a growing log: no limit of the first layers tells them apart."""
    runs = [Run("26", case("26"), "loop"), Run("27", case("27"), "ok")]
    grid = parse_grid(["hard_limit=3..12", "window_size=10,20,40", "tool_freq_hard_limit=30..60..10"], Policy())
    recommendation = tune(runs, grid, Policy()).recommendation
    assert recommendation.best is None
    assert recommendation.reasons[0].startswith("no setting of this grid separates the loops from the healthy runs")
    assert recommendation.reasons[1] == "the most that can be stopped is 1 of 1 loops, with 1 of 1 healthy runs"


def test_a_compromise_is_told_with_its_price() -> None:
    """Some loops can be stopped without a healthy run, and what the others would cost is said."""
    runs = [Run("01", case("01"), "loop"), Run("26", case("26"), "loop"), Run("27", case("27"), "ok")]
    tuning = tune(runs, parse_grid(["hard_limit=5", "window_size=6,20"], Policy()), Policy())
    best = tuning.recommendation.best
    assert best is not None
    assert best.values == (5, 6)
    assert tuning.recommendation.reasons == (
        "hard_limit=5, window_size=6: 1 of 2 loops stopped, no healthy run stopped",
        "1 of 1 healthy runs are warned",
        "the most that can be stopped is 2 of 2 loops, with 1 of 1 healthy runs",
    )
    assert [cell.values for cell in tuning.front] == [(5, 6), (5, 20)]


def test_without_labels_nothing_is_recommended() -> None:
    """The numbers are there; what is right nobody has said."""
    tuning = tune([Run("01", case("01"))], parse_grid(["hard_limit=5"], Policy()), Policy())
    assert tuning.recommendation.best is None
    assert "give --labels" in tuning.recommendation.reasons[0]
    assert (tuning.cells[0].warned, tuning.cells[0].stopped, tuning.cells[0].saved_batches) == (1, 1, 7)


def test_a_grid_without_a_valid_cell_says_so() -> None:
    """Each limit below its warning."""
    tuning = tune([Run("01", case("01"), "loop")], parse_grid(["hard_limit=1..2"], Policy()), Policy())
    assert tuning.cells == ()
    assert tuning.recommendation.reasons == ("no combination of the grid is a valid policy",)


def test_outcomes_can_be_computed_elsewhere() -> None:
    """A run a worker; the summary is the same."""
    runs = [Run("01", case("01"), "loop"), Run("09", case("09"), "ok")]
    grid = parse_grid(["hard_limit=4..8"], Policy())
    spread = tune(runs, grid, Policy(), spread=lambda rs, ps: (outcomes(run.timeline, ps) for run in rs))
    assert spread == tune(runs, grid, Policy())
