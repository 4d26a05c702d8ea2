"""An endpoint in the moment in which it is opened."""

from __future__ import annotations

import pytest

from loopscope.link.client import Client, connect
from loopscope.link.endpoint import listen
from loopscope.link.hub import Hub
from loopscope.link.server import Server


def test_a_viewer_may_come_before_listen_has_given_back_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is let in, and told as any other."""
    start = Server.start
    viewers: list[Client] = []

    def started(self: Server, hub: Hub) -> None:
        start(self, hub)
        viewers.append(connect(hub.entry))

    monkeypatch.setattr(Server, "start", started)
    with listen("early") as link, viewers[0] as viewer:
        assert viewer.welcome.name == "early"
        assert link.viewers == 1
        assert viewer.attach()["resumed"] is False
        assert link.wait_for_viewer(120)
