"""Puts a tap into every run of the process, with no change to the program: LangChain's configure hook.

The handler is the default of a context variable, and so is there in every thread, however it was started. A run that
was given a tap of its own gets no second one.
"""

from __future__ import annotations

from contextvars import ContextVar

from langchain_core.tracers.context import register_configure_hook

from loopscope.adapters.tap.handler import Tap

__all__ = ["install"]


def install(tap: Tap) -> None:
    """Give this tap to every run of LangChain in this process that begins from now on."""
    register_configure_hook(ContextVar("loopscope_tap", default=tap), inheritable=True, handle_class=Tap)
