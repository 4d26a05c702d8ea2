"""The timeline: every batch of a recording as a row of numbers, its decision, and snapshots to seek by.

Events go in once, in order; the engine decides them as they come. What a row needs later it keeps as numbers; what
weighs (arguments, results) stays in the file and is read again when it is looked at. A snapshot of the detector every
`SNAPSHOT_EVERY` batches, or somewhat later where the state is large, makes the state at any batch a short fold.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec

from loopscope.engine.decision import Decision
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import (
    Batch,
    Call,
    Control,
    DecisionMade,
    Event,
    Header,
    PolicySet,
    Result,
    RunEnd,
    RunStart,
    ScopeKey,
    Warned,
    Witness,
)
from loopscope.engine.identity import Identified
from loopscope.engine.joins import OpenCalls, Place
from loopscope.engine.nearest import Arrival, worst
from loopscope.engine.policy import DEFAULT, Policy
from loopscope.engine.scope import ScopeState, WarningRecord
from loopscope.engine.snapshot import Snapshot
from loopscope.engine.trail import Outcome, outcome_of
from loopscope.session.columns import BatchColumns, Interned, ResultColumns
from loopscope.session.kept import Between, Chains, Decisions, Snapshots
from loopscope.session.lived import Lived

__all__ = ["SNAPSHOT_EVERY", "Located", "Origin", "ScopeRecord", "Timeline"]

SNAPSHOT_EVERY = 250
_A_BATCH = 512
"""Bytes of a packed state that take as long to make as a batch to fold: the larger a state, the later the next one."""
_STAND_IN = Call(None, None, None)


class Located(Protocol):
    """An event and where its line stands in the source."""

    @property
    def event(self) -> Event | None:
        """The event; None for a kind that is not known."""
        ...

    @property
    def offset(self) -> int:
        """Byte at which it begins."""
        ...

    @property
    def length(self) -> int:
        """Bytes that it takes."""
        ...


class Origin(NamedTuple):
    """Which policy decides: a fixed one, or the recording's own above a base."""

    policy: Policy | None = None
    base: Policy = DEFAULT

    def detector(self) -> LoopDetector:
        """A detector that has seen nothing."""
        if self.policy is not None:
            return LoopDetector(self.policy)
        return LoopDetector(self.base, follow_policy=True)


class ScopeRecord:
    """What a session knows of one scope over the whole recording."""

    __slots__ = (
        "agent", "batches", "callless", "end", "graph", "key", "letters", "open", "parent", "resume_of", "worst",
    )  # fmt: skip

    def __init__(self, key: ScopeKey) -> None:
        self.key = key
        self.parent: ScopeKey | None = None
        self.agent: str | None = None
        self.resume_of: str | None = None
        self.end: RunEnd | None = None
        self.graph: RunStart | None = None
        self.batches = array("l")
        """Numbers of its batches, in order."""
        self.letters: dict[int, int] = {}
        """Hash number -> order of its first use in this scope, from 0."""
        self.open = OpenCalls()
        self.worst = "pass"
        self.callless = 0


class Timeline:
    """Everything that is known of each batch; `append` is the one way in."""

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.batches = BatchColumns()
        self.results = ResultColumns()
        self.results_of = Chains()
        """Batch number -> rows of its results."""
        self.notable = array("l")
        """Numbers of the batches that were warned or stopped."""
        self.started: float | None = None
        """The time of the first batch that has one."""
        self.first_stop: int | None = None
        """Number of the first batch that is stopped."""
        self.scopes: dict[ScopeKey, ScopeRecord] = {}
        self.scope_keys: Interned[ScopeKey] = Interned()
        self.hashes: Interned[str] = Interned()
        self.decisions = Decisions(self.batches, self.scope_keys, self.hashes)
        """The engine's decision of batch i + 1."""
        self.names: Interned[tuple[str, ...]] = Interned()
        self.nodes: Interned[str | None] = Interned()
        self.digests: Interned[tuple[str, str]] = Interned()
        """Tool and digest of a result."""
        self.with_digest = Chains()
        """Number of a tool and digest -> rows of the results that are the same."""
        self.errors: Interned[str] = Interned()
        """Normalised texts of failures."""
        self.repeats: dict[int, tuple[tuple[str, str, int], ...]] = {}
        """Calls that occur more than once, for the few batches that have such."""
        self.at_result: dict[int, Decision] = {}
        """Decisions that were made when a batch's results were in, by the batch's number."""
        self.policies: list[Policy] = []
        """The policies that were in force, each once."""
        self.over_budget: set[int] = set()
        """Batches at which a budget was spent, whatever else was found."""
        self.fresh: set[int] = set()
        """Batches whose scope had no state before them."""
        self.between: Between[Event | Snapshot] = Between()
        """What else the engine must see, by the number of batches before it: events, rows of results, and states."""
        self.detector = origin.detector()
        self.header: Header | None = None
        self.lived = Lived()
        self.segments = 0
        self.events = 0
        self._letters: dict[str | None, dict[int, int]] = {}
        """The letters of a thread whose runs share a history, and so share them."""
        self._snapshots = Snapshots()
        self._next_snapshot = SNAPSHOT_EVERY
        self._shifts: list[tuple[int, int]] = []
        """From which number of batches on the engine's numbers are larger by how much: see `restore`."""
        self._restored: list[int] = []
        """After how many batches the state was replaced."""

    def __len__(self) -> int:
        return len(self.batches)

    def append(self, line: Located, identified: Identified | None = None) -> None:
        """Take in one event.

        Args:
            line: the event, and where it stands.
            identified: what `detector.identify` said of it, where somebody asked before.

        Raises:
            PolicyError: if the recording's own policy is followed and breaks a rule.
        """
        event = line.event
        if event is None:
            return
        self.events += 1
        if isinstance(event, Batch):
            if event.calls:
                self._add_batch(event, line.offset, line.length, identified)
            else:
                self._record(event.scope).callless += 1
                self._hand_over(event if event.text is None else _light(event))
        elif isinstance(event, Result):
            self._add_result(event, line.offset, line.length)
        elif isinstance(event, (Header, Warned, PolicySet, Control, Witness)):
            self._add_mark(event)
        elif isinstance(event, (RunStart, RunEnd)):
            self._add_run(event)
        elif isinstance(event, DecisionMade):
            record = self.scopes.get(event.scope)
            self.lived.take(event, record.batches if record is not None else (), self.batches)

    def restore(self, state: Snapshot) -> None:
        """Go on from a state of the engine, which replaces the state here; the batches so far stay.

        The engine's numbers are its own then: what it saw before, or what was lost on the way, has no row here.

        Raises:
            ValueError: if the state is of another version.
            PolicyError: if its policy breaks a rule.
        """
        _restore(self.detector, state)
        self.between.add(state)
        self._restored.append(len(self))
        shift = state.batches - len(self)
        if shift != self.shift(len(self)):
            self._shifts.append((len(self), shift))
        for record in self.scopes.values():
            record.open = OpenCalls()

    def whole(self, numbers: Sequence[int]) -> bool:
        """Whether all that the engine's state of these batches, which share a history, came from is here."""
        first = numbers[0]
        return first in self.fresh and not any(number >= first for number in self._restored)

    def shift(self, number: int) -> int:
        """By how much the engine's numbers are larger, once so many batches are shown."""
        return next((shift for start, shift in reversed(self._shifts) if start <= number), 0)

    def warnings(self, scope: ScopeState | None, number: int) -> tuple[WarningRecord, ...]:
        """The warnings of a scope as they were at a batch, with the numbers of the timeline: below 1 for older ones."""
        records = tuple(scope.warnings) if scope is not None else ()
        shift = self.shift(number)
        if not shift:
            return records
        return tuple(
            msgspec.structs.replace(
                record, batch=record.batch - shift, before=None if record.before is None else record.before - shift
            )
            for record in records
        )

    def removed(self, number: int) -> bool:
        """Whether the calls of a batch were taken away from the live run: it was stopped, and no tool ran."""
        return number not in self.results_of and self.lived.removed(number, self.decisions[number - 1])

    def _policy_number(self, policy: Policy) -> int:
        """Position in `policies`; there are as many as the run had, so the newest is compared first."""
        for index in range(len(self.policies) - 1, -1, -1):
            if self.policies[index] is policy:
                return index
        self.policies.append(policy)
        return len(self.policies) - 1

    def _record(self, key: ScopeKey) -> ScopeRecord:
        record = self.scopes.get(key)
        if record is None:
            record = self.scopes[key] = ScopeRecord(key)
            if self.detector.policy_of(key).scope == "thread":
                record.letters = self._letters.setdefault(key.thread_id, record.letters)
        return record

    def _add_batch(self, batch: Batch, offset: int, length: int, identified: Identified | None) -> None:
        detector, rows, key = self.detector, self.batches, batch.scope
        record = self._record(key)
        number = len(rows) + 1
        if detector.scope(key) is None:
            self.fresh.add(number)
        digest_text, repeats = identified or detector.identify(batch)
        names = tuple([call.name or "" for call in batch.calls])
        decision = _numbered(detector.fold(batch, digest_text, names, repeats), number)
        digest = self.hashes.number(digest_text)
        rows.offset.append(offset)
        rows.length.append(length)
        rows.seq.append(batch.seq)
        rows.ts.append(math.nan if batch.ts is None else batch.ts)
        if self.started is None:
            self.started = batch.ts
        rows.scope.append(self.scope_keys.number(key))
        rows.hash.append(digest)
        rows.letter.append(record.letters.setdefault(digest, len(record.letters)))
        rows.names.append(self.names.number(names))
        rows.node.append(self.nodes.number(batch.node))
        rows.calls.append(len(names))
        rows.policy.append(self._policy_number(detector.policy_of(key)))
        rows.add_usage(batch.usage)
        self.decisions.append(decision)
        self.between.next_batch()
        if repeats:
            self.repeats[number] = repeats
        if detector.over_budget(key, batch.ts):
            self.over_budget.add(number)
        record.batches.append(number)
        record.open.opened(number, [call.id for call in batch.calls])
        if decision.action != "pass":
            self._mark_notable(number, decision)
        if number >= self._next_snapshot:
            weight = self._snapshots.add(number, detector.snapshot())
            self._next_snapshot = number + max(SNAPSHOT_EVERY, weight // _A_BATCH)

    def _add_result(self, result: Result, offset: int, length: int) -> None:
        record = self.scopes.get(result.scope)
        place = record.open.closed(result.call_id) if record is not None else None
        if place is None:
            if self._shifts and self.detector.sees_results:
                # Of a call from before the state that we began with: the engine knows it.
                self._hand_over(result)
            return
        rows = self.results
        row = len(rows)
        batch, call = place
        self.results_of.add(batch)
        outcome = outcome_of(result, self.names.values[self.batches.names[batch - 1]][call])
        rows.batch.append(batch)
        rows.call.append(call)
        digest = self.digests.number((outcome.tool, outcome.digest))
        rows.digest.append(digest)
        self.with_digest.add(digest)
        rows.error.append(self.errors.number(outcome.error) if outcome.failed else -1)
        rows.seq.append(result.seq)
        rows.offset.append(offset)
        rows.length.append(length)
        self.between.add_row()
        if self.detector.sees_results:
            self._note(self._fold_result(self.detector, row))

    def _add_mark(self, event: Header | Warned | PolicySet | Control | Witness) -> None:
        if isinstance(event, Header):
            self.segments += 1
            self.header = self.header or event
            self.lived.begin(event)
            for record in self.scopes.values():
                record.open = OpenCalls()
        self._hand_over(event)

    def _add_run(self, event: RunStart | RunEnd) -> None:
        record = self._record(event.scope)
        if isinstance(event, RunEnd):
            record.end = event
            return
        self._hand_over(event if event.graph is None else msgspec.structs.replace(event, graph=None))
        record.end = None
        record.agent = event.agent or record.agent
        record.resume_of = event.resume_of or record.resume_of
        if event.parent_thread_id is not None or event.parent_run_id is not None:
            record.parent = ScopeKey(event.parent_thread_id, event.parent_run_id)
        if event.graph is not None:
            record.graph = event

    def _hand_over(self, event: Event) -> None:
        self.between.add(event)
        self._note(self.detector.observe(event))

    def _note(self, decisions: Sequence[Decision]) -> None:
        """Keep decisions that were made at a result; the worst of a batch is the one that is shown."""
        shift = self.shift(len(self)) if decisions else 0
        for made in decisions:
            number = made.batch - shift
            if number < 1:
                continue
            decision = _numbered(made, number)
            before = self.at_result.get(number)
            self.at_result[number] = decision if before is None else worst(before, decision)
            self._mark_notable(number, decision)

    def _mark_notable(self, number: int, decision: Decision) -> None:
        position = bisect_left(self.notable, number)
        if self.notable[position : position + 1] != array("l", [number]):
            self.notable.insert(position, number)
        if decision.action == "hard_stop" and (self.first_stop is None or number < self.first_stop):
            self.first_stop = number
        record = self.scopes[decision.scope]
        if record.worst != "hard_stop":
            record.worst = decision.action

    def _fold_result(self, detector: LoopDetector, row: int) -> tuple[Decision, ...]:
        """Let a detector see a result from its row."""
        place, outcome, seq = self.arrival(row)
        if self._shifts:
            place = place._replace(batch=place.batch + self.shift(place.batch))
        return detector.fold_result(self.scope_of(self.results.batch[row]), place, outcome, seq)

    def arrival(self, row: int) -> Arrival:
        """A result as the engine sees it."""
        rows = self.results
        error = rows.error[row]
        tool, digest = self.digests.values[rows.digest[row]]
        outcome = Outcome(tool, digest, error >= 0, self.errors.values[error] if error >= 0 else "")
        return Arrival(Place(rows.batch[row], rows.call[row]), outcome, rows.seq[row])

    def stub(self, number: int) -> Batch:
        """A batch without its arguments: all that the engine needs beside the hash and the names."""
        rows, row = self.batches, number - 1
        key = self.scope_keys.values[rows.scope[row]]
        ts = rows.ts[row]
        return Batch(
            seq=rows.seq[row],
            ts=None if math.isnan(ts) else ts,
            thread_id=key.thread_id,
            run_id=key.run_id,
            calls=(_STAND_IN,) * rows.calls[row],
            usage=rows.usage(row),
        )

    def fold(self, detector: LoopDetector, number: int) -> Decision:
        """Let a detector that has decided the batch before this one see what lies between, and decide this one."""
        self.pass_over(detector, number - 1)
        return self.decide(detector, number)

    def decide(self, detector: LoopDetector, number: int) -> Decision:
        """Let a detector decide a batch from its row."""
        row = number - 1
        rows = self.batches
        decision = detector.fold(
            self.stub(number),
            self.hashes.values[rows.hash[row]],
            self.names.values[rows.names[row]],
            self.repeats.get(number, ()),
        )
        return _numbered(decision, number)

    def pass_over(self, detector: LoopDetector, number: int) -> list[Decision]:
        """Let a detector see what lies between a batch and the next one; what it decides there."""
        sees_results = detector.sees_results
        decisions: list[Decision] = []
        for item in self.between[number]:
            if isinstance(item, Snapshot):
                _restore(detector, item)
                sees_results = detector.sees_results
            elif not isinstance(item, int):
                decisions.extend(detector.observe(item))
                sees_results = detector.sees_results
            elif sees_results:
                decisions.extend(self._fold_result(detector, item))
        if not self._shifts:
            return decisions
        shift = self.shift(number)
        return [_numbered(each, each.batch - shift) for each in decisions if each.batch > shift]

    def refold(self, detector: LoopDetector) -> Iterator[Decision]:
        """Every decision of a fresh detector, batch by batch. The hashes are those of the baseline's identity."""
        for number in range(1, len(self) + 1):
            yield self.fold(detector, number)

    def detector_at(self, number: int) -> LoopDetector:
        """A detector that has just decided this batch, made from the nearest snapshot before it."""
        detector = self.origin.detector()
        start = 0
        if (nearest := self._snapshots.before(number)) is not None:
            start, snapshot = nearest
            detector.restore(snapshot)
        for position in range(start + 1, number + 1):
            self.fold(detector, position)
        return detector

    @property
    def looks_at_results(self) -> bool:
        """Whether any policy that was in force looks at results."""
        return any(policy.looks_at_results for policy in self.policies)

    def verdict(self, number: int) -> Decision:
        """What is shown of a batch: the worst of what was decided on it, when it came and when its results were in."""
        later = self.at_result.get(number)
        decision = self.decisions[number - 1]
        return decision if later is None else worst(decision, later)

    def policy_at(self, number: int) -> Policy:
        """The policy that decided a batch."""
        return self.policies[self.batches.policy[number - 1]]

    def scope_of(self, number: int) -> ScopeKey:
        """The scope of a batch."""
        return self.scope_keys.values[self.batches.scope[number - 1]]

    def sightings(self, number: int) -> Sequence[int]:
        """The batches of the same scope with the same hash, this one included."""
        rows = self.batches
        digest = rows.hash[number - 1]
        return [other for other in self.scopes[self.scope_of(number)].batches if rows.hash[other - 1] == digest]


def _numbered(decision: Decision, number: int) -> Decision:
    """The decision with the number that the batch has in the timeline."""
    return decision if decision.batch == number else msgspec.structs.replace(decision, batch=number)


def _restore(detector: LoopDetector, state: Snapshot) -> None:
    """Let a detector go on from a state; one that decides under a policy of its own keeps that."""
    policy = None if detector.follows else detector.policy
    detector.restore(state)
    if policy is not None:
        detector.adopt(policy)


def _light(batch: Batch) -> Batch:
    return Batch(
        seq=batch.seq, ts=batch.ts, thread_id=batch.thread_id, run_id=batch.run_id, calls=(), usage=batch.usage
    )
