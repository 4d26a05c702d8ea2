"""The colours of a heat map: shades from the background to one hue, each with the text that can be read on it.

A number stands in every cell, so the shade only repeats it; harm is warm and the rest is cool, which every kind of
colour blindness tells apart by lightness too.
"""

from __future__ import annotations

from typing import NamedTuple

from loopscope.views.palette import Palette

__all__ = ["SHADES", "Shade", "contrast", "shade"]

SHADES = (0.15, 0.38, 0.72, 1.0)
"""Shares of the hue, from the faintest on."""


class Shade(NamedTuple):
    """One step."""

    back: str
    text: str


def shade(palette: Palette, level: int, *, harm: bool) -> Shade:
    """A step of a palette's scale, 1 to `len(SHADES)`.

    Args:
        palette: light or dark.
        level: 1 is the faintest.
        harm: warm in place of cool.
    """
    hue, part = palette.warn if harm else palette.repeat, SHADES[level - 1]
    pairs = zip(_parts(palette.background), _parts(hue), strict=True)
    back = "#" + "".join(f"{round(low + (high - low) * part):02X}" for low, high in pairs)
    return Shade(back, max((palette.text, palette.background), key=lambda text: contrast(text, back)))


def _parts(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as WCAG 2 defines it, 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    red, green, blue = (_linear(part / 255) for part in _parts(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4  # noqa: PLR2004 - the curve of sRGB
