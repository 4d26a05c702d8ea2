"""Whether the debugger can draw here, and the terminal behind a standard input that is a pipe."""

from __future__ import annotations

import os
import sys

__all__ = ["reopen_terminal", "why_no_screen"]


def why_no_screen() -> str:
    """The reason why nothing can be drawn on here, in words; empty where it can."""
    if "web_driver" in os.environ.get("TEXTUAL_DRIVER", ""):
        return ""  # a browser is the screen, and Textual speaks to it
    if os.environ.get("TERM", "") in {"", "dumb"} and sys.platform != "win32":
        return f"TERM is {os.environ.get('TERM') or 'not set'}"
    if not sys.stdout.isatty():
        return "stdout is not a terminal"
    if not sys.stderr.isatty():
        return "stderr, on which the debugger draws, is not a terminal"
    if sys.__stdin__ is None or not sys.__stdin__.isatty():
        return "stdin is not a terminal"
    return ""


def reopen_terminal() -> bool:
    """Makes the controlling terminal the first file, from which keys are read; False if there is none.

    What was piped in stays `sys.stdin`, so that it can be read while keys are.
    """
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError:
        return False
    piped = os.dup(0)
    os.dup2(terminal, 0)
    os.close(terminal)
    sys.stdin = open(piped)  # noqa: PTH123, SIM115 - a number, that lives as long as we do
    # Textual reads from the stream that Python began with.
    sys.__stdin__ = open(0, closefd=False)  # type: ignore[misc]  # noqa: SIM115 - as above
    return True
