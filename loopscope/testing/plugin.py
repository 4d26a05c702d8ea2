"""The pytest plugin, entry point `loopscope`: `bounded_run` and `abounded_run` as fixtures, and what they left open.

It imports nothing of loopscope until a test asks for them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

__all__ = ["abounded_run", "bounded_run"]


@pytest.fixture
def bounded_run() -> Callable[..., Any]:
    """`loopscope.testing.bounded_run`: a graph whose tool or node fails for ever must end within its bounds."""
    from loopscope.testing.proof import bounded_run as run  # noqa: PLC0415 - see the module

    return run


@pytest.fixture
def abounded_run() -> Callable[..., Any]:
    """`loopscope.testing.abounded_run`: the same with the graph's asynchronous methods."""
    from loopscope.testing.proof import abounded_run as run  # noqa: PLC0415 - see the module

    return run


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say below the results which steps the tests that passed could not prove."""
    told = sys.modules.get("loopscope.testing.told")
    found = list(told.lines()) if told is not None else []
    if found:
        terminalreporter.section("bounded loops (loopscope)", "-")
        for line in found:
            terminalreporter.line(line)
