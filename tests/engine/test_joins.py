"""Which call a result closes."""

from __future__ import annotations

from loopscope.engine.joins import OPEN_KEPT, OpenCalls, Place


def test_the_newest_batch_with_the_id_still_open() -> None:
    """Ids that are used again belong to the newest batch, then to the older one."""
    calls = OpenCalls()
    calls.opened(1, ["a", "b"])
    calls.opened(2, ["a", "a"])
    assert [calls.closed("a") for _ in range(4)] == [Place(2, 0), Place(2, 1), Place(1, 0), None]
    assert calls.closed("b") == Place(1, 1)
    assert calls.closed(None) is None


def test_open_calls_are_bounded() -> None:
    """Calls of runs that were cut off are forgotten, the oldest first."""
    calls = OpenCalls()
    for number in range(3 * OPEN_KEPT):
        calls.opened(number, [f"id{number % 7}" if number % 2 else None])
    assert len(calls.dump()) <= OPEN_KEPT
    assert calls.closed(f"id{(3 * OPEN_KEPT - 1) % 7}") == Place(3 * OPEN_KEPT - 1, 0)
    alone = OpenCalls()
    for number in range(3 * OPEN_KEPT):
        alone.opened_one(number, f"id{number % 7}" if number % 2 else None)
    assert len(alone.dump()) <= OPEN_KEPT
    assert alone.closed(f"id{(3 * OPEN_KEPT - 1) % 7}") == Place(3 * OPEN_KEPT - 1, 0)


def test_what_is_open_can_be_saved() -> None:
    """Saved and loaded, results close the same calls."""
    calls = OpenCalls()
    calls.opened(1, ["a", None])
    calls.opened(2, ["a"])
    other = OpenCalls.load(calls.dump())
    assert [other.closed("a"), other.closed("a"), other.closed(None)] == [Place(2, 0), Place(1, 0), Place(1, 1)]
