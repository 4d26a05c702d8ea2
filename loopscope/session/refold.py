"""A whole run decided anew by a detector of its own, as fast as the engine can: for what-if, and for sweeps.

What a fold needs of each batch is made once and kept, so that trying one limit after another costs the engine's own
time and little else. Of runs that are longer than anybody types on, nothing is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from threading import Lock
from typing import NamedTuple, Protocol
from weakref import WeakKeyDictionary

import msgspec

from loopscope.engine.decision import Decision
from loopscope.engine.detector import LoopDetector
from loopscope.engine.events import Batch, ScopeKey
from loopscope.engine.identity import Identified
from loopscope.engine.joins import Place
from loopscope.engine.nearest import worst
from loopscope.engine.policy import Policy
from loopscope.engine.snapshot import Snapshot
from loopscope.engine.trail import Outcome
from loopscope.session.timeline import Timeline

__all__ = ["Folded", "Reader", "identity_of", "prepare", "refold"]

_MOST_KEPT = 50_000
"""Batches of the longest run of which something is kept: some 20 MB."""
_MOST_IDENTITIES = 4
_LOOK = 512
"""Batches between two times that a fold looks whether it is still wanted."""


class Reader(Protocol):
    """Reads whole batches again, for an override whose identity is another one."""

    def batch(self, number: int) -> Batch | None:
        """The batch with its arguments; None where its line is gone."""


class Folded(NamedTuple):
    """Every verdict of a policy."""

    decisions: list[Decision]
    keys_kept: int
    """Recorded keys that could not be computed anew under the policy's identity."""


class _Arrival(NamedTuple):
    """A result as `LoopDetector.fold_result` takes it."""

    key: ScopeKey
    place: Place
    outcome: Outcome
    seq: int


class _Hashed(NamedTuple):
    """A batch under another identity."""

    identified: Identified | None
    """None where its line is gone."""
    kept: int


class _Prepared:
    """What is kept of one run."""

    __slots__ = ("arrivals", "between", "hashed", "lock", "noted", "spending", "stubs")

    def __init__(self) -> None:
        self.stubs: list[Batch] = []
        """Batches without what only budgets look at."""
        self.spending: list[Batch] = []
        """The same with it; made when a policy first has budgets."""
        self.between: object = None
        self.noted: dict[bool, set[int]] = {}
        self.arrivals: list[_Arrival] = []
        self.hashed: dict[tuple[object, ...], list[_Hashed]] = {}
        self.lock = Lock()

    def extend(self, timeline: Timeline, last: int) -> None:
        """Make what a fold of the first `last` batches needs."""
        with self.lock:
            self.stubs.extend(_unpaid(timeline.stub(number)) for number in range(len(self.stubs) + 1, last + 1))
            rows = timeline.results
            for row in range(len(self.arrivals), len(rows)):
                place, outcome, seq = timeline.arrival(row)
                self.arrivals.append(_Arrival(timeline.scope_of(rows.batch[row]), place, outcome, seq))

    def batches(self, timeline: Timeline, last: int, *, budgets: bool) -> list[Batch]:
        """The batches for a fold: with what they cost only where that counts, as to add it up takes a fifth of it."""
        if not budgets:
            return self.stubs
        with self.lock:
            self.spending.extend(timeline.stub(number) for number in range(len(self.spending) + 1, last + 1))
            return self.spending

    def notable(self, timeline: Timeline, *, results: bool) -> set[int]:
        """After how many batches the engine must see something; results only where it looks at them."""
        with self.lock:
            size = timeline.between.size
            if size != self.between:
                self.between, self.noted = size, {}
            if results not in self.noted:
                self.noted[results] = _noted(timeline, results=results)
            return self.noted[results]

    def hash(self, detector: LoopDetector, reader: Reader, last: int, wanted: Callable[[], bool]) -> list[_Hashed]:
        """The first `last` batches under the identity of a detector; fewer once nobody wants them."""
        with self.lock:
            known = self.hashed.setdefault(identity_of(detector.policy), [])
            for number in range(len(known) + 1, last + 1):
                if number % _LOOK == 0 and not wanted():
                    break
                whole = reader.batch(number)
                kept = sum(call.key is not None for call in whole.calls) if whole is not None else 0
                known.append(_Hashed(detector.identify(whole) if whole is not None else None, kept))
            while len(self.hashed) > _MOST_IDENTITIES:
                del self.hashed[next(iter(self.hashed))]
            return known


_KEPT: WeakKeyDictionary[Timeline, _Prepared] = WeakKeyDictionary()


def identity_of(policy: Policy) -> tuple[object, ...]:
    """What makes two calls the same under a policy."""
    fields = tuple(sorted((tool, tuple(names)) for tool, names in policy.identity_fields.items()))
    return policy.identity, fields, policy.read_window


def refold(
    timeline: Timeline, policy: Policy, reader: Reader | None, last: int, wanted: Callable[[], bool]
) -> Folded | None:
    """The verdicts of a policy on the first `last` batches; None once nobody wants them any more.

    Args:
        timeline: the run, which may grow meanwhile.
        policy: decides everything; the recording's own policies do not count.
        reader: needed where the policy's identity is not the one that the run was folded with; else None.
        last: how many batches.
        wanted: asked now and then.
    """
    detector = LoopDetector(policy)
    prepared = _KEPT.setdefault(timeline, _Prepared()) if last <= _MOST_KEPT else _Prepared()
    prepared.extend(timeline, last)
    hashed: Sequence[_Hashed] = ()
    if reader is not None:
        hashed = prepared.hash(detector, reader, last, wanted)
        if len(hashed) < last:
            return None
    found: list[Decision] = []
    noted = prepared.notable(timeline, results=detector.sees_results)
    stubs = prepared.batches(timeline, last, budgets=bool(policy.budget))
    rows, digests, names, repeats = timeline.batches, timeline.hashes.values, timeline.names.values, timeline.repeats
    fold, add = detector.fold, found.append
    for row, stub in enumerate(islice(stubs, last)):
        if row in noted:
            _pass_over(timeline, detector, prepared.arrivals, row, found)
        if row % _LOOK == 0 and not wanted():
            return None
        same, repeated = digests[rows.hash[row]], repeats.get(row + 1, ())
        if hashed and (anew := hashed[row].identified) is not None:
            same, repeated = anew
        decision = fold(stub, same, names[rows.names[row]], repeated)
        add(decision if decision.batch == row + 1 else msgspec.structs.replace(decision, batch=row + 1))
    if last in noted:
        _pass_over(timeline, detector, prepared.arrivals, last, found)
    return Folded(found, sum(each.kept for each in islice(hashed, last)))


def prepare(timeline: Timeline) -> None:
    """Make now what the first of many folds would have to; callable from any thread."""
    if len(timeline) <= _MOST_KEPT:
        _KEPT.setdefault(timeline, _Prepared()).extend(timeline, len(timeline))


def _unpaid(stub: Batch) -> Batch:
    return msgspec.structs.replace(stub, ts=None, usage=None, calls=stub.calls[:1])


def _noted(timeline: Timeline, *, results: bool) -> set[int]:
    between = list(timeline.between.items())
    return {number for number, items in between if results or any(not isinstance(item, int) for item in items)}


def _pass_over(
    timeline: Timeline, detector: LoopDetector, arrivals: Sequence[_Arrival], number: int, found: list[Decision]
) -> None:
    """Let the detector see what lies between a batch and the next one; what it decides there may be worse."""
    items = timeline.between[number]
    if any(isinstance(item, Snapshot) for item in items) or timeline.shift(number):
        _revise(found, timeline.pass_over(detector, number))
        return
    sees_results = detector.sees_results
    for item in items:
        if not isinstance(item, int):
            _revise(found, detector.observe(item))  # type: ignore[arg-type]
        elif sees_results and item < len(arrivals):
            _revise(found, detector.fold_result(*arrivals[item]))


def _revise(found: list[Decision], later: Iterable[Decision]) -> None:
    for decision in later:
        found[decision.batch - 1] = worst(found[decision.batch - 1], decision)
