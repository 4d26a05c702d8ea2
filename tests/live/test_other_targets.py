"""The debugger on what can only be read: a checkpoint file while a real program writes it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from loopscope.engine.policy import DEFAULT
from loopscope.session.live import LiveSession
from loopscope.sources import follow
from loopscope_widgets.terminal.app import LoopscopeApp
from loopscope_widgets.terminal.screens.live import LiveScreen
from tests.live.test_live_screen import on_screen, until
from tests.sources.langgraph_sqlite.writing import Writer

pytestmark = pytest.mark.slow


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    """Writes `live.db`."""
    found = Writer(tmp_path / "live.db")
    yield found
    found.process.kill()
    found.process.communicate()


def toasted(app: LoopscopeApp, text: str) -> bool:
    """Whether a toast begins with this."""
    return any(told.message.startswith(text) for told in app._notifications)


async def test_a_file_is_followed_on_the_screen(writer: Writer, tmp_path: Path) -> None:
    """Each batch as it comes; keys that would steer say why they do not, and everything else is as in a recording."""
    path = tmp_path / "live.db"
    feed = follow(path, policy=DEFAULT.with_(warn_threshold=2, hard_limit=3))
    live = LiveSession(feed.name, what="file", origins={"hard_limit": "--set hard_limit=3"})
    app = LoopscopeApp(live.session, screen=lambda: LiveScreen(feed, live))
    async with app.run_test(size=(140, 40), notifications=True) as pilot:
        await on_screen(pilot, " LIVE live.db", f"follows {path.parent}", gone="CONTROL")
        for number in (1, 2):
            writer.say("a")
            await on_screen(pilot, f"{number}/{number}", f"3 Inspect #{number}")
        await on_screen(pilot, "▲ WARN identical_call_set A 2/2", "found a", "(default)")
        for keys, said in ((["space"], "cannot pause"), (["x"], "cannot control"), (["t", "l", "a"], "cannot apply")):
            app.clear_notifications()
            await pilot.press(*keys)
            await until(pilot, partial(toasted, app, f"{said}: a checkpoint file can only be read"))
        await pilot.press("2", "B", "i", *"stop", "enter", "2")
        writer.say("a")
        await on_screen(pilot, "3/3", "■ STOP identical_call_set A 3/3")
        await pilot.press("g", "c")
        await on_screen(pilot, "3/3", "breakpoint stop")
        assert writer.end() == 0
        path.unlink()
        await on_screen(pilot, " DISCONNECTED live.db", "3/3")
        await pilot.press("D")
        await on_screen(pilot, " DETACHED live.db")
        await pilot.press("N")
        await on_screen(pilot, "2/3")
    assert feed._closed.is_set()  # type: ignore[attr-defined]
