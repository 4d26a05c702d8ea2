"""Tests that prove a bound: `bounded_run`, the pytest plugin around it, and recordings as tests.

    from loopscope.testing import bounded_run

    def test_a_database_that_is_down_ends_the_loop():
        bounded_run(graph, {"messages": [("user", "revenue?")]}, fail="run_sql", within=3)

The names are loaded when they are first used: the plugin is imported by every run of pytest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loopscope.testing.injecting import returns
    from loopscope.testing.proof import Proof, abounded_run, bounded_run
    from loopscope.testing.steps import STEPS, NotBoundedError
    from loopscope.testing.watching import Outcome

__all__ = ["STEPS", "NotBoundedError", "Outcome", "Proof", "abounded_run", "bounded_run", "returns"]

_HOMES = {
    "STEPS": "steps",
    "NotBoundedError": "steps",
    "Outcome": "watching",
    "Proof": "proof",
    "abounded_run": "proof",
    "bounded_run": "proof",
    "returns": "injecting",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
