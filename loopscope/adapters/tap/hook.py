"""Puts a tap into every run of the process, with no change to the program: LangChain's configure hook.

The handler is the default of a context variable, and so is there in every thread, however it was started. A run that
was given a tap of its own gets no second one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from langchain_core.tracers.context import register_configure_hook

from loopscope.adapters.tap.handler import Tap

__all__ = ["install", "observing"]

_lent: ContextVar[Tap | None] = ContextVar("loopscope_lent_tap", default=None)
_registered = False


def install(tap: Tap) -> None:
    """Give this tap to every run of LangChain in this process that begins from now on."""
    register_configure_hook(ContextVar("loopscope_tap", default=tap), inheritable=True, handle_class=Tap)


@contextmanager
def observing(tap: Tap) -> Iterator[None]:
    """Give this tap to every run that begins within, on this thread or on one that LangGraph starts for it."""
    global _registered  # noqa: PLW0603 - LangChain's list of hooks is the process's, and none can be taken off it
    if not _registered:
        register_configure_hook(_lent, inheritable=True)
        _registered = True
    before = _lent.set(tap)
    try:
        yield
    finally:
        _lent.reset(before)
