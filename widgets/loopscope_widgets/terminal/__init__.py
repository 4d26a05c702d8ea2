"""The debugger in a terminal: Textual draws here what `loopscope.views` computes and `loopscope.session` holds.

`run` is the one way in; the command line calls it.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loopscope.session.session import Session

__all__ = ["run"]


def run(session: Session, *, theme: str | None = None, ascii: bool = False, no_color: bool = False) -> None:  # noqa: A002 - the flag's name
    """Open the debugger on a session and return when the user quits.

    Args:
        session: what to show; its cursor is where the screen opens.
        theme: `dark`, `light` or the name of a Textual theme; dark if it is None.
        ascii: draw with ASCII characters alone.
        no_color: as NO_COLOR: greys, underlined warnings, reversed stops.

    Raises:
        UsageError: if there is no theme of this name.
    """
    collects = gc.isenabled()
    gc.disable()  # loading makes no garbage; collecting it again and again takes a fifth of the time
    try:
        from loopscope_widgets.terminal.app import LoopscopeApp  # noqa: PLC0415 - Textual is loaded when it is to draw

        app = LoopscopeApp(session, theme=theme, ascii_only=ascii, no_color=no_color)
        if collects:
            app.when_drawn = _collect
        app.run()
    finally:
        if collects:
            gc.enable()


def _collect() -> None:
    """The first picture is there: what was loaded for it stays, so the collector need not look at it any more."""
    gc.freeze()
    gc.enable()
