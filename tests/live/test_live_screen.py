"""The debugger on a live run: a real engine behind a real gate and socket, seen and steered by keys."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot

from loopscope.engine.policy import DEFAULT, Policy
from loopscope.link.endpoint import Link, listen
from loopscope.link.follow import Follow
from loopscope.link.gate import HoldingGate
from loopscope.recording.gate import gatehouse
from loopscope.session.live import LiveSession
from loopscope_widgets.terminal.app import LoopscopeApp
from loopscope_widgets.terminal.screens.live import LiveScreen
from tests.link.support import Agent
from tests.widgets.support import shown

PATIENCE = 120.0
CALM = DEFAULT.with_(hard_limit=1000, tool_freq_warn=5000, tool_freq_hard_limit=9000)


class Looper:
    """An agent that makes a batch whenever it is told to, in a thread of its own."""

    def __init__(self, policy: Policy, *, control: bool) -> None:
        gatehouse.base, gatehouse._engines, gatehouse._registered = None, {}, 0
        self.link: Link = listen("looper", control=control)
        self.fates: list[str] = []
        self._agent = Agent(policy)
        self._agent.start(agent="planner")
        self._wanted = threading.Semaphore(0)
        self._ends = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while self._wanted.acquire() and not self._ends:
            self.fates.append(self._agent.batch())

    @property
    def policy(self) -> Policy:
        """What is in force there."""
        return self._agent.policy

    @property
    def breakpoints(self) -> dict[str, bool]:
        """What is set there, and whether it is on."""
        gate = gatehouse.gate
        assert isinstance(gate, HoldingGate)
        return {str(state.point): state.point.enabled for state in gate.status().breakpoints}

    def make(self, batches: int = 1) -> None:
        """Let it make so many, and do not wait for them."""
        for _ in range(batches):
            self._wanted.release()

    def end(self) -> None:
        """Close the link; the thread goes on to its end."""
        self.link.close()
        self._ends = True
        self._wanted.release()
        self._thread.join(PATIENCE)


@pytest.fixture
def looper() -> Iterator[Callable[..., Looper]]:
    """Makes agents."""
    made: list[Looper] = []

    def make(policy: Policy = CALM, *, control: bool = True) -> Looper:
        made.append(Looper(policy, control=control))
        return made[-1]

    yield make
    for each in made:
        each.end()


@asynccontextmanager
async def attached(looper: Looper, *, control: bool = True) -> AsyncIterator[Pilot[None]]:
    """The debugger on it."""
    feed = await asyncio.to_thread(Follow, looper.link.address, control=control)
    live = LiveSession(feed.name)
    app = LoopscopeApp(live.session, screen=lambda: LiveScreen(feed, live))
    async with app.run_test(size=(140, 40), notifications=True) as pilot:
        await pilot.pause()
        yield pilot


def screen(pilot: Pilot[None]) -> LiveScreen:
    """The debugger's screen."""
    found = pilot.app.screen_stack[0]
    assert isinstance(found, LiveScreen)
    return found


async def until(pilot: Pilot[None], true: Callable[[], object]) -> None:
    """Wait for something that the other side does, and for the picture of it."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "\n".join(shown(pilot))
        await asyncio.sleep(0.01)
        await pilot.pause()
    await pilot.pause()


async def on_screen(pilot: Pilot[None], *texts: str, gone: str = "") -> None:
    """Wait until all of this can be read, and `gone` cannot."""

    def there() -> bool:
        picture = "\n".join(shown(pilot))
        return all(text in picture for text in texts) and not (gone and gone in picture)

    await until(pilot, there)


async def test_it_follows_the_newest_batch(looper: Callable[..., Looper]) -> None:
    """The past first, then each batch as it comes, with its result."""
    agent = looper()
    agent.make(3)
    async with attached(agent) as pilot:
        await on_screen(pilot, " LIVE looper", "3/3")
        agent.make(2)
        await on_screen(pilot, "5/5", "3 Inspect #5", "= PASS A seen 5 times", "result")


async def test_the_cursor_stays_once_the_user_has_moved(looper: Callable[..., Looper]) -> None:
    """What comes is counted and not jumped to; f and G follow again."""
    agent = looper()
    agent.make(4)
    async with attached(agent) as pilot:
        await on_screen(pilot, "4/4")
        await pilot.press("h", "h")
        agent.make(2)
        await on_screen(pilot, "2/6", "3 Inspect #2")
        await pilot.press("f")
        await on_screen(pilot, "6/6", "3 Inspect #6")
        await pilot.press("g", "G")
        agent.make()
        await on_screen(pilot, "7/7")


async def test_pause_step_continue(looper: Callable[..., Looper]) -> None:
    """A held batch is shown with the verdict it would get; n lets one go; the bar says PAUSED on its own background."""
    agent = looper()
    agent.make(2)
    async with attached(agent) as pilot:
        await on_screen(pilot, "2/2")
        ground = screen(pilot).top.rich_style.bgcolor
        await pilot.press("space")
        await on_screen(pilot, " PAUSED looper")
        assert screen(pilot).top.rich_style.bgcolor != ground
        agent.make(3)
        await on_screen(pilot, 'HELD before its tools run  t/r  bash("ls")', "would be ▲ WARN identical_call_set A 3/3")
        assert len(agent.fates) == 2
        await pilot.press("n")
        await on_screen(pilot, "3/3", "would be = PASS A seen 4 times")
        assert len(agent.fates) == 3
        await pilot.press("c")
        await on_screen(pilot, " LIVE looper", "5/5", gone="HELD")


async def test_control_asks_for_y_and_nothing_else(looper: Callable[..., Looper]) -> None:
    """A batch that would be stopped passes once; a run is stopped; enter, or the key that opened it, does neither."""
    agent = looper(DEFAULT.with_(warn_threshold=1, hard_limit=2))
    async with attached(agent) as pilot:
        await pilot.press("space")
        await on_screen(pilot, " PAUSED looper")
        agent.make()
        await on_screen(pilot, "HELD")
        await pilot.press("n")
        await on_screen(pilot, "1/1")
        agent.make()
        await on_screen(pilot, "would be ■ STOP")
        for keys in (["x", "p", "enter"], ["x", "p", "x"], ["x", "p", "escape"], ["x", "escape"]):
            await pilot.press(*keys)
            await until(pilot, lambda: pilot.app.screen is screen(pilot))
        assert agent.fates == ["ran"]
        await pilot.press("x")
        await on_screen(pilot, 'p  let bash("ls") pass once', "s  stop the run t/r")
        await pilot.press("p")
        await on_screen(pilot, "y does it")
        await pilot.press("y")
        await until(pilot, lambda: agent.fates == ["ran", "ran"])
        agent.make()
        await on_screen(pilot, "2/2", "HELD")
        await pilot.press("x", "s", "y")
        await until(pilot, lambda: agent.fates == ["ran", "ran", "stopped"])


async def test_a_viewer_that_only_observes_is_told_why(looper: Callable[..., Looper]) -> None:
    """No background, and each key that steers says why it does not."""
    agent = looper()
    agent.make(2)
    async with attached(agent, control=False) as pilot:
        await on_screen(pilot, " LIVE looper", "2/2", "this viewer only observes")
        assert not screen(pilot).has_class("-control")
        for key in ("space", "x", "n"):
            pilot.app.clear_notifications()
            await pilot.press(key)
            await on_screen(pilot, "attach with --control", "cannot")
        agent.make()
        await on_screen(pilot, "3/3")
        assert agent.fates == ["ran"] * 3


async def test_detaching_lets_the_agent_go_on(looper: Callable[..., Looper]) -> None:
    """What was held goes on within a second; what was seen stays, and can be stepped through."""
    agent = looper()
    agent.make(3)
    async with attached(agent) as pilot:
        await on_screen(pilot, "3/3")
        await pilot.press("space")
        await on_screen(pilot, " PAUSED looper")
        agent.make(2)
        await on_screen(pilot, "HELD")
        await pilot.press("D")
        await on_screen(pilot, " DETACHED looper", "3/3", gone="HELD")
        await until(pilot, lambda: len(agent.fates) == 5)
        await pilot.press("N")
        await on_screen(pilot, "2/3", "3 Inspect #2")
        for key in ("D", "f", "space", "x"):
            pilot.app.clear_notifications()
            await pilot.press(key)
            await on_screen(pilot, "you have detached")


async def test_quitting_never_stops_the_agent(looper: Callable[..., Looper]) -> None:
    """Not even while it is held."""
    agent = looper()
    async with attached(agent) as pilot:
        await pilot.press("space")
        await on_screen(pilot, " PAUSED looper")
        agent.make(2)
        await on_screen(pilot, "HELD")
        await pilot.press("q")
    end = time.monotonic() + PATIENCE
    while len(agent.fates) < 2:
        assert time.monotonic() < end
        await asyncio.sleep(0.01)
    assert agent.fates == ["ran", "ran"]


async def test_the_end_of_the_process(looper: Callable[..., Looper]) -> None:
    """It is said, and everything is kept and can be stepped through."""
    agent = looper()
    agent.make(3)
    async with attached(agent) as pilot:
        await on_screen(pilot, "3/3")
        await asyncio.to_thread(agent.end)
        await on_screen(pilot, " ENDED looper", "process ended; all that it did is kept here")
        await pilot.press("N", "N", "n")
        await on_screen(pilot, "2/3", "3 Inspect #2")
        pilot.app.clear_notifications()
        await pilot.press("space")
        await on_screen(pilot, "cannot pause: the process has ended")


async def test_it_comes_back_when_the_connection_drops(looper: Callable[..., Looper]) -> None:
    """By itself, and goes on where it was."""
    agent = looper()
    agent.make(3)
    async with attached(agent) as pilot:
        await on_screen(pilot, "3/3")
        screen(pilot).feed._client._connection.shutdown(2)  # type: ignore[attr-defined]
        await until(pilot, lambda: screen(pilot).live.drops == 1 and screen(pilot).live.state == "live")
        agent.make()
        await on_screen(pilot, " LIVE looper", "4/4")


async def test_a_narrow_screen(looper: Callable[..., Looper]) -> None:
    """The mode is never left out, and what is held has room."""
    agent = looper()
    async with attached(agent) as pilot:
        await pilot.resize_terminal(60, 20)
        await pilot.press("space")
        await on_screen(pilot, " PAUSED")
        agent.make()
        await on_screen(pilot, "HELD", "would be")


@pytest.mark.parametrize("control", [True, False])
async def test_a_running_process_is_picked(looper: Callable[..., Looper], control: bool) -> None:
    """It stands above the recordings, with its worst state; enter attaches to it, with control where that was asked."""
    agent = looper(DEFAULT.with_(warn_threshold=2, hard_limit=9))
    agent.make(2)
    app = LoopscopeApp(None, control=control)
    async with app.run_test(size=(140, 40), notifications=True) as pilot:
        await on_screen(pilot, "RUNNING", "looper", "▲ WARN", "2 batches", "SAMPLES")
        await pilot.press("enter")
        await on_screen(pilot, " LIVE looper", "2/2", "2 Detect")
        await pilot.press("space")
        await on_screen(pilot, " PAUSED looper" if control else "cannot pause: this viewer only observes")
    assert agent.fates == ["ran"] * 2


async def test_another_process_is_attached_to_from_the_screen(looper: Callable[..., Looper]) -> None:
    """`a` lists what runs; the one that was looked at goes on, also where it was held."""
    agent = looper()
    agent.make()
    async with attached(agent) as pilot:
        await on_screen(pilot, "1/1")
        await pilot.press("space")
        agent.make()
        await on_screen(pilot, "HELD")
        await pilot.press("a")
        await on_screen(pilot, "RUNNING", "looper")
        await pilot.press("enter")
        await on_screen(pilot, " LIVE looper", "2/2", gone="CONTROL")
    assert agent.fates == ["ran"] * 2


async def test_a_process_that_is_gone_before_it_is_picked(looper: Callable[..., Looper]) -> None:
    """It is said, and another row can be chosen."""
    agent = looper()
    async with LoopscopeApp(None).run_test(size=(140, 40), notifications=True) as pilot:
        await on_screen(pilot, "RUNNING", "looper", "0 batches")
        await asyncio.to_thread(agent.end)
        await pilot.press("enter")
        await on_screen(pilot, "SAMPLES", ".sock", gone="attaching")


async def test_limits_are_put_in_force_with_one_confirmed_key(looper: Callable[..., Looper]) -> None:
    """What was tried in What-if decides from the next batch on, here and in the process; `y` alone says yes."""
    agent = looper(CALM.with_(warn_threshold=2, hard_limit=3))
    agent.make(2)
    async with attached(agent) as pilot:
        await on_screen(pilot, "2/2", "▲ WARN")
        await pilot.press("t", "j", "l", "l")
        assert screen(pilot).whatif.draft.policy.hard_limit == 5
        for key in ("enter", "a", "escape"):
            await pilot.press("a")
            await on_screen(pilot, "put in force in looper, from the next batch on?")
            await pilot.press(key)
            await until(pilot, lambda: pilot.app.screen is screen(pilot))
        assert agent.policy.hard_limit == 3
        await pilot.press("a")
        await on_screen(pilot, "hard_limit 3", "y does it")
        await pilot.press("y")
        await on_screen(pilot, "in force from the next batch on", gone="put in force in looper")
        assert agent.policy.hard_limit == 5
        agent.make(2)
        await on_screen(pilot, "4/4")
        assert agent.fates == ["ran"] * 4
        assert screen(pilot).session.policy.hard_limit == 5
        assert not screen(pilot).whatif.draft.changed
        agent.make()
        await on_screen(pilot, "■ STOP")
        assert agent.fates[-1] == "stopped"


async def test_limits_of_several_middlewares_are_said_to_be_those(looper: Callable[..., Looper]) -> None:
    """Each by its name."""
    agent = looper()
    other = Agent(CALM, name="other guard")
    agent.make()
    async with attached(agent) as pilot:
        await on_screen(pilot, "1/1")
        await pilot.press("t", "l", "a", "y")
        await on_screen(pilot, "in force from the next batch on in agent, other guard")
        assert other.policy.warn_threshold == agent.policy.warn_threshold == CALM.warn_threshold + 1


async def test_breakpoints_hold_the_batch_in_the_process(looper: Callable[..., Looper]) -> None:
    """They are judged there before the tools run, and counted there; off or away, they hold nothing."""
    agent = looper()
    agent.make()
    async with attached(agent) as pilot:
        await on_screen(pilot, "1/1")
        await pilot.press("B", "i", *"tool bash", "enter")
        await on_screen(pilot, "● 1 tool bash", "×0")
        await until(pilot, lambda: agent.breakpoints == {"tool bash": True})
        agent.make(2)
        await on_screen(pilot, "HELD before its tools run", "breakpoint tool bash", "×1", " PAUSED")
        assert agent.fates == ["ran"]
        await pilot.press("c")
        await on_screen(pilot, "2/2", "×2", "HELD")
        await pilot.press("a")
        await until(pilot, lambda: agent.breakpoints == {"tool bash": False})
        await on_screen(pilot, "○ 1 tool bash", "HELD")
        await pilot.press("c")
        await on_screen(pilot, "3/3", gone="HELD")
        agent.make()
        await on_screen(pilot, "4/4", " LIVE looper")
        await pilot.press("x")
        await until(pilot, lambda: agent.breakpoints == {})
        await on_screen(pilot, "none; b sets one")
        await pilot.press("U")
        await until(pilot, lambda: agent.breakpoints == {"tool bash": False})


async def test_a_letter_and_a_number_mean_the_same_in_the_process(looper: Callable[..., Looper]) -> None:
    """It knows hashes and no letters; and `once` holds once."""
    agent = looper()
    agent.make(2)
    async with attached(agent) as pilot:
        await on_screen(pilot, "2/2")
        await pilot.press("B", "i", *"once hash A >= 3", "enter")
        digest = screen(pilot).session.row(1).hash
        await until(pilot, lambda: agent.breakpoints == {f"hash {digest} >= 3": True})
        agent.make()
        await on_screen(pilot, "HELD", "breakpoint hash A >= 3")
        await on_screen(pilot, "○ 1 once ha", "×1")
        await pilot.press("c")
        agent.make()
        await on_screen(pilot, "4/4", gone="HELD")


async def test_breakpoints_of_a_viewer_that_only_observes_are_its_own(looper: Callable[..., Looper]) -> None:
    """`c` runs to them; nothing is held, and no limits are put in force."""
    agent = looper()
    agent.make(3)
    async with attached(agent, control=False) as pilot:
        await on_screen(pilot, "3/3")
        await pilot.press("B", "i", *"batch 1", "enter")
        await on_screen(pilot, "● 1 batch 1", "1/1")
        await pilot.press("C")
        await on_screen(pilot, "1/3", "breakpoint batch 1")
        assert agent.breakpoints == {}
        await pilot.press("t", "l", "a")
        await on_screen(pilot, "cannot apply: this viewer only observes")


async def test_two_viewers_see_the_same_breakpoints(looper: Callable[..., Looper]) -> None:
    """What the one sets, the other shows; the one that only observes keeps its own."""
    agent = looper()
    agent.make()
    async with attached(agent) as first, attached(agent) as second, attached(agent, control=False) as watching:
        for pilot in (first, second, watching):
            await on_screen(pilot, "1/1")
        await first.press("B", "i", *"stop", "enter")
        await on_screen(second, "● 1 stop")
        await second.press("B", "a")
        await on_screen(first, "○ 1 stop")
        assert screen(watching).session.breakpoints == []


async def test_breakpoints_are_set_again_when_the_connection_is_back(looper: Callable[..., Looper]) -> None:
    """The process lets go of everything when nobody steers it any more."""
    agent = looper()
    agent.make()
    async with attached(agent) as pilot:
        await on_screen(pilot, "1/1")
        await pilot.press("B", "i", *"tool bash", "enter")
        await until(pilot, lambda: agent.breakpoints == {"tool bash": True})
        screen(pilot).feed._client._connection.shutdown(2)  # type: ignore[attr-defined]
        await until(pilot, lambda: screen(pilot).live.drops == 1 and screen(pilot).live.state == "live")
        await until(pilot, lambda: agent.breakpoints == {"tool bash": True})
        agent.make()
        await on_screen(pilot, "HELD", "● 1 tool bash", "×1")
