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


def test_what_is_forgotten_does_not_depend_on_when_it_is_asked() -> None:
    """Saving in the midst, and one more batch whose result comes at once, forget nothing of what is kept."""
    asked, unasked = OpenCalls(), OpenCalls()
    for number in range(1, OPEN_KEPT + 1):
        for calls in (asked, unasked):
            calls.opened(number, [f"id{number}"])
        assert len(asked.dump()) == number
    for calls in (asked, unasked):
        calls.opened(OPEN_KEPT + 1, ["last"])
        assert calls.closed("last") == Place(OPEN_KEPT + 1, 0)
    assert asked.dump() == unasked.dump() == [(f"id{n}", n, 0) for n in range(OPEN_KEPT // 2 + 2, OPEN_KEPT + 1)]


def test_a_result_at_once_and_one_that_comes_later() -> None:
    """The newest batch's only call is closed before an older one of the same id; one that waits is found later."""
    calls = OpenCalls()
    calls.opened(1, ["a"])
    calls.opened(2, ["a"])
    assert [calls.closed("a"), calls.closed("a"), calls.closed("a")] == [Place(2, 0), Place(1, 0), None]
    calls.opened(3, ["b"])
    calls.opened(4, [None])
    assert [calls.closed("b"), calls.closed(None), calls.closed(None)] == [Place(3, 0), Place(4, 0), None]


def test_what_is_open_can_be_saved() -> None:
    """Saved and loaded, results close the same calls."""
    calls = OpenCalls()
    calls.opened(1, ["a", None])
    calls.opened(2, ["a"])
    other = OpenCalls.load(calls.dump())
    assert [other.closed("a"), other.closed("a"), other.closed(None)] == [Place(2, 0), Place(1, 0), Place(1, 1)]
