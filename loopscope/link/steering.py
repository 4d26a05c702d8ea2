"""Acts of control: each is an event first, for every recording and viewer, and then takes effect.

Apart from the protocol, which says who may do this, and from the gate, which does the waiting. What changes decisions
(a policy, a reset) goes to the engines with the event, so that a replay of the recording decides alike; what does not
(a pause, letting a batch pass, a stop) leaves the engines as they are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from loopscope.engine.breakpoints import Breakpoint, parse
from loopscope.engine.events import Control, PolicySet, ScopeKey
from loopscope.engine.policy import Policy
from loopscope.errors import PolicyError, UsageError
from loopscope.link.gate import HoldingGate
from loopscope.link.hold import Hold
from loopscope.link.refusal import RefusedError
from loopscope.recording.bus import bus
from loopscope.recording.gate import Recording, Ruling, Steerable, gatehouse

__all__ = ["MOST_BREAKPOINTS", "InForce", "Steering"]

MOST_BREAKPOINTS = 100
_Act: TypeAlias = Literal["pause", "continue", "next", "pass_once", "stop", "reset"]


class InForce(NamedTuple):
    """A policy that was put in force, and where."""

    engine: str
    policy: dict[str, Any]


class Steering:
    """Steers one process. Callable from any thread, with no lock held.

    Args:
        gate: what holds the batches.
        running: the scopes whose runs have begun and not ended, as far as events told.
    """

    def __init__(self, gate: HoldingGate, running: Callable[[], Iterable[ScopeKey]]) -> None:
        self._gate = gate
        self._running = running
        gate.expired = self._expired

    def pause(self, scope: ScopeKey | None, by: str) -> None:
        """Hold the next batch of this scope, or of each."""
        self._publish("pause", scope, by)
        self._gate.pause(scope)

    def resume(self, scope: ScopeKey | None, by: str) -> None:
        """Let go on what is held, and hold no more."""
        self._publish("continue", scope, by)
        self._gate.resume(scope, by)

    def step(self, scope: ScopeKey | None, by: str) -> None:
        """Let one batch through and hold the one after it."""
        self._publish("next", scope, by)
        self._gate.step(scope, by)

    def pass_once(self, scope: ScopeKey | None, by: str) -> int:
        """Let what is held run, whatever the policy says of it. How many batches that were.

        Raises:
            RefusedError: where nothing is held.
        """
        held = {hold.arrival.scope for hold in self._gate.held(scope)}
        if not held:
            raise RefusedError("nothing-held", "no batch is held there: pause first, then let the held batch pass")
        for each in held:
            self._publish("pass_once", each, by)
        return sum(self._gate.rule(each, Ruling("pass", by)) for each in held)

    def stop(self, scope: ScopeKey | None, by: str) -> int:
        """End a run, or every run that goes on, at its next batch. How many scopes that concerns."""
        targets = {scope} if scope is not None else self.open_scopes()
        self._publish("stop", scope, by)
        for target in targets:
            if not self._gate.rule(target, Ruling("stop", by)):
                self._gate.stop_next(target, by)
        return len(targets)

    def reset(self, scope: ScopeKey | None, by: str) -> None:
        """Forget what was counted in this scope, or in all."""
        self._publish("reset", scope, by)
        self._gate.refresh()

    def break_at(self, breakpoints: Sequence[Breakpoint]) -> None:
        """Hold the batches that hit one of these, and no longer those that hit one set before.

        Raises:
            RefusedError: where there are too many, or one is none.
        """
        if len(breakpoints) > MOST_BREAKPOINTS:
            raise RefusedError("bad-request", f"at most {MOST_BREAKPOINTS} breakpoints, not {len(breakpoints)}")
        for point in breakpoints:
            try:
                parse(str(point))
            except UsageError as error:
                raise RefusedError("bad-request", str(error)) from None
        self._gate.break_at(breakpoints)

    def set_policy(
        self,
        scope: ScopeKey | None,
        whole: Mapping[str, Any] | None,
        changes: Mapping[str, Any] | None,
        engine: int | None = None,
    ) -> list[InForce]:
        """Decide under another policy from the next batch on: in one scope, or in all of one engine, or in all.

        Args:
            scope: one scope, or None.
            whole: the policy, or
            changes: what to change in the one that is in force there.
            engine: the number of one engine of the process; None means all of them.

        Returns:
            What is in force now, per engine that it was put in force for.

        Raises:
            RefusedError: where the policy is invalid or nothing decides there; the policy before stays in force.
        """
        with bus.lock:
            chosen = self._chosen(scope, engine)
            try:
                policies = [_policy(each, scope, whole, changes) for each in chosen]
            except PolicyError as error:
                raise RefusedError("invalid-policy", str(error)) from None
            everybody = scope is None and len(chosen) == len(gatehouse.engines())
            if everybody and all(policy == policies[0] for policy in policies):
                gatehouse.base = policies[0]
                self._hand_out(_policy_set(None, policies[0]), chosen)
            else:
                for each, policy in zip(chosen, policies, strict=True):
                    self._set_one(each, scope, policy)
        self._gate.refresh()
        return [InForce(each.name, policy.to_dict()) for each, policy in zip(chosen, policies, strict=True)]

    def adopt(self, engine: Steerable) -> None:
        """Make the policy of this engine everybody's. Wants the lock of the bus held."""
        gatehouse.base = engine.policy
        bus.publish(_policy_set(None, engine.policy))

    def let_go(self, by: str) -> None:
        """Hold nothing and nobody any more, since nobody is there to release it."""
        status = self._gate.status()
        self._gate.break_at(())
        if status.paused or status.scopes or self._gate.held():
            self.resume(None, by)

    def open_scopes(self) -> set[ScopeKey]:
        """The scopes whose runs go on."""
        with bus.lock:
            known = {scope for engine in gatehouse.engines() for scope in engine.open_scopes()}
        return known | set(self._running()) | {hold.arrival.scope for hold in self._gate.held()}

    def _expired(self, hold: Hold) -> None:
        """The longest pause is over: not this batch alone goes on, or the next one would wait as long."""
        by = f"nobody for {self._gate.max_pause:g} s"
        self.resume(None if self._gate.status().paused else hold.arrival.scope, by)

    def _chosen(self, scope: ScopeKey | None, number: int | None) -> list[Steerable]:
        known = dict(gatehouse.numbered())
        if number is not None and number not in known:
            there = ", ".join(map(str, known)) or "none"
            raise RefusedError("no-such-engine", f"there is no engine {number}; there are: {there}")
        engines = known.values() if number is None else [known[number]]
        chosen = [each for each in engines if scope is None or _knows(each, scope)]
        if not chosen:
            raise RefusedError("no-such-engine", "nothing in this process decides there, so that no policy can be set")
        return chosen

    def _set_one(self, engine: Steerable, scope: ScopeKey | None, policy: Policy) -> None:
        """One engine of several: nothing in an event names an engine, so each of its scopes is told."""
        if scope is not None:
            self._hand_out(_policy_set(scope, policy), [engine])
            return
        for known in dict.fromkeys((*engine.detector.scopes, *engine.open_scopes())):
            self._hand_out(_policy_set(known, policy), [engine])
        engine.rebase(policy)

    def _publish(self, action: _Act, scope: ScopeKey | None, by: str) -> None:
        with bus.lock:
            engines = [each for each in gatehouse.engines() if scope is None or _knows(each, scope)]
            thread_id, run_id = scope or (None, None)
            self._hand_out(
                Control(
                    seq=bus.next_seq(), ts=time.time(), thread_id=thread_id, run_id=run_id, action=action, by=by
                ),
                engines,
            )  # fmt: skip

    @staticmethod
    def _hand_out(event: Control | PolicySet, engines: Iterable[Steerable]) -> None:
        everywhere = event.thread_id is None and event.run_id is None
        recordings: dict[Recording, None] = {}
        for engine in engines:
            engine.apply(event)
            recordings.update(dict.fromkeys(engine.recordings(None if everywhere else event.scope)))
        bus.publish(event)
        for recording in recordings:
            recording.put(event)


def _knows(engine: Steerable, scope: ScopeKey) -> bool:
    return scope in engine.detector.scopes or scope in set(engine.open_scopes())


def _policy(
    engine: Steerable, scope: ScopeKey | None, whole: Mapping[str, Any] | None, changes: Mapping[str, Any] | None
) -> Policy:
    if whole is not None:
        return Policy.parse(whole)
    before = engine.policy if scope is None else engine.detector.policy_of(scope)
    return before.with_(**dict(changes or {}))


def _policy_set(scope: ScopeKey | None, policy: Policy) -> PolicySet:
    thread_id, run_id = scope or (None, None)
    return PolicySet(
        seq=bus.next_seq(), ts=time.time(), thread_id=thread_id, run_id=run_id, policy=policy.to_dict()
    )  # fmt: skip
