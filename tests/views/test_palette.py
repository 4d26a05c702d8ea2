"""The colours: legible, and told apart by every eye."""

from __future__ import annotations

import pytest

from loopscope.views.palette import DARK, LIGHT, Palette


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, 1 to 21 (WCAG 2)."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", [DARK, LIGHT], ids=["dark", "light"])
def test_text_is_legible(palette: Palette) -> None:
    """4.5 : 1 for everything that is read, on every background that it stands on."""
    read = (palette.text, palette.dim, palette.ok, palette.repeat, palette.warn, palette.stop)
    for colour in (*read, palette.ahead):
        assert _contrast(colour, palette.background) >= 4.5
    for colour in read:
        assert _contrast(colour, palette.panel) >= 4.5


def test_the_state_colours_are_the_documented_ones() -> None:
    """They were chosen for three kinds of colour blindness; green is not among them."""
    assert DARK[4:8] == ("#9AA0A6", "#56B4E9", "#F0C000", "#FF6A3D")
    assert LIGHT[4:8] == ("#5F6368", "#0072B2", "#9A6700", "#8E0152")
