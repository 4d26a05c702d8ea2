"""A process that listens and viewers that look: what they see, what they may, and what is left of it."""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from loopscope.engine.breakpoints import parse
from loopscope.engine.events import Batch, Call, Control, Gap, PolicySet, RunStart, ScopeKey
from loopscope.engine.policy import Policy
from loopscope.errors import CannotAttachError
from loopscope.link import hub
from loopscope.link.client import Client, connect
from loopscope.link.endpoint import Link, listen
from loopscope.link.limits import Limits
from loopscope.link.refusal import RefusedError
from loopscope.link.shadow import merged
from loopscope.recording.bus import bus
from loopscope.recording.feed import Held, Released, Snapshotted, Status
from loopscope.recording.gate import gatehouse
from tests.link.support import FREE, LS, SCOPE, Agent, Kept, State, descriptors, raw, read_all, same_state, until

OTHER = ScopeKey("t", "other")


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as threads:
        yield threads


@pytest.fixture(params=["unix", "tcp"])
def either(request: pytest.FixtureRequest, opened: Callable[..., Link]) -> Link:
    """A link over each transport."""
    return opened("either", control=True, transport=request.param)


def attached(link: Link, *, control: bool = False) -> tuple[Client, State]:
    """A viewer that gets events."""
    client, state = connect(link.entry, control=control), State()
    client.attach()
    return client, state


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
        assert run.result(5) == "ran"
        run = pool.submit(agent.batch)
        state.follow(client, lambda message: isinstance(message, Held))
        client.request("continue")
        assert run.result(5) == "ran"
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
        run.result(5)
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
    assert run.result(1) == "ran"
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
    assert run.result(5) == "ran"


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
    assert run.result(5) == "ran"
    assert link.wait_for_viewer(5)
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
        run.result(5)
        event = state.follow(client, lambda message: isinstance(message, Batch))
        assert isinstance(event, Batch)
        assert len(event.calls[0].args["content"]) == 500_000


def test_the_files_are_the_owners_alone(link: Link) -> None:
    """Folder, socket and discovery file; nothing in a name reaches a path."""
    path = Path(link.address)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    file = path.with_suffix(".json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    entry = json.loads(file.read_bytes())
    assert (entry["pid"], entry["name"], entry["transport"], entry["token"]) == (os.getpid(), "test", "unix", None)
    assert "path" not in entry or entry["path"] == ""


@pytest.mark.parametrize("name", ["../../etc/passwd", "a\x1b]0;owned\x07b", "x\ny", "\u202egnp.exe", "n" * 10_000, "/"])
def test_a_name_is_only_text(opened: Callable[..., Link], name: str) -> None:
    """Paths, control characters and floods in it come out harmless, and the files have names of our own."""
    link = opened(name)
    entry = connect(link.entry).welcome
    for told in (link.entry.name, entry.name):
        assert told.isprintable()
        assert 0 < len(told) <= 80
    files = sorted(path.suffix for path in Path(link.address).parent.iterdir())
    assert files == [".json", ".sock"]
    assert Path(link.address).name.startswith(f"{os.getpid()}-")


def test_agents_names_reach_the_list(link: Link) -> None:
    """The discovery file is written anew when another graph begins."""
    agent = Agent()
    client, state = attached(link)
    with client:
        agent.start(agent="planner")
        agent.start(OTHER, agent="coder")
        state.catch_up(client, agent)
    file = Path(link.address).with_suffix(".json")
    until(lambda: json.loads(file.read_bytes())["graphs"] == ["planner", "coder"])


@pytest.mark.parametrize("what", ["loopscope.link.endpoint.write", "loopscope.link.server.Server.start"])
def test_an_endpoint_that_cannot_be_opened_leaves_nothing(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """A full disk, or no thread to be had: the program hears it in one line and can go on without."""

    def failing(*_arguments: object) -> None:
        raise OSError(28, "No space left on device") if what.endswith("write") else RuntimeError("can't start thread")

    monkeypatch.setattr(what, failing)
    files = descriptors()
    with pytest.raises(CannotAttachError, match="cannot open an endpoint"):
        listen()
    assert not bus.active
    assert gatehouse.gate is None
    assert list((Path(os.environ["XDG_RUNTIME_DIR"]) / "loopscope").iterdir()) == []
    monkeypatch.undo()
    assert descriptors() == files


def test_one_process_has_one_link(link: Link) -> None:
    """A second call gives back the first, until it is closed."""
    assert listen() is link
    assert "observe only" not in repr(link)
    link.close()
    link.close()
    assert "closed" in repr(link)
    other = listen("again")
    assert other is not link
    assert other.address != link.address
    assert "observe only" in repr(other)
    other.close()


def test_closing_lets_everything_go(link: Link, pool: ThreadPoolExecutor) -> None:
    """Held runs go on, viewers are told, and no thread, file or subscription is left."""
    agent = Agent(FREE)
    agent.start()
    client, state = attached(link, control=True)
    client.call("pause")
    run = pool.submit(agent.batch)
    until(lambda: bool(link.gate.held()))
    link.close()
    assert run.result(5) == "ran"
    for message in client:
        state.take(message)
    assert client.bye is not None
    assert client.bye.code == "ended"
    assert isinstance(state.messages[-1], (Status, Control, Released))
    assert list(Path(link.address).parent.iterdir()) == []
    assert not any(thread.name == "loopscope-link" for thread in threading.enumerate())
    assert gatehouse.gate is None
    assert not bus.active
    with pytest.raises(CannotAttachError):
        connect(link.entry)


def test_the_last_events_reach_a_viewer_that_lags(opened: Callable[..., Link]) -> None:
    """A process that ends gives its viewers a moment to read on."""
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
    closing.join(10)
    assert state.detector.batches == 3_000
    assert same_state(state.detector, agent.detector)


def test_a_hundred_attach_detach_cycles_leave_nothing_behind(link: Link) -> None:
    """No thread, descriptor, file, viewer or memory of them."""
    agent = Agent(FREE)
    agent.start()

    def cycle() -> None:
        client, state = attached(link, control=True)
        agent.batch()
        state.catch_up(client, agent)
        client.call("pause")
        client.call("continue")
        client.close()

    cycle()
    until(lambda: link.viewers == 0)
    files, threads = descriptors(), threading.active_count()
    for _ in range(100):
        cycle()
    until(lambda: link.viewers == 0)
    until(lambda: descriptors() == files)
    assert threading.active_count() == threads
    assert not link._server._connections  # type: ignore[union-attr]
    assert not link._server._sockets  # type: ignore[union-attr]


def test_viewers_that_come_and_go_do_not_fill_the_memory(opened: Callable[..., Link]) -> None:
    """What is told of them is bounded with everything else, also where nothing happens in the program."""
    link = opened(limits=Limits(backlog=20_000, burst=10**6, per_second=10**6), control=True)
    with connect(link.entry, control=True) as client:
        for _ in range(300):
            client.call("setBreakpoints", breakpoints=[{"kind": "tool", "subject": "x" * 100}])
    until(lambda: link.viewers == 0)
    assert link._hub._backlog.size < 40_000


def test_there_may_be_too_many_viewers(opened: Callable[..., Link]) -> None:
    """The ones that are there stay; the next one is told."""
    link = opened(limits=Limits(viewers=2))
    clients = [connect(link.entry) for _ in range(2)]
    with pytest.raises(CannotAttachError, match="2 viewers"):
        connect(link.entry)
    clients[0].close()
    until(lambda: link.viewers == 1)
    connect(link.entry).close()
    assert clients[1].call("attach") is not None
    clients[1].close()


def test_a_connection_that_says_nothing_has_to_go_when_others_come(opened: Callable[..., Link]) -> None:
    """So that whoever holds connections open cannot keep viewers out."""
    link = opened(limits=Limits(greeting=4))
    with raw(link) as silent:
        for _ in range(6):
            with raw(link):
                pass
        others = [raw(link) for _ in range(5)]
        opened_ = [other.__enter__() for other in others]
        connect(link.entry).close()
        assert b"too-many" in read_all(silent)
        for other in opened_:
            other.close()


def test_publishing_costs_little_and_a_stuck_viewer_no_more(opened: Callable[..., Link]) -> None:
    """Without a viewer about a microsecond; with one that reads, or never does, far below half a millisecond."""
    link = opened()
    batch = Batch(seq=1, ts=1.0, thread_id="t", run_id="r", calls=(Call("c", "bash", LS[1]),))

    def cost(count: int = 2_000) -> float:
        best = 1.0
        for _ in range(3):
            before = time.perf_counter()
            for _ in range(count):
                bus.publish(batch)
            best = min(best, (time.perf_counter() - before) / count)
        return best

    alone = cost()
    client, _ = attached(link)
    reading = threading.Thread(target=lambda: [None for _ in client])
    reading.start()
    read = cost()
    with raw(link) as stuck:
        stuck.sendall(b'{"kind":"hello","version":1}\n{"kind":"request","id":1,"verb":"attach"}\n')
        until(lambda: link.viewers == 2)
        with_stuck = cost()
    client.close()
    reading.join(10)
    assert alone < 20e-6
    assert read < 500e-6
    assert with_stuck < 500e-6


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
