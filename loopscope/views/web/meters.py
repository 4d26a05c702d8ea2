"""Detect as a drawing: each count with its limits, a bar on its way to them, and what comes next.

Apart from `detect`, which computes the values and draws them in cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from loopscope.views import bounds, detect
from loopscope.views.glyphs import TONE
from loopscope.views.model import Style, plain
from loopscope.views.web.markup import Markup, joined, tag
from loopscope.views.words import amount, newest_calls

__all__ = ["Meter", "Section", "draw", "sections"]

_TICK = 2
"""Width of a limit's tick."""


class Meter(NamedTuple):
    """One count."""

    letter: str
    """Of the hash; nothing for a tool or a streak."""
    label: str
    value: float
    warn: float | None
    hard: float | None
    state: str
    """By the count alone: `new`, `repeat`, `warn` or `stop`."""
    note: str
    """Verdict or distance, as short as on the screen."""
    coming: tuple[tuple[str, Style], ...]
    """What comes next, in words."""
    moved: bool
    """The batch at the cursor counted here."""
    tell: Callable[[float], str] = "{:,}".format
    """How its value and its limits are written."""


class Section(NamedTuple):
    """One layer."""

    layer: str
    about: str
    limits: str
    meters: tuple[Meter, ...]
    more: str
    """What there is beyond `meters`, in words; empty where they are all."""


def sections(found: detect.Data) -> Iterator[Section]:
    """The layers in the order of the screen."""
    policy = found.view.policy
    yield Section(
        "identical_call_set",
        f"last {policy.window_size:,} batches",
        _limits(policy.warn_threshold, policy.hard_limit),
        tuple(_of_gauge(found, gauge) for gauge in found.repeats),
        _more(found.more_repeats, found.repeats),
    )
    yield Section(
        "tool_frequency",
        newest_calls(policy.frequency_window),
        _limits(policy.tool_freq_warn, policy.tool_freq_hard_limit),
        tuple(_of_gauge(found, gauge) for gauge in found.tools),
        _more(found.more_tools, found.tools),
    )
    for streak in found.streaks:
        note = plain(bounds.streak_note(streak, roomy=False))
        coming: tuple[tuple[str, Style], ...] = ((note, TONE[streak.state]),)
        label = " → ".join((*streak.circle, streak.circle[0])) if streak.circle and streak.going else streak.label
        meter = Meter("", label, streak.value, streak.warn, streak.hard, streak.state, note, coming, moved=False)
        yield Section(streak.layer, streak.label, _limits(streak.warn, streak.hard), (meter,), "")
    if found.meters:
        yield Section("budgets", "with all sub-agents", "", tuple(map(_of_budget, found.meters)), "")


def _limits(warn: int | None, hard: int | None) -> str:
    return " · ".join(f"{name} {limit:,}" for name, limit in (("warn", warn), ("hard", hard)) if limit is not None)


def _more(count: int, gauges: tuple[detect.Gauge, ...]) -> str:
    return f"{count:,} more, none above {gauges[-1].value:,}" if count else ""


def _of_gauge(found: detect.Data, gauge: detect.Gauge) -> Meter:
    return Meter(
        gauge.name,
        gauge.label,
        gauge.value,
        gauge.warn,
        gauge.hard,
        gauge.state,
        plain(detect.note(found, gauge, roomy=True)),
        tuple(detect.say(gauge)),
        gauge.moved,
    )


def _of_budget(budget: bounds.Meter) -> Meter:
    label = f"{budget.counter} of {budget.whose}" if budget.whose else budget.counter
    note, tell = plain(bounds.meter_note(budget)), bounds.UNITS.get(budget.counter, amount)
    coming: tuple[tuple[str, Style], ...] = ((note, TONE[budget.state]),)
    return Meter("", label, budget.value, budget.warn, budget.limit, budget.state, note, coming, moved=False, tell=tell)


def draw(meter: Meter, x: float, y: float, width: float, height: float) -> Markup:
    """The bar: all of it stands for the hard limit, a tick for the warning."""
    hard = meter.hard or meter.warn or 1
    filled = min(1.0, meter.value / hard) * width
    parts = [tag("rect", class_="track", x=x, y=y, width=width, height=height, rx=2)]
    if meter.value:
        parts.append(tag("rect", class_=f"fill {meter.state}", x=x, y=y, width=max(_TICK, filled), height=height, rx=2))
    for limit, look in ((meter.warn, "warn"), (meter.hard, "stop")):
        if limit is not None:
            place = x + limit / hard * width - _TICK
            parts.append(tag("rect", class_=f"tick {look}", x=place, y=y - 2, width=_TICK, height=height + 4))
    return joined(parts)
