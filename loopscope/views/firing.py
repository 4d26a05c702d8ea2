"""A distance to fire in words: in full under its own heading, and in a few beside a bar."""

from __future__ import annotations

from loopscope.views.distance import FURTHEST, Distance, Fire
from loopscope.views.glyphs import GLYPH
from loopscope.views.model import Style
from loopscope.views.words import in_words, plural

__all__ = ["WORD", "far", "said"]

WORD = {"warn": "WARN", "hard_stop": "STOP"}
_SHORT = {"identical_call_set": "identical", "tool_frequency": "frequency"}
"""Layers whose names are too long to stand beside a bar."""


def said(found: Distance, layer: str, unit: str, *, again: bool = False) -> list[tuple[str, Style]]:
    """What comes, and after how many more: `▲ one more identical batch = WARN`, `■ three more = STOP`.

    Args:
        found: the distance; nothing is said where nothing comes.
        layer: of the row: a verdict of another one names that.
        unit: what comes again: `identical batch`.
        again: the limit of a stop is reached already.
    """
    words: list[tuple[str, Style]] = []
    if found.warn is not None:
        words.append((f"{GLYPH['warn']} {_fire(found.warn, unit, layer)}", "bar_warn"))
    if found.stop is not None:
        text = _fire(found.stop, "" if words else unit, layer)
        words.append((f"{GLYPH['stop']} {text}{' again' if again else ''}", "bar_stop"))
    if not words and found.further:
        words.append((f"{GLYPH['new']} further than {FURTHEST:,} more", "ok"))
    return words


def _fire(fire: Fire, unit: str, layer: str) -> str:
    more = f"{in_words(fire.more)} more"
    if unit:
        noun, _, rest = unit.partition(" | ")
        more += f" {noun if fire.more == 1 else plural(2, noun)[2:]}{rest and f' {rest}'}"
    by = "" if fire.decision.layer == layer else f" by {fire.decision.layer}"
    return f"{more} = {WORD[fire.decision.action]}{by}"


def far(found: Distance, layer: str, *, roomy: bool, warned: bool = False) -> str | None:
    """The same beside a bar: `1 to WARN`, or where that was said already, `3 to STOP`; None where nothing comes."""
    fire = (found.stop or found.warn) if warned else (found.warn or found.stop)
    if fire is None:
        return "far" if found.further else None
    other = fire.decision.layer or layer
    by = f" ({_SHORT.get(other, other)})" if roomy and other != layer else ""
    return f"{fire.more:,} to {WORD[fire.decision.action]}{by}"
