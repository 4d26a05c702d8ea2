"""Draws the pictures of the README and the documentation: the real screen on a sample run, as SVG.

Run it from the checkout: `python docs/make_screens.py`. It writes `docs/images/debugger.svg`, `bounds.svg`, and of the
page about tuning `whatif-*.svg`, `tune.svg` and `tune-screen.svg`.
"""

# ruff: noqa: INP001 - a script, run by path
from __future__ import annotations

import asyncio
import re
from pathlib import Path

import loopscope
from loopscope.cli.corpus import find, read_labels, short_names
from loopscope.cli.measuring import INSTEAD, Piece, Plan, measure
from loopscope.engine.policy import BOUNDED, DEFAULT, Policy
from loopscope.session.draft import Draft
from loopscope.session.grid import default_grid
from loopscope.session.summary import Run
from loopscope.session.tune import Tuning, tune
from loopscope.views.web.tune_picture import picture as tune_picture
from loopscope_widgets.terminal.app import LoopscopeApp
from loopscope_widgets.terminal.screens.debug import DebugScreen
from loopscope_widgets.terminal.screens.tune import RunScreen, TuneScreen

SAMPLE = "sample:sql-retry-storm"
SIZE = (150, 54)
IMAGES = Path(__file__).parent / "images"
_FONT_FACES = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
_FONT = re.compile(r"font-family: Fira Code, monospace")
_ID = re.compile(r"terminal-\d+")


async def picture() -> str:
    """The debugger on the sample, once its explanation is complete and its message is gone."""
    app = LoopscopeApp(loopscope.open(SAMPLE))
    async with app.run_test(size=SIZE) as pilot:
        screen = app.screen
        assert isinstance(screen, DebugScreen)  # noqa: S101 - this script fails where it is wrong
        while screen.inspect.explanation is None:
            await pilot.pause(0.05)
        await pilot.pause()
        return app.export_screenshot(title=f"loopscope attach {SAMPLE}")


async def bounds() -> str:
    """Detect under all layers, with budgets, on a sample of search and fetch in turns."""
    budget = {"tool_calls": {"limit": 45}, "total_tokens": {"limit": 200_000}, "wall_clock_s": {"limit": 180}}
    session = loopscope.open("sample:search-fetch-alternation", BOUNDED.with_(budget=budget))
    session.seek(26)
    app = LoopscopeApp(session)
    async with app.run_test(size=(110, 40)) as pilot:
        await pilot.press("2", "z")
        await pilot.pause()
        app.clear_notifications()
        await pilot.pause()
        return app.export_screenshot(title="loopscope attach sample:search-fetch-alternation")


async def whatif(sample: str, override: Policy, path: tuple[str, ...], at: int) -> str:
    """The debugger on a sample at a batch, with one setting of the pane What-if chosen, once the override is tried."""
    session = loopscope.open(f"sample:{sample}")
    session.seek(at)
    screen = RunScreen(session)
    screen.journal.draft = Draft.of(session.policy).take(override)
    app = LoopscopeApp(session, screen=lambda: screen)
    async with app.run_test(size=(140, 42)) as pilot:
        await pilot.press(*["j"] * list(screen.whatif.paths).index(path))
        while screen.inspect.explanation is None or not screen.whatif.settled:
            await pilot.pause(0.05)
        await pilot.pause()
        app.clear_notifications()
        await pilot.pause()
        return app.export_screenshot(title=f"loopscope attach sample:{sample}")


def sweep() -> Tuning:
    """The public cases under the grid of those who name none."""
    cases = Path(__file__).parents[1] / "tests" / "cases"
    grid, labels = default_grid(DEFAULT), read_labels(str(cases / "TRUTH.tsv"))
    found = [measure(Piece(each.target), Plan(DEFAULT, grid)) for each in find([str(cases)])]
    measured = [each for each in found if each.batches]
    runs = [
        Run(name, each.batches, each.outcomes, labels.of(each.target), each.target)
        for name, each in zip(short_names([each.target for each in measured]), measured, strict=True)
    ]
    others = {name: [each.instead[place] for each in measured] for place, name in enumerate(INSTEAD)}
    return tune(grid, DEFAULT, runs, others)


async def tune_screen(tuning: Tuning) -> str:
    """The screen of a sweep."""
    app = LoopscopeApp(None, screen=lambda: TuneScreen(tuning, loopscope.open))
    async with app.run_test(size=(150, 44)) as pilot:
        await pilot.pause()
        return app.export_screenshot(title="loopscope tune tests/cases --labels tests/cases/TRUTH.tsv")


def local(svg: str) -> str:
    """The picture without fonts from elsewhere, and the same bytes each time."""
    svg = _FONT_FACES.sub("", svg)
    svg = _FONT.sub("font-family: Fira Code, Menlo, Consolas, DejaVu Sans Mono, monospace", svg)
    return _ID.sub("terminal", svg)


def main() -> None:
    """Write the pictures."""
    IMAGES.mkdir(exist_ok=True)
    spared = DEFAULT.with_(hard_limit=8)
    circles = DEFAULT.with_(cycle={"names": {"warn": 6, "hard_limit": 10}})
    tuning = sweep()
    pictures = {
        "debugger": local(asyncio.run(picture())),
        "bounds": local(asyncio.run(bounds())),
        "whatif-false-stop": local(asyncio.run(whatif("healthy-polling", spared, ("hard_limit",), 6))),
        "whatif-missed-loop": local(
            asyncio.run(whatif("search-fetch-alternation", circles, ("cycle", "names", "hard_limit"), 20))
        ),
        "tune-screen": local(asyncio.run(tune_screen(tuning))),
        "tune": tune_picture(tuning),
    }
    for name, svg in pictures.items():
        (IMAGES / f"{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
