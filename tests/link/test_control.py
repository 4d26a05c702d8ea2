"""What a viewer may do: nothing unless both sides want it, and then to hold, step and steer, and to leave."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from loopscope.engine.breakpoints import parse
from loopscope.engine.events import Batch, Control, ScopeKey
from loopscope.engine.policy import Policy
from loopscope.link.client import connect
from loopscope.link.endpoint import Link, listen
from loopscope.link.refusal import RefusedError
from loopscope.recording.feed import Held, Released, Status
from tests.link.support import (
    FREE,
    SCOPE,
    Agent,
    Kept,
    attached,
    same_state,
    until,
)


def test_observing_is_all_there_is_unless_both_sides_want_more(opened: Callable[..., Link]) -> None:
    """A process that does not allow control, and a viewer that did not ask for it, each have their own answer."""
    link = opened("shy")
    agent = Agent(FREE)
    agent.start()
    for asked, says in ((True, "control=True"), (False, "control=True")):
        with connect(link.entry, control=asked) as client:
            assert not client.welcome.control
            for verb in ("pause", "continue", "next", "passOnce", "setPolicy", "setBreakpoints", "stop", "reset"):
                assert says in client.welcome.capabilities[verb]
                with pytest.raises(RefusedError, match=says) as caught:
                    client.call(verb)
                assert caught.value.code == "not-allowed"
    listen(control=True)
    with connect(link.entry) as client, pytest.raises(RefusedError, match="--control"):
        client.call("pause")
    with connect(link.entry, control=True) as client:
        client.call("pause")
    assert agent.batch() == "ran"


def test_a_viewer_pauses_steps_and_steers(either: Link, pool: ThreadPoolExecutor) -> None:
    """Pause before the hard stop, see the verdict, raise the limit, see it change, go on; all of it recorded."""
    policy = Policy(warn_threshold=2, hard_limit=3)
    recording = Kept(policy)
    agent = Agent(policy, recording=recording)
    agent.start()
    assert [agent.batch(), agent.batch()] == ["ran", "ran"]
    client, state = attached(either, control=True)
    with client:
        client.request("pause", SCOPE)
        run = pool.submit(agent.batch)
        held = state.follow(client, lambda message: isinstance(message, Held))
        assert isinstance(held, Held)
        assert held.decision is not None
        assert (held.decision.action, held.decision.count) == ("hard_stop", 3)
        client.request("setPolicy", SCOPE, changes={"hard_limit": 9})
        again = state.follow(client, lambda message: isinstance(message, Held))
        assert isinstance(again, Held)
        assert again.decision is not None
        assert (again.hold, again.decision.action) == (held.hold, "pass")
        assert not run.done()
        client.request("next", SCOPE)
        assert run.result(60) == "ran"
        run = pool.submit(agent.batch)
        state.follow(client, lambda message: isinstance(message, Held))
        client.request("continue")
        assert run.result(60) == "ran"
        state.catch_up(client, agent)
        assert [event.action for event in recording.events if isinstance(event, Control)] == [
            "pause",
            "next",
            "continue",
        ]
        assert same_state(state.detector, agent.detector)
        assert [message.verdict for message in state.messages if isinstance(message, Released)] == ["judge", "judge"]


def test_breakpoints_hold_the_run_in_the_agent(link: Link, pool: ThreadPoolExecutor) -> None:
    """They are sent as data, judged before the decision, and their hits are told to everybody."""
    agent = Agent(Policy(warn_threshold=2, hard_limit=9))
    agent.start()
    client, state = attached(link, control=True)
    with client:
        client.call("setBreakpoints", breakpoints=[parse("warn"), parse("tool rm")])
        assert agent.batch() == "ran"
        run = pool.submit(agent.batch)
        held = state.follow(client, lambda message: isinstance(message, Held))
        assert isinstance(held, Held)
        assert (held.reason, held.breakpoint) == ("breakpoint", "warn")
        client.call("continue")
        run.result(60)
        state.catch_up(client, agent)
        status = [message for message in state.messages if isinstance(message, Status)][-1]
        assert [each.hits for each in status.breakpoints] == [1, 0]
        with pytest.raises(RefusedError):
            client.call("setBreakpoints", breakpoints=[{"kind": "argument", "subject": "("}])
        with pytest.raises(RefusedError):
            client.call("setBreakpoints", breakpoints=[{"kind": "nonsense"}])


@pytest.mark.parametrize(
    ("verb", "arguments", "code"),
    [
        ("pasue", {}, "unknown-verb"),
        ("pause", {"scop": None, "scope_": {}}, "bad-request"),
        ("pause", {"scope": "t/r"}, "bad-request"),
        ("pause", {"scope": {"thread_id": "nobody", "run_id": None}}, "no-such-scope"),
        ("stop", {"scope": {"thread_id": "t", "run_id": "done"}}, "no-such-scope"),
        ("passOnce", {}, "nothing-held"),
        ("setPolicy", {}, "bad-request"),
        ("setPolicy", {"policy": {}, "changes": {}}, "bad-request"),
        ("setPolicy", {"policy": {"hard_limit": 0}}, "invalid-policy"),
        ("setPolicy", {"policy": {}, "engine": 9}, "no-such-engine"),
        ("setBreakpoints", {}, "bad-request"),
        ("attach", {"since": "yesterday"}, "bad-request"),
        ("attach", {}, "bad-request"),
    ],
)
def test_a_request_that_makes_no_sense_is_answered(link: Link, verb: str, arguments: dict[str, Any], code: str) -> None:
    """With a code for programs and words for people; the connection goes on, and nothing was changed."""
    agent = Agent()
    agent.start()
    agent.batch(scope=ScopeKey("t", "done"))
    client, _ = attached(link, control=True)
    with client:
        with pytest.raises(RefusedError) as caught:
            client.call(verb, **arguments)
        assert caught.value.code == code
        assert "\n" not in str(caught.value)
        client.call("pause")
        client.call("continue")
    assert agent.policy == Policy()


def test_a_request_that_fails_inside_is_answered_too(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it hits on, neither the connection nor the program notices."""
    monkeypatch.setattr(link._hub.steering, "pause", lambda *_: 1 / 0)
    with connect(link.entry, control=True) as client:
        with pytest.raises(RefusedError, match="ZeroDivisionError"):
            client.call("pause")
        client.call("continue")


def test_five_viewers_two_of_them_steering(link: Link, pool: ThreadPoolExecutor) -> None:
    """All see the same; a pause ends when the last one that steers has left, and not before."""
    agent = Agent(FREE)
    agent.start()
    viewers = [attached(link, control=number < 2) for number in range(5)]
    viewers[0][0].call("pause")
    run = pool.submit(agent.batch)
    for client, state in viewers:
        state.follow(client, lambda message: isinstance(message, Held))
    viewers[0][0].close()
    viewers[4][0].close()
    until(lambda: link.viewers == 3)
    assert not run.done()
    viewers[1][0].close()
    assert run.result(60) == "ran"
    for client, state in viewers[2:4]:
        state.catch_up(client, agent)
        assert same_state(state.detector, agent.detector)
        assert [message.by for message in state.messages if isinstance(message, Control)][-1] == "loopscope left"
        client.close()


def test_a_viewer_may_leave_its_pause_behind(link: Link, pool: ThreadPoolExecutor) -> None:
    """As `disconnect` with `resume: false`, for commands that come and go; another one may end it."""
    agent = Agent(FREE)
    agent.start()
    client = connect(link.entry, control=True)
    client.call("pause")
    client.close(resume=False)
    until(lambda: link.viewers == 0)
    run = pool.submit(agent.batch)
    until(lambda: bool(link.gate.held()))
    client = connect(link.entry, control=True)
    client.call("continue")
    client.close(resume=False)
    assert run.result(60) == "ran"


def test_the_first_batch_can_wait_for_a_viewer(link: Link, pool: ThreadPoolExecutor) -> None:
    """Any viewer will do, once it is attached and can see it."""
    agent = Agent(FREE)
    agent.start()
    link.hold_first_batch()
    run = pool.submit(agent.batch)
    until(lambda: bool(link.gate.held()))
    assert not link.wait_for_viewer(0.01)
    client = connect(link.entry)
    assert not run.done()
    client.attach()
    assert run.result(60) == "ran"
    assert link.wait_for_viewer(120)
    client.close()
    link.hold_first_batch()
    assert agent.batch() == "ran"


def test_long_arguments_of_a_held_batch_are_cut(link: Link, pool: ThreadPoolExecutor) -> None:
    """The viewer draws their beginning, and gets them whole with the event."""
    agent = Agent(FREE)
    agent.start()
    client, state = attached(link, control=True)
    with client:
        client.call("pause")
        run = pool.submit(agent.batch, ("write_file", {"content": "x" * 500_000}))
        held = state.follow(client, lambda message: isinstance(message, Held))
        assert isinstance(held, Held)
        assert len(json.dumps(held.calls[0].args)) < 70_000
        client.call("continue")
        run.result(60)
        event = state.follow(client, lambda message: isinstance(message, Batch))
        assert isinstance(event, Batch)
        assert len(event.calls[0].args["content"]) == 500_000
