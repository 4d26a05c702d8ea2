"""A session: a recording, a cursor over its batches, and everything that can be asked of the batch at the cursor.

Both front ends draw it and neither keeps state of the run of its own. `append` is the one way in, for a file that is
read, a stream that is followed and a process that is attached alike.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import merge
from typing import NamedTuple, Protocol

import msgspec

from loopscope.engine.accounts import Account
from loopscope.engine.breakpoints import Breakpoint
from loopscope.engine.decision import Decision
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, Event, Header, Result, ScopeKey, Usage
from loopscope.engine.explain import Context, Explanation, explain
from loopscope.engine.policy import Policy
from loopscope.engine.scope import ScopeState, Spent, WarningRecord
from loopscope.errors import UnreadableInputError
from loopscope.graph import Topology, Visit, observe
from loopscope.session.halts import Halt, Halts
from loopscope.session.letters import letter_name
from loopscope.session.scopes import ScopeInfo, tree
from loopscope.session.steps import Steps, Unwanted, counted_with
from loopscope.session.surface import Surface
from loopscope.session.timeline import Located, Origin, Timeline
from loopscope.session.whatif import Difference, Trial, attempt, compare

__all__ = ["Lane", "Row", "ScopeView", "Session", "Store"]


class Store(Protocol):
    """Where the lines of a session stand."""

    def read_at(self, offset: int, length: int) -> Event | None:
        """The event whose line begins at this byte.

        Raises:
            UnreadableInputError: if it is not there any more.
        """


class Lane(NamedTuple):
    """What the timeline shows: one scope, or a whole thread."""

    thread_id: str | None
    run_id: str | None = None
    whole_thread: bool = False

    @property
    def key(self) -> ScopeKey | None:
        """The scope; None for a whole thread."""
        return None if self.whole_thread else ScopeKey(self.thread_id, self.run_id)


class Row(NamedTuple):
    """One batch in the strip."""

    n: int
    seq: int
    ts: float | None
    scope: ScopeKey
    hash: str
    letter: int
    """Order of the hash's first use in its scope, from 0."""
    names: tuple[str, ...]
    decision: Decision
    usage: Usage | None

    @property
    def state(self) -> str:
        """`stop`, `warn`, `repeat` (the hash was in the window before) or `new`."""
        if self.decision.action == "hard_stop":
            return "stop"
        if self.decision.action == "warn":
            return "warn"
        return "repeat" if self.decision.hash_count > 1 else "new"


class ScopeView(NamedTuple):
    """The engine's state of one scope, just after a batch was decided."""

    n: int
    key: ScopeKey
    policy: Policy
    scope: ScopeState | None
    """None where the scope had no batch yet, or was evicted. It is the session's own: read it, and ask again later."""
    spent: Spent
    """What the scope has used up so far."""
    account: Account | None = None
    """What it and its sub-agents have spent, under a policy with budgets."""
    warnings: Sequence[WarningRecord] = ()
    """Its latest warnings, oldest first."""


class Session(Surface):
    """The debugger without a screen.

    Args:
        source: what the run is called on the screen.
        store: reads lines again.
        origin: which policy decides.
        origins: where each setting came from, by dotted name; `default` where it is not told.
    """

    def __init__(
        self, source: str, store: Store, origin: Origin | None = None, origins: Mapping[str, str] | None = None
    ) -> None:
        self.source = source
        self.problems: list[tuple[int, str]] = []
        """Lines that could not be read: line number and reason."""
        self.timeline = Timeline(origin or Origin())
        self.cursor = 0
        """Number of the batch that is looked at; 0 while there is none."""
        self.lane: Lane | None = None
        self.breakpoints: list[Breakpoint] = []
        """Where `run_to_breakpoint` stops; change it as you like."""
        self.halts = Halts(self.timeline, self)
        """Where breakpoints hold, as far as somebody looked."""
        self._store = store
        self._origins = dict(origins or {})
        self._walker: tuple[int, LoopDetector] | None = None
        self._merged: tuple[tuple[Lane, int], Sequence[int]] | None = None
        """The batches of the thread that was asked for last, and for how long a recording they hold."""
        self._topologies: dict[ScopeKey, tuple[int, Topology]] = {}
        self._explained: dict[tuple[int, int, bool], Explanation] = {}

    def append(self, lines: Iterable[Located]) -> None:
        """Take in events, in order.

        Raises:
            PolicyError: if the recording's own policy is followed and breaks a rule.
        """
        take = self.timeline.append
        for line in lines:
            take(line)

    def __len__(self) -> int:
        return len(self.timeline)

    @property
    def header(self) -> Header | None:
        """The first header of the recording."""
        return self.timeline.header

    @property
    def policy(self) -> Policy:
        """The policy in force at the cursor."""
        return self.state.policy if self.cursor else self.timeline.detector.policy

    def tell_origins(self, origins: Mapping[str, str]) -> None:
        """Where settings come from, by dotted name, as it becomes known."""
        self._origins |= origins

    def where(self, setting: str) -> str:
        """Where this setting came from: a file and line, a flag, `recording` or `default`."""
        known = self._origins.get(setting)
        if known is not None:
            return known
        header = self.header
        recorded = header.policy if header is not None else None
        if (
            self.timeline.origin.policy is None
            and recorded is not None
            and setting.split(".", maxsplit=1)[0] in recorded
        ):
            return "recording"
        return "default"

    @property
    def batches(self) -> Sequence[int]:
        """Numbers of the batches in the lane, in order."""
        lane = self.lane
        if lane is None:
            return range(1, len(self) + 1)
        if lane.key is not None:
            record = self.timeline.scopes.get(lane.key)
            return record.batches if record is not None else ()
        if self._merged is None or self._merged[0] != (lane, len(self)):
            records = [r for key, r in self.timeline.scopes.items() if key.thread_id == lane.thread_id]
            merged = records[0].batches if len(records) == 1 else array("l", merge(*[r.batches for r in records]))
            self._merged = ((lane, len(self)), merged)
        return self._merged[1]

    def select(self, lane: Lane) -> None:
        """Show this scope or thread; the cursor goes to its newest batch that is not after it, else to its first."""
        self.lane = lane
        numbers = self.batches
        if numbers:
            self.cursor = numbers[max(0, bisect_right(numbers, self.cursor) - 1)]

    def seek(self, number: int) -> None:
        """Put the cursor on this batch; the lane follows where the batch is not in it.

        Raises:
            IndexError: if there is no such batch.
        """
        self._check(number)
        self.cursor = number
        key = self.timeline.scope_of(number)
        lane = self.lane
        if lane is None or (lane.whole_thread and lane.thread_id != key.thread_id) or (lane.key not in (None, key)):
            self.lane = Lane(*key)

    def step(self, by: int = 1) -> bool:
        """Move by so many batches of the lane, as far as it goes; False where the cursor stays."""
        numbers = self.batches
        if not numbers:
            return False
        position = bisect_left(numbers, self.cursor)
        target = numbers[min(max(position + by, 0), len(numbers) - 1)]
        moved = target != self.cursor
        self.cursor = target
        return moved

    def next_decision(self, direction: int = 1) -> bool:
        """Go to the next (-1: the previous) batch of the lane that was warned or stopped; False if there is none."""
        numbers = self.batches
        inside = numbers if isinstance(numbers, range) else set(numbers)
        notable = self.timeline.notable
        start = bisect_right(notable, self.cursor) if direction > 0 else bisect_left(notable, self.cursor) - 1
        stop = len(notable) if direction > 0 else -1
        for index in range(start, stop, 1 if direction > 0 else -1):
            if notable[index] in inside:
                self.cursor = notable[index]
                return True
        return False

    def run_to_breakpoint(self, direction: int = 1) -> Breakpoint | None:
        """Go to the next (-1: the previous) batch of the lane where a breakpoint holds; it, or None if none does.

        A one-shot breakpoint that is hit is disabled.
        """
        halt = self.next_halt(direction)
        return None if halt is None else self.arrive(halt)

    def next_halt(self, direction: int = 1, wanted: Callable[[], bool] = lambda: True) -> Halt | None:
        """Where `run_to_breakpoint` would go. Callable from any thread, as it may take its time on a long recording.

        Args:
            direction: 1 or -1.
            wanted: asked now and then; the search ends with None where it says no.
        """
        return self.halts.search(list(self.breakpoints), self.batches, self.cursor, direction, wanted)

    def arrive(self, halt: Halt) -> Breakpoint:
        """Go to where a breakpoint holds; it, as it was. A one-shot one is disabled by that."""
        self.seek(halt.number)
        if halt.point.one_shot:
            spent = msgspec.structs.replace(halt.point, enabled=False)
            self.breakpoints[:] = [spent if point == halt.point else point for point in self.breakpoints]
        return halt.point

    def first_stop(self) -> int | None:
        """The first batch that is stopped."""
        return self.timeline.first_stop

    def open_at_first_stop(self) -> int | None:
        """Where a recording opens: at its first stop, given back, else at its end."""
        stop = self.first_stop()
        if len(self):
            self.seek(stop if stop is not None else len(self))
        return stop

    def row(self, number: int) -> Row:
        """One batch in the strip."""
        timeline, index = self.timeline, number - 1
        rows, decision = timeline.batches, timeline.verdict(number)
        return Row(
            n=number,
            seq=rows.seq[index],
            ts=None if rows.ts[index] != rows.ts[index] else rows.ts[index],
            scope=timeline.scope_of(number),
            hash=decision.hash,
            letter=rows.letter[index],
            names=timeline.names.values[rows.names[index]],
            decision=decision,
            usage=rows.usage(index),
        )

    def batch(self, number: int) -> Batch | None:
        """The whole batch, read again; None if its line is not there any more."""
        rows = self.timeline.batches
        event = self._read(rows.offset[number - 1], rows.length[number - 1])
        return event if isinstance(event, Batch) else None

    def results(self, number: int, most: int | None = None) -> tuple[Result | None, ...]:
        """The results of a batch, or of its first calls, aligned with them; None where one is out, or not there."""
        rows = self.timeline.results
        found: list[Result | None] = [None] * self.timeline.batches.calls[number - 1]
        del found[len(found) if most is None else most :]
        for row in self.timeline.results_of[number]:
            if rows.call[row] < len(found):
                event = self._read(rows.offset[row], rows.length[row])
                found[rows.call[row]] = event if isinstance(event, Result) else None
        return tuple(found)

    def _read(self, offset: int, length: int) -> Event | None:
        try:
            return self._store.read_at(offset, length)
        except UnreadableInputError:
            return None

    def same_result(self, number: int, call: int) -> int | None:
        """The newest earlier batch with the same result of the same tool; None if this one is new or not known."""
        timeline = self.timeline
        rows = timeline.results
        of_batch = timeline.results_of[number]
        digest = next((rows.digest[row] for row in of_batch if rows.call[row] == call), None)
        if digest is None:
            return None
        key = timeline.scope_of(number)
        earlier = (rows.batch[row] for row in timeline.with_digest.newest_first(digest))
        return max((n for n in earlier if n < number and timeline.scope_of(n) == key), default=None)

    def sightings(self, number: int) -> Sequence[int]:
        """The batches of the same scope with the same hash, this one included."""
        return self.timeline.sightings(number)

    @property
    def scopes(self) -> list[ScopeInfo]:
        """The scopes of the recording as a tree, threads in the order of their first event."""
        detector = self._detector(self.cursor) if self.cursor else None
        alive = {key for key in self.timeline.scopes if detector is not None and detector.scope(key) is not None}
        return tree(self.timeline.scopes, alive, self.cursor)

    @property
    def scope(self) -> ScopeInfo | None:
        """The scope of the batch at the cursor, as `scopes` has it; None while there is no batch."""
        key = self.timeline.scope_of(self.cursor) if self.cursor else None
        return next((info for info in self.scopes if info.key == key), None)

    @property
    def state(self) -> ScopeView:
        """The engine's state of the cursor's scope, just after the batch at the cursor was decided.

        Raises:
            IndexError: while there is no batch.
        """
        return self.state_at(self.cursor)

    def state_at(self, number: int, key: ScopeKey | None = None) -> ScopeView:
        """The engine's state of a scope just after this batch was decided; by default the batch's own."""
        key = key or self.timeline.scope_of(number)
        detector = self._detector(number)
        scope = detector.scope(key)
        return ScopeView(
            number, key, detector.policy_of(key), scope, detector.spent(key), detector.account(key),
            self.timeline.warnings(scope, number),
        )  # fmt: skip

    def _detector(self, number: int) -> LoopDetector:
        """A detector that has just decided this batch; a step forward goes on from where the last one stood."""
        if self._walker is not None:
            at, detector = self._walker
            if at <= number < at + 64:
                for position in range(at + 1, number + 1):
                    self.timeline.fold(detector, position)
                self._walker = (number, detector)
                return detector
        detector = self.timeline.detector_at(number)
        self._walker = (number, detector)
        return detector

    @property
    def decision(self) -> Decision | None:
        """The decision at the cursor; None while there is no batch."""
        return self.timeline.verdict(self.cursor) if self.cursor else None

    def explain(self, number: int | None = None, *, search: bool = True) -> Explanation:
        """Why a batch got its verdict; by default the one at the cursor.

        Args:
            number: of the batch.
            search: look for the nearest settings too. On long scopes this takes a while; `search=False` never does.
                Where the beginning of a scope is missing, as to a viewer that came late, they cannot be found.

        Raises:
            IndexError: if there is no such batch.
        """
        number = number or self.cursor
        self._check(number)
        if search:
            found = self.search(number)
            assert found is not None  # noqa: S101 - it is wanted to its end
            return found
        return self._explain(number, self._detector(number), search=False)

    def search(self, number: int, wanted: Callable[[], bool] | None = None) -> Explanation | None:
        """The whole explanation of a batch, callable from any thread.

        Args:
            number: of the batch.
            wanted: asked now and then; where it says no, there is no explanation.

        Raises:
            IndexError: if there is no such batch.
        """
        self._check(number)
        timeline = self.timeline
        whole = timeline.whole(counted_with(timeline, number))
        try:
            # The screen moves the other detector meanwhile.
            return self._explain(number, timeline.detector_at(number), search=whole, wanted=wanted)
        except Unwanted:
            return None

    def _check(self, number: int) -> None:
        if not 1 <= number <= len(self):
            msg = f"there is no batch {number}: the recording has {len(self)}"
            raise IndexError(msg)

    def _explain(
        self, number: int, detector: LoopDetector, *, search: bool, wanted: Callable[[], bool] | None = None
    ) -> Explanation:
        asked = (number, len(self), search)
        known = self._explained.get(asked)
        if known is None:
            if len(self._explained) > 256:  # noqa: PLR2004 - as many as a person looks at
                self._explained.clear()
            known = self._explained[asked] = explain(self._context(number, detector, wanted), search=search)
        return known

    def _context(self, number: int, detector: LoopDetector, wanted: Callable[[], bool] | None) -> Context:
        timeline = self.timeline
        key = timeline.scope_of(number)
        numbers = counted_with(timeline, number)
        scope = detector.scope(key)
        steps = Steps(timeline, numbers) if wanted is None else Steps(timeline, numbers, wanted=wanted)
        return Context(
            steps=steps,
            index=bisect_left(numbers, number),
            decision=timeline.verdict(number),
            warnings=timeline.warnings(scope, number),
            origin=self.where,
            name=self.letters(key),
            enforced=timeline.lived.enforced,
            removed=timeline.removed(number),
        )

    def topology(self, key: ScopeKey | None = None) -> Topology:
        """The graph of a scope with what its run did in it; by default of the cursor's scope.

        Raises:
            IndexError: while there is no batch.
        """
        key = key or self.timeline.scope_of(self.cursor)
        record = self.timeline.scopes[key]
        known = self._topologies.get(key)
        if known is None or known[0] != len(record.batches):
            rows, nodes, names = self.timeline.batches, self.timeline.nodes.values, self.timeline.names.values
            visits = [Visit(nodes[rows.node[n - 1]], names[rows.names[n - 1]]) for n in record.batches]
            shape = record.graph.graph if record.graph is not None else None
            known = self._topologies[key] = (len(record.batches), observe(shape, visits))
        return known[1]

    def whatif(self, policy: Policy) -> Difference:
        """The run under another policy: decisions that differ, warnings and stops on each side, and what is certain."""
        return compare(self.timeline, policy, self)

    def attempt(self, policy: Policy, wanted: Callable[[], bool] = lambda: True) -> Trial | None:
        """As `whatif`, with how each batch is drawn under the policy. Callable from any thread.

        Args:
            policy: the override.
            wanted: asked now and then; where it says no, there is no trial.
        """
        return attempt(self.timeline, policy, self, wanted)

    def letters(self, key: ScopeKey) -> Callable[[str], str]:
        """The letters of one scope's hashes."""
        numbers, known = self.timeline.hashes.numbers, self.timeline.scopes[key].letters

        def letter(digest: str) -> str:
            place = known.get(numbers.get(digest, -1))
            return digest if place is None else letter_name(place)

        return letter
