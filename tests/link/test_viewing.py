"""What a viewer sees: the very state of the engine, however late or often it comes, whatever had to be dropped."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from loopscope.engine.events import Batch, Gap, PolicySet, RunStart, ScopeKey
from loopscope.engine.policy import Policy
from loopscope.link import hub, server
from loopscope.link.client import connect
from loopscope.link.endpoint import Link
from loopscope.link.limits import Limits
from loopscope.link.shadow import merged
from loopscope.recording.bus import bus
from loopscope.recording.feed import Snapshotted
from loopscope.recording.gate import gatehouse
from tests.link.support import (
    FREE,
    SCOPE,
    Agent,
    State,
    attached,
    same_state,
)

OTHER = ScopeKey("t", "other")


def test_a_late_viewer_has_the_very_state_of_the_engine(either: Link) -> None:
    """Whatever happened before it came, and whatever happens then."""
    agent = Agent(Policy(warn_threshold=2, hard_limit=4))
    agent.start()
    for number in range(30):
        agent.batch(("bash", {"command": f"echo {number % 3}"}), scope=OTHER if number % 2 else SCOPE)
    client, state = attached(either)
    with client:
        state.catch_up(client, agent)
        assert same_state(state.detector, agent.detector)
        for _ in range(5):
            agent.batch()
        state.catch_up(client, agent)
        assert same_state(state.detector, agent.detector)


def test_what_happened_before_anybody_listened_is_in_the_state(opened: Callable[..., Link]) -> None:
    """No event tells of it, so the engines are asked; several of them, with policies of their own, are one state."""
    first, second = Agent(Policy(hard_limit=7)), Agent(Policy(hard_limit=9))
    for _ in range(3):
        first.batch()
        second.batch(scope=OTHER)
    client, state = attached(opened())
    with client:
        state.catch_up(client, first)
        detector = state.detector
        assert set(detector.scopes) == {SCOPE, OTHER}
        assert (detector.policy_of(SCOPE).hard_limit, detector.policy_of(OTHER).hard_limit) == (7, 9)
        assert detector.batches == 6
        assert same_state(detector, merged([first, second], gatehouse.base))


def test_an_engine_that_comes_later_tells_its_policy(link: Link) -> None:
    """The first one's is everybody's; another one's is told per scope, as its runs begin."""
    client, state = attached(link)
    with client:
        first = Agent(Policy(hard_limit=7))
        second = Agent(Policy(hard_limit=9))
        first.start(SCOPE)
        second.start(OTHER)
        state.catch_up(client, first)
        told = [(each.thread_id, each.policy["hard_limit"]) for each in state.messages if isinstance(each, PolicySet)]
        assert told == [(None, 7), ("t", 9)]
        first.batch()
        state.catch_up(client, first)
        assert same_state(state.detector, first.detector) is False  # the second's scope has a policy of its own
        assert state.detector.policy_of(SCOPE) == first.policy
        assert state.detector.policy_of(OTHER) == second.policy
        assert link.entry.graphs != ()


def test_a_returning_viewer_gets_what_is_new_and_nothing_twice(link: Link) -> None:
    """Within one session of the process; a `since` of another one means nothing."""
    agent = Agent()
    agent.start()
    client, state = attached(link)
    agent.batch()
    state.catch_up(client, agent)
    client.close()
    agent.batch()
    back = connect(link.entry)
    with back:
        answer = back.attach(state.seq, client.welcome.session)
        assert answer["resumed"] is True
        before = len(state.messages)
        state.catch_up(back, agent)
        new = state.messages[before:]
        assert not any(isinstance(message, Snapshotted) for message in new)
        seqs = [message.seq for message in state.messages if isinstance(message, Batch)]
        assert seqs == sorted(set(seqs))
        assert len(seqs) == 2
        assert same_state(state.detector, agent.detector)
    stranger, other = connect(link.entry), State()
    with stranger:
        assert stranger.attach(state.seq, "another session")["resumed"] is False
        other.catch_up(stranger, agent)
        assert same_state(other.detector, agent.detector)


def test_what_is_dropped_is_a_gap(opened: Callable[..., Link]) -> None:
    """The backlog is bounded: a late viewer starts at the oldest state kept, a returning one is told what is gone."""
    link = opened(limits=Limits(backlog=60_000))
    agent = Agent()
    agent.start()
    client, state = attached(link)
    state.catch_up(client, agent)
    client.close()
    for number in range(800):
        agent.batch(("bash", {"command": f"echo {number % 5}", "padding": "x" * 100}))
    for since, gaps in ((None, 0), (state.seq, 1)):
        viewer, seen = connect(link.entry), State()
        with viewer:
            viewer.attach(since, client.welcome.session)
            seen.catch_up(viewer, agent)
            assert len([message for message in seen.messages if isinstance(message, Gap)]) == gaps
            assert len([message for message in seen.messages if isinstance(message, Batch)]) < 400
            assert same_state(seen.detector, agent.detector)
            first = next(message for message in seen.messages if isinstance(message, Snapshotted))
            assert [run.agent for run in first.runs] == ["agent"]


def test_an_event_that_is_too_long_is_replaced_by_the_state(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    """Viewers are told that something is missing, and count on rightly."""
    monkeypatch.setattr(hub, "LONGEST_LINE", 10_000)
    agent = Agent()
    client, state = attached(link)
    with client:
        state.catch_up(client, agent)
        agent.batch(("write_file", {"content": "x" * 20_000}))
        agent.batch(("write_file", {"content": "x" * 20_000}))
        agent.batch()
        state.catch_up(client, agent)
        assert [message.lost for message in state.messages if isinstance(message, Gap)] == [1, 1]
        assert same_state(state.detector, agent.detector)


def test_events_that_come_too_fast_are_replaced_by_the_state(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the link's thread gets no time for long, the program is not slowed down and memory stays bounded."""
    monkeypatch.setattr("loopscope.link.intake._MOST", 40)
    agent = Agent()
    client, state = attached(link)
    with client:
        state.catch_up(client, agent)
        with bus.lock:  # the link's thread waits for it where events were lost
            for _ in range(200):
                agent.batch()
        state.catch_up(client, agent)
        agent.batch()
        state.catch_up(client, agent)
        assert any(isinstance(message, Gap) for message in state.messages) or len(state.messages) > 600
        assert same_state(state.detector, agent.detector)


def test_the_last_events_reach_a_viewer_that_lags(opened: Callable[..., Link], monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that ends gives its viewers a moment to read on; a long one here, since the machine may be busy."""
    monkeypatch.setattr(server, "_FAREWELL", 60.0)
    monkeypatch.setattr(server, "_STANDSTILL", 30.0)
    link = opened()
    agent = Agent(FREE)
    client, state = attached(link)
    state.catch_up(client, agent)
    for number in range(3_000):
        agent.batch(("bash", {"command": f"echo {number}"}))
    closing = threading.Thread(target=link.close)
    closing.start()
    for message in client:
        state.take(message)
    closing.join(60)
    assert state.detector.batches == 3_000
    assert same_state(state.detector, agent.detector)


def test_run_starts_are_kept_for_viewers_that_come_late(opened: Callable[..., Link]) -> None:
    """Of the runs that go on: who is whose parent is known however late one comes."""
    link = opened(limits=Limits(backlog=30_000))
    agent = Agent()
    agent.start()
    agent.tell(
        RunStart(
            seq=bus.next_seq(),
            ts=0.0,
            thread_id="t",
            run_id="r/x",
            agent="sub",
            parent_thread_id="t",
            parent_run_id="r",
        )
    )
    for _ in range(500):
        agent.batch()
    client, state = attached(link)
    with client:
        state.catch_up(client, agent)
        first = next(message for message in state.messages if isinstance(message, Snapshotted))
        assert [(run.run_id, run.parent_run_id) for run in first.runs] == [("r", None), ("r/x", "r")]
