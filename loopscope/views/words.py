"""Numbers, sizes, times and plurals as a person reads them, the same on every screen."""

from __future__ import annotations

from loopscope.engine.policy import UNBOUNDED
from loopscope.recording.inert import inert

__all__ = [
    "amount",
    "clock",
    "in_words",
    "money",
    "newest_calls",
    "plural",
    "safe_name",
    "size",
    "span_of_time",
    "times",
]

_LONGEST = 200

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 batch`, `2 batches`: the count with its noun."""
    return f"{count:,} {one if count == 1 else many or _many(one)}"


def _many(one: str) -> str:
    return one + ("es" if one.endswith(("s", "x", "ch", "sh")) else "s")


def safe_name(text: str) -> str:
    """A name from outside, safe to draw and cut where it is longer than any column."""
    return inert(text, _LONGEST)


def in_words(count: int) -> str:
    """Small numbers as words, others as digits."""
    return _NUMBERS[count] if count < len(_NUMBERS) else f"{count:,}"


def newest_calls(count: int) -> str:
    """What the frequency layer counts in: `last 50 calls`, or `whole history` where it counts without end."""
    return "whole history" if count == UNBOUNDED else f"last {count:,} calls"


def times(count: int) -> str:
    """`once`, `twice`, `3 times`."""
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def amount(value: float) -> str:
    """A count in at most five characters or so: `950`, `61.2k`, `1.3M`."""
    for limit, suffix in ((1_000_000_000, "G"), (1_000_000, "M"), (10_000, "k")):
        if value >= limit:
            return f"{value / (limit if suffix != 'k' else 1000):.1f}{suffix}"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def size(count: int) -> str:
    """Bytes, in decimal units: `812 B`, `4.1 kB`, `52.4 MB`."""
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:  # noqa: PLR2004 - the step between decimal units
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def money(usd: float) -> str:
    """US dollars, with as many digits as small sums need."""
    return f"${usd:,.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"


def clock(seconds: float) -> str:
    """Time since the beginning: `01:12.480`, `2:03:04.500`, with days in front where there are any."""
    sign, millis = ("-" if seconds < 0 else ""), round(abs(seconds) * 1000)
    whole, rest = divmod(millis, 1000)
    days, hours, minutes, second = whole // _DAY, whole % _DAY // _HOUR, whole % _HOUR // _MINUTE, whole % _MINUTE
    front = f"{days}d " if days else ""
    front += f"{hours}:" if days or hours else ""
    return f"{sign}{front}{minutes:02}:{second:02}.{rest:03}"


def span_of_time(seconds: float) -> str:
    """A length of time: `0.42s`, `12.5s`, `1m12s`, `2h05m`, `3d04h`."""
    if seconds < 10:  # noqa: PLR2004 - where a hundredth stops to matter
        return f"{seconds:.2f}s"
    if seconds < _MINUTE:
        return f"{seconds:.1f}s"
    if seconds < _HOUR:
        return f"{int(seconds) // _MINUTE}m{int(seconds) % _MINUTE:02}s"
    if seconds < _DAY:
        return f"{int(seconds) // _HOUR}h{int(seconds) % _HOUR // _MINUTE:02}m"
    return f"{int(seconds) // _DAY}d{int(seconds) % _DAY // _HOUR:02}h"
