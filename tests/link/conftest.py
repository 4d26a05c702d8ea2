from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from loopscope.link import endpoint
from loopscope.link.endpoint import Link, listen
from loopscope.recording.gate import gatehouse


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """Every test has the gatehouse of a process that has just begun, and leaves no link behind."""
    gatehouse.base, gatehouse._engines, gatehouse._registered = None, {}, 0
    yield
    if endpoint._link is not None:
        endpoint._link.close()
    assert gatehouse.gate is None


@pytest.fixture
def opened() -> Iterator[Callable[..., Link]]:
    """`listen`, closed at the end."""
    links: list[Link] = []

    def make(*args: Any, **options: Any) -> Link:
        links.append(listen(*args, **options))
        return links[-1]

    yield make
    for link in links:
        link.close()


@pytest.fixture
def link(opened: Callable[..., Link]) -> Link:
    """A link that allows control."""
    return opened("test", control=True)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads that run agents; whatever they wait for must be over at the end."""
    with ThreadPoolExecutor(80) as threads:
        yield threads


@pytest.fixture(params=["unix", "tcp"])
def either(request: pytest.FixtureRequest, opened: Callable[..., Link]) -> Link:
    """A link over each transport."""
    return opened("either", control=True, transport=request.param)
