"""The gate: who waits, who does not, and what wakes them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from loopscope.engine.breakpoints import parse
from loopscope.engine.events import ScopeKey
from loopscope.engine.policy import Policy
from loopscope.link.gate import HoldingGate, blocking_allowed
from loopscope.link.hold import Hold
from loopscope.recording.feed import Held, Released
from loopscope.recording.gate import JUDGE, Ruling, gatehouse
from tests.link.support import FREE, LS, SCOPE, Agent, auntil, until

OTHER = ScopeKey("t", "other")


class Told:
    """A gate, and what it told."""

    def __init__(self, max_pause: float = 600.0) -> None:
        self.told: list[Held | Released] = []
        self.changes = 0
        self.gate = HoldingGate(self.told.append, self._changed, max_pause)
        gatehouse.attend(self.gate, lambda _engine: None)

    def _changed(self) -> None:
        self.changes += 1

    def held(self) -> list[Held]:
        """Every batch that was announced."""
        return [message for message in self.told if isinstance(message, Held)]

    def released(self) -> list[Released]:
        """Every batch that went on."""
        return [message for message in self.told if isinstance(message, Released)]

    def wait_for(self, count: int) -> None:
        """Until so many batches are held."""
        until(lambda: len(self.gate.held()) == count)


@pytest.fixture
def told() -> Iterator[Told]:
    """A gate of this process."""
    made = Told()
    yield made
    gatehouse.leave(made.gate)


def test_a_gate_that_nobody_closed_lets_everything_through(told: Told) -> None:
    """And says nothing of it."""
    assert told.gate.admit(Agent().arrival(LS)) == JUDGE
    assert not told.gate.armed
    assert told.told == []


def test_a_held_batch_is_announced_with_the_verdict_that_it_would_get(told: Told, pool: ThreadPoolExecutor) -> None:
    """Before it is accounted: the engine has not seen it."""
    agent = Agent(Policy(warn_threshold=2, hard_limit=3))
    agent.batch()
    told.gate.pause(None)
    run = pool.submit(agent.batch)
    told.wait_for(1)
    held = told.held()[0]
    assert (held.scope, held.calls[0].name, held.reason) == (SCOPE, "bash", "pause")
    assert held.decision is not None
    assert (held.decision.action, held.decision.count, held.decision.batch) == ("warn", 2, 2)
    assert agent.detector.batches == 1
    told.gate.resume(None, "me")
    assert run.result(60) == "ran"
    assert told.released()[0].by == "me"
    assert not told.gate.armed


def test_a_pause_of_one_scope_holds_no_other(told: Told, pool: ThreadPoolExecutor) -> None:
    """Two runs of three go on."""
    agent = Agent(FREE)
    told.gate.pause(SCOPE)
    run = pool.submit(agent.batch)
    told.wait_for(1)
    for _ in range(20):
        assert agent.batch(scope=OTHER) == "ran"
    assert not run.done()
    told.gate.resume(SCOPE)
    assert run.result(60) == "ran"


def test_a_step_lets_one_batch_through(told: Told, pool: ThreadPoolExecutor) -> None:
    """The one that waits, else the next that comes; then the scope is held again."""
    agent = Agent()
    told.gate.step(SCOPE)
    assert pool.submit(agent.batch).result(60) == "ran"
    run = pool.submit(agent.batch)
    told.wait_for(1)
    assert told.held()[-1].reason == "next"
    told.gate.step(SCOPE)
    assert run.result(60) == "ran"
    run = pool.submit(agent.batch)
    told.wait_for(1)
    told.gate.resume(None)
    run.result(60)


def test_a_step_of_all_releases_the_one_that_waits_longest(told: Told, pool: ThreadPoolExecutor) -> None:
    """And no other."""
    agent = Agent()
    told.gate.pause(None)
    first = pool.submit(agent.batch)
    told.wait_for(1)
    second = pool.submit(agent.batch, scope=OTHER)
    told.wait_for(2)
    told.gate.step(None)
    assert first.result(60) == "ran"
    assert not second.done()
    told.gate.resume(None)
    second.result(60)


def test_a_ruling_reaches_what_is_held(told: Told, pool: ThreadPoolExecutor) -> None:
    """Pass and stop are given to whoever waits, with who asked for it."""
    agent = Agent(Policy(warn_threshold=1, hard_limit=1))
    told.gate.pause(None)
    runs = [pool.submit(agent.batch, scope=scope) for scope in (SCOPE, OTHER)]
    told.wait_for(2)
    assert told.gate.rule(SCOPE, Ruling("pass", "me")) == 1
    assert runs[0].result(60) == "ran"
    assert told.gate.rule(None, Ruling("stop", "me")) == 1
    assert runs[1].result(60) == "stopped"


def test_a_stop_waits_for_the_next_batch_unless_the_run_ends(told: Told) -> None:
    """It is used up by that batch, and never hits a later run of the same scope."""
    agent = Agent()
    told.gate.stop_next(SCOPE, "me")
    assert agent.batch(scope=OTHER) == "ran"
    assert [agent.batch(), agent.batch()] == ["stopped", "ran"]
    told.gate.stop_next(SCOPE, "me")
    told.gate.run_ended(SCOPE)
    assert agent.batch() == "ran"
    assert not told.gate.armed


def test_breakpoints_hold_by_the_verdict_to_come(told: Told, pool: ThreadPoolExecutor) -> None:
    """Hits are counted; a pause is not needed."""
    agent = Agent(Policy(warn_threshold=3, hard_limit=5))
    told.gate.break_at([parse("stop"), parse("once warn")])
    reached = []
    for number in range(1, 6):
        run = pool.submit(agent.batch)
        until(lambda each=run: each.done() or bool(told.gate.held()))  # type: ignore[misc]
        if told.gate.held():
            reached.append((number, told.held()[-1].breakpoint, told.held()[-1].reason))
            told.gate.resume(None)
        run.result(60)
    assert reached == [(3, "warn", "breakpoint"), (5, "stop", "breakpoint")]
    assert [(state.hits, state.point.enabled) for state in told.gate.status().breakpoints] == [(1, True), (1, False)]
    told.gate.break_at([parse("stop")])
    assert [state.hits for state in told.gate.status().breakpoints] == [1]


def test_a_breakpoint_that_cannot_be_judged_is_not_hit(told: Told) -> None:
    """Arguments that no JSON can hold are no reason to fail, nor to hold."""
    circular: list[Any] = []
    circular.append(circular)
    agent = Agent()
    told.gate.break_at([parse("argument x")])
    assert told.gate.admit(agent.arrival(("bash", circular))) == JUDGE


def test_a_pause_ends_by_itself(pool: ThreadPoolExecutor) -> None:
    """After the longest pause the batch goes on, also where whoever should act on it fails."""
    told = Told(max_pause=0.05)
    try:
        told.gate.expired = lambda _hold: 1 / 0
        told.gate.pause(None)
        assert pool.submit(Agent().batch).result(60) == "ran"
        assert told.released()[0].by == "the longest pause is over"
        held = told.held()[0]
        assert held.until is not None
        assert 0 < held.until - held.ts < 0.1
    finally:
        gatehouse.leave(told.gate)


def test_waiting_for_the_first_viewer_has_no_end_of_its_own(pool: ThreadPoolExecutor) -> None:
    """The program itself asked for it."""
    told = Told(max_pause=0.05)
    try:
        told.gate.pause(None, "wait")
        run = pool.submit(Agent().batch)
        told.wait_for(1)
        assert told.held()[0].until is None
        assert told.gate.status().waiting
        with pytest.raises(TimeoutError):
            run.result(0.3)
        told.gate.resume(None)
        assert run.result(60) == "ran"
    finally:
        gatehouse.leave(told.gate)


def test_the_heartbeat_goes_on_while_a_batch_is_held(told: Told, pool: ThreadPoolExecutor) -> None:
    """In the thread that waits, and whatever it raises."""
    beats: list[int] = []

    def beat() -> None:
        beats.append(threading.get_ident())
        raise RuntimeError

    told.gate.pause(None)
    run = pool.submit(lambda: (Agent().batch(heartbeat=beat, every=0.01), threading.get_ident()))
    until(lambda: len(beats) >= 3)
    told.gate.resume(None)
    result, thread = run.result(60)
    assert result == "ran"
    assert set(beats) == {thread}


def test_an_interrupted_wait_leaves_nothing_behind(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in a held thread is the program's own."""

    def interrupted(_hold: Hold) -> float:
        raise KeyboardInterrupt

    told.gate.pause(None)
    monkeypatch.setattr(Hold, "patience", interrupted)
    with pytest.raises(KeyboardInterrupt):
        told.gate.admit(Agent().arrival(LS))
    assert told.gate.held() == []
    assert told.released()[0].by == "the run was cancelled"


def test_a_changed_policy_changes_what_is_announced(told: Told, pool: ThreadPoolExecutor) -> None:
    """The same hold again, with the new verdict; nothing where nothing changed."""
    agent = Agent(Policy(warn_threshold=1, hard_limit=1))
    told.gate.pause(None)
    run = pool.submit(agent.batch)
    told.wait_for(1)
    told.gate.refresh()
    agent.rebase(Policy(warn_threshold=2, hard_limit=2))
    told.gate.refresh()
    verdicts = [(held.hold, held.decision.action) for held in told.held() if held.decision is not None]
    assert verdicts == [(1, "hard_stop"), (1, "pass")]
    told.gate.resume(None)
    assert run.result(60) == "ran"


def test_without_an_engine_nothing_is_foretold(told: Told, pool: ThreadPoolExecutor) -> None:
    """The batch is held all the same."""
    told.gate.pause(None)
    arrival = Agent().arrival(LS)._replace(engine=None)
    run = pool.submit(told.gate.admit, arrival)
    told.wait_for(1)
    assert told.held()[0].decision is None
    told.gate.resume(None)
    assert run.result(60) == JUDGE


async def test_a_held_task_blocks_no_other(told: Told) -> None:
    """64 runs of one loop are held, a 65th goes on, and so do heartbeats."""
    agent = Agent(FREE)
    beats: list[int] = []
    told.gate.pause(None)
    told.gate.resume(OTHER)
    paused = [
        asyncio.create_task(
            agent.abatch(scope=ScopeKey("t", str(number)), heartbeat=lambda: beats.append(1), every=0.02)
        )
        for number in range(64)
    ]
    await auntil(lambda: len(told.gate.held()) == 64)
    for _ in range(50):
        assert await agent.abatch(scope=OTHER) == "ran"
        await asyncio.sleep(0)
    assert len(told.gate.held()) == 64
    assert threading.active_count() < 20
    await auntil(lambda: len(beats) >= 64)
    told.gate.resume(None)
    assert await asyncio.gather(*paused) == ["ran"] * 64


def test_64_held_threads_leave_a_65th_alone(told: Told, pool: ThreadPoolExecutor) -> None:
    """Each waits for an event of its own."""
    agent = Agent(FREE)
    told.gate.pause(None)
    told.gate.resume(OTHER)
    runs = [pool.submit(agent.batch, scope=ScopeKey("t", str(number))) for number in range(64)]
    told.wait_for(64)
    assert [agent.batch(scope=OTHER) for _ in range(200)] == ["ran"] * 200
    assert not any(run.done() for run in runs)
    told.gate.resume(None)
    assert [run.result(60) for run in runs] == ["ran"] * 64


async def test_a_cancelled_task_leaves_nothing_behind(told: Told) -> None:
    """As under a step timeout."""
    told.gate.pause(None)
    task = asyncio.create_task(Agent().abatch())
    await auntil(lambda: bool(told.gate.held()))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert told.gate.held() == []
    assert told.released()[0].by == "the run was cancelled"


async def test_a_pause_of_a_task_ends_by_itself() -> None:
    """As that of a thread."""
    told = Told(max_pause=0.05)
    try:
        told.gate.pause(None)
        assert await asyncio.wait_for(Agent().abatch(), 5) == "ran"
    finally:
        gatehouse.leave(told.gate)


def test_many_loops_in_many_threads_are_released(told: Told, pool: ThreadPoolExecutor) -> None:
    """Whoever resumes runs in none of them."""
    agent = Agent()
    told.gate.pause(None)

    def run(name: str) -> str:
        return asyncio.run(agent.abatch(scope=ScopeKey("t", name)))

    runs = [pool.submit(run, str(number)) for number in range(5)]
    told.wait_for(5)
    told.gate.resume(None)
    assert [each.result(60) for each in runs] == ["ran"] * 5


def test_a_loop_that_was_closed_meanwhile_is_no_reason_to_fail(told: Told) -> None:
    """Its task is gone, and so is its hold."""
    agent = Agent()
    told.gate.pause(None)
    loop = asyncio.new_event_loop()
    task = loop.create_task(agent.abatch())
    while not told.gate.held():
        loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    told.gate.resume(None)
    assert told.gate.held() == []
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    task.get_coro().close()


async def test_a_thread_that_runs_a_loop_is_never_blocked(told: Told) -> None:
    """A sync run inside of an event loop goes on, and viewers hear why."""
    told.gate.pause(None)
    assert Agent().batch() == "ran"
    assert "event loop" in (told.released()[0].by or "")


def test_a_forked_childs_gate_holds_nothing(told: Told) -> None:
    """Nobody is there who could release it."""
    told.gate.pause(None)
    told.gate.stop_next(SCOPE, "me")
    told.gate.break_at([parse("stop")])
    told.gate.forget()
    assert not told.gate.armed
    assert told.gate.status().breakpoints == ()


def test_what_is_in_force_is_told_whole(told: Told) -> None:
    """Pauses of all and of single scopes, and the exceptions; each change is announced."""
    told.gate.pause(SCOPE)
    told.gate.pause(None)
    told.gate.resume(OTHER)
    status = told.gate.status()
    assert (status.paused, [place.key for place in status.scopes], [place.key for place in status.running]) == (
        True,
        [SCOPE],
        [OTHER],
    )
    assert told.changes == 3


async def test_a_thread_that_may_block_its_loop_is_held(told: Told) -> None:
    """As a notebook's cell may, which keeps the loop busy anyway; elsewhere a batch on a loop's thread goes on."""
    told.gate.pause(None)
    assert told.gate.admit(Agent().arrival(LS)) == JUDGE
    assert told.released()[-1].by is not None

    def viewer() -> None:
        told.wait_for(1)
        told.gate.resume(None, "viewer")

    helper = threading.Thread(target=viewer)
    helper.start()
    with blocking_allowed():
        told.gate.admit(Agent().arrival(LS))
    helper.join()
    assert told.released()[-1].by == "viewer"
