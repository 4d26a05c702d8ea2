"""A sweep: what each setting of a grid would have warned and stopped, over one run or a hundred.

Until a scope's first hard stop its counts do not depend on the limits. So one pass per window gives, for every limit
at once, the batch at which it would first have been reached, and a cell of the grid is a few look-ups. Where counts do
depend on more (layers beyond the first two, a warning that ends the look at a batch, a history that runs share, another
identity), each cell is a fold of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct

from loopscope.engine.events import ScopeKey
from loopscope.engine.policy import Policy
from loopscope.engine.snapshot import Snapshot
from loopscope.session.timeline import Timeline
from loopscope.session.whatif import Reader, verdicts

__all__ = ["Outcome", "Reach", "Sweeper", "counts_alone"]


class Outcome(Struct, frozen=True):
    """What one cell does to one run."""

    first_warning: int | None
    """Number of the first batch that is warned before anything is stopped in its scope."""
    first_stop: int | None
    saved_batches: int = 0
    """Batches after each scope's first stop."""
    saved_calls: int = 0
    saved_tokens: int = 0
    saved_cost_usd: float = 0.0


class Reach(NamedTuple):
    """For k = 1, 2, …: the first batch at which some count was k. Nondecreasing, as counts grow by one."""

    batches: list[int]

    def at(self, limit: int) -> int | None:
        """The first batch at which the limit was reached."""
        return self.batches[limit - 1] if limit <= len(self.batches) else None

    def saw(self, count: int, batch: int) -> None:
        """A count of a batch; batches come in order."""
        if count > len(self.batches):
            self.batches.append(batch)


class _Life(NamedTuple):
    """One scope from where its state was fresh to where it was forgotten."""

    numbers: list[int]
    hashes: list[int]
    names: list[tuple[str, ...]]


class _Premise(NamedTuple):
    """What hashes, and the lives of scopes, were made under."""

    identity: str
    fields: dict[str, tuple[str, ...]]
    reads: str
    scope: str
    scopes_kept: int

    @classmethod
    def of(cls, policy: Policy) -> _Premise:
        return cls(
            policy.identity, policy.identity_fields, policy.read_window, policy.scope, policy.max_tracked_threads
        )

    @property
    def equality(self) -> tuple[object, ...]:
        """What makes two batches the same."""
        return self[:3]


def counts_alone(policy: Policy) -> bool:
    """Whether nothing but how often hashes and tools came decides under a policy, until the first stop of a scope."""
    if policy.looks_at_results or policy.cycle.active or policy.repeat_in_batch.warn or policy.budget:
        return False
    return policy.severity_first and policy.scope == "run"


class Sweeper:
    """One run, ready for any number of cells.

    Args:
        timeline: the run.
        reader: reads batches again, for policies whose identity is another one than the run was folded with.
    """

    def __init__(self, timeline: Timeline, reader: Reader | None = None) -> None:
        self._timeline = timeline
        self._reader = reader
        self._premises = [_Premise.of(policy) for policy in timeline.policies]
        self._whole = not any(isinstance(item, Snapshot) for item in timeline.between.others)
        self._lives = {key: list(_lives(timeline, record.batches)) for key, record in timeline.scopes.items()}
        self._by_hash: dict[tuple[ScopeKey, int], list[Reach]] = {}
        self._by_tool: dict[tuple[ScopeKey, int], list[dict[str, Reach]]] = {}
        self._tools = {name for names in timeline.names.values for name in names if name}
        self._sums: dict[ScopeKey, dict[int, tuple[int, int, int, float]]] = {}
        self._general: dict[tuple[ScopeKey, int, int, frozenset[str]], Reach] = {}

    def outcome(self, policy: Policy) -> Outcome:
        """What a policy does to the run; the same as folding it, at the cost of look-ups where counts allow it."""
        if not self._counts_alone(policy):
            return self._folded(policy)
        warnings: list[int] = []
        stops: list[int] = []
        for key in self._lives:
            warned, stopped = self._scope(key, policy)
            warnings.extend([] if warned is None else [warned])
            stops.extend([] if stopped is None else [stopped])
        return self._saved(warnings, stops)

    def _counts_alone(self, policy: Policy) -> bool:
        """Whether look-ups tell what a policy does: it sees counts alone, of the same hashes in the same lives."""
        if not self._whole or not counts_alone(policy):
            return False
        wanted = _Premise.of(policy)
        return all(premise == wanted for premise in self._premises)

    def _scope(self, key: ScopeKey, policy: Policy) -> tuple[int | None, int | None]:
        """The first warning and the first stop of one scope, over its lives."""
        window, own = policy.frequency_window, policy.tool_freq_overrides
        warned: int | None = None
        for index, _ in enumerate(self._lives[key]):
            same = self._hash_reach(key, policy.window_size)[index]
            tools = self._tool_reach(key, window)[index]
            general = self._general_reach(key, window, index, frozenset(own))
            limits = [(same, policy.warn_threshold, policy.hard_limit)]
            limits.append((general, policy.tool_freq_warn, policy.tool_freq_hard_limit))
            limits += [(tools[tool], pair.warn, pair.hard_limit) for tool, pair in own.items() if tool in tools]
            stop = min((at for reach, _, hard in limits if (at := reach.at(hard)) is not None), default=None)
            warn = min((at for reach, soft, _ in limits if (at := reach.at(soft)) is not None), default=None)
            if warned is None and warn is not None and (stop is None or warn < stop):
                warned = warn
            if stop is not None:
                return warned, stop
        return warned, None

    def _hash_reach(self, key: ScopeKey, size: int) -> list[Reach]:
        known = self._by_hash.get((key, size))
        if known is None:
            known = self._by_hash[key, size] = [_reach_of_hashes(life, size) for life in self._lives[key]]
        return known

    def _tool_reach(self, key: ScopeKey, size: int) -> list[dict[str, Reach]]:
        known = self._by_tool.get((key, size))
        if known is None:
            known = self._by_tool[key, size] = [_reach_of_tools(life, size) for life in self._lives[key]]
        return known

    def _general_reach(self, key: ScopeKey, size: int, life: int, own: frozenset[str]) -> Reach:
        """The tools without limits of their own, taken together: whichever comes first."""
        place = (key, size, life, own & self._tools)
        known = self._general.get(place)
        if known is None:
            columns = [reach.batches for tool, reach in self._tool_reach(key, size)[life].items() if tool not in own]
            longest = max((len(column) for column in columns), default=0)
            merged = [min(column[k] for column in columns if len(column) > k) for k in range(longest)]
            known = self._general[place] = Reach(merged)
        return known

    def _folded(self, policy: Policy) -> Outcome:
        """By a fold of its own, for what counts alone do not tell."""
        warnings: dict[ScopeKey, int] = {}
        stops: dict[ScopeKey, int] = {}
        wanted = _Premise.of(policy).equality
        reader = None if all(premise.equality == wanted for premise in self._premises) else self._reader
        for decision in verdicts(self._timeline, policy, reader)[0]:
            if decision.action == "hard_stop":
                stops.setdefault(decision.scope, decision.batch)
            elif decision.action == "warn" and decision.scope not in stops:
                warnings.setdefault(decision.scope, decision.batch)
        return self._saved(list(warnings.values()), list(stops.values()))

    def _saved(self, warnings: list[int], stops: list[int]) -> Outcome:
        saved = [self._after(number) for number in stops]
        return Outcome(
            first_warning=min(warnings, default=None),
            first_stop=min(stops, default=None),
            saved_batches=sum(part[0] for part in saved),
            saved_calls=sum(part[1] for part in saved),
            saved_tokens=sum(part[2] for part in saved),
            saved_cost_usd=sum(part[3] for part in saved),
        )

    def _after(self, number: int) -> tuple[int, int, int, float]:
        """What the scope of a batch spent after it, from sums that are made once."""
        key = self._timeline.scope_of(number)
        sums = self._sums.get(key)
        if sums is None:
            sums = self._sums[key] = _sums(self._timeline, key)
        return sums[number]


def _lives(timeline: Timeline, numbers: Iterable[int]) -> Iterator[_Life]:
    """The batches of a scope, split where the engine had forgotten it."""
    rows = timeline.batches
    life = _Life([], [], [])
    for number in numbers:
        if number in timeline.fresh and life.numbers:
            yield life
            life = _Life([], [], [])
        life.numbers.append(number)
        life.hashes.append(rows.hash[number - 1])
        life.names.append(timeline.names.values[rows.names[number - 1]])
    if life.numbers:
        yield life


def _reach_of_hashes(life: _Life, size: int) -> Reach:
    reach = Reach([])
    window: deque[int] = deque()
    counts: dict[int, int] = {}
    for number, item in zip(life.numbers, life.hashes, strict=True):
        window.append(item)
        counts[item] = counts.get(item, 0) + 1
        if len(window) > size:
            counts[window.popleft()] -= 1
        reach.saw(counts[item], number)
    return reach


def _reach_of_tools(life: _Life, size: int) -> dict[str, Reach]:
    reaches: dict[str, Reach] = {}
    window: deque[str] = deque()
    counts: dict[str, int] = {}
    for number, names in zip(life.numbers, life.names, strict=True):
        for name in names:
            if not name:
                continue
            window.append(name)
            counts[name] = counts.get(name, 0) + 1
            if len(window) > size:
                counts[window.popleft()] -= 1
            reaches.setdefault(name, Reach([])).saw(counts[name], number)
    return reaches


def _sums(timeline: Timeline, key: ScopeKey) -> dict[int, tuple[int, int, int, float]]:
    """For each batch of a scope: batches, calls, tokens and cost that came after it."""
    rows = timeline.batches
    found: dict[int, tuple[int, int, int, float]] = {}
    total = (0, 0, 0, 0.0)
    for number in reversed(timeline.scopes[key].batches):
        found[number] = total
        usage = rows.usage(number - 1)
        tokens = 0 if usage is None else (usage.input_tokens or 0) + (usage.output_tokens or 0)
        cost = 0.0 if usage is None else usage.cost_usd or 0.0
        total = (total[0] + 1, total[1] + rows.calls[number - 1], total[2] + tokens, total[3] + cost)
    return found
