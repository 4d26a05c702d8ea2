"""A session of a live run: a real agent in a process of its own, and its engine's state on both sides."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from loopscope.engine.breakpoints import Breakpoint
from loopscope.engine.policy import DEFAULT
from loopscope.session.session import Session
from tests.link.support import same_state
from tests.live.support import Agent, Viewer, until

pytestmark = pytest.mark.slow

Agents = Callable[..., Agent]
Viewers = Callable[..., Viewer]


def paused(viewer: Viewer) -> None:
    """Hold the agent, and take in all that it did before."""
    viewer.feed.request("pause")
    viewer.until(lambda live: live.holds())


def same_as(agent: Agent, session: Session) -> bool:
    """Whether the session's engine would decide everything as the agent's does."""
    _, state = agent.state()
    return same_state(session.timeline.detector, state)


def folds_again(session: Session) -> bool:
    """Whether a fold of what is kept comes to the same state."""
    detector = session.timeline.detector_at(len(session))
    session.timeline.pass_over(detector, len(session))
    return same_state(detector, session.timeline.detector)


@pytest.mark.parametrize("options", [(), ("--results",)])
def test_a_viewer_from_the_beginning_has_the_state_of_the_engine(
    agent: Agents, viewer: Viewers, options: tuple[str, ...]
) -> None:
    """Batches, warnings and what was delivered: state in the viewer == state in the process."""
    process = agent("--wait", "--pause", "0.002", *options)
    seen = viewer(process)
    seen.until(lambda live: len(live.session) > 8)
    paused(seen)
    session = seen.live.session
    assert same_as(process, session)
    session.seek(len(session))
    assert session.state.warnings[0].state == "delivered"
    assert session.row(5).decision.action == "warn"
    assert session.batch(5).calls[0].args == {"query": "A"}  # type: ignore[union-attr]
    assert session.results(5)[0].content == "nothing about A"  # type: ignore[union-attr]
    assert folds_again(session)
    assert session.where("hard_limit") == "the process"


@pytest.mark.parametrize("options", [(), ("--results",)])
def test_a_late_viewer_has_it_too(agent: Agents, viewer: Viewers, options: tuple[str, ...]) -> None:
    """The engine had decided batches before anybody could look: they count, and are not shown."""
    process = agent("--wait", "--pause", "0.002", "--late", "7", *options)
    seen = viewer(process)
    seen.until(lambda live: len(live.session) > 4)
    paused(seen)
    session = seen.live.session
    assert seen.live.missed == 7
    assert same_as(process, session)
    first = session.row(1)
    assert (first.n, first.decision.batch, first.decision.hash_count) == (1, 1, 4)
    assert folds_again(session)
    session.seek(1)
    assert [record.batch < 1 for record in session.state.warnings] == [True, True]
    assert session.explain(1).batch == 1


def test_steering_is_seen_and_changes_the_state_on_both_sides(agent: Agents, viewer: Viewers) -> None:
    """A held batch tells the verdict it would get; the limit that is set then decides it, here and there."""
    process = agent("--wait", "--pause", "0.002", "--limit", "6")
    seen = viewer(process, first=lambda feed: feed.request("setBreakpoints", breakpoints=[{"kind": "stop"}]))
    # The first batch was held until a viewer came, which it may still be told.
    seen.until(lambda live: any(held.reason == "breakpoint" for held in live.held.values()))
    held = seen.live.holds()
    assert held is not None
    assert held.decision is not None
    assert (held.decision.action, held.decision.count) == ("hard_stop", 6)
    before = len(seen.live.session)
    seen.feed.request("setPolicy", changes={"hard_limit": 50})
    seen.feed.request("next")
    seen.until(lambda live: len(live.session) == before + 1 and live.holds())
    session = seen.live.session
    session.seek(before + 1)
    assert (session.row(before + 1).decision.action, session.policy.hard_limit) == ("pass", 50)
    assert same_as(process, session)
    assert session.whatif(DEFAULT.with_(hard_limit=4)).override.first_stop == 7


def test_the_process_ends_and_all_is_kept(agent: Agents, viewer: Viewers) -> None:
    """Whether it ends by itself or is killed; the batches are there, and can be read again."""
    process = agent("--wait", "--pause", "0.002", "--batches", "6")
    seen = viewer(process, control=False)
    seen.until(lambda live: live.state == "ended")
    assert len(seen.live.session) == 6
    seen.live.session.seek(2)
    assert seen.live.session.batch(2) is not None
    assert not seen.live.paused
    other = agent("--wait", "--pause", "0.002")
    watching = viewer(other)
    paused(watching)
    other.end()
    watching.until(lambda live: live.state == "ended")
    assert watching.live.held == {}


def test_a_returning_viewer_goes_on_where_it_was(agent: Agents, viewer: Viewers) -> None:
    """After a drop only what is new comes; no batch is shown twice."""
    process = agent("--wait", "--pause", "0.002")
    seen = viewer(process)
    seen.until(lambda live: len(live.session) > 3)
    seen.feed._client._connection.shutdown(2)
    seen.until(lambda live: live.drops == 1 and live.state == "live")
    paused(seen)
    session = seen.live.session
    assert same_as(process, session)
    seqs = list(session.timeline.batches.seq)
    assert seqs == sorted(set(seqs))


def test_a_viewer_that_leaves_lets_the_agent_go_on(agent: Agents, viewer: Viewers) -> None:
    """Nothing but the pause was noticed."""
    process = agent("--wait", "--pause", "0.002")
    seen = viewer(process)
    paused(seen)
    count = process.tools
    seen.close()
    until(lambda: process.tools > count + 3)


def test_a_late_viewers_numbers_are_told_as_the_process_counts(agent: Agents, viewer: Viewers) -> None:
    """It shows its first batch as 1, and a breakpoint at its 12th holds the process at its own 19th."""
    process = agent("--wait", "--pause", "0.002", "--late", "7")
    seen = viewer(process)
    paused(seen)
    live = seen.live
    wanted = len(live.session) + 3
    live.session.breakpoints.append(Breakpoint("batch", at_least=wanted))
    told = live.breakpoints_to_tell()
    assert [str(point) for point in told] == [f"batch {wanted + 7}"]
    seen.feed.request("setBreakpoints", breakpoints=msgspec.to_builtins(told))
    seen.feed.request("continue")
    seen.until(lambda live: any(held.reason == "breakpoint" for held in live.held.values()))
    held = live.holds()
    assert held is not None
    assert held.decision is not None
    assert held.decision.batch == wanted + 7
    assert live.breakpoint_name(held.breakpoint or "") == f"batch {wanted}"
    assert len(live.session) == wanted - 1
    seen.until(lambda live: live.breakpoints_told() == {Breakpoint("batch", at_least=wanted): 1})
