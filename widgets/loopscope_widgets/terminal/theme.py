"""The colours: two themes of our own, and how a view's styles look in them.

The four state colours keep apart for every kind of colour blindness and have at least 4.5 : 1 of contrast on their
background; green is not used. The glyph says it first, colour repeats it. Under NO_COLOR everything is grey, so that
warnings are underlined and stops reversed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, get_args

from rich.style import Style as RichStyle
from textual.theme import Theme

from loopscope.views.model import Mark, Style

__all__ = ["DARK", "LIGHT", "THEMES", "styles_for"]


class _Palette(NamedTuple):
    """Colours of one theme, as hex."""

    background: str
    text: str
    dim: str
    ahead: str
    ok: str
    repeat: str
    warn: str
    stop: str
    cursor: str
    """Background of the selected column or row."""
    line: str
    """Borders of panes without focus."""
    panel: str
    """Background of modals and toasts."""


_DARK = _Palette(
    "#121212",
    "#E8EAED",
    "#8A9096",
    "#7A7F85",
    "#9AA0A6",
    "#56B4E9",
    "#F0C000",
    "#FF6A3D",
    "#33383D",
    "#3C4043",
    "#1E1F21",
)
_LIGHT = _Palette(
    "#FAFAFA",
    "#202124",
    "#5F6368",
    "#6F747A",
    "#5F6368",
    "#0072B2",
    "#9A6700",
    "#8E0152",
    "#DDE1E6",
    "#C4C8CC",
    "#FFFFFF",
)


def _theme(name: str, palette: _Palette, *, dark: bool) -> Theme:
    return Theme(
        name=name,
        dark=dark,
        primary=palette.repeat,
        secondary=palette.dim,
        accent=palette.repeat,
        warning=palette.warn,
        error=palette.stop,
        success=palette.dim,
        foreground=palette.text,
        background=palette.background,
        surface=palette.background,
        panel=palette.panel,
        variables={
            "pane-line": palette.line,
            "pane-dim": palette.dim,
            "pane-cursor": palette.cursor,
            "input-cursor-background": palette.text,
            "input-cursor-foreground": palette.background,
            "input-selection-background": palette.cursor,
            "scrollbar": palette.line,
            "scrollbar-hover": palette.dim,
            "scrollbar-active": palette.dim,
            "scrollbar-background": palette.background,
            "scrollbar-background-hover": palette.background,
            "scrollbar-background-active": palette.background,
            "scrollbar-corner-color": palette.background,
        },
    )


DARK = _theme("loopscope-dark", _DARK, dark=True)
LIGHT = _theme("loopscope-light", _LIGHT, dark=False)
THEMES = (DARK, LIGHT)


@lru_cache(maxsize=4)
def styles_for(*, dark: bool, no_color: bool) -> dict[tuple[Style, Mark], RichStyle]:
    """How each style under each mark is drawn on a dark or a light background.

    Args:
        dark: which of the two palettes; a theme that is not ours gets the one that fits its background.
        no_color: say warn by an underline and stop by reversing, since all colours will be grey.
    """
    palette = _DARK if dark else _LIGHT
    base: dict[Style, RichStyle] = {
        "text": RichStyle(color=palette.text),
        "dim": RichStyle(color=palette.dim),
        "title": RichStyle(color=palette.text, bold=True),
        "key": RichStyle(color=palette.repeat, bold=True),
        "ok": RichStyle(color=palette.ok),
        "repeat": RichStyle(color=palette.repeat),
        "warn": RichStyle(color=palette.warn, bold=True, underline=no_color or None),
        "stop": RichStyle(color=palette.stop, bold=True, reverse=True),
        "ahead": RichStyle(color=palette.ahead),
        "bar_ok": RichStyle(color=palette.ok),
        "bar_repeat": RichStyle(color=palette.repeat),
        "bar_warn": RichStyle(color=palette.warn),
        "bar_stop": RichStyle(color=palette.stop),
        "tick_warn": RichStyle(color=palette.background, bgcolor=palette.warn),
        "tick_stop": RichStyle(color=palette.background, bgcolor=palette.stop),
    }
    over: dict[Mark, RichStyle] = {
        "": RichStyle.null(),
        "strong": RichStyle(bold=True),
        "cursor": RichStyle(bgcolor=palette.cursor, bold=True),
    }
    styles = {(style, mark): base[style] + over[mark] for style in get_args(Style) for mark in get_args(Mark)}
    styles["stop", "cursor"] = base["stop"]  # it stands out already, and reversed the cursor's grey would be its text
    return styles
