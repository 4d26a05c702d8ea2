from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from loopscope.link.follow import Follow
from tests.live.support import Agent, Viewer


@pytest.fixture
def agent() -> Iterator[Callable[..., Agent]]:
    """Starts agents, and ends them."""
    started: list[Agent] = []

    def start(*options: str) -> Agent:
        started.append(Agent(*options))
        return started[-1]

    yield start
    for each in started:
        each.end()


@pytest.fixture
def viewer() -> Iterator[Callable[..., Viewer]]:
    """Attaches to agents, and leaves them."""
    attached: list[Viewer] = []

    def attach(agent: Agent, *, control: bool = True, first: Callable[[Follow], object] = bool) -> Viewer:
        attached.append(Viewer(Follow(agent.pid, control=control), first))
        return attached[-1]

    yield attach
    for each in attached:
        each.close()
