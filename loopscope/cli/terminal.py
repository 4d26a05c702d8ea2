"""Whether the debugger can draw here, and the terminal behind a standard input that is a pipe."""

from __future__ import annotations

import os
import sys

__all__ = ["reopen_terminal", "why_no_screen"]


def why_no_screen() -> str:
    """The reason why nothing can be drawn on here, in words; empty where it can."""
    if os.environ.get("TERM", "") in {"", "dumb"} and sys.platform != "win32":
        return f"TERM is {os.environ.get('TERM') or 'not set'}"
    if not sys.stdout.isatty():
        return "stdout is not a terminal"
    if not sys.stderr.isatty():
        return "stderr, on which the debugger draws, is not a terminal"
    if not sys.stdin.isatty():
        return "stdin is not a terminal"
    return ""


def reopen_terminal() -> bool:
    """Makes the controlling terminal the standard input, once a recording was read from there; False if it has none."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR)
    except OSError:
        return False
    os.dup2(terminal, 0)
    os.close(terminal)
    # Textual reads from the stream that Python began with.
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # type: ignore[misc]  # noqa: SIM115 - lives as long as we do
    return True
