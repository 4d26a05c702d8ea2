"""All layers together: every decision against a second writing of the rules, and what a fold must hold under them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscope.engine.decision import Decision
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import DecisionMade, Event, Gap, RunEnd, ScopeKey, Warned
from loopscope.engine.nearest import worst
from loopscope.engine.policy import BOUNDED, Policy
from loopscope.engine.rules.cycle import laps
from loopscope.engine.sections import Budget, Cycle, Pair, RepeatInBatch
from loopscope.engine.snapshot import Snapshot
from loopscope.engine.trail import normalised_error
from loopscope.session import timeline
from loopscope.session.timeline import Origin
from tests.engine.layered import policies, streams
from tests.engine.reference_layers import LayerReference
from tests.engine.turns import ROOMY, Tape, play
from tests.session.support import session_of


def decide(detector: LoopDetector, stream: list[Event]) -> list[Decision]:
    return [decision for event in stream for decision in detector.observe(event)]


@given(policies(), streams())
@settings(max_examples=300)
def test_decisions_equal_the_second_writing(policy: Policy, stream: list[Event]) -> None:
    """For random policies over all layers and random runs, every decision is the one that the description gives."""
    reference = LayerReference(policy, normalised_error)
    expected = [decision for event in stream for decision in reference.observe(event)]
    assert decide(LoopDetector(policy), stream) == expected


@given(policies(), streams(), st.integers(0, 200))
@settings(max_examples=150)
def test_a_snapshot_goes_on_as_if_nothing_had_been(policy: Policy, stream: list[Event], cut: int) -> None:
    """Folding on from a snapshot, through JSON or not, gives the decisions and the state of folding in one go.

    Neither the detector that it was taken of nor the one that goes on from it changes it.
    """
    whole = LoopDetector(policy)
    decisions = decide(whole, stream)
    first = LoopDetector(policy)
    begun = decide(first, stream[:cut])
    taken = first.snapshot()
    encoded = msgspec.json.encode(taken)
    for saved in (taken, msgspec.json.decode(encoded, type=Snapshot)):
        second = LoopDetector(policy)
        second.restore(saved)
        assert begun + decide(second, stream[cut:]) == decisions
        assert plain(second.snapshot()) == plain(whole.snapshot())
    decide(first, stream[cut:])
    assert msgspec.json.encode(taken) == encoded


def plain(snapshot: Snapshot) -> object:
    """A snapshot as JSON holds it; without the ids of open calls, which a timeline joins in its own way."""
    data = msgspec.json.decode(msgspec.json.encode(snapshot))
    for scope in data["scopes"]:
        if scope["trail"] is not None:
            scope["trail"]["open"] = []
    return data


@given(policies(), streams(), st.lists(st.integers(1, 60), max_size=8))
@settings(max_examples=60)
def test_seek_gives_the_state_of_the_fold(policy: Policy, stream: list[Event], targets: list[int]) -> None:
    """In whatever order batches are looked at, the state is that of a detector that came there in one go."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timeline, "SNAPSHOT_EVERY", 7)
        session = session_of(stream, Origin(policy))
    for target in targets:
        if target <= len(session):
            detector = LoopDetector(policy)
            for event in stream:
                detector.observe(event)
                if detector.batches == target:
                    break
            assert plain(session._detector(target).snapshot()) == plain(detector.snapshot())


@given(policies(), streams())
@settings(max_examples=80)
def test_a_session_keeps_the_decisions_at_batches_and_at_results(policy: Policy, stream: list[Event]) -> None:
    """The timeline's decisions are the detector's; of several at the results of one batch the worst is kept."""
    decisions = decide(LoopDetector(policy), stream)
    session = session_of(stream, Origin(policy))
    at_batch = [decision for decision in decisions if decision.at == "batch"]
    at_result: dict[int, list[Decision]] = {}
    for decision in decisions:
        if decision.at == "result":
            at_result.setdefault(decision.batch, []).append(decision)
    assert session.timeline.decisions == at_batch
    assert session.timeline.at_result.keys() == at_result.keys()
    for number, found in at_result.items():
        assert session.timeline.at_result[number] == worst(*found)
        assert session.row(number).decision == worst(at_batch[number - 1], *found)
    assert list(session.timeline.refold(LoopDetector(policy))) == at_batch
    assert list(session_of(stream).timeline.refold(LoopDetector(policy))) == at_batch


def test_other_events_move_no_layer() -> None:
    """Ends, gaps and what was decided live are for those who read the recording."""
    detector = LoopDetector(BOUNDED)
    before = detector.snapshot()
    where: dict[str, Any] = {"seq": 1, "ts": 1.0, "thread_id": "t", "run_id": "r"}
    made = DecisionMade(
        **where, batch_seq=1, hash="", hash_count=1, action="warn", layer=None, tool=None, count=None, threshold=None
    )
    assert decide(detector, [RunEnd(**where), Gap(**where, lost=3), made]) == []
    assert detector.snapshot() == before


def test_a_run_that_queued_other_words_is_followed_in_them() -> None:
    """A recording of another version tells its own text: that one waits, and its delivery is known by it."""
    tape = Tape(Policy())
    tape.detector = LoopDetector()
    where: dict[str, Any] = {"seq": 1, "ts": 1.0, "thread_id": "t", "run_id": "r", "text": "STOP IT"}
    assert [tape.turn("ls") for _ in range(3)][-1] == "warn identical_call_set 3/3"
    assert tape.feed(Warned(**where, state="queued")) == []
    assert tape.detector.pending(ScopeKey("t", "r")) == ("STOP IT",)
    tape.feed(Warned(**where, state="delivered"), Warned(**where, state="queued"))
    assert tape.detector.pending(ScopeKey("t", "r")) == ()


def cycling(**changes: Any) -> Policy:
    return ROOMY.with_(cycle=Cycle(**changes))


def test_laps_of_two_warn_and_stop() -> None:
    """Whole laps count, half a lap does not: the third lap ends at batch 6, the fifth at batch 10."""
    found = play(cycling(hash=Pair(3, 5)), ["a", "b"] * 6)
    assert found == ["pass"] * 5 + ["warn cycle 3/3"] + ["pass"] * 3 + ["hard_stop cycle 5/5"] * 2 + [
        "hard_stop cycle 6/5"
    ]


def test_a_stretch_warns_once_and_the_next_one_again() -> None:
    """Something else in between ends the stretch; three more laps are a new one."""
    found = play(cycling(hash=Pair(3)), [*["a", "b"] * 4, "c", *["a", "b"] * 3])
    assert [n for n, words in enumerate(found, 1) if words == "warn cycle 3/3"] == [6, 15]


def test_one_member_is_no_cycle_but_two_of_three_are() -> None:
    """The same batch over and over is the first layer's business; a a b is a block of three."""
    assert play(cycling(hash=Pair(1, 3)), ["a"] * 8) == ["pass"] * 8
    assert play(cycling(hash=Pair(3)), ["a", "a", "b"] * 3) == [*["pass"] * 8, "warn cycle 3/3"]


def test_the_period_with_the_most_laps_counts() -> None:
    """Four laps of a b are not two laps of a b a b; a longer period than the policy looks for is not found."""
    assert play(cycling(hash=Pair(4)), ["a", "b"] * 4)[-1] == "warn cycle 4/4"
    assert play(cycling(max_period=2, hash=Pair(2)), ["a", "b", "c"] * 4) == ["pass"] * 12
    assert play(cycling(max_period=3, hash=Pair(2)), ["a", "b", "c"] * 2)[-1] == "warn cycle 2/2"
    assert play(cycling(max_period=None, hash=Pair(2)), ["a", "b"] * 4) == ["pass"] * 8


def test_names_go_round_whatever_the_arguments() -> None:
    """Search and fetch with ever new arguments are laps of tool names, in whatever order the calls of a batch stand."""
    turns = [f"{tools}" for n in range(6) for tools in (f"search:{n}, note:{n}", f"fetch:{n}")]
    turns[4] = "note:9, search:9"
    assert play(cycling(hash=Pair(2, 3)), turns) == ["pass"] * 12
    assert play(cycling(names=Pair(6, None)), turns) == ["pass"] * 11 + ["warn cycle 6/6"]


def test_its_history_does_not_depend_on_the_window() -> None:
    """It keeps the longest period times the largest limit: enough for that limit, and beyond it for short periods."""
    tight = Policy(warn_threshold=9, hard_limit=9, window_size=1, cycle=Cycle(4, Pair(3, None)))
    assert play(tight, ["a", "b"] * 3)[-1] == "warn cycle 3/3"
    assert play(tight.with_(cycle=Cycle(2, Pair(None, 3))), ["a", "b"] * 9)[-1] == "hard_stop cycle 3/3"
    assert play(tight.with_(cycle=Cycle(4, Pair(None, 3))), ["a", "b"] * 9)[-1] == "hard_stop cycle 6/3"


def test_the_two_readings_warn_each_for_itself() -> None:
    """Where both find a cycle, that by hash is told first, that by names at the next batch."""
    both = cycling(hash=Pair(2), names=Pair(2))
    assert play(both, ["a", "b"] * 4) == ["pass"] * 3 + ["warn cycle 2/2"] * 2 + ["pass"] * 3


def test_another_policy_counts_on_in_the_same_history() -> None:
    """Longer and shorter periods than before are found in what is remembered, as far as it reaches back."""
    tape = Tape(cycling(max_period=2, hash=Pair(None, 3)))
    assert [tape.turn(text) for text in ["c", *["a", "b"] * 2]] == ["pass"] * 5
    tape.detector.adopt(cycling(max_period=4, hash=Pair(None, 3)))
    assert [tape.turn(text) for text in "ab"] == ["pass", "hard_stop cycle 3/3"]
    assert [tape.turn(text) for text in "cabcabcab"][-4:] == ["pass", *["hard_stop cycle 3/3"] * 3]
    tape.detector.adopt(cycling(max_period=2, hash=Pair(None, 2)))
    assert [tape.turn(text) for text in "ab"] == ["pass", "hard_stop cycle 2/2"]
    assert laps("ababab", 0) == laps("a", 6) == laps("aaaa", 3) == (0, 0)


def test_a_reading_that_stops_hides_one_that_warns() -> None:
    """Severity comes first inside the layer too."""
    assert play(cycling(hash=Pair(2), names=Pair(None, 2)), ["a", "b"] * 2)[-1] == "hard_stop cycle 2/2"


def test_one_call_three_times_in_a_batch_warns_once_a_key() -> None:
    """However often it is repeated it never stops; another key warns for itself, the first in model order first."""
    policy = ROOMY.with_(repeat_in_batch=RepeatInBatch(3))
    turns = [
        "a:1, a:2, a:1",
        "a:1, b:2, a:1, a:1",
        ", ".join(["a:1"] * 9),
        "b:2, c:3, b:2, c:3, b:2, c:3",
        "c:3, c:3, c:3",
    ]
    assert play(policy, turns) == [
        "pass",
        "warn repeat_in_batch a 3/3",
        "pass",
        "warn repeat_in_batch b 3/3",
        "warn repeat_in_batch c 3/3",
    ]


def test_keys_that_were_warned_of_are_bounded() -> None:
    """After a thousand other keys the first one is told again."""
    policy = ROOMY.with_(repeat_in_batch=RepeatInBatch(2), tool_freq_warn=5000, tool_freq_hard_limit=5000)
    tape = Tape(policy)
    assert {tape.turn(f"a:{n}, a:{n}") for n in range(1001)} == {"warn repeat_in_batch a 2/2"}
    assert tape.turn("a:1000, a:1000") == "pass"
    assert tape.turn("a:0, a:0") == "warn repeat_in_batch a 2/2"


def test_a_stop_of_a_later_layer_beats_a_warning_of_an_earlier_one() -> None:
    """The third b would be warned of as identical; the third lap stops, and no mark is set for what was not told."""
    policy = cycling(hash=Pair(None, 3)).with_(warn_threshold=3)
    found = play(policy, [*["a", "b"] * 3, "c", "b"])
    assert found[4:] == ["warn identical_call_set 3/3", "hard_stop cycle 3/3", "pass", "warn identical_call_set 4/3"]


def test_of_several_warnings_the_earliest_layer_is_told_and_the_others_wait() -> None:
    """The same batch repeats, goes round, repeats inside and spends: one is told a turn, in the order of the layers."""
    policy = Policy(
        warn_threshold=2, hard_limit=90, tool_freq_warn=90, tool_freq_hard_limit=90, cycle=Cycle(2, Pair(2)),
        repeat_in_batch=RepeatInBatch(2), budget={"iterations": Budget(9, warn=4 / 9)},
    )  # fmt: skip
    assert play(policy, ["a:1", "b:2, b:2", "a:1", "b:2, b:2", "a:1", "b:2, b:2", "a:1", "b:2, b:2", "a:1"]) == [
        "pass",
        "warn repeat_in_batch b 2/2",
        "warn identical_call_set 2/2",
        "warn identical_call_set 2/2",
        "warn cycle 2/2",
        "warn budget iterations 6/4",
        "pass",
        "pass",
        "hard_stop budget iterations 9/9",
    ]


def test_of_several_stops_the_earliest_layer_is_told() -> None:
    """Identical, then frequency, then cycle, then budget; each batch is accounted by all of them, whoever stops it."""
    policy = Policy(
        warn_threshold=4, hard_limit=4, tool_freq_warn=3, tool_freq_hard_limit=3, cycle=Cycle(2, Pair(None, 2)),
        budget={"iterations": Budget(3)},
    )  # fmt: skip
    found = play(policy, ["a", "b", "a", "b", "a", "b", "a", "b", "c", "d:1"])
    assert found == [
        "pass",
        "pass",
        "hard_stop budget iterations 3/3",
        "hard_stop cycle 2/2",
        "hard_stop tool_frequency a 3/3",
        "hard_stop tool_frequency b 3/3",
        "hard_stop identical_call_set 4/4",
        "hard_stop identical_call_set 4/4",
        "hard_stop budget iterations 9/3",
        "hard_stop budget iterations 10/3",
    ]
