"""What is kept as numbers says the same as lists and dictionaries of everything would."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from loopscope.engine.policy import Policy
from loopscope.session.kept import Between, Chains, Snapshots
from loopscope.session.session import Session
from loopscope.session.timeline import Origin
from tests.session.support import session_of
from tests.views.support import Story


@given(st.lists(st.integers(0, 8)))
def test_rows_of_a_number(numbers: list[int]) -> None:
    """In order, and the newest first; nothing of a number that has none."""
    chains, model = Chains(), dict[int, list[int]]()
    for row, number in enumerate(numbers):
        chains.add(number)
        model.setdefault(number, []).append(row)
    for number in range(10):
        assert chains[number] == model.get(number, [])
        assert list(chains.newest_first(number)) == model.get(number, [])[::-1]
        assert (number in chains) == (number in model)


@given(st.lists(st.sampled_from(["batch", "row", "other"])))
def test_what_came_between(story: list[str]) -> None:
    """Rows and other things in the order in which they came, by the number of batches before them."""
    between: Between[str] = Between()
    model: dict[int, list[Any]] = {}
    batches = rows = 0
    for position, what in enumerate(story):
        if what == "batch":
            batches += 1
            between.next_batch()
            continue
        if what == "row":
            model.setdefault(batches, []).append(rows)
            rows += 1
            between.add_row()
        else:
            model.setdefault(batches, []).append(f"event {position}")
            between.add(f"event {position}")
    assert {number: list(items) for number, items in between.items()} == model
    assert list(between.others) == [item for items in model.values() for item in items if isinstance(item, str)]
    for number in range(-1, batches + 2):
        assert list(between[number]) == model.get(number, [])
        assert (number in between) == (number in model)
        first = [item for at in range(2, number) for item in model.get(at, []) if isinstance(item, str)]
        assert list(between.others_from(2, number)) == first


def test_states_are_packed_and_come_back_as_they_were() -> None:
    """The newest one that is not later than what is asked for; none before the first."""
    session = run()
    detector, states = session.timeline.origin.detector(), Snapshots()
    for number in range(1, len(session) + 1):
        session.timeline.fold(detector, number)
        if number % 4 == 0:
            states.add(number, detector.snapshot())
    assert len(states) == len(session) // 4
    assert states.before(3) is None
    found = states.before(len(session))
    assert found is not None
    number, state = found
    assert number == len(session) // 4 * 4
    assert msgspec.json.encode(state) == msgspec.json.encode(session.timeline.detector_at(number).snapshot())


def run() -> Session:
    """Passes, warnings and stops of two scopes."""
    story = Story()
    for n in range(7):
        story.in_scope("t", f"r{n % 2}")
        story.call("search", {"query": "same"}, "nothing").call("open", {"url": str(n)}, "page")
    return session_of(story.events, Origin(Policy(warn_threshold=2, hard_limit=3)))


def test_decisions_are_those_of_the_engine() -> None:
    """Each by itself, from the end, in slices, and all of them; a list of the same ones is equal."""
    session = run()
    timeline = session.timeline
    made = list(timeline.refold(timeline.origin.detector()))
    decisions = timeline.decisions
    assert {decision.action for decision in made} == {"pass", "warn", "hard_stop"}
    assert decisions == made
    assert decisions[:5] == made[:5]
    assert decisions[-1] == made[-1]
    assert list(decisions.counts) == [decision.hash_count for decision in made]
    assert decisions != made[:-1]
    assert decisions != [*made[:-1], made[0]]
    assert decisions != 3
