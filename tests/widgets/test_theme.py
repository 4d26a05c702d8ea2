"""How styles look: told apart under every mark, and by other means where there are no colours."""

from __future__ import annotations

from typing import get_args

import pytest

from loopscope.views.model import Mark, Style
from loopscope_widgets.terminal.theme import DARK, LIGHT, THEMES, styles_for


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
