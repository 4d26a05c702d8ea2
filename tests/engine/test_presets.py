"""The rules that DeerFlow had at other times, each a value of the policy: written a second time, and case by case."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscope.engine.decision import Decision
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, Call, Control, Result, ScopeKey
from loopscope.engine.identity import Identity
from loopscope.engine.policy import BOUNDED, PRESETS, Policy
from loopscope.engine.snapshot import Snapshot
from tests.engine.support import batch
from tests.engine.test_detector import RUNS, decide, events, policies

AUGUST, APRIL = PRESETS["deerflow-2026-08-22"], PRESETS["deerflow-2026-04"]
EXACT = PRESETS["deerflow-2026-09-16"]


class Earlier:
    """The rules of summer 2026, slowly and straight from their description: a history a thread, a warning returns."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.threads: dict[str | None, dict[str, Any]] = {}

    def touch(self, thread: str | None) -> dict[str, Any]:
        state = self.threads.pop(thread, None) or {"hashes": [], "warned": set(), "names": [], "named": set()}
        self.threads[thread] = state
        while len(self.threads) > self.policy.max_tracked_threads:
            del self.threads[next(iter(self.threads))]
        return state

    def decide(self, thread: str | None, digest: str, names: list[str]) -> tuple[Any, ...]:
        policy, state = self.policy, self.touch(thread)
        state["hashes"] = [*state["hashes"], digest][-policy.window_size :]
        state["warned"] &= set(state["hashes"])
        count = state["hashes"].count(digest)
        if count >= policy.hard_limit:
            return ("hard_stop", "identical_call_set", None, count, policy.hard_limit)
        if count >= policy.warn_threshold and digest not in state["warned"]:
            state["warned"].add(digest)
            return ("warn", "identical_call_set", None, count, policy.warn_threshold)
        for name in filter(None, names):
            state["names"] = [*state["names"], name]
            if policy.tool_freq_window == "limits":
                state["names"] = state["names"][-policy.frequency_window :]
            n, limits = state["names"].count(name), policy.frequency_limits(name)
            if n >= limits.hard_limit:
                return ("hard_stop", "tool_frequency", name, n, limits.hard_limit)
            if n >= limits.warn:
                if name not in state["named"]:
                    state["named"].add(name)
                    return ("warn", "tool_frequency", name, n, limits.warn)
            else:
                state["named"].discard(name)
        return ("pass", None, None, None, None)


@given(policies(), st.sampled_from(["limits", "unbounded"]), RUNS)
@settings(max_examples=300)
def test_decisions_equal_the_earlier_rules(policy: Policy, window: str, run: Any) -> None:
    """For random limits and runs every decision of both earlier presets is the one of their description."""
    policy = policy.with_(severity_first=False, scope="thread", tool_freq_window=window)
    earlier, stream = Earlier(policy), events(run)
    expected = [
        earlier.decide(e.thread_id, Identity(policy).hash(e.calls), [c.name or "" for c in e.calls])
        for e in stream
        if e.calls
    ]
    got = [(d.action, d.layer, d.tool, d.count, d.threshold) for d in decide(LoopDetector(policy), stream)]
    assert got == expected


@given(policies(), st.sampled_from([APRIL, AUGUST, EXACT]), RUNS, st.integers(0, 60))
@settings(max_examples=100)
def test_a_snapshot_goes_on_under_them(limits: Policy, preset: Policy, run: Any, cut: int) -> None:
    """Also through JSON, where one thread has the state of several scopes."""
    rules = ("severity_first", "scope", "tool_freq_window", "read_window")
    policy, stream = limits.with_(**{name: getattr(preset, name) for name in rules}), events(run)
    whole, cut_short, later = LoopDetector(policy), LoopDetector(policy), LoopDetector()
    expected = decide(whole, stream)
    before = decide(cut_short, stream[:cut])
    saved = msgspec.json.decode(msgspec.json.encode(cut_short.snapshot()), type=Snapshot)
    later.restore(saved)
    assert before + decide(later, stream[cut:]) == expected
    assert later.snapshot() == whole.snapshot()


def test_a_warning_ends_the_look_at_a_batch() -> None:
    """deer-flow issue 5243: three reads in one message, warning at 2 and stop at 3: until 2026-09-07 only a warning."""
    limits: dict[str, Any] = {"tool_freq_warn": 2, "tool_freq_hard_limit": 3}
    reads = batch(1, *[("read_file", {"path": path}) for path in "abc"])
    (now,) = LoopDetector(Policy(**limits)).observe(reads)
    (then,) = LoopDetector(AUGUST.with_(**limits)).observe(reads)
    assert (now.action, now.count) == ("hard_stop", 3)
    assert (then.action, then.count) == ("warn", 2)


def test_a_warning_of_equal_batches_hides_the_batch_from_the_frequency() -> None:
    """deer-flow pull request 5245: the batch that is warned is not counted by the second layer."""
    limits: dict[str, Any] = {"warn_threshold": 2, "hard_limit": 9, "tool_freq_warn": 3, "tool_freq_hard_limit": 4}
    same = [batch(n, ("bash", {"command": "ls"})) for n in range(1, 5)]
    assert [d.action for d in decide(LoopDetector(Policy(**limits)), same)] == ["pass", "warn", "warn", "hard_stop"]
    assert [d.action for d in decide(LoopDetector(AUGUST.with_(**limits)), same)] == ["pass", "warn", "pass", "warn"]


def test_the_runs_of_a_thread_share_a_history() -> None:
    """deer-flow issue 5343: `git status` once in each of five runs of a thread was stopped until 2026-09-10."""
    stream = [batch(n, ("bash", {"command": "git status"}), scope=("t", f"r{n}")) for n in range(1, 6)]
    assert {d.action for d in decide(LoopDetector(), stream)} == {"pass"}
    detector = LoopDetector(AUGUST)
    decisions = decide(detector, stream)
    assert [d.action for d in decisions] == ["pass", "pass", "warn", "pass", "hard_stop"]
    assert [d.run_id for d in decisions] == ["r1", "r2", "r3", "r4", "r5"]
    state = detector.scope(ScopeKey("t", "r1"))
    assert state is not None
    assert state is detector.scope(ScopeKey("t", "r5"))
    assert detector.spent(ScopeKey("t", "r2")).batches == 5
    assert list(detector.scopes) == [ScopeKey("t", None)]


def test_what_concerns_a_run_concerns_its_thread() -> None:
    """A reset of one run forgets the thread's history; a message without calls is charged to the thread."""
    detector = LoopDetector(AUGUST)
    decide(detector, [batch(n, ("bash", {"command": "ls"}), scope=("t", f"r{n}")) for n in (1, 2)])
    silent = Batch(seq=3, ts=None, thread_id="t", run_id="r9", calls=())
    decide(detector, [silent])
    assert (detector.spent(ScopeKey("t", "r1")).callless, detector.spent(ScopeKey("t", "r1")).batches) == (1, 2)
    detector.observe(Control(seq=4, ts=None, thread_id="t", run_id="r1", action="reset"))
    assert detector.scope(ScopeKey("t", "r2")) is None


def test_results_of_any_run_count_in_the_thread() -> None:
    """Layers that look at results do so over the runs, and a decision at a result has the run of the result."""
    policy = BOUNDED.with_(scope="thread", warn_threshold=50, hard_limit=50)
    detector = LoopDetector(policy)
    made: list[Decision] = []
    for n in range(1, 7):
        scope = ("t", f"r{n}")
        made += detector.observe(batch(10 * n, ("bash", {"command": f"step {n}"}), scope=scope))
        result = Result(
            seq=10 * n + 1, ts=None, thread_id="t", run_id=f"r{n}", call_id=f"c{10 * n}-0", status="error", content="no"
        )
        made += detector.observe(result)
    found = [(d.run_id, d.action, d.layer, d.at) for d in made if d.action != "pass"]
    assert found[0] == ("r3", "warn", "error_streak", "result")
    assert ("r5", "hard_stop", "error_streak", "result") in found


@pytest.mark.parametrize(
    ("args", "key"),
    [
        ({"path": "/a"}, "/a:1-"),
        ({"path": "/a", "start_line": 1}, "/a:1-"),
        ({"path": "/a", "start_line": None, "end_line": None}, "/a:1-"),
        ({"path": "/a", "start_line": 41}, "/a:41-"),
        ({"path": "/a", "start_line": 41, "end_line": 80}, "/a:41-80"),
        ({"path": "/a", "start_line": 80, "end_line": 41}, "/a:41-80"),
        ({"path": "/a", "end_line": 80}, "/a:1-80"),
        ({"path": "/a", "start_line": -3, "end_line": 0}, "/a:1-1"),
        ({"path": "/a", "start_line": "x", "end_line": "y"}, "/a:1-"),
        ({"start_line": "5", "end_line": 9.9}, ":5-9"),
    ],
)
def test_an_exact_window_is_the_lines_that_are_asked_for(args: dict[str, Any], key: str) -> None:
    """deer-flow pull request 5486: no buckets; a line below 1 is 1, no last line is the end of the file."""
    assert Identity(EXACT).key(Call("c", "read_file", args)) == key
    assert Identity(EXACT.with_(identity="full_args")).key(Call("c", "read_file", args)) == key


def test_frequency_counts_on_where_it_is_unbounded() -> None:
    """Two tools in turn, 200 calls: warned at the 59th and stopped at the 99th until July 2026, never since."""
    stream = [batch(n, (("search", "fetch")[(n - 1) % 2], {"query": str(n)})) for n in range(1, 201)]
    april = decide(LoopDetector(APRIL), stream)
    assert [d.batch for d in april if d.action == "warn"][:2] == [59, 60]
    assert next(d.batch for d in april if d.action == "hard_stop") == 99
    assert {d.action for d in decide(LoopDetector(AUGUST), stream)} == {"pass"}


def test_a_window_is_cut_when_the_policy_has_one_again() -> None:
    """Histories are kept over a change of the policy, and cut at the next call."""
    detector = LoopDetector(APRIL)
    decide(detector, [batch(n, ("a", {"query": str(n)})) for n in range(1, 80)])
    state = detector.scope(ScopeKey("t", "r"))
    assert state is not None
    assert len(state.tools.items) == 79
    detector.adopt(AUGUST)
    detector.observe(batch(80, ("a", {"query": "80"})))
    assert (len(state.tools.items), state.tools.counts) == (50, {"a": 50})
