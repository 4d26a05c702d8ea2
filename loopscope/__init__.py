"""An interactive loop debugger for LLM-agent graphs: one detection engine for production, replay and the screen.

    from loopscope import LoopDetectionMiddleware   # the guard, for `langchain.agents.create_agent`
    from loopscope import Policy                    # its limits, as one frozen value
    from loopscope import LoopDetector              # the engine alone: events in, decisions out
    from loopscope import Session, open             # the debugger without a screen
    from loopscope import BoundedLoop               # bounds for a loop of any StateGraph, drawn by hand
    from loopscope import listen                    # makes this process one that `loopscope attach` finds
    from loopscope import LoopWidget                # the debugger in a notebook
    from loopscope import tap                       # observes any LangGraph graph, its nodes untouched
    from loopscope import trace                     # decisions and counters in the program's own traces

The names are loaded when they are first used, so that importing loopscope loads no framework and the middleware
nothing of the debugger. With LOOPSCOPE=1 in its environment a program that imports loopscope is observed, and can be
attached to; with LOOPSCOPE=control it can be steered as well.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loopscope.adapters.bounded.loop import BoundedLoop
    from loopscope.adapters.langchain import LoopDetectionMiddleware
    from loopscope.adapters.tap.handler import tap
    from loopscope.adapters.traces import trace
    from loopscope.api import (
        Session,
        load_ipython_extension,
        open,  # noqa: A004 - reads as `loopscope.open(...)`
    )
    from loopscope.engine.detector import LoopDetector
    from loopscope.engine.policy import Policy
    from loopscope.link.endpoint import listen
    from loopscope_widgets.notebook.widget import LoopWidget as LoopWidget

__all__ = [
    "BoundedLoop",
    "LoopDetectionMiddleware",
    "LoopDetector",
    "Policy",
    "Session",
    "__version__",
    "listen",
    "load_ipython_extension",
    "open",
    "tap",
    "trace",
]

__version__ = "0.1.0"

_HOMES = {
    "BoundedLoop": "loopscope.adapters.bounded.loop",
    "LoopDetectionMiddleware": "loopscope.adapters.langchain",
    "LoopDetector": "loopscope.engine.detector",
    "Policy": "loopscope.engine.policy",
    "LoopWidget": "loopscope_widgets.notebook.widget",
    "Session": "loopscope.api",
    "listen": "loopscope.link.endpoint",
    "load_ipython_extension": "loopscope.api",
    "open": "loopscope.api",
    "tap": "loopscope.adapters.tap.handler",
    "trace": "loopscope.adapters.traces",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


if os.environ.get("LOOPSCOPE"):
    import_module("loopscope.autostart").from_environment()


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
