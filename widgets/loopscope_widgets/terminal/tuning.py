"""The way into the screen of a sweep; apart from `run`, so that the debugger does not load it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loopscope.session.session import Session
    from loopscope.session.tune import Tuning

__all__ = ["show"]


def show(
    tuning: Tuning,
    opener: Callable[[str], Session],
    *,
    theme: str | None = None,
    ascii: bool = False,  # noqa: A002 - the flag's name
    no_color: bool = False,
) -> None:
    """Open the screen, and return when the user quits.

    Args:
        tuning: the sweep.
        opener: reads a run of it, under its own limits.
        theme: `dark` or `light`; dark if it is None.
        ascii: draw with ASCII characters alone.
        no_color: as NO_COLOR.

    Raises:
        UsageError: if the user's keymap has a mistake.
    """
    from loopscope_widgets.terminal.app import LoopscopeApp  # noqa: PLC0415 - Textual is loaded when it is to draw
    from loopscope_widgets.terminal.screens.tune import TuneScreen  # noqa: PLC0415 - as above
    from loopscope_widgets.terminal.user import load_keymap  # noqa: PLC0415 - as above

    app = LoopscopeApp(
        None,
        theme=theme,
        ascii_only=ascii,
        no_color=no_color,
        screen=partial(TuneScreen, tuning, opener),
        opener=opener,
        keys=load_keymap(),
    )
    app.open()
