"""A live process whose past is taken in before there is a screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from loopscope.cli.watch import Begun
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, Call, RunStart, ScopeKey
from loopscope.recording.feed import Message, Snapshotted, Verb
from loopscope.session.live import LiveSession


class Told:
    """A feed of these messages."""

    name = "told"
    capabilities: Mapping[str, str] = {"pause": "no"}

    def __init__(self, messages: list[Message]) -> None:
        self.messages = messages
        self.asked: list[str] = []

    def __iter__(self) -> Iterator[Message]:
        yield from self.messages

    def request(self, verb: Verb, scope: ScopeKey | None = None, **arguments: Any) -> Mapping[str, Any]:
        """Remember what is asked."""
        self.asked.append(f"{verb} {scope} {arguments}")
        return {"done": True}

    def close(self) -> None:
        """As a request."""
        self.asked.append("close")


def batch(seq: int) -> Batch:
    """One call."""
    call = Call(f"c{seq}", "look", {"at": "it"})
    return Batch(seq=seq, ts=1.0, thread_id="t", run_id="r", calls=(call,))


def test_the_past_is_taken_in_and_the_rest_is_left() -> None:
    """Up to the newest event of the moment in which one attached; the cursor is on the newest batch."""
    start = RunStart(seq=2, ts=1.0, thread_id="t", run_id="r", agent="a")
    past: list[Message] = [Snapshotted(seq=1, state=LoopDetector().snapshot()), start, batch(3), batch(4)]
    feed = Told([*past, batch(5), batch(6)])
    live = LiveSession("told", newest=4)
    begun = Begun(feed, live)
    assert (len(live.session), live.session.cursor) == (2, 2)
    assert [getattr(message, "seq", None) for message in begun] == [5, 6]


def test_a_process_without_a_past_is_not_waited_for() -> None:
    """Its state is all that there is; and the rest is the feed's own."""
    feed = Told([Snapshotted(seq=7, state=LoopDetector().snapshot()), batch(8)])
    begun = Begun(feed, LiveSession("told", newest=7))
    assert [getattr(message, "seq", None) for message in begun] == [8]
    assert (begun.name, begun.capabilities) == ("told", {"pause": "no"})
    assert begun.request("pause") == {"done": True}
    begun.close()
    assert feed.asked == ["pause None {}", "close"]
