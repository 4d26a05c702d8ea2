"""Which batches are held: for all, per scope, with exceptions, and with steps that are owed."""

from __future__ import annotations

from loopscope.engine.events import ScopeKey
from loopscope.link.pauses import REMEMBERED, Pauses

A, B = ScopeKey("t", "a"), ScopeKey("t", "b")


def test_nothing_is_paused_at_first() -> None:
    """And nothing is remembered of scopes that pass."""
    pauses = Pauses()
    assert not pauses
    assert pauses.why(A) is None


def test_a_pause_of_one_scope_leaves_the_others_alone() -> None:
    """Until that scope is resumed."""
    pauses = Pauses()
    pauses.pause(A)
    assert (pauses.why(A), pauses.why(B)) == ("pause", None)
    pauses.resume(A)
    assert pauses.why(A) is None
    assert not pauses


def test_a_pause_of_all_has_exceptions() -> None:
    """A scope that is resumed runs on, till the next pause of all or its own."""
    pauses = Pauses()
    pauses.pause(None)
    pauses.resume(A)
    assert (pauses.why(A), pauses.why(B)) == (None, "pause")
    pauses.pause(A)
    assert pauses.why(A) == "pause"
    pauses.resume(A)
    pauses.pause(None)
    assert pauses.why(A) == "pause"


def test_resuming_all_ends_every_pause() -> None:
    """Also those of single scopes, and the steps that were owed."""
    pauses = Pauses()
    pauses.pause(None)
    pauses.pause(A)
    pauses.owe(A)
    pauses.resume(None)
    assert not pauses
    pauses.pause(A)
    assert pauses.why(A) == "pause"


def test_a_step_is_used_up_by_one_batch() -> None:
    """Of its scope, or of any."""
    pauses = Pauses()
    pauses.pause(None)
    pauses.owe(A)
    assert [pauses.why(B), pauses.why(A), pauses.why(A)] == ["pause", None, "pause"]
    pauses.owe(None)
    assert [pauses.why(B), pauses.why(A)] == [None, "pause"]


def test_a_step_is_not_used_up_where_nothing_is_paused() -> None:
    """An exception from a pause of all runs on without it."""
    pauses = Pauses()
    pauses.pause(None)
    pauses.resume(A)
    pauses.owe(None)
    assert [pauses.why(A), pauses.why(B), pauses.why(B)] == [None, None, "pause"]


def test_what_is_remembered_is_bounded() -> None:
    """The oldest names go first."""
    pauses = Pauses()
    many = [ScopeKey("t", str(number)) for number in range(REMEMBERED + 10)]
    for scope in many:
        pauses.pause(scope)
    assert len(pauses.scopes) == REMEMBERED
    assert (pauses.why(many[0]), pauses.why(many[-1])) == (None, "pause")
