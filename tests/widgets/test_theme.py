"""The colours: legible, told apart by every eye, and replaced by other means where there are none."""

from __future__ import annotations

from typing import get_args

import pytest
from textual.color import Color

from loopscope.views.model import Mark, Style
from loopscope_widgets.terminal import theme
from loopscope_widgets.terminal.theme import DARK, LIGHT, THEMES, styles_for


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, 1 to 21 (WCAG 2)."""

    def luminance(colour: Color) -> float:
        parts = [
            value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4
            for value in (colour.r / 255, colour.g / 255, colour.b / 255)
        ]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    light, dark = sorted((luminance(Color.parse(one)), luminance(Color.parse(other))), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("palette", [theme._DARK, theme._LIGHT], ids=["dark", "light"])
def test_text_is_legible(palette: theme._Palette) -> None:
    """4.5 : 1 for everything that is read, on every background that it stands on."""
    for colour in (palette.text, palette.dim, palette.ahead, palette.ok, palette.repeat, palette.warn, palette.stop):
        assert contrast(colour, palette.background) >= 4.5
    for colour in (palette.text, palette.dim, palette.repeat, palette.warn, palette.stop):
        assert contrast(colour, palette.panel) >= 4.5


def test_the_state_colours_are_the_documented_ones() -> None:
    """They were chosen for three kinds of colour blindness; green is not among them."""
    assert theme._DARK[4:8] == ("#9AA0A6", "#56B4E9", "#F0C000", "#FF6A3D")
    assert theme._LIGHT[4:8] == ("#5F6368", "#0072B2", "#9A6700", "#8E0152")


@pytest.mark.parametrize("dark", [True, False])
def test_every_style_is_drawn_under_every_mark(dark: bool) -> None:
    """A presenter can use any of them."""
    styles = styles_for(dark=dark, no_color=False)
    assert set(styles) == {(style, mark) for style in get_args(Style) for mark in get_args(Mark)}


def test_without_colours_a_warning_is_underlined_and_a_stop_reversed() -> None:
    """Grey alone would not tell them apart."""
    styles = styles_for(dark=True, no_color=True)
    assert styles["warn", ""].underline
    assert styles["stop", ""].reverse
    assert not styles["repeat", ""].underline
    assert not styles_for(dark=True, no_color=False)["warn", ""].underline


def test_what_moved_is_bold() -> None:
    """And what is selected has the cursor's background."""
    styles = styles_for(dark=True, no_color=False)
    assert styles["text", "strong"].bold
    assert styles["text", "cursor"].bgcolor is not None
    assert styles["stop", "cursor"] == styles["stop", ""]


def test_both_themes_are_made_of_rgb_colours() -> None:
    """ANSI colours would turn black on black under NO_COLOR."""
    assert (DARK.dark, LIGHT.dark) == (True, False)
    assert not any(own.ansi for own in THEMES)
