"""Sweeps as pictures and pages: well formed, complete, safe, and with the numbers of the lines."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from loopscope.engine.policy import PRESETS
from loopscope.session.summary import Run
from loopscope.session.sweep import Outcome
from loopscope.session.tune import Tuning, compare_policies
from loopscope.views.tune import Map
from loopscope.views.web.tune_page import matrix_page, page
from loopscope.views.web.tune_picture import MOST_SLICES, picture
from tests.views.test_tune import GRID, LOOPS, swept
from tests.views.web.reading import ReadPage, text_of

SVG = "{http://www.w3.org/2000/svg}"


def drawn(tuning: Tuning, theme: str | None = None) -> ET.Element:
    return ET.fromstring(picture(tuning, theme=theme))  # noqa: S314 - our own


def words(element: ET.Element) -> list[str]:
    return [text.text or "" for text in element.iter(f"{SVG}text")]


def test_a_picture_shows_every_cell_and_the_front() -> None:
    """Each with its number, advised and present limits with their signs, and the reasons below."""
    root = drawn(LOOPS)
    cells = [group for group in root.iter(f"{SVG}g") if group.find(f"{SVG}rect") is not None]
    assert len(cells) == len(LOOPS.cells)
    titles = [group[0].text for group in cells]
    assert "hard_limit=4 window_size=20: 0" in titles
    signs = [path.get("class", "") for path in root.iter(f"{SVG}path") if path.get("class", "").startswith("sign")]
    assert sum("best" in sign for sign in signs) == 3, "in the map, in the front and in the legend"
    said = words(root)
    assert LOOPS.advice.reasons[0] in said
    assert "2 of 2 loops, 0 of 2 healthy stopped, 32 batches saved" in said
    assert root.get("aria-labelledby") == "title desc"


def test_a_few_slices_stand_beside_each_other() -> None:
    """All their cells are drawn, and nothing is said to be left out."""
    tuning = swept([("a", None, 4)], (*GRID, "warn_threshold=2,3"))
    root = drawn(tuning)
    cells = [group for group in root.iter(f"{SVG}g") if group.find(f"{SVG}rect") is not None]
    assert len(cells) == len(tuning.cells)
    assert not any(text.startswith("one of") for text in words(root))


def test_a_large_grid_is_one_slice_with_small_cells() -> None:
    """Numbers and labels give way; what is left out is said."""
    for grid in (("hard_limit=3..102", "window_size=1..3"), ("hard_limit=3..7", "window_size=1..42")):
        tuning = swept([("a", None, 4)], (*grid, f"tool_freq_warn=1..{MOST_SLICES + 1}"))
        root = drawn(tuning, "dark")
        cells = [group for group in root.iter(f"{SVG}g") if group.find(f"{SVG}rect") is not None]
        assert len(cells) == len(tuning.cells) / (MOST_SLICES + 1)
        assert any(text.startswith("one of 7 slices") for text in words(root))
        numbers = [text for text in root.iter(f"{SVG}text") if "number" in text.get("class", "")]
        labels = [text for text in root.iter(f"{SVG}text") if "count" in text.get("class", "")]
        assert (len(numbers), len(labels) < 60) == (0 if len(cells) == 300 else 210, True)
    one = words(drawn(swept([("a", None, 4)], ("hard_limit=3..6",)), "light"))
    assert "hard_limit →" in one


def test_invalid_cells_are_empty_boxes() -> None:
    """A hard limit below its warning is no policy."""
    tuning = swept([("a", None, 4)], ("hard_limit=2..4", "warn_threshold=3"))
    empty = [rect for rect in drawn(tuning).iter(f"{SVG}rect") if rect.get("class") == "none"]
    assert len(empty) == 1
    assert "no valid policy" in page(tuning)


def test_a_long_front_is_cut() -> None:
    """Eight cells are drawn, the others counted."""
    runs = [(f"r{n}", None, n) for n in range(3, 16)]
    tuning = swept(runs, ("hard_limit=3..15",))
    assert len(tuning.front) > 8
    assert f"and {len(tuning.front) - 8} more" in words(drawn(tuning))
    assert len(list(ReadPage(page(tuning)).all("table"))) >= 3


@pytest.mark.parametrize("theme", [None, "dark", "light"])
def test_a_page_has_every_slice_and_every_run(theme: str | None) -> None:
    """Heat maps as tables, the front, each run under present and advised limits; nothing that runs or is loaded."""
    tuning = swept([("stuck", "loop", 6), ("fine", "ok", 4)], (*GRID, "warn_threshold=2,3"))
    text = page(tuning, theme=theme)
    assert "<script" not in text
    assert not re.search(r"""(?:src|href)=["'](?!#)""", text)
    found = ReadPage(text)
    heats = list(found.all("table", "heat"))
    assert len(heats) == 2 * 3
    last = list(found.all("table"))[-1]
    rows = [text_of(row) for row in last.iter("tr")]
    assert rows[0] == "runlabelbatcheslimits nowadvised"
    assert rows[1] == "stuckloop203/53/5"
    assert rows[2] == "fineok203/-3/-"


def test_a_page_of_many_slices_shows_one() -> None:
    """Sixty are enough; the other cells are in the JSON."""
    tuning = swept([("a", None, 4)], (*GRID, "tool_freq_warn=1..30", "warn_threshold=1..3"))
    assert len(Map(tuning).slices) == 90
    text = page(tuning)
    assert "one of 90 slices" in text
    assert len(list(ReadPage(text).all("table", "heat"))) == 3


def test_without_todays_limits_in_the_grid_one_cell_is_shown() -> None:
    """The first of the front."""
    rows = text_of(list(ReadPage(page(swept([("a", None, 9)], ("hard_limit=7..8",)))).all("table"))[-1])
    assert "shown" in rows


def test_policies_side_by_side_are_a_table() -> None:
    """What contradicts its label says so in words."""
    found = [Outcome(3, 5, 15), Outcome(3, None)]
    policies = {name: PRESETS[name] for name in ("deerflow", "progress")}
    text = matrix_page(compare_policies(policies, [Run("stuck", 20, found, "loop")]), theme="light")
    table = next(ReadPage(text).all("table"))
    rows = [text_of(row) for row in table.iter("tr")]
    assert rows[1] == "stuckloop3/53/- wrong"
    assert rows[-1] == "batches saved150"


def test_hostile_names_are_text(tmp_path: object) -> None:
    """Of recordings and settings: neither tags nor control characters."""
    del tmp_path
    evil = "<script>alert(1)</script>\x1b[31m"
    tuning = swept(
        [(evil, "loop", 4), ("fine", "ok", 6)], (f"tool_freq_overrides.{evil}.hard_limit=50..52", "hard_limit=5")
    )
    for text in (
        page(tuning),
        picture(tuning),
        matrix_page(compare_policies({evil: PRESETS["deerflow"]}, tuning.runs)),
    ):
        assert "<script" not in text
        assert "\x1b" not in text
        assert "&lt;script&gt;" in text
