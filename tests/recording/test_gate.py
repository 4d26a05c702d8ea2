"""The gatehouse: who is registered, whose policy is everybody's, and what the messages of a feed say."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any

import pytest

from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Control, PolicySet, ScopeKey
from loopscope.engine.policy import Policy
from loopscope.recording.feed import Held, Place, Status
from loopscope.recording.gate import JUDGE, Arrival, Gatehouse, Recording, Ruling


class Engine:
    """As little as can be steered."""

    name = "engine"
    enforced = False

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.detector = LoopDetector(policy)

    def open_scopes(self) -> Iterable[ScopeKey]:
        """As `Steerable` has it."""
        return ()

    def recordings(self, scope: ScopeKey | None) -> Iterable[Recording]:  # noqa: ARG002 - it has none
        """As `Steerable` has it."""
        return ()

    def apply(self, event: Control | PolicySet) -> None:
        """As `Steerable` has it."""
        self.detector.observe(event)

    def rebase(self, policy: Policy) -> None:
        """As `Steerable` has it."""
        self.policy = policy


class Open:
    """A gate that holds nothing."""

    armed = False

    def admit(self, arrival: Arrival) -> Ruling:  # noqa: ARG002 - nothing is looked at
        """As `Gate` has it."""
        return JUDGE

    async def aadmit(self, arrival: Arrival) -> Ruling:  # noqa: ARG002 - nothing is looked at
        """As `Gate` has it."""
        return JUDGE


def test_the_first_engine_gives_the_base_policy() -> None:
    """A second engine with another policy does not change what readers of the bus take for everybody's."""
    house, first, second = Gatehouse(), Engine(Policy(hard_limit=7)), Engine(Policy(hard_limit=9))
    house.register(first)
    house.register(second)
    assert house.base == Policy(hard_limit=7)
    assert house.engines() == [first, second]


def test_an_engine_is_known_until_it_is_garbage() -> None:
    """Registering does not keep a middleware alive, and dead ones do not pile up."""
    house = Gatehouse()
    kept = Engine(Policy())
    for _ in range(50):
        house.register(Engine(Policy()))
    house.register(kept)
    gc.collect()
    assert house.engines() == [kept]
    assert house.numbered() == [(51, kept)]
    house.register(kept)
    assert len(house._engines) == 2


def test_whoever_attends_hears_of_newcomers() -> None:
    """Only those that come later, and only until it leaves; what it raises does not reach the program."""
    house, gate, heard = Gatehouse(), Open(), list[Any]()
    early = Engine(Policy())
    house.register(early)

    def newcomer(engine: object) -> None:
        heard.append(engine)
        raise RuntimeError

    house.attend(gate, newcomer)
    assert house.gate is gate
    late = Engine(Policy())
    house.register(late)
    house.leave(gate)
    house.register(Engine(Policy()))
    assert heard == [late]
    assert house.gate is None


def test_leaving_does_not_take_down_the_gate_of_another() -> None:
    """A link that closes late leaves the one that was opened since alone."""
    house, old, new = Gatehouse(), Open(), Open()
    house.attend(old, lambda _engine: None)
    house.attend(new, lambda _engine: None)
    house.leave(old)
    assert house.gate is new


@pytest.mark.parametrize(
    ("status", "pauses"),
    [
        (Status(), False),
        (Status(paused=True), True),
        (Status(paused=True, running=(Place("t", "r"),)), False),
        (Status(scopes=(Place("t", "r"),)), True),
        (Status(scopes=(Place("t", None),)), False),
    ],
)
def test_a_status_says_what_it_pauses(status: Status, pauses: bool) -> None:
    """A scope is paused by itself, or with all unless it was let go on."""
    assert status.pauses(ScopeKey("t", "r")) is pauses


def test_messages_name_their_scope() -> None:
    """As events do."""
    held = Held(hold=1, ts=0.0, thread_id="t", run_id=None, calls=(), reason="pause")
    assert held.scope == Place("t", None).key == ScopeKey("t", None)
