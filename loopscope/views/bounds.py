"""What bounds a loop beyond repetition, laps, failures, standstill, repeats in a batch, and budgets.

Counted once the results of the batch at the cursor are in, since three of these layers decide then.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import ceil
from typing import NamedTuple
from weakref import WeakKeyDictionary

from loopscope.engine.accounts import Account
from loopscope.engine.events import ScopeKey
from loopscope.engine.rules.cycle import laps
from loopscope.engine.scope import ScopeState, WarningRecord
from loopscope.engine.sections import COUNTERS, Pair
from loopscope.session.session import ScopeView, Session
from loopscope.session.steps import counted_with
from loopscope.views.bars import BARS, COUNT, NOTE, ROOMY, SHORT_NOTE, bar, columns
from loopscope.views.distance import Distance, Probe
from loopscope.views.firing import far
from loopscope.views.glyphs import GLYPH, TONE
from loopscope.views.model import Line, Span, Style, clip, crop, fit, spread
from loopscope.views.topbar import scope_name
from loopscope.views.words import amount, money, plural, safe_name, span_of_time

__all__ = [
    "UNITS",
    "Meter",
    "Streak",
    "ahead",
    "draw",
    "draw_budgets",
    "evidence",
    "meter_note",
    "meters",
    "progress",
    "spent",
    "streak_note",
    "streaks",
    "warned_at",
]

NOTHING = Distance(None, None)
_OURS = ("cycle", "error_streak", "stagnation", "repeat_in_batch", "budget")
UNITS: dict[str, Callable[[float], str]] = {"cost_usd": money, "wall_clock_s": span_of_time}
"""How a counter's value is written; the others are plain amounts."""
_LEFT = 18
"""Cells behind a budget's numbers: what is left of it."""
STRIP = 60
"""Iterations of the witness strip."""
_REACH = 500
"""Batches of the recording that are gone back for it at most: what lies between two snapshots of the engine."""
_DEEPEST = 64


class Streak(NamedTuple):
    """A layer that counts how long something goes on, as far as the policy sets it a limit."""

    layer: str
    label: str
    """Which reading, witness or tool."""
    value: int
    warn: int | None
    hard: int | None
    distance: Distance
    unit: str
    """What comes again, as `firing.said` wants it."""
    warned: int | None = None
    """The batch whose warning this stretch had."""
    circle: tuple[str, ...] = ()
    """The block that goes round, oldest first."""
    since: int = 0
    """The batch with which its first whole lap began."""
    stops: bool = False
    """The limit of a stop is reached, and nothing new holds it off."""

    @property
    def state(self) -> str:
        """`stop`, `warn`, `repeat`, `new`."""
        if self.stops:
            return "stop"
        if any(limit is not None and self.value >= limit for limit in (self.warn, self.hard)):
            return "warn"
        return "repeat" if self.going else "new"

    @property
    def going(self) -> bool:
        """It has begun to count: one lap is no circle yet."""
        return self.value > (self.layer == "cycle")

    @property
    def name(self) -> str:
        """The layer, with its reading where it has two."""
        return f"{self.layer} {self.label}" if self.layer == "cycle" else self.layer

    @property
    def comes(self) -> Distance:
        """What of the distance is this layer's own verdict: what another one says first, is said there."""
        warn, stop = self.distance.warn, self.distance.stop
        if warn is not None and warn.decision.layer != self.layer:
            return NOTHING
        return Distance(warn, stop if stop is not None and stop.decision.layer == self.layer else None)


class Meter(NamedTuple):
    """A budget: what is spent of it by the scope that is nearest to the limit, the cursor's own or one above it."""

    counter: str
    value: float
    warn: float
    limit: float
    whose: str
    """The scope above, where that is it; nothing for the cursor's own."""
    warned: bool
    more: float | None
    """Batches until the next limit as they cost so far, seconds for the wall clock; None where that cannot be told."""

    @property
    def state(self) -> str:
        """`stop`, `warn` or `new`."""
        return "stop" if self.value >= self.limit else "warn" if self.value >= self.warn else "new"

    @property
    def verdict(self) -> str:
        """What comes at the next limit."""
        return "STOP" if self.warned or self.value >= self.warn else "WARN"


def streaks(session: Session, view: ScopeView, probe: Probe, warnings: Sequence[WarningRecord]) -> Iterator[Streak]:
    """The layers that count how long something goes on, where the policy looks at them."""
    states, policy = probe.after.states, view.policy
    told = {record.layer: record.batch for record in warnings}
    if "cycle" in states:
        yield from _circles(session, view, probe, [record for record in warnings if record.layer == "cycle"])
    if "error_streak" in states:
        failing = probe.of_failures(session.row(view.n).names)
        found = ("error_streak", "", states["error_streak"].length, policy.error_streak)
        yield _counting(session, view, *found, failing, "failed batch", told)
    if "stagnation" in states:
        found = ("stagnation", policy.stagnation.witness, states["stagnation"].length, policy.stagnation.limits)
        standing = probe.of_standstill() if states["stagnation"].known else NOTHING
        yield _counting(session, view, *found, standing, "batch | without progress", told)
    if "repeat_in_batch" in states:
        repeats = session.timeline.repeats.get(view.n, ())
        _, tool, value = max(repeats, key=lambda repeat: repeat[2], default=("", "", 0))
        warned = _since(told.get("repeat_in_batch"), view.n)
        yield Streak("repeat_in_batch", safe_name(tool), value, policy.repeat_in_batch.warn, None, NOTHING, "", warned)


def _counting(  # noqa: PLR0913, PLR0917 - what two layers have in common
    session: Session,
    view: ScopeView,
    layer: str,
    label: str,
    value: int,
    pair: Pair,
    distance: Distance,
    unit: str,
    told: dict[str, int],
) -> Streak:
    """A layer that counts batches in a row."""
    numbers = counted_with(session.timeline, view.n)
    start = max(0, bisect_right(numbers, view.n) - max(1, value))
    stops = pair.hard_limit is not None and value >= pair.hard_limit
    warned = _since(told.get(layer), numbers[start]) if value else None
    return Streak(layer, safe_name(label), value, pair.warn, pair.hard_limit, distance, unit, warned, stops=stops)


def _since(told: int | None, start: int) -> int | None:
    """The batch of a warning, where it belongs to this stretch."""
    return told if told is not None and told >= start else None


def _circles(session: Session, view: ScopeView, probe: Probe, told: Sequence[WarningRecord]) -> Iterator[Streak]:
    """Laps by hash, and by the names of the tools."""
    policy = view.policy
    state = probe.after.states["cycle"]
    newest = list(zip(state.hashes, state.names, state.numbers, strict=True))
    stopped = session.timeline.verdict(view.n).action == "hard_stop"
    letters, shift = session.letters(view.key), session.timeline.shift(view.n)
    for by_hash, label, pair in ((True, "batches", policy.cycle.hash), (False, "tools", policy.cycle.names)):
        if not pair.active:
            continue
        value, period = laps([step[not by_hash] for step in newest], policy.cycle.max_period or 0)
        block = [(digest if by_hash else "", _names(names)) for digest, names, _ in newest[:period][::-1]]
        limit = pair.hard_limit if pair.warn is None else pair.warn
        warned = next((record.batch for record in reversed(told) if record.threshold == limit), None)
        since = newest[value * period - 1][2] - shift if value * period else 0
        yield Streak(
            layer="cycle",
            label=label,
            value=value,
            warn=pair.warn,
            hard=pair.hard_limit,
            distance=probe.of_circle(block) if block else NOTHING,
            unit="batch | round that circle",
            warned=_since(warned, since) if value > 1 else None,
            circle=tuple(letters(digest) if by_hash else safe_name("+".join(names)) for digest, names in block),
            since=since,
            stops=pair.hard_limit is not None and value >= pair.hard_limit and (stopped or not policy.result_aware),
        )


def _names(names: str | tuple[str, ...]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names


def meters(session: Session, view: ScopeView) -> Iterator[Meter]:
    """The budgets, each as it stands where most of it is spent: a batch counts for every scope above its own too."""
    now = session.row(view.n).ts
    accounts = list(_lineage(session, view))
    for counter in COUNTERS:
        budget = view.policy.budget.get(counter)
        if budget is None or not accounts:
            continue
        key, account = max(accounts, key=lambda pair: pair[1].value(counter, now))
        value, warn = account.value(counter, now), budget.warn * budget.limit
        warned = counter in account.warned
        target = budget.limit if warned or value >= warn else warn
        whose = "" if key == view.key else _above(key, view.key)
        more = _pace(account, counter, value, target)
        yield Meter(counter, value, warn, budget.limit, whose, warned, more)


def _above(key: ScopeKey, below: ScopeKey) -> str:
    """A scope above another one, without the thread that they share."""
    return safe_name(key.run_id or "-") if key.thread_id == below.thread_id else scope_name(*key)


def _lineage(session: Session, view: ScopeView) -> Iterator[tuple[ScopeKey, Account]]:
    """The accounts that the batch was charged to, nearest first."""
    key: ScopeKey | None = view.key
    seen: set[ScopeKey] = set()
    while key is not None and key not in seen and len(seen) < _DEEPEST:
        seen.add(key)
        account = session.state_at(view.n, key).account
        if account is not None:
            yield key, account
        record = session.timeline.scopes.get(key)
        key = record.parent if record is not None else None


def _pace(account: Account, counter: str, value: float, target: float) -> float | None:
    """How far a limit is at the pace so far: a rate has none, and what costs nothing never gets there."""
    left = max(0.0, target - value)
    if counter == "wall_clock_s":
        return left
    iterations = account.value("iterations", None)
    if counter == "requests_per_minute" or not value or not iterations:
        return None
    return max(1, ceil(left * iterations / value))


_KNOWN: WeakKeyDictionary[Session, dict[int, int]] = WeakKeyDictionary()
"""How long the witness had stood still when a batch was decided."""


def progress(session: Session, view: ScopeView, probe: Probe) -> list[tuple[int, bool]]:
    """The scope's newest iterations whose results are in, oldest first: the batch, and whether its witness moved."""
    numbers = counted_with(session.timeline, view.n)
    end = bisect_right(numbers, view.n)
    reached = [number for number in numbers[max(0, end - STRIP) : end] if number > view.n - _REACH]
    stale = _stood_still(session, view, reached)
    found = [(number, after <= before) for number, (before, after) in zip(reached, pairwise(stale), strict=False)]
    newest = next(reversed(probe.after.trail.batches.values())) if probe.after.trail is not None else None
    if newest is not None and newest.complete:
        found.append((view.n, probe.after.states["stagnation"].length <= stale[-1]))
    return found


def _stood_still(session: Session, view: ScopeView, numbers: Sequence[int]) -> list[int]:
    """The engine's own count at each of these batches; what is not known is folded in one go, at a jump alone."""
    known = _KNOWN.setdefault(session, {})
    known[view.n] = _stale(view.scope)
    missing = [number for number in numbers if number not in known]
    if missing:
        wanted = set(missing)
        timeline = session.timeline
        detector = timeline.detector_at(missing[0])
        for number in range(missing[0], missing[-1] + 1):
            if number > missing[0]:
                timeline.fold(detector, number)
            if number in wanted:
                known[number] = _stale(detector.scope(view.key))
    return [known[number] for number in numbers]


def _stale(scope: ScopeState | None) -> int:
    state = scope.states.get("stagnation") if scope is not None else None
    return state.length if state is not None else 0


def evidence(session: Session, width: int) -> list[Line]:
    """The rows of the layer that decided the batch at the cursor, where it is one of these; for Why."""
    decision = session.decision
    view = session.state if session.cursor else None
    if decision is None or view is None or view.scope is None or decision.layer not in _OURS:
        return []
    if decision.layer == "budget":
        return draw_budgets([meter for meter in meters(session, view) if meter.counter == decision.counter], width)[1:]
    probe = Probe(session, view, view.scope)
    found = streaks(session, view, probe, (*view.warnings, *probe.warnings))
    moved = progress(session, view, probe) if decision.layer == "stagnation" else []
    rows = [row for row in found if row.layer == decision.layer and row.state in ("warn", "stop")]
    return draw(rows, moved, width)


def draw(streaks: Sequence[Streak], iterations: Sequence[tuple[int, bool]], width: int) -> list[Line]:
    """The layers that count how long something goes on, and below a bar what it counts."""
    result: list[Line] = []
    for streak in streaks:
        result.append(_streak(streak, width))
        if streak.layer == "cycle" and streak.going:
            result.append(_circle(streak, width))
        if streak.layer == "stagnation" and iterations:
            result.append(_strip(iterations, width))
    return result


def _streak(streak: Streak, width: int) -> Line:
    hard = streak.hard or streak.warn or 1
    bar_width, label_width = columns(width)
    label = fit(streak.label, max(0, label_width - len(streak.layer) - 1))
    return crop(
        (
            Span(streak.layer, "title"),
            Span(f"  {label} ", "dim"),
            *bar(streak.value, streak.warn or hard, hard, bar_width, BARS[streak.state]),
            Span(f"{streak.value:>{COUNT - 1},} "),
            *streak_note(streak, roomy=width >= ROOMY),
        ),
        width,
    )


def streak_note(streak: Streak, *, roomy: bool) -> Line:
    """Its state, its warning, what comes next; and the limits, which no heading tells."""
    state, comes = streak.state, _comes(streak, roomy=roomy)
    limits = "/".join(f"{limit}" for limit in (streak.warn, streak.hard) if limit is not None)
    tail = Span(f"  of {limits}" if roomy and not comes.endswith(")") else "", "dim")
    if state == "stop":
        return (Span(f"{GLYPH['stop']} STOP", "stop"), tail)
    if roomy and streak.warned is not None:
        told = warned_at(streak.warned)
        return (told, Span(f", {_comes(streak, roomy=False)}", "dim"))
    return (Span(f"{GLYPH[state]} ", TONE[state]), Span(comes, "dim"), tail)


def _comes(streak: Streak, *, roomy: bool) -> str:
    """The distance in a few words, or why there is none."""
    if streak.layer == "repeat_in_batch":
        left = (streak.warn or 0) - streak.value
        return "never stops" if left <= 0 else f"{left} to WARN" if streak.value else "none"
    comes = far(streak.distance, streak.layer, roomy=roomy, warned=streak.warned is not None)
    if comes is not None:
        return comes
    if streak.going:
        return "no stop set" if streak.hard is None else "never"
    return "no circle" if streak.layer == "cycle" else "no value yet"


def _circle(streak: Streak, width: int) -> Line:
    """The block that goes round, back to where it began."""
    words = " → ".join((*streak.circle, streak.circle[0]))
    since = f"since #{streak.since}"
    room = max(1, width - len(since) - 5)
    return crop((Span("   "), Span(clip(words, room), "repeat"), Span(f"  {since}", "dim", link=streak.since)), width)


def _strip(iterations: Sequence[tuple[int, bool]], width: int) -> Line:
    """The witness strip: for the newest iterations, whether there was progress."""
    label, legend = "progress ", f"  {GLYPH['new']} yes  {GLYPH['repeat']} no"
    room = max(1, width - len(label) - len(legend) - 4)
    newest = iterations[-room:]
    spans = [Span(GLYPH["new" if moved else "repeat"], "ok" if moved else "repeat", link=n) for n, moved in newest]
    return crop((Span(f"   {label}", "dim"), *spans, Span(legend, "dim")), width)


def draw_budgets(meters: Sequence[Meter], width: int) -> list[Line]:
    """A gauge for each budget: spent, limit, and how long it lasts at the pace so far."""
    shares = sorted({round(100 * meter.warn / meter.limit) for meter in meters})
    limits = f"warn at {'-'.join(f'{share}' for share in shares[:: max(1, len(shares) - 1)])}%"
    what = "  with all sub-agents" if width >= ROOMY else ""
    room = max(len(spent(meter)) for meter in meters)
    return [
        spread((Span("BUDGETS", "title"), Span(what, "dim")), (Span(limits, "dim"),), width),
        *(_meter(meter, width, room) for meter in meters),
    ]


def spent(meter: Meter) -> str:
    """What is spent, of how much."""
    tell = UNITS.get(meter.counter, amount)
    return f"{tell(meter.value)} / {tell(meter.limit)}"


def meter_note(meter: Meter) -> Line:
    """What comes at its next limit, and how far that is."""
    if meter.state == "stop":
        return (Span(f"{GLYPH['stop']} STOP", "stop"),)
    left = _left(meter).replace("about ", "~").replace(" batches", "").replace(" batch", "").removesuffix(" more")
    return (Span(f"{GLYPH[meter.state]} ", TONE[meter.state]), Span(f"{left} to {meter.verdict}", "dim"))


def _meter(meter: Meter, width: int, room: int) -> Line:
    bar_width, label_width = columns(width)
    bar_width = max(6, bar_width - max(0, room + _LEFT - COUNT - (NOTE if width >= ROOMY else SHORT_NOTE)))
    label = fit(f"{meter.counter}  of {meter.whose}" if meter.whose else meter.counter, label_width)
    return crop(
        (
            Span(f" {label} "),
            *bar(meter.value, meter.warn, meter.limit, bar_width, BARS[meter.state]),
            Span(f" {spent(meter):<{room}} "),
            *meter_note(meter),
        ),
        width,
    )


def ahead(meter: Meter) -> tuple[str, Style]:
    """What comes at a budget's next limit, and when, at the pace so far."""
    again = " again" if meter.state == "stop" else ""
    if meter.verdict == "WARN":
        return f"{GLYPH['warn']} {_left(meter)} = WARN", "bar_warn"
    return f"{GLYPH['stop']} {_left(meter)} = STOP{again}", "bar_stop"


def _left(meter: Meter) -> str:
    """Batches, time or the plain difference until a budget's next limit."""
    if meter.counter == "wall_clock_s":
        return f"{span_of_time(meter.more or 0)} more"
    if meter.more is None:
        target = meter.limit if meter.verdict == "STOP" else meter.warn
        return f"{amount(max(0.0, target - meter.value))} more"
    about = "" if meter.counter == "iterations" else "about "
    return f"{about}{plural(int(meter.more), 'more batch', 'more batches')}"


def warned_at(number: int) -> Span:
    """At which batch a warning was given; numbers below 1 are of batches that came before what is kept."""
    return Span(f"{GLYPH['warn']} warned {f'#{number}' if number > 0 else 'before #1'}", "warn", link=max(0, number))
