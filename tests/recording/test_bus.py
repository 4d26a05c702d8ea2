from __future__ import annotations

import logging
import os
import threading
from typing import Any

import pytest

from loopscope.engine.events import Event, Gap
from loopscope.recording.bus import Bus, bus


def gap(seq: int) -> Gap:
    return Gap(seq=seq, ts=None, thread_id=None, run_id=None, lost=1)


def test_every_observer_gets_every_event_in_order() -> None:
    """Two observers both see the events in the order of publication."""
    own, first, second = Bus(), list[Event](), list[Event]()
    own.subscribe(first.append)
    own.subscribe(second.append)
    events = [gap(own.next_seq()) for _ in range(3)]
    for event in events:
        own.publish(event)
    assert first == second == events
    assert [event.seq for event in events] == [1, 2, 3]


def test_active_tells_whether_anybody_listens() -> None:
    """The flag follows subscriptions, and unsubscribing twice does no harm to another of the same observer."""
    own, seen = Bus(), list[Event]()
    states = [own.active]
    leave = own.subscribe(seen.append)
    stay = own.subscribe(seen.append)
    leave()
    leave()
    states.append(own.active)
    own.publish(gap(1))
    stay()
    states.append(own.active)
    own.publish(gap(2))
    assert states == [False, True, False]
    assert seen == [gap(1)]


def test_an_observer_that_raises_is_dropped_and_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    """The publisher and the other observers notice nothing; the log has one line with the reason."""
    own, seen = Bus(), list[Event]()

    def broken(_event: Event) -> None:
        raise RuntimeError("no disk")

    own.subscribe(broken)
    own.subscribe(seen.append)
    with caplog.at_level(logging.ERROR, "loopscope"):
        own.publish(gap(1))
        own.publish(gap(2))
    assert len(seen) == 2
    assert len(caplog.records) == 1
    assert "no disk" in caplog.text


def test_a_failing_log_is_no_reason_to_raise() -> None:
    """Where even the report of a failure fails, the run still goes on."""
    own = Bus()

    class Broken(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            raise OSError(record.name)

    def broken(_event: Event) -> None:
        raise RuntimeError

    log, cut = logging.getLogger("loopscope"), Broken()
    log.addFilter(cut)
    try:
        own.subscribe(broken)
        own.publish(gap(1))
    finally:
        log.removeFilter(cut)
    assert not own.active


def test_the_programs_own_interrupts_pass() -> None:
    """Ctrl-C while an observer runs is the program's, and the bus works on afterwards."""
    own, seen = Bus(), list[Event]()

    def interrupted(event: Event) -> None:
        if event == gap(1):
            raise KeyboardInterrupt

    own.subscribe(interrupted)
    own.subscribe(seen.append)
    with pytest.raises(KeyboardInterrupt):
        own.publish(gap(1))
    own.publish(gap(2))
    assert seen == [gap(2)]


def test_an_event_published_by_an_observer_comes_after_the_one_it_answers() -> None:
    """Observers subscribed later see both events in the order of their numbers."""
    own, seen = Bus(), list[Event]()

    def answer(event: Event) -> None:
        if event == gap(1):
            own.publish(gap(2))

    own.subscribe(answer)
    own.subscribe(seen.append)
    own.publish(gap(1))
    assert seen == [gap(1), gap(2)]


def test_settle_asks_those_who_can_and_drops_those_who_fail() -> None:
    """Only observers that gave a settle function are asked; a failing one is dropped like a failing observer."""
    own, asked = Bus(), list[str]()

    def broken() -> None:
        raise OSError

    own.subscribe(lambda _event: None)
    leave = own.subscribe(lambda _event: None, settle=lambda: asked.append("settled"))
    own.settle()
    assert asked == ["settled"]
    leave()
    own.subscribe(lambda _event: None, settle=broken)
    own.settle()
    own.settle()
    assert len(own._observers) == 1


def test_numbers_are_in_order_of_publication_over_threads() -> None:
    """Eight threads that hold the lock from number to publication are seen in the order of the numbers."""
    own, seen = Bus(), list[int]()

    def observe(event: Any) -> None:
        seen.append(event.seq)

    own.subscribe(observe)

    def work() -> None:
        for _ in range(200):
            with own.lock:
                own.publish(gap(own.next_seq()))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == list(range(1, 1601))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_is_not_stuck_on_a_lock_that_another_thread_held() -> None:
    """A child forked while another thread of the parent holds the lock can publish at once."""
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with bus.lock:
            held.set()
            done.wait(120)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(120)
    child = os.fork()
    if child == 0:  # pragma: no cover - runs in the child, which must not come back into pytest
        bus.publish(gap(1))
        os._exit(7)
    done.set()
    holder.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_child_that_forked_inside_an_observer_starts_clean() -> None:
    """What the parent was about to publish is the parent's; the child publishes to the same observers."""
    own, seen = Bus(), list[Event]()

    def fork_here(event: Event) -> None:
        if event == gap(1):
            own.publish(gap(2))
            own.after_fork()
            own.publish(gap(3))

    own.subscribe(fork_here)
    own.subscribe(seen.append)
    own.publish(gap(1))
    assert seen == [gap(3), gap(1)]
    assert own.active
