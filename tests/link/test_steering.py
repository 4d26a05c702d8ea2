"""Acts of control: written down first, and such that a replay of the recording decides alike."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from loopscope.engine.breakpoints import Breakpoint, parse
from loopscope.engine.detector import Decision, LoopDetector
from loopscope.engine.events import Control, DecisionMade, Event, PolicySet, ScopeKey
from loopscope.engine.policy import Policy
from loopscope.link.endpoint import Link
from loopscope.link.refusal import RefusedError
from loopscope.link.steering import Steering
from tests.link.support import FREE, LS, SCOPE, Agent, Kept, until

OTHER = ScopeKey("t", "other")
TIGHT = Policy(warn_threshold=2, hard_limit=3)


@pytest.fixture
def steering(link: Link) -> Steering:
    """The steering of a link."""
    return link._hub.steering


def replayed(recording: Kept) -> tuple[list[object], list[object]]:
    """The verdicts in a recording, and those of an engine that folds it."""

    def verdict(each: Decision | DecisionMade) -> object:
        return each.hash, each.hash_count, each.action, each.layer, each.count, each.threshold

    detector = LoopDetector()
    live = [verdict(event) for event in recording.events if isinstance(event, DecisionMade)]
    return live, [verdict(made) for event in recording.events for made in detector.observe(event)]


def acts(recording: Kept) -> list[tuple[str, str | None, str | None]]:
    """The acts of control that a recording tells of: what, in which run, by whom."""
    return [(event.action, event.run_id, event.by) for event in recording.events if isinstance(event, Control)]


def test_a_new_policy_is_in_force_from_the_next_decision_on(steering: Steering) -> None:
    """In all scopes, also in those that had one of their own; the recording has it whole and replays alike."""
    recording = Kept(TIGHT)
    agent = Agent(TIGHT, recording=recording)
    agent.start()
    assert [agent.batch(), agent.batch()] == ["ran", "ran"]
    in_force = steering.set_policy(None, None, {"hard_limit": 5})
    assert in_force[0].policy["hard_limit"] == 5
    assert [agent.batch() for _ in range(3)] == ["ran", "ran", "stopped"]
    events = [event for event in recording.events if isinstance(event, PolicySet)]
    assert [(event.thread_id, event.policy["hard_limit"]) for event in events] == [(None, 5)]
    live, again = replayed(recording)
    assert live == again


def test_a_policy_for_one_scope_leaves_the_others_alone(steering: Steering) -> None:
    """Its changes are made to what is in force there."""
    recording = Kept(TIGHT)
    agent = Agent(TIGHT, recording=recording)
    for scope in (SCOPE, OTHER):
        agent.start(scope)
        agent.batch(scope=scope)
    steering.set_policy(SCOPE, None, {"hard_limit": 4})
    steering.set_policy(SCOPE, None, {"warn_threshold": 4})
    assert agent.detector.policy_of(SCOPE) == Policy(warn_threshold=4, hard_limit=4)
    assert [agent.batch(scope=OTHER) for _ in range(2)] == ["ran", "stopped"]
    assert [agent.batch() for _ in range(3)] == ["ran", "ran", "stopped"]
    live, again = replayed(recording)
    assert live == again


@pytest.mark.parametrize(
    ("whole", "changes", "says"),
    [
        (None, {"hard_limit": 1}, "hard_limit: must be at least warn_threshold"),
        (None, {"hard_limt": 9}, "did you mean hard_limit"),
        ({"warn_threshold": "3"}, None, "whole number"),
        ({"warn_threshold": 0, "window_size": -1}, None, "window_size"),
        ({"tool_freq_overrides": [[[[1]]]]}, None, "must be a table"),
    ],
)
def test_an_invalid_policy_is_refused(
    steering: Steering, whole: dict[str, object] | None, changes: dict[str, object] | None, says: str
) -> None:
    """With every problem in words; the one before stays in force and nothing is written down."""
    recording = Kept(TIGHT)
    agent = Agent(TIGHT, recording=recording)
    with pytest.raises(RefusedError, match=says) as caught:
        steering.set_policy(None, whole, changes)
    assert caught.value.code == "invalid-policy"
    assert agent.policy == agent.detector.policy == TIGHT
    assert len(recording.events) == 1


def test_one_engine_of_several_can_be_named(steering: Steering) -> None:
    """Its scopes are told one by one, and those that begin later too; the other engine keeps its policy."""
    first, second = Agent(TIGHT, "first"), Agent(Policy(hard_limit=9), "second")
    first.start(SCOPE)
    second.start(OTHER)
    first.batch()
    second.batch(scope=OTHER)
    assert [each.engine for each in steering.set_policy(None, {"hard_limit": 7}, None, engine=2)] == ["second"]
    assert (first.policy, second.policy) == (TIGHT, Policy(hard_limit=7))
    assert second.detector.policy_of(OTHER) == Policy(hard_limit=7)
    assert first.detector.policy_of(SCOPE) == TIGHT
    for wrong in (0, 3, -1):
        with pytest.raises(RefusedError, match="there are: 1, 2") as caught:
            steering.set_policy(None, {}, None, engine=wrong)
        assert caught.value.code == "no-such-engine"


def test_all_engines_can_be_given_one_policy(steering: Steering) -> None:
    """One event says it for everybody; changes are made to what each has, and may make them differ."""
    recordings = [Kept(TIGHT), Kept(Policy(hard_limit=9))]
    agents = [Agent(TIGHT, recording=recordings[0]), Agent(Policy(hard_limit=9), recording=recordings[1])]
    assert len(steering.set_policy(None, None, {"window_size": 30})) == 2
    assert [agent.policy.window_size for agent in agents] == [30, 30]
    assert [agent.policy.hard_limit for agent in agents] == [3, 9]
    steering.set_policy(None, {"hard_limit": 6}, None)
    assert [agent.policy for agent in agents] == [Policy(hard_limit=6)] * 2
    assert [len([event for event in each.events if isinstance(event, PolicySet)]) for each in recordings] == [1, 1]


def test_where_nothing_decides_no_policy_can_be_set(steering: Steering) -> None:
    """Neither in a process without an engine, nor in a scope that none knows."""
    with pytest.raises(RefusedError, match="nothing in this process decides"):
        steering.set_policy(None, {}, None)
    agent = Agent()
    agent.start()
    with pytest.raises(RefusedError, match="nothing in this process decides"):
        steering.set_policy(OTHER, {}, None)


def test_letting_pass_once_changes_no_decision(steering: Steering, pool: ThreadPoolExecutor) -> None:
    """The engine still says stop, the batch runs, and the replay says the same."""
    recording = Kept(TIGHT)
    agent = Agent(TIGHT, recording=recording)
    agent.start()
    assert [agent.batch(), agent.batch()] == ["ran", "ran"]
    with pytest.raises(RefusedError, match="pause first"):
        steering.pass_once(SCOPE, "me")
    steering.pause(None, "me")
    run = pool.submit(agent.batch)
    until(lambda: bool(steering._gate.held()))
    assert steering.pass_once(SCOPE, "me") == 1
    assert run.result(60) == "ran"
    steering.resume(None, "me")
    assert agent.batch() == "stopped"
    assert acts(recording) == [("pause", None, "me"), ("pass_once", "r", "me"), ("continue", None, "me")]
    live, again = replayed(recording)
    assert live == again
    assert live[2][2] == "hard_stop"  # type: ignore[index]


def test_a_held_batch_is_decided_under_the_policy_of_its_release(steering: Steering, pool: ThreadPoolExecutor) -> None:
    """One can pause on a hard stop, raise the limit, and go on."""
    recording = Kept(TIGHT)
    agent = Agent(TIGHT, recording=recording)
    agent.start()
    assert [agent.batch(), agent.batch()] == ["ran", "ran"]
    steering.break_at([parse("stop")])
    run = pool.submit(agent.batch)
    until(lambda: bool(steering._gate.held()))
    held = steering._gate.held()[0]
    assert held.decision is not None
    assert held.decision.action == "hard_stop"
    steering.set_policy(None, None, {"hard_limit": 4})
    until(lambda: held.decision is not None and held.decision.action != "hard_stop")
    steering.resume(SCOPE, "me")
    assert run.result(60) == "ran"
    live, again = replayed(recording)
    assert live == again


def test_a_stop_ends_the_runs_that_go_on(steering: Steering, pool: ThreadPoolExecutor) -> None:
    """One, or all: those held at once, the others at their next batch, later ones never."""
    recording = Kept(FREE)
    agent = Agent(FREE, recording=recording)
    third = ScopeKey("t", "third")
    for scope in (SCOPE, OTHER):
        agent.start(scope)
    steering.pause(SCOPE, "me")
    run = pool.submit(agent.batch)
    until(lambda: bool(steering._gate.held()))
    assert steering.stop(None, "me") == 2
    assert run.result(60) == "stopped"
    steering.resume(None, "me")
    assert agent.batch(scope=OTHER) == "stopped"
    agent.start(third)
    assert [agent.batch(scope=scope) for scope in (SCOPE, OTHER, third)] == ["ran"] * 3
    live, again = replayed(recording)
    assert live == again


def test_a_reset_forgets_one_scope_or_all(steering: Steering) -> None:
    """Replay forgets it too."""
    recording = Kept(TIGHT)
    agent = Agent(TIGHT, recording=recording)
    for scope in (SCOPE, OTHER):
        agent.start(scope)
        for _ in range(2):
            agent.batch(scope=scope)
    steering.reset(SCOPE, "me")
    assert agent.batch() == "ran"
    assert agent.batch(scope=OTHER) == "stopped"
    steering.reset(None, "me")
    assert [agent.batch(scope=scope) for scope in (SCOPE, OTHER)] == ["ran", "ran"]
    live, again = replayed(recording)
    assert live == again
    assert acts(recording) == [("reset", "r", "me"), ("reset", None, "me")]


def test_every_act_is_written_down_before_it_takes_effect(steering: Steering) -> None:
    """Once in each recording, though several engines share it; in order, and with who did it."""
    recording = Kept(FREE)
    agent = Agent(FREE, recording=recording)
    Agent(FREE, recording=recording)
    agent.start()
    did: list[tuple[Callable[[ScopeKey | None, str], object], str]] = [
        (steering.pause, "pause"),
        (steering.step, "next"),
        (steering.resume, "continue"),
        (steering.stop, "stop"),
        (steering.reset, "reset"),
    ]
    for act, _ in did:
        act(SCOPE, "me")
        act(None, "you")
    expected = [(name, *whom) for _, name in did for whom in (("r", "me"), (None, "you"))]
    assert acts(recording) == expected
    seqs = [event.seq for event in recording.events if isinstance(event, Control)]
    assert seqs == sorted(set(seqs))


def test_breakpoints_are_checked_before_they_are_set(steering: Steering) -> None:
    """Too many, or one that makes no sense: those set before stay."""
    steering.break_at([parse("stop")])
    for wrong in ([parse("stop")] * 101, [Breakpoint("argument", "(")], [Breakpoint("usage", "__class__", 1)]):
        with pytest.raises(RefusedError):
            steering.break_at(wrong)
    assert [state.point for state in steering._gate.status().breakpoints] == [parse("stop")]


def test_nobody_left_to_steer_means_nothing_is_held(steering: Steering, pool: ThreadPoolExecutor) -> None:
    """Pauses and breakpoints end, held batches go on, and it is written down; where nothing was held, nothing is."""
    recording = Kept(FREE)
    agent = Agent(FREE, recording=recording)
    agent.start()
    steering.let_go("nobody")
    assert acts(recording) == []
    steering.break_at([parse("tool bash")])
    run = pool.submit(agent.batch, LS)
    until(lambda: bool(steering._gate.held()))
    steering.let_go("nobody")
    assert run.result(60) == "ran"
    assert acts(recording) == [("continue", None, "nobody")]
    assert agent.batch() == "ran"


def test_the_longest_pause_ends_the_whole_pause(pool: ThreadPoolExecutor, opened: Callable[..., Link]) -> None:
    """Not one batch alone, or the next one would wait as long; the recording says that nobody did it."""
    recording = Kept(FREE)
    agent = Agent(FREE, recording=recording)
    link = opened(control=True, max_pause=0.05)
    agent.start()
    events: list[Event] = recording.events
    for scope, runs in ((None, None), (SCOPE, "r")):
        link._hub.steering.pause(scope, "me")
        assert pool.submit(agent.batch).result(60) == "ran"
        assert not link.gate.armed
        assert acts(recording)[-1] == ("continue", runs, "nobody for 0.05 s")
    assert len(events) > 4
