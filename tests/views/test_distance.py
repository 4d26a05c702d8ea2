"""The distance to fire: what is said will come is what comes when the run goes on like that."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopscope.engine.events import Call
from loopscope.engine.policy import BOUNDED, PROGRESS, Policy
from loopscope.session.session import Session
from loopscope.views.distance import Distance, Probe
from tests.views.support import Story


def probe(session: Session) -> Probe:
    """Of the cursor's scope."""
    view = session.state
    assert view.scope is not None
    return Probe(session, view, view.scope)


def verdicts(found: Distance) -> list[tuple[str, int, str | None]]:
    """Action, batches and layer of what comes."""
    return [(fire.decision.action, fire.more, fire.decision.layer) for fire in (found.warn, found.stop) if fire]


NAMES = st.sampled_from("abc")
POLICIES = st.builds(
    lambda warn, more, window, freq, freq_more: Policy(
        warn_threshold=warn, hard_limit=warn + more, window_size=window, tool_freq_warn=freq,
        tool_freq_hard_limit=freq + freq_more,
    ),
    st.integers(1, 4), st.integers(0, 3), st.integers(1, 8), st.integers(1, 9), st.integers(0, 6),
)  # fmt: skip


def went_on(names: list[str], policy: Policy, more: int) -> list[tuple[str, int, str | None]]:
    """What really comes: the first warning and the first stop when the last batch goes on repeating."""
    story = Story(policy)
    for name in [*names, *names[-1:] * more]:
        story.call(name, {"path": name})
    session = story.session()
    found: list[tuple[str, int, str | None]] = []
    for number in range(len(names) + 1, len(names) + more + 1):
        decision = session.row(number).decision
        if decision.action == "hard_stop":
            return [*found, (decision.action, number - len(names), decision.layer)]
        if decision.action == "warn" and not found:
            found.append((decision.action, number - len(names), decision.layer))
    return found


@given(st.lists(NAMES, min_size=1, max_size=12), POLICIES)
def test_a_distance_is_what_comes(names: list[str], policy: Policy) -> None:
    """For any history and any limits; where nothing is said to come, nothing does."""
    story = Story(policy)
    for name in names:
        story.call(name, {"path": name})
    session = story.session()
    session.seek(len(names))
    row = session.row(len(names))
    found = probe(session).of_batch(row.hash, row.names)
    assert not found.further
    assert verdicts(found) == went_on(names, policy, 40)


def test_a_tool_goes_on_with_new_arguments() -> None:
    """Its frequency is what counts then, not the repetition of a batch."""
    session = Story().call("a", {"path": "x"}).session()
    assert verdicts(probe(session).of_tool("a")) == [
        ("warn", 29, "tool_frequency"),
        ("hard_stop", 49, "tool_frequency"),
    ]


def test_a_limit_above_the_window_is_never_reached() -> None:
    """The window never holds as many."""
    session = (
        Story(Policy(hard_limit=25, window_size=20, tool_freq_hard_limit=900, tool_freq_warn=900))
        .call("a", {})
        .session()
    )
    row = session.row(1)
    found = probe(session).of_batch(row.hash, row.names)
    assert verdicts(found) == [("warn", 2, "identical_call_set"), ("hard_stop", 899, "tool_frequency")]


def test_what_is_very_far_is_not_counted_out() -> None:
    """After a thousand batches the answer is that it is further."""
    far = Policy(hard_limit=5000, warn_threshold=5000, window_size=5000, tool_freq_warn=5000, tool_freq_hard_limit=5000)
    session = Story(far).call("a", {}).session()
    assert probe(session).of_tool("a") == Distance(None, None, further=True)


@pytest.mark.parametrize(("content", "comes"), [("it failed", (1, "error_streak")), (None, (7, "identical_call_set"))])
def test_layers_that_look_at_results_are_told_the_same_results_again(
    content: str | None, comes: tuple[int, str]
) -> None:
    """A batch that failed fails again; of one without a result none is assumed."""
    story = Story(Policy(warn_threshold=9, hard_limit=9).with_(error_streak={"warn": 2, "hard_limit": 3}))
    for _ in range(2):
        story.call("a", {"path": "x"}, content, status="error")
    session = story.session()
    session.seek(2)
    row = session.row(2)
    stop = probe(session).of_batch(row.hash, row.names).stop
    assert stop is not None
    assert (stop.more, stop.decision.layer) == comes


def test_progress_stops_what_brings_nothing_new() -> None:
    """Result-aware limits count repetitions that bring the same; a tool's newest result stands for its next ones."""
    story = Story(PROGRESS)
    for n in range(3):
        story.call("a", {"path": "x"}, f"result {n}")
    session = story.session()
    session.seek(3)
    row = session.row(3)
    assert verdicts(probe(session).of_batch(row.hash, row.names))[-1][0] == "hard_stop"
    assert verdicts(probe(session).of_tool("a"))[0][0] == "warn"
    assert verdicts(probe(session).of_tool("never called"))


def test_budgets_are_left_out() -> None:
    """What a further batch would cost, nobody knows; the other layers are still told."""
    policy = BOUNDED.with_(budget={"tool_calls": {"limit": 2}})
    story = Story(policy).call("a", {"path": "x"})
    found = probe(story.session()).of_batch(story.session().row(1).hash, ("a",))
    assert {layer for _, _, layer in verdicts(found)} == {"identical_call_set"}


def test_a_batch_of_several_calls_counts_each_tool() -> None:
    """Its names go on as they are."""
    story = Story(Policy(tool_freq_warn=4, tool_freq_hard_limit=6, warn_threshold=9, hard_limit=9))
    story.batch(Call("1", "a", {"path": "x"}), Call("2", "a", {"path": "y"}))
    session = story.session()
    row = session.row(1)
    assert verdicts(probe(session).of_batch(row.hash, row.names)) == [
        ("warn", 1, "tool_frequency"),
        ("hard_stop", 2, "tool_frequency"),
    ]


def test_a_standstill_of_failures_that_are_no_longer_remembered() -> None:
    """The last failure is too long ago to be tried again: nothing is said."""
    policy = Policy(window_size=1, tool_freq_warn=1000, tool_freq_hard_limit=1000).with_(
        stagnation={"witness": "last_error", "warn": 2}
    )
    session = Story(policy).call("a", {"path": "x"}, "no", status="error").session()
    asked = probe(session)
    assert asked.after.trail is not None
    asked.after.trail.batches.clear()
    assert asked.of_standstill() == Distance(None, None, further=True)
