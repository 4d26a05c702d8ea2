"""Loading without looking for garbage: it makes none, and each look costs as much as is loaded by then.

Apart from the verbs, some of which are a screen that a person waits for.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["uncollected"]


@contextmanager
def uncollected() -> Iterator[None]:
    """While this lasts no garbage is collected, and what was loaded is not looked at afterwards."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.freeze()
            gc.enable()
