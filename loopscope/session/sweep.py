"""A sweep: what each setting of a grid would have warned and stopped, over one run or a hundred.

Until a scope's first hard stop its counts do not depend on the limits. So one pass per window gives, for every limit
at once, the batch at which it would first have been reached, and a cell of the grid is a few look-ups. Where a policy
has layers beyond the first two, each cell is a fold of its own.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from msgspec import Struct

from loopscope.engine.events import ScopeKey
from loopscope.engine.nearest import changed
from loopscope.engine.policy import Policy
from loopscope.errors import PolicyError, UsageError
from loopscope.session.timeline import Timeline
from loopscope.session.whatif import verdicts

__all__ = ["Cell", "Grid", "Outcome", "Reach", "Sweeper", "parse_grid"]

MOST_CELLS = 1_000_000
_RANGE = re.compile(r"(\d+)(?:\.\.(\d+)(?:\.\.(\d+))?)?")


class Cell(NamedTuple):
    """One setting of the grid."""

    values: tuple[int, ...]
    """In the order of the grid's settings."""
    policy: Policy


class Grid(NamedTuple):
    """Settings and the values that each is to take."""

    settings: tuple[str, ...]
    values: tuple[tuple[int, ...], ...]

    def cells(self, base: Policy) -> Iterator[Cell]:
        """Every combination that is a valid policy; a hard limit below its warning is none."""
        for values in product(*self.values):
            policy = base
            try:
                policy = _changed(base, dict(zip(self.settings, values, strict=True)))
            except PolicyError:
                continue
            yield Cell(values, policy)


def _changed(base: Policy, changes: Mapping[str, int]) -> Policy:
    """All changes at once, since a warning and its hard limit may only fit together."""
    plain = {name: value for name, value in changes.items() if "." not in name}
    policy = base.with_(**plain) if plain else base
    tools: dict[str, dict[str, Any]] = {}
    for name, value in changes.items():
        if name.startswith("tool_freq_overrides."):
            tool, _, part = name.removeprefix("tool_freq_overrides.").rpartition(".")
            limits = policy.frequency_limits(tool)
            tools.setdefault(tool, {"warn": limits.warn, "hard_limit": limits.hard_limit})[part] = value
        elif "." in name:
            policy = changed(policy, name, value)
    return policy.with_(tool_freq_overrides={**policy.tool_freq_overrides, **tools}) if tools else policy


def parse_grid(texts: Iterable[str], base: Policy) -> Grid:
    """A grid from `NAME=3..12`, `NAME=3..30..3` (in steps) or `NAME=10,20,40`, one text a setting.

    Raises:
        UsageError: if a text is not of this form, a setting is not known, or the grid has more than a million cells.
    """
    settings: list[str] = []
    values: list[tuple[int, ...]] = []
    for text in texts:
        name, sign, spec = text.partition("=")
        if not sign or not name or not spec:
            raise UsageError(f"--grid {text!r}: must be NAME=3..12, NAME=3..30..3 or NAME=10,20,40")
        settings.append(name.strip())
        values.append(_values(spec, text))
        _check(name.strip(), values[-1], base, text)
    cells = 1
    for choice in values:
        cells *= len(choice)
    if cells > MOST_CELLS:
        raise UsageError(f"--grid: {cells:,} cells are too many; {MOST_CELLS:,} is the most")
    return Grid(tuple(settings), tuple(values))


def _values(spec: str, text: str) -> tuple[int, ...]:
    found: list[int] = []
    for part in spec.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last, step = (int(number) if number else None for number in match.groups()) if match else (None,) * 3
        last, step = first if last is None else last, 1 if step is None else step
        if first is None or last is None or not step or last < first or (last - first) // step >= MOST_CELLS:
            raise UsageError(f"--grid {text!r}: must be NAME=3..12, NAME=3..30..3 or NAME=10,20,40")
        found.extend(range(first, last + 1, step))
    return tuple(dict.fromkeys(found))


def _check(name: str, values: Sequence[int], base: Policy, text: str) -> None:
    """A setting that no value of the grid makes valid is a mistake in its name or its kind."""
    problem: PolicyError | None = None
    for value in values:
        try:
            _changed(base, {name: value})
        except PolicyError as error:
            problem = error
            if any("unknown" in p.message for p in error.problems):
                break
        except (AttributeError, KeyError, TypeError, ValueError):
            raise UsageError(f"--grid {text!r}: there is no setting {name!r}") from None
        else:
            return
    if problem is not None and any("unknown" in p.message for p in problem.problems):
        raise UsageError(f"--grid {text!r}: {problem}")


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


class Sweeper:
    """One run, ready for any number of cells."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._lives = {key: list(_lives(timeline, record.batches)) for key, record in timeline.scopes.items()}
        self._by_hash: dict[tuple[ScopeKey, int], list[Reach]] = {}
        self._by_tool: dict[tuple[ScopeKey, int], list[dict[str, Reach]]] = {}
        self._tools = {name for names in timeline.names.values for name in names if name}
        self._sums: dict[ScopeKey, dict[int, tuple[int, int, int, float]]] = {}
        self._general: dict[tuple[ScopeKey, int, int, frozenset[str]], Reach] = {}

    def outcome(self, policy: Policy) -> Outcome:
        """What a policy does to the run; the same as folding it, at the cost of look-ups where counts allow it."""
        if policy.looks_at_results or policy.cycle.active or policy.repeat_in_batch.warn or policy.budget:
            return self._folded(policy)
        warnings: list[int] = []
        stops: list[int] = []
        for key in self._lives:
            warned, stopped = self._scope(key, policy)
            warnings.extend([] if warned is None else [warned])
            stops.extend([] if stopped is None else [stopped])
        return self._saved(warnings, stops)

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
        """By a fold of its own: the layers beyond the first two see more than counts."""
        warnings: dict[ScopeKey, int] = {}
        stops: dict[ScopeKey, int] = {}
        for decision in verdicts(self._timeline, policy)[0]:
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
