"""What the run itself did with its batches, beside what the policy that is looked at would have done."""

from __future__ import annotations

from typing import Any

import pytest

from loopscope.engine.events import Batch, DecisionMade, Event, Header, RunStart
from loopscope.engine.policy import Policy
from loopscope.session.session import Session
from loopscope.session.timeline import Origin
from tests.session.support import session_of
from tests.session.test_session import result, same


def decided(batch: Batch, action: Any, at: Any = "batch", **more: Any) -> DecisionMade:
    """What the run decided, right behind the batch."""
    fields: dict[str, Any] = {"ts": None, "thread_id": "t", "run_id": "r", "hash": "x", "hash_count": 1}
    fields |= {"layer": None, "tool": None, "count": None, "threshold": None}
    return DecisionMade(**fields | {"seq": batch.seq + 1, "batch_seq": batch.seq, "action": action, "at": at} | more)


def lived(*, enforced: bool, policy: Policy | None = None) -> Session:
    """Three equal batches: two ran, the third was stopped under a limit of three, if anything was."""
    first, second, third = same(1), same(11), same(21)
    stream: list[Event] = [Header(format="loopscope/1", enforced=enforced), first, decided(first, "pass")]
    stream += [result(3, "c1-0"), second, decided(second, "warn"), result(13, "c11-0")]
    stream += [decided(second, "hard_stop", at="result"), third, decided(third, "hard_stop")]
    return session_of(stream, Origin(policy) if policy is not None else None)


def removed(session: Session) -> list[int]:
    return [number for number in range(1, len(session) + 1) if session.timeline.removed(number)]


def test_recorded_decisions_tell_what_was_stopped() -> None:
    """Whatever another policy says: a batch that ran was not stopped, and one that was stopped did not run."""
    assert removed(lived(enforced=True)) == [3]
    assert removed(lived(enforced=True, policy=Policy(warn_threshold=1, hard_limit=2))) == [3]
    assert removed(lived(enforced=False)) == []


def test_without_recorded_decisions_the_engines_count() -> None:
    """But not where there are results: somebody let it run."""
    stream: list[Event] = [Header(format="loopscope/1", enforced=True), *[same(n) for n in range(1, 7)]]
    assert removed(session_of(stream)) == [5, 6]
    assert removed(session_of([*stream, result(9, "c6-0")])) == [5]


def test_a_decision_without_its_batch_stops_nothing() -> None:
    """Its batch was lost, or nothing of its scope was there."""
    stream: list[Event] = [Header(format="loopscope/1", enforced=True), same(1), decided(same(5), "hard_stop")]
    stream += [RunStart(seq=8, ts=None, thread_id="u", run_id=None, agent=None)]
    stream += [decided(same(8), "hard_stop", thread_id="u", run_id=None)]
    assert removed(session_of(stream)) == []


@pytest.mark.parametrize(
    ("enforced", "policy", "number", "effect"),
    [
        (True, None, 3, "effect: none under these limits; the run itself had others and was stopped here"),
        (True, Policy(hard_limit=3), 3, "effect: the calls were removed and a closing text was put in their place"),
        (True, Policy(warn_threshold=1, hard_limit=2), 2, "effect: none, the run itself went on under other limits;"),
        (False, Policy(warn_threshold=1, hard_limit=2), 2, "effect: none, the run was only watched;"),
    ],
)
def test_the_explanation_tells_what_really_came_of_it(
    enforced: bool, policy: Policy | None, number: int, effect: str
) -> None:
    """The effect of a verdict is that on the recorded run."""
    session = lived(enforced=enforced, policy=policy)
    session.seek(number)
    assert any(line.startswith(effect) for line in session.explain(search=False).lines)
