"""A sweep in lines: heat maps, the plane of the front, one cell, the runs under it, the advice; and the colours."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from loopscope.engine.policy import PRESETS, Policy
from loopscope.session.grid import parse_grid
from loopscope.session.summary import Label, Run
from loopscope.session.sweep import Outcome
from loopscope.session.tune import Tuning, compare_policies, tune
from loopscope.views import tune_lines
from loopscope.views.heat import SHADES, contrast, shade
from loopscope.views.model import Line, line_width, plain
from loopscope.views.palette import DARK, LIGHT, Palette
from loopscope.views.tune import Map, verdict, wrong
from loopscope.views.tune_matrix import matrix

GRID = ("hard_limit=3..6", "window_size=10,20")


def swept(
    stops: Sequence[tuple[str, Label | None, int | None]], grid: Sequence[str] = GRID, base: Policy | None = None
) -> Tuning:
    """Runs that are stopped under every hard limit up to a number: name, label, that number."""
    base = base or Policy()
    parsed = parse_grid(grid, base)
    cells = [cell.policy for cell in parsed.cells(base)]
    runs = [
        Run(name, 20, [_outcome(cell.hard_limit, most) for cell in cells], label, f"{name}.jsonl")
        for name, label, most in stops
    ]
    return tune(parsed, base, runs)


def _outcome(hard_limit: int, most: int | None) -> Outcome:
    if most is None:
        return Outcome(None, None)
    return (
        Outcome(3, hard_limit, 20 - hard_limit, 20 - hard_limit, 500, 0.25) if hard_limit <= most else Outcome(3, None)
    )


RUNS: list[tuple[str, Label | None, int | None]] = [
    ("stuck", "loop", 6), ("slow", "loop", 4), ("fine", "ok", 3), ("quiet", "ok", None),
]  # fmt: skip
LOOPS = swept(RUNS)


def text(lines: Sequence[Line]) -> list[str]:
    return [plain(line).rstrip() for line in lines]


def test_a_heat_map_has_a_row_a_value_and_signs() -> None:
    """Advised, today's limits, front; invalid combinations are dots."""
    sheet = Map(LOOPS)
    view = tune_lines.View(sheet.slices[0], sheet.metrics[0], 1, 0)
    assert text(tune_lines.heat(sheet, view, 80)) == [
        "hard_limit     3     4     5     6",
        "window_size",
        "         10    1     0     1     1",
        "         20    1 ◆   0 ●   1 ○   1",
    ]
    cursor = [span for line in tune_lines.heat(sheet, view, 80) for span in line if span.mark == "cursor"]
    assert [span.text for span in cursor] == ["  0   "]
    shades = [span.style for span in tune_lines.heat(sheet, view, 80)[2][2:]]
    assert shades == ["warm_4", "text", "warm_4", "warm_4"]
    low = Map(swept([("a", None, 4)], ("hard_limit=2..4", "warn_threshold=3,4")))
    assert text(tune_lines.heat(low, tune_lines.View(low.slices[0], low.metrics[0]), 80))[2:] == [
        "             3    ·     1 ◆   1",
        "             4    ·     ·     1",
    ]


def test_columns_that_have_no_room_are_counted() -> None:
    """On a screen the map scrolls; as text it goes on below."""
    sheet = Map(swept([("a", None, 4)], ("hard_limit=3..30",)))
    view = tune_lines.View(sheet.slices[0], sheet.metrics[0])
    lines = text(tune_lines.heat(sheet, view, 40, first=2))
    assert lines[0].split() == ["hard_limit", "5", "6", "7", "8"]
    assert lines[-1].strip() == "and 24 more columns"
    whole = text(tune_lines.text(sheet, 60))
    assert [line.split()[1] for line in whole if line.startswith("hard_limit ")][:2] == ["3", "11"]
    assert all(line_width(line) <= 60 for line in tune_lines.text(sheet, 60))


def test_slices_are_all_told_where_they_are_few() -> None:
    """Of many the one with the advised cell, or today's limits; the rest is counted."""
    few = Map(swept([("a", None, 4)], (*GRID, "warn_threshold=2,3")))
    assert [tune_lines.slice_name(few, part) for part in few.slices] == ["warn_threshold 2", "warn_threshold 3"]
    assert [line for line in text(tune_lines.text(few, 80)) if line.startswith("warn_threshold")] == [
        "warn_threshold 2", "warn_threshold 3",
    ]  # fmt: skip
    many = Map(swept([("a", None, 4)], (*GRID, "tool_freq_warn=1..9")))
    lines = text(tune_lines.text(many, 80))
    assert "and 8 more slices; --json and --csv have every cell" in lines
    assert many.slice_of(many.start) == 8
    assert many.slice_of(()) == 0
    unlike = Map(swept([("a", None, 4)], (*GRID, "tool_freq_warn=29,30")))
    assert unlike.slice_of(unlike.start) == 1, "where today's limits are"


def test_a_cell_is_told_in_numbers() -> None:
    """All that is counted of it; what is no valid policy says so."""
    sheet = Map(LOOPS)
    assert text(tune_lines.cell_lines(sheet, (4, 20), 80)) == [
        "hard_limit=4 window_size=20  advised",
        " 3 of 4 runs warned or stopped, 2 stopped, first stop at #4 (median)",
        " loops: 2 of 2 stopped",
        " healthy: 0 of 2 stopped, 1 warned or stopped",
        " saved by stopping: 32 batches, 1,000 tokens, $0.50",
    ]
    assert text(tune_lines.cell_lines(sheet, (3, 10), 80))[3] == (
        " healthy: 1 of 2 stopped, 1 warned or stopped, 17 batches of theirs lost"
    )
    assert text(tune_lines.cell_lines(sheet, (1, 10), 80))[1] == " no valid policy: a hard limit below its warning"
    missed = Map(swept([("a", "loop", None), ("b", "ok", None)]))
    assert text(tune_lines.cell_lines(missed, (5, 20), 80))[1:3] == [
        " 0 of 2 runs warned or stopped, 0 stopped",
        " loops: 0 of 1 stopped, 1 neither warned nor stopped",
    ]
    assert text(tune_lines.cell_lines(Map(swept([("a", None, 6)])), (5, 20), 80))[2:] == [
        " saved by stopping: 15 batches, 500 tokens, $0.25",
    ]


def test_runs_under_a_cell() -> None:
    """What each meets, and whether that contradicts its label."""
    sheet = Map(LOOPS)
    assert text(tune_lines.runs(sheet, (5, 20), 60)) == [
        "■ stuck                    loop warned #3, stopped #5",
        "▲ slow                     loop warned #3              wrong",
        "▲ fine                     ok   warned #3",
        "· quiet                    ok   passes",
    ]
    assert tune_lines.runs(sheet, (1, 10), 60) == []
    marked = tune_lines.runs(sheet, (5, 20), 60, 1)
    assert [line[0].mark for line in marked] == ["", "cursor", "", ""]


def test_the_plane_shows_harm_against_good() -> None:
    """The advised cell, today's limits, the front and all the others; without labels runs against batches."""
    sheet = Map(LOOPS)
    assert text(tune_lines.front(sheet, 80)) == [
        "loops stopped",
        "2 │  ●     ◆",
        "1 │  ○",
        "  └────────────",
        "     0     1     healthy runs stopped",
    ]
    plain_sheet = Map(swept([("a", None, 4), ("b", None, 6)]))
    lines = text(tune_lines.front(plain_sheet, 80))
    assert lines[0] == "batches saved"
    assert lines[-1].endswith("runs stopped")
    assert text(tune_lines.front_cells(plain_sheet, 80))[0].split() == [
        "hard_limit", "window_size", "stopped", "batches", "saved", "tokens", "saved",
    ]  # fmt: skip
    empty = tune(parse_grid(["hard_limit=1..2"], Policy()), Policy(), [])
    assert tune_lines.front(Map(empty), 80) == []
    assert Map(empty).start == ()


def test_where_one_begins() -> None:
    """At the advised cell, else at today's limits, else at the first of the front."""
    assert Map(LOOPS).start == (4, 20)
    assert Map(swept([("a", None, 4)])).start == (5, 20)
    assert Map(swept([("a", None, 4)], ("hard_limit=7..8",))).start == (7,)


def test_the_front_is_a_table() -> None:
    """Least harm first."""
    assert text(tune_lines.front_cells(Map(LOOPS), 80)) == [
        "  hard_limit  window_size  loops   healthy  batches saved  tokens saved",
        "● 4           20           2/2     0/2      32             1,000",
        "◆ 3           20           2/2     1/2      34             1,000",
    ]


def test_few_settings_are_all_told() -> None:
    """With all that is counted of each; of many only those of the front."""
    assert text(tune_lines.every_cell(Map(swept(RUNS, ("hard_limit=3..5",))), 100)) == [
        "  hard_limit  warned  stopped  first stop  healthy stopped  missed  batches saved  tokens saved",
        "◆ 3           3       3        #3          1                0       34             1,000",
        "● 4           3       2        #4          0                0       32             1,000",
        "○ 5           3       1        #5          0                0       15             500",
    ]
    lines = text(tune_lines.text(Map(swept([("a", None, 4)], ("hard_limit=4..6",))), 80))
    assert "  6           1       0        -           0              0" in lines
    many = text(tune_lines.text(Map(swept(RUNS, ("hard_limit=3..30",))), 80))
    assert not [line for line in many if "missed" in line]


def test_advice_is_wrapped_and_inert() -> None:
    """Names of files come from outside."""
    tuning = swept([("stuck\x1b[31m", "loop", 4), ("fine", "ok", 4)])
    lines = text(tune_lines.advice(Map(tuning), 40))
    assert all(len(line) <= 40 for line in lines)
    assert "\x1b" not in "".join(lines)
    assert lines[0].startswith("· no setting of this grid separates")
    assert lines[1].startswith("  ")


def test_hostile_names_do_not_reach_the_terminal() -> None:
    """Of recordings and of tools in the grid."""
    tuning = swept([("a\x1b]0;x\x07", None, 4)], ("tool_freq_overrides.\x1b[2J.hard_limit=50..52", "hard_limit=5"))
    sheet = Map(tuning)
    lines = [
        *tune_lines.text(sheet, 100),
        *tune_lines.runs(sheet, sheet.start, 80),
        *tune_lines.cell_lines(sheet, sheet.start, 80),
    ]
    assert "\x1b" not in "".join(plain(line) for line in lines)


def test_policies_side_by_side() -> None:
    """Names in two lines, every run, and totals by label where there are labels."""
    found = [Outcome(3, 5, 15), Outcome(3, None)]
    policies = {name: PRESETS[name] for name in ("deerflow-2026-04", "progress")}
    runs = [Run("stuck\x1b", 20, found, "loop"), Run("fine", 20, found, "ok")]
    assert text(matrix(compare_policies(policies, runs), 100)) == [
        "                                 deerflow-",
        "                                 2026-04    progress",
        "stuck\\x1b                   loop 3/5        3/- !",
        "fine                        ok   3/5 !      3/-",
        "",
        "loops warned or stopped          1/1        1/1",
        "loops stopped                    1/1        0/1",
        "healthy warned or stopped        1/1        1/1",
        "healthy stopped                  1/1        0/1",
        "batches saved                    15         0",
    ]
    lines = text(matrix(compare_policies(policies, [Run("stuck", 20, found)]), 100))
    assert [line.split()[0] for line in lines[-3:]] == ["runs", "runs", "batches"]


def test_verdicts_in_short() -> None:
    """And what a label makes wrong."""
    assert [verdict(Outcome(None, None)), verdict(Outcome(3, None)), verdict(Outcome(None, 5))] == ["-/-", "3/-", "-/5"]
    cases: list[tuple[Label | None, int | None, bool]] = [
        ("ok", 5, True), ("ok", None, False), ("loop", 5, False), ("loop", None, True), (None, 5, False),
    ]  # fmt: skip
    for label, stop, expected in cases:
        assert wrong(Run("a", 9, [], label), Outcome(None, stop)) is expected


@pytest.mark.parametrize("palette", [DARK, LIGHT])
@pytest.mark.parametrize("harm", [True, False])
def test_numbers_can_be_read_on_every_shade(palette: Palette, *, harm: bool) -> None:
    """4.5 : 1 at least, and each shade is further from the background than the one before."""
    shades = [shade(palette, level, harm=harm) for level in range(1, len(SHADES) + 1)]
    assert min(contrast(found.text, found.back) for found in shades) >= 4.5
    away = [contrast(found.back, palette.background) for found in shades]
    assert away == sorted(away)
    assert contrast("#FFFFFF", "#000000") == pytest.approx(21)
