"""The viewer's side: finding a process, one connection for threads or an event loop, and coming back after a drop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from loopscope.engine.events import Batch, Control
from loopscope.errors import CannotAttachError
from loopscope.link.aclient import AsyncClient, aconnect
from loopscope.link.client import Client, connect
from loopscope.link.endpoint import Link
from loopscope.link.follow import Follow
from loopscope.link.limits import Limits
from loopscope.link.refusal import RefusedError
from loopscope.link.target import discover, resolve
from loopscope.recording.feed import Connection, Feed, Held, Message, Released, Snapshotted
from tests.link.support import FREE, SCOPE, Agent, State, consume, descriptors, same_state, until


def drop(link: Link) -> None:
    """Cut every connection, as a fault between the two would."""
    server = link._server
    assert server is not None
    for connection in list(server._connections.values()):
        server._loop.call_soon_threadsafe(connection._transport.abort)


def test_a_process_is_found_by_pid_name_and_path(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    """And by nothing else; near misses are named."""
    for target in (os.getpid(), str(os.getpid()), "test", link.address, Path(link.address), link.entry):
        assert resolve(target).address == link.address
    monkeypatch.chdir(Path(link.address).parent)
    assert resolve("./" + Path(link.address).name).session == link.entry.session
    for target, says in (("tset", "did you mean test"), (1, "loopscope ps"), ("../../x", "does not answer")):
        with pytest.raises(CannotAttachError, match=says):
            connect(target)


def test_a_name_that_two_processes_have_is_no_name(link: Link) -> None:
    """Their pids are given."""
    twin = msgspec.structs.replace(link.entry, pid=os.getppid())
    file = Path(link.address).with_name("1-twin.json")
    file.with_suffix(".sock").hardlink_to(link.address)
    file.write_bytes(msgspec.json.encode(twin))
    with pytest.raises(CannotAttachError, match=rf"2 live processes are test.*{os.getppid()}"):
        resolve("test")
    assert resolve(os.getppid()).pid == os.getppid()


@pytest.mark.usefixtures("link")
def test_live_processes_are_listed_with_how_they_are() -> None:
    """Worst verdict, batches and scopes, asked of themselves."""
    agent = Agent()
    agent.start(agent="planner")
    for _ in range(5):
        agent.batch()
    (live,) = [each for each in discover() if each.entry.pid == os.getpid()]
    assert live.welcome is not None
    summary = live.welcome.summary
    assert (summary.worst, summary.batches, summary.scopes, summary.held) == ("hard_stop", 5, 1, 0)
    assert live.welcome.graphs == ("planner",)
    assert live.welcome.engines[0].name == "agent"
    assert live.welcome.engines[0].policy == agent.policy.to_dict()


def test_one_that_is_full_is_listed_with_what_it_says(opened: Callable[..., Link]) -> None:
    """It is alive, after all."""
    link = opened(limits=Limits(viewers=1))
    with connect(link.entry):
        (live,) = [each for each in discover() if each.entry.pid == os.getpid()]
        assert live.welcome is None
        assert "1 viewers" in live.problem


def test_events_are_read_by_one_thread_and_asked_for_by_others(link: Link, pool: ThreadPoolExecutor) -> None:
    """Answers reach whoever asked, whichever thread reads."""
    agent = Agent(FREE)
    agent.start()
    state = State()
    with connect(link.entry, control=True) as client:
        client.attach()
        reader = pool.submit(consume, client, state.take)
        asked = [pool.submit(client.call, verb) for verb in ("pause", "continue") * 20]
        assert [each.result(60) for each in asked] == [{}] * 40
        client.call("continue")  # the threads may have asked for the last pause last
        agent.batch()
        until(lambda: any(isinstance(message, Batch) for message in state.messages))
        client.close()
        reader.result(60)
    controls = [message for message in state.messages if isinstance(message, Control)]
    assert len(controls) >= 40


def test_a_program_with_one_thread_loses_no_event(link: Link) -> None:
    """What comes while it waits for an answer is there when it iterates."""
    agent = Agent(FREE)
    state = State()
    with connect(link.entry, control=True) as client:
        client.attach()
        for _ in range(10):
            agent.batch()
            client.call("pause")
            client.call("continue")
        state.catch_up(client, agent)
        assert same_state(state.detector, agent.detector)


def test_an_agent_that_does_not_answer_is_no_reason_to_wait_for_ever(link: Link) -> None:
    """As one that was stopped by a signal: a call gives up, and so does a hello."""
    server = link._server
    assert server is not None
    client = connect(link.entry, control=True, timeout=0.2)
    free = threading.Event()
    server._loop.call_soon_threadsafe(free.wait, 10)
    try:
        with pytest.raises(CannotAttachError, match="does not answer"):
            client.call("pause")
        with pytest.raises(CannotAttachError, match="does not answer"):
            connect(link.entry, timeout=0.2)
        (live,) = [each for each in discover(timeout=0.1) if each.entry.pid == os.getpid()]
        assert live.welcome is None
    finally:
        free.set()
    client.close()


def test_calling_after_the_end_fails_at_once(link: Link) -> None:
    """With what the process said last, and not with the patience that one has with a process that is there."""
    client = connect(link.entry, control=True, timeout=3600)
    client.attach()
    link.close()
    assert [message for message in client if isinstance(message, Batch)] == []
    with pytest.raises(CannotAttachError):
        client.call("pause")
    client.close()
    client.close()


def test_closing_wakes_whoever_reads(link: Link, pool: ThreadPoolExecutor) -> None:
    """The iteration ends, and the descriptors are given back."""
    files = descriptors()
    client = connect(link.entry)
    client.attach()
    seen: list[Message] = []
    reader = pool.submit(consume, client, seen.append)
    until(lambda: bool(seen))
    client.close()
    reader.result(60)
    until(lambda: link.viewers == 0)
    until(lambda: descriptors() <= files)


async def test_the_same_for_an_event_loop(link: Link) -> None:
    """Attach, iterate, steer; answers and refusals as in the blocking one."""
    agent = Agent(FREE)
    agent.start()
    state = State()
    async with await aconnect(link.entry, control=True) as client:
        assert client.welcome.control
        await client.attach()
        await client.request("pause", SCOPE)
        run = asyncio.create_task(agent.abatch())
        async for message in client:
            state.take(message)
            if isinstance(message, Held):
                break
        with pytest.raises(RefusedError):
            await client.call("nonsense")
        await client.call("continue")
        assert await run == "ran"
        async for message in client:
            state.take(message)
            if isinstance(message, Batch):
                break
    assert state.detector.batches == 1


async def test_the_async_viewer_hears_of_the_end(link: Link) -> None:
    """Its iteration ends, its calls fail at once, and a process that lets nobody in says why."""
    client = await aconnect(link.entry)
    await client.attach()
    waiting = asyncio.create_task(_drained(client))
    await asyncio.to_thread(link.close)
    assert len(await asyncio.wait_for(waiting, 5)) >= 1
    assert client.bye is not None
    with pytest.raises(CannotAttachError, match="ended"):
        await client.call("attach")
    await client.close(resume=False)
    with pytest.raises(CannotAttachError):
        await aconnect(link.entry)


async def _drained(client: AsyncClient) -> list[Message]:
    return [message async for message in client]


async def test_the_async_viewer_does_not_wait_for_ever(opened: Callable[..., Link]) -> None:
    """Neither for an answer nor for a welcome; a wrong one is not taken."""
    link = opened(transport="tcp")
    with pytest.raises(CannotAttachError, match="token"):
        await aconnect(msgspec.structs.replace(link.entry, token="f" * 64))
    client = await aconnect(link.entry, timeout=0.2)
    server = link._server
    assert server is not None
    free = threading.Event()
    server._loop.call_soon_threadsafe(free.wait, 10)
    try:
        with pytest.raises(CannotAttachError, match="does not answer"):
            await client.call("attach")
        with pytest.raises(CannotAttachError, match="does not answer"):
            await aconnect(link.entry, timeout=0.2)
    finally:
        free.set()
    await client.close()


def test_a_feed_comes_back_after_a_drop(link: Link, pool: ThreadPoolExecutor) -> None:
    """By itself, with what is new and nothing twice, and says so in between."""
    agent = Agent(FREE)
    agent.start()
    feed = Follow(os.getpid(), control=True)
    as_feed: Feed = feed
    assert (as_feed.name, as_feed.capabilities["pause"]) == ("test", "")
    state = State()
    reader = pool.submit(consume, feed, state.take)
    agent.batch()
    until(lambda: state.detector.batches == 1)
    states = len(snapshots(state))
    for number in range(3):
        drop(link)
        until(lambda count=number: len(connections(state)) > 2 * count)  # type: ignore[misc]
        agent.batch()
        until(lambda count=number: state.detector.batches == count + 2)  # type: ignore[misc]
    feed.request("pause", SCOPE)
    feed.close()
    reader.result(60)
    assert connections(state) == ["lost", "back"] * 3
    seqs = [message.seq for message in state.messages if isinstance(message, Batch)]
    assert seqs == sorted(set(seqs))
    assert len(snapshots(state)) == states


def snapshots(state: State) -> list[Snapshotted]:
    """The whole states that came."""
    return [message for message in state.messages if isinstance(message, Snapshotted)]


def connections(state: State) -> list[str]:
    """What was told of the connection."""
    return [message.state for message in state.messages if isinstance(message, Connection)]


def test_a_drop_while_paused_resumes_at_once(link: Link, pool: ThreadPoolExecutor) -> None:
    """The agent does not wait for a viewer that may come back."""
    agent = Agent(FREE)
    agent.start()
    with connect(link.entry, control=True) as client:
        client.call("pause")
        run = pool.submit(agent.batch)
        until(lambda: bool(link.gate.held()))
        drop(link)
        assert run.result(60) == "ran"


def test_a_feed_ends_with_its_process(link: Link) -> None:
    """Told once; everything that came is kept by whoever took it."""
    agent = Agent(FREE)
    feed = Follow("test")
    state = State()
    for message in feed:
        state.take(message)
        if len(state.messages) == 1:
            agent.batch()
        if isinstance(message, Batch):
            link.close()
    assert connections(state) == ["ended"]
    assert state.detector.batches == 1
    with pytest.raises(CannotAttachError):
        feed.request("pause")


def test_a_feed_gives_up_on_a_process_that_answers_no_more(link: Link) -> None:
    """It lives, but its endpoint is gone without a word."""
    feed = Follow("test", patience=0.2)
    state = State()
    for message in feed:
        state.take(message)
        if isinstance(message, Snapshotted):
            Path(link.address).unlink()
            drop(link)
    assert connections(state) == ["lost", "ended"]


def test_a_feed_that_is_closed_while_it_looks_for_its_process_ends(link: Link, pool: ThreadPoolExecutor) -> None:
    """Without waiting out its patience."""
    feed = Follow("test", patience=60)
    state = State()
    reader = pool.submit(consume, feed, state.take)
    until(lambda: bool(snapshots(state)))
    Path(link.address).unlink()
    drop(link)
    until(lambda: connections(state) == ["lost"])
    feed.close()
    reader.result(60)
    assert connections(state) == ["lost"]


def test_what_a_viewer_does_not_know_it_passes_over(link: Link) -> None:
    """Kinds of a later version, and lines that make no sense."""
    agent = Agent(FREE)
    hub = link._hub
    client, state = connect(link.entry), State()
    with client:
        client.attach()
        for junk in (b'{"kind":"hologram"}\n', b"\xff\n", b"[\n", b'{"kind":"answer","id":77,"ok":true}\n'):
            link._intake.urge(lambda line=junk: hub._backlog.add(line))  # type: ignore[misc]
        agent.batch()
        state.catch_up(client, agent)
    assert state.detector.batches == 1


def test_a_release_is_told_with_who_did_it(link: Link, pool: ThreadPoolExecutor) -> None:
    """By the name that the viewer gave itself, made harmless."""
    agent = Agent(FREE)
    agent.start()
    state = State()
    with connect(link.entry, control=True, name="me\x1b[2J" + "x" * 100) as client:
        client.attach()
        client.call("pause")
        run = pool.submit(agent.batch)
        state.follow(client, lambda message: isinstance(message, Held))
        client.call("passOnce")
        released = state.follow(client, lambda message: isinstance(message, Released))
        run.result(60)
    assert isinstance(released, Released)
    assert released.verdict == "pass"
    assert released.by is not None
    assert released.by.startswith("me\\x1b[2J")
    assert len(released.by) <= 60


def test_a_client_that_is_refused_leaves_no_descriptor(opened: Callable[..., Link]) -> None:
    """However it was refused."""
    link = opened(transport="tcp")
    files = descriptors()
    for _ in range(20):
        with pytest.raises(CannotAttachError):
            connect(msgspec.structs.replace(link.entry, token=None))
    until(lambda: descriptors() <= files)
    assert issubclass(RefusedError, Exception)
    assert Client.__doc__
