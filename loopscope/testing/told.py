"""What the tests of this run of pytest did not prove, for the lines below its results."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from loopscope.testing.steps import Missing

__all__ = ["lines", "remember"]

_MOST_NAMED = 5
_UNPROVEN: dict[Missing, dict[str, None]] = {}
"""By what is unproven, the tests."""


def remember(unproven: Sequence[Missing]) -> None:
    """A test passed without these; nothing is kept outside pytest."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    for each in unproven if test else ():
        _UNPROVEN.setdefault(each, {})[test] = None


def lines() -> Iterator[str]:
    """What is to be said of all of them, and is then forgotten."""
    for each, tests in _UNPROVEN.items():
        yield f"not asserted: {each}"
        yield f"  fix: {each.step.fix}; budget=True asserts it"
        named = list(tests)
        yield from (f"  {name}" for name in named[:_MOST_NAMED])
        if len(named) > _MOST_NAMED:
            yield f"  and {len(named) - _MOST_NAMED} more"
    _UNPROVEN.clear()
