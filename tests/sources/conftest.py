from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from loopscope.recording.feed import Feed
from tests.sources.reading import Reading, Readings


@pytest.fixture
def reading() -> Iterator[Readings]:
    """Reads feeds, and leaves them; no thread of theirs is left."""
    before = set(threading.enumerate())
    found: list[Reading] = []

    def read(feed: Feed) -> Reading:
        found.append(Reading(feed))
        return found[-1]

    yield read
    for each in found:
        each.close()
    assert set(threading.enumerate()) <= before
