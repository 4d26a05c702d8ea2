"""Draws the pictures of the README and the documentation: the real screen on a sample run, as SVG.

Run it from the checkout: `python docs/make_screens.py`. It writes `docs/images/debugger.svg`.
"""

# ruff: noqa: INP001 - a script, run by path
from __future__ import annotations

import asyncio
import re
from pathlib import Path

import loopscope
from loopscope_widgets.terminal.app import LoopscopeApp
from loopscope_widgets.terminal.screens.debug import DebugScreen

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


def local(svg: str) -> str:
    """The picture without fonts from elsewhere, and the same bytes each time."""
    svg = _FONT_FACES.sub("", svg)
    svg = _FONT.sub("font-family: Fira Code, Menlo, Consolas, DejaVu Sans Mono, monospace", svg)
    return _ID.sub("terminal", svg)


def main() -> None:
    """Write the pictures."""
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / "debugger.svg").write_text(local(asyncio.run(picture())), encoding="utf-8")


if __name__ == "__main__":
    main()
